#include "device.h"

#include <stdio.h>
#include <string.h>

#include "kernels/device.h"

/* The sizes from which on auto uses a device. NOT MEASURED YET: they were set without a
 * device, in favour of the CPU.
 *
 * Known without one: starting a device takes 0.3 to 1 s, and a bus of PCIe 4 or 5
 * carries 25 to 55 GB/s each way. A core counts 1.6e9 lengths per second and scans 1e10
 * ids of two bytes, 13 and 20 GB/s. Two cores are as fast as the bus, so work on the
 * host's data that yields a few kilobytes of counts gains nothing at any size. Sorting,
 * placing and copying take a core 5 ns per item or more; 2^27 items are then a second
 * of two cores and 6 GB over the bus.
 */
static const uint64_t least[SLU_WORKS] = {
#ifdef SLU_DEVICE_EAGER /* the tests' build, whose device is a fake */
    [SLU_WORK_HISTOGRAM] = 1,
    [SLU_WORK_SCAN] = 1,
    [SLU_WORK_PACK] = 1,
#else
    [SLU_WORK_HISTOGRAM] = UINT64_MAX,
    [SLU_WORK_SCAN] = UINT64_MAX,
    [SLU_WORK_PACK] = UINT64_C(1) << 27,
#endif
};

uint64_t slu_device_least(enum slu_device_work work)
{
    return least[work];
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
        *sum = n < UINT64_MAX - *sum ? *sum + n : UINT64_MAX;
        if (*sum < least[work] || least[work] == UINT64_MAX)
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
