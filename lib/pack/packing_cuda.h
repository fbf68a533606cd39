/* packing_cuda.h - items that wait in memory, sorted, placed and gathered on a device.
 * Private to packing*.c.
 *
 *     open, sort, place, get … get, close
 *
 * (Concatenated items: open, get … get, close.) Each answers 0 or a code for
 * slu_device_fault; behind a fault only close may follow, and the host arrays are as
 * they were but for what place brings back, so the CPU can take over:
 *
 *   sort, place  a fault before or in place: the CPU sorts and places all
 *   get          a fault: order is not on the host and is not needed any more; the CPU
 *                gathers from the first id that was not got (run_item and run_dst are
 *                on the host since place)
 *
 * On the device at once: 28 bytes an item and, while it sorts, CUB's 12 more; the pool;
 * two windows, which are page-locked on the host too. What does not fit is a fault as
 * any other. The windows are the caller's to reckon with: 2 * window_tok * tok_bytes
 * bytes of host memory.
 *
 * Two streams: while a window is copied to the host on one, the next is gathered on
 * the other.
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
    struct {                         /* the arrays there */
        uint32_t *len, *order, *run_item;
        uint64_t *src, *run_dst;
        void *pool;
        struct slu_place_step *step;
        struct slu_place_interval *interval;
    } dev;
    void *compute, *copy; /* streams */
    struct slu_pack_window {
        void *host, *dev;
        void *work;      /* of the gather */
        void *gathered;  /* event: dev is filled */
        void *copied;    /* event: host is filled */
        uint64_t at_tok; /* first id */
        size_t n_tok;    /* 0: empty */
    } window[2];
    size_t window_tok;
    size_t work_byte;
    uint64_t next_tok; /* first id that no window has yet */
    uint64_t got_tok;  /* first id that the caller has not got */
};

/* Takes device `ordinal` (slu_device_take said so) and its memory; *c need not be
 * initialised, and is close's even after a fault. window_tok: ids a window, > 0. */
int slu_pack_cuda_open(struct slu_pack_cuda *c, int ordinal,
                       const struct slu_pack_arrays *a, size_t window_tok);
/* Copies lengths and pool there, and sorts. */
int slu_pack_cuda_sort(struct slu_pack_cuda *c);
/* Places, and brings a->run_item and a->run_dst back. */
int slu_pack_cuda_place(struct slu_pack_cuda *c);
/* The next n_tok ids of the packed data; no more than there are. */
int slu_pack_cuda_get(struct slu_pack_cuda *c, void *out, size_t n_tok);
void slu_pack_cuda_close(struct slu_pack_cuda *c);

#endif
