#include "device.h"

#include <stdio.h>
#include <string.h>

#include "device_model.h"
#include "kernels/device.h"

uint64_t slu_device_least(enum slu_device_work work, unsigned n_threads)
{
#ifdef SLU_DEVICE_EAGER /* the tests' build, whose device is a fake */
    (void)work, (void)n_threads;
    return 1;
#else
    const double bus = 2 / SLU_MODEL_BUS_BYTE_PER_S;
    double host = 0, device = 0; /* seconds of the run for each unit */
    switch (work) {
    case SLU_WORK_SCAN: /* one thread reads for the device, and all threads without */
        host = (SLU_MODEL_READ_S + SLU_MODEL_SCAN_S) / n_threads;
        device = SLU_MODEL_READ_S > bus ? SLU_MODEL_READ_S : bus;
        break;
    case SLU_WORK_PACK: /* a bin's ids are anywhere: all go up before any comes down */
        host = (SLU_MODEL_COPY_S + SLU_MODEL_HASH_S) / n_threads;
        device = 2 * bus;
        break;
    default: /* a stream brings a length more slowly than a core counts it */
        break;
    }
    return host > device ? (uint64_t)(SLU_MODEL_START_S / (host - device)) : UINT64_MAX;
#endif
}

static void use_cpu(struct slu_device *d)
{
    d->ordinal = -1;
    snprintf(d->name, sizeof d->name, "cpu");
}

/* Starts the wanted device if it exists. *n: the number of devices. */
static int wake(struct slu_device *d, int *n)
{
    char name[96];
    int code = slu_device_count(n);
    if (code || d->wanted >= (uint64_t)*n)
        return code;
    code = slu_device_name((int)d->wanted, name, sizeof name);
    if (!code)
        code = slu_device_select((int)d->wanted);
    if (code)
        return code;
    d->ordinal = (int)d->wanted;
    snprintf(d->name, sizeof d->name, "cuda:%d (%s)", d->ordinal, name);
    return 0;
}

int slu_device_choose(struct slu_device *d, enum slu_device_kind kind, uint64_t ordinal,
                      struct slu_err *err)
{
    memset(d, 0, sizeof *d);
    d->kind = kind;
    d->wanted = ordinal;
    use_cpu(d);
    if (kind != SLU_DEVICE_CUDA)
        return SLU_OK;
    int n, code = wake(d, &n);
    if (code != 0)
        return slu_advise(err, SLU_ADVISE_DEVICE,
                          slu_fail(err, SLU_E_DEVICE, "cuda:%llu cannot be used: %s",
                                   (unsigned long long)ordinal,
                                   slu_device_error(code)));
    if (d->ordinal < 0)
        return slu_fail(err, SLU_E_DEVICE,
                        "there is no cuda:%llu: %d CUDA device%s here",
                        (unsigned long long)ordinal, n, slu_plural((uint64_t)n));
    return SLU_OK;
}

bool slu_device_take(struct slu_device *d, enum slu_device_work work, uint64_t n)
{
    if (!d || d->kind == SLU_DEVICE_CPU || d->gone)
        return false;
    if (d->kind == SLU_DEVICE_AUTO) {
        int found;
        uint64_t *sum = &d->offered[work];
        uint64_t least = slu_device_least(work, d->n_threads ? d->n_threads : 1);
        *sum = n < UINT64_MAX - *sum ? *sum + n : UINT64_MAX;
        if (*sum < least || least == UINT64_MAX)
            return false;
        if (d->ordinal < 0 && (wake(d, &found) != 0 || d->ordinal < 0)) {
            d->gone = true; /* silently: auto promises no device */
            return false;
        }
    }
    d->taken = true;
    return true;
}

int slu_device_fault(struct slu_device *d, int code, struct slu_err *err)
{
    char text[256];
    const char *why = slu_device_error(code);
    if (d->kind != SLU_DEVICE_AUTO)
        return slu_advise(err, SLU_ADVISE_DEVICE,
                          slu_fail(err, SLU_E_DEVICE, "%s: %s", d->name, why));
    snprintf(text, sizeof text, "%s: %s; the CPU does its work", d->name, why);
    d->gone = true;
    use_cpu(d);
    if (d->warn)
        d->warn(d->warn_arg, text);
    d->warn = NULL;
    return SLU_OK;
}
