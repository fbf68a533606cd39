/* packing_cuda.h - sorts, places and copies the items in memory on a device. Private
 * to packing*.c.
 *
 *     open, sort, place, get … get, close
 *
 * (Items of methods that cut: open, get … get, close.) Each function returns 0 or a
 * code for slu_device_fault. After an error only close may follow. The host arrays are
 * unchanged, except what place brings back, so the CPU can take over:
 *
 *   sort, place  error: the CPU sorts and places all items
 *   get          error: the CPU copies from the first id that was not got (run_item
 *                and run_dst are on the host since place; order is not, nor is it
 *                needed)
 *
 * Device memory at once: 28 bytes per item and, while it sorts, CUB's 12 more; the
 * pool; two windows. Lack of device memory is an error like any other. The windows also
 * take page-locked host memory, which the caller must count: 2 * window_tok * tok_bytes
 * bytes. The pool's pages are locked where they are, until close.
 *
 * Two streams: while a window is copied to the host on one, the next window is filled
 * on the other. The pool goes up on the first of them while the other sorts.
 *
 * Thread safety: one thread at a time on a struct, not always the same one.
 */
#ifndef SLU_PACKING_CUDA_H
#define SLU_PACKING_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/pack/packing_private.h"

struct slu_pack_cuda {
    int ordinal;
    const struct slu_pack_arrays *a; /* host, borrowed until close */
    struct {                         /* the arrays on the device */
        uint32_t *len, *order, *run_item;
        uint64_t *src, *run_dst;
        void *pool;
        struct slu_place_step *step;
        struct slu_place_interval *interval;
    } dev;
    void *compute, *copy; /* streams */
    void *locked;         /* the pool on the host, if its pages are locked */
    void *pooled;         /* event: the pool is on the device */
    struct slu_pack_window {
        void *host, *dev;
        void *work;      /* of slu_copy_cuda */
        void *filled;    /* event: dev is filled */
        void *copied;    /* event: host is filled */
        uint64_t at_tok; /* first id */
        size_t n_tok;    /* 0: empty */
    } window[2];
    size_t window_tok;
    size_t work_byte;
    uint64_t next_tok; /* first id that is in no window yet */
    uint64_t got_tok;  /* first id that the caller has not got yet */
};

/* Reserves memory on device `ordinal`, which slu_device_take chose. *c need not be
 * initialised; call close even after an error. window_tok: ids per window, > 0. */
int slu_pack_cuda_open(struct slu_pack_cuda *c, int ordinal,
                       const struct slu_pack_arrays *a, size_t window_tok);
/* Copies the plan to the device, and sorts. */
int slu_pack_cuda_sort(struct slu_pack_cuda *c);
/* Places all items, and copies a->run_item and a->run_dst back. */
int slu_pack_cuda_place(struct slu_pack_cuda *c);
/* Copies the next n_tok ids of the packed data to out; as many must remain. */
int slu_pack_cuda_get(struct slu_pack_cuda *c, void *out, size_t n_tok);
void slu_pack_cuda_close(struct slu_pack_cuda *c);

#endif
