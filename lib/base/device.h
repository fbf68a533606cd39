/* device.h - which device does what, and what happens when it fails.
 *
 * The policy behind --device, in one place. `cpu`: kernels run on the CPU. `cuda`:
 * every kernel runs on that CUDA device, and a fault ends the program. `auto`: the CPU,
 * until the work of this run, with what is at hand, is so much that a device would have
 * won, waking it included: as much again may well follow. A fault then costs one
 * warning, the work is done again on the CPU from data that is still on the host, and
 * the device is left alone for the rest of the run. The bytes are the same every way.
 *
 * How a kernel is called:
 *
 *     if (slu_device_take(d, SLU_WORK_PACK, n_items)) {
 *         int code = slu_device_select(d->ordinal); // 0 or a code of kernels/device.h
 *         … slu_…_cuda(…) …
 *         if (code == 0)
 *             return SLU_OK;
 *         rc = slu_device_fault(d, code, err);
 *         if (rc)
 *             return rc;
 *     }
 *     … slu_…_cpu(…) …
 *
 * Thread safety: one thread at a time on a struct.
 */
#ifndef SLU_DEVICE_H
#define SLU_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"

SLU_BEGIN_DECLS

enum slu_device_kind { SLU_DEVICE_AUTO, SLU_DEVICE_CPU, SLU_DEVICE_CUDA };

/* Work that a device can do, and what its size is counted in. */
enum slu_device_work {
    SLU_WORK_HISTOGRAM, /* lengths from the host */
    SLU_WORK_SCAN,      /* ids from a file */
    SLU_WORK_PACK,      /* items to sort, place and gather */
    SLU_WORKS
};

struct slu_device {
    enum slu_device_kind kind;   /* what was asked for */
    uint64_t wanted;             /* ordinal that was asked for */
    int ordinal;                 /* of the device in use; -1: the CPU */
    bool gone;                   /* auto: absent, or has failed */
    bool taken;                  /* work went to the device */
    uint64_t offered[SLU_WORKS]; /* auto: sizes of all work so far */
    char name[128];              /* "cpu", or "cuda:0 (NVIDIA …)" */
    /* Called under auto when a device fails, at most once; may be NULL. `text` is a
     * sentence without a full stop. Set after slu_device_choose. */
    void (*warn)(void *arg, const char *text);
    void *warn_arg;
};

/* CUDA is SLU_E_DEVICE where there is no device `ordinal`. AUTO wakes none yet: that
 * is left to the first work that is worth it. */
SLU_MUST_USE int slu_device_choose(struct slu_device *d, enum slu_device_kind kind,
                                   uint64_t ordinal, struct slu_err *err);

/* Whether work of size n goes to the device, which then counts as taken; the caller
 * makes it its thread's own (slu_device_select), whichever thread that is. d NULL: the
 * CPU. */
bool slu_device_take(struct slu_device *d, enum slu_device_work work, uint64_t n);

/* The device answered `code` (not 0). SLU_OK: d is the CPU from now on, and the caller
 * does the work again there. Else err is filled. */
SLU_MUST_USE int slu_device_fault(struct slu_device *d, int code, struct slu_err *err);

/* The size of work from which on auto takes a device; UINT64_MAX: never. */
uint64_t slu_device_least(enum slu_device_work work);

SLU_END_DECLS

#endif
