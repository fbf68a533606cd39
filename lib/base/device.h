/* device.h - the choice of CPU or CUDA device (--device), and errors of the device.
 *
 * `cpu`: kernels run on the CPU. `cuda`: every kernel runs on that CUDA device, and an
 * error ends the program. `auto`: the CPU, until the work of the run is so much that a
 * device would have done it faster than the run's threads, its start included; then the
 * device, because as much work may well follow. device_model.h has the figures. After
 * an error of the device there is one warning, the CPU does the work again from data
 * that is still on the host, and the device is not used again in the run. The results
 * are the same in all cases.
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

/* Work that a device can do, and the unit of its size. */
enum slu_device_work {
    SLU_WORK_HISTOGRAM, /* lengths from the host */
    SLU_WORK_SCAN,      /* ids from a file */
    SLU_WORK_PACK, /* two bytes of ids, to be put into bins; the items are left out:
                           to sort and place them is a small part */
    SLU_WORKS
};

struct slu_device {
    enum slu_device_kind kind;   /* as chosen */
    uint64_t wanted;             /* ordinal, as chosen */
    int ordinal;                 /* of the device in use; -1: the CPU */
    bool gone;                   /* auto: absent, or has failed */
    bool taken;                  /* work went to the device */
    unsigned n_threads;          /* of the run, which auto compares with the device.
                                    Set after slu_device_choose; 0: one */
    uint64_t offered[SLU_WORKS]; /* auto: sizes of all work so far */
    char name[128];              /* "cpu", or "cuda:0 (NVIDIA …)" */
    /* Called under auto when a device fails, at most once; may be NULL. `text` is a
     * sentence without a full stop. Set after slu_device_choose. */
    void (*warn)(void *arg, const char *text);
    void *warn_arg;
};

/* Fills d. CUDA: SLU_E_DEVICE if there is no device `ordinal` or it fails. AUTO starts
 * no device yet; the first work that is worth it does. */
SLU_MUST_USE int slu_device_choose(struct slu_device *d, enum slu_device_kind kind,
                                   uint64_t ordinal, struct slu_err *err);

/* Whether work of size n goes to the device; d->taken is then set, and the caller's
 * thread must call slu_device_select. d NULL: false. */
bool slu_device_take(struct slu_device *d, enum slu_device_work work, uint64_t n);

/* Handles an error `code` (not 0) of the device. SLU_OK, under auto: d is the CPU from
 * now on, and the caller does the work again there. Otherwise SLU_E_DEVICE. */
SLU_MUST_USE int slu_device_fault(struct slu_device *d, int code, struct slu_err *err);

/* Returns the size of work from which on auto uses a device in a run of n_threads (>
 * 0); UINT64_MAX: never. */
uint64_t slu_device_least(enum slu_device_work work, unsigned n_threads);

SLU_END_DECLS

#endif
