/* packing_cuda.h - counts, sorts, places and copies the items in memory on a device.
 * Private to packing*.c.
 *
 *     open, count …, ready, sort, place, hashes,
 *     add … launch, wait, add … launch, wait, …, leave, close
 *
 * (Items of methods that cut are neither counted nor sorted nor placed.) Functions
 * return 0 or a code for slu_device_fault. After an error only leave and close may
 * follow. The host arrays are unchanged, except what place brings back, so the CPU can
 * take over:
 *
 *   sort, place   error: the CPU sorts and places all items
 *   launch, wait  error: the CPU copies the ids of windows that were not waited for
 *                 (run_item and run_dst are on the host since place; order is not, nor
 *                 is it needed)
 *
 * Packed ids come in windows of whole bins, one after another from id 0 on, with the
 * hash of each bin. They lie in page-locked memory, which is theirs until that window
 * is launched again: the ids and hashes of a window stay until SLU_PACK_WINDOWS - 1
 * more have been launched. So a caller that launches one window ahead may use
 * SLU_PACK_WINDOWS - 1 at a time.
 *
 * Device memory at once: 28 bytes per item and, while it sorts, CUB's 12 more; 28 per
 * sequence that is hashed, until hashes; the windows; and the pool, if there is room.
 * Without room the pool stays on the host, and windows are filled from there: each id
 * crosses the bus once, one way or the other, and once more if it is hashed there.
 * Lack of device memory for the rest is an error like any other. The page-locked
 * memory of windows must be counted by the caller: SLU_PACK_WINDOWS times window_tok
 * ids, and an eighth of an id. The pool's pages are locked where they are, until leave.
 *
 * Two streams: while a window is copied to the host on one, the next window is filled
 * on the other. The pool goes up on the first of them while the other sorts; a bin's
 * ids are anywhere in it, so no window is filled before all of it is up.
 *
 * Thread safety: one thread at a time on a struct, not always the same one.
 */
#ifndef SLU_PACKING_CUDA_H
#define SLU_PACKING_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/pack/packing_private.h"

enum { SLU_PACK_WINDOWS = 4 };

struct slu_pack_cuda {
    int ordinal;
    const struct slu_pack_arrays *a; /* host, borrowed until close */
    struct {                         /* the arrays on the device */
        uint32_t *len, *order, *run_item;
        uint64_t *src, *run_dst;
        void *pool;                     /* NULL: it stays on the host */
        uint64_t *seq_first, *seq_hash; /* two words for each hash */
        uint32_t *seq_len;
        struct slu_place_step *step;
        struct slu_place_interval *interval;
    } dev;
    const void *pool;     /* where kernels read it: dev.pool, or the host's */
    void *compute, *copy; /* streams */
    void *locked;         /* the pool on the host, if its pages are locked */
    void *pooled;         /* event: the pool is on the device */
    struct slu_pack_window {
        /* At the same places in both: ids, hashes, first ids and lengths of bins. */
        char *host, *dev;
        void *filled; /* event: dev is filled */
        void *copied; /* event: host is filled */
        size_t n_tok, n_bin;
    } window[SLU_PACK_WINDOWS];
    size_t window_tok, window_bin; /* the most of each */
    uint64_t next_tok;             /* first id that is in no window yet */
    size_t next_run;               /* first run that begins in none of them */
    uint64_t launched, waited;     /* windows */
};

/* Copies the lengths to device `ordinal`, which slu_device_take chose. *c need not be
 * initialised; call close even after an error. */
int slu_pack_cuda_open(struct slu_pack_cuda *c, int ordinal,
                       const struct slu_pack_arrays *a);
/* Counts the lengths of a range, whose `longest` is known: count[0 … longest]. */
int slu_pack_cuda_count(struct slu_pack_cuda *c, const struct slu_pack_range *r,
                        uint64_t *count);
/* After the plan: reserves memory, copies the pool, begins to hash its sequences.
 * window_tok: ids of a window, at least those of the longest bin. */
int slu_pack_cuda_ready(struct slu_pack_cuda *c, size_t window_tok);
/* Copies the plan to the device, and sorts. */
int slu_pack_cuda_sort(struct slu_pack_cuda *c);
/* Places all items, and copies a->run_item and a->run_dst back. */
int slu_pack_cuda_place(struct slu_pack_cuda *c);
/* Copies the hashes of sequences, which ready began, to a->seq_hash. Call it at most
 * once, before the first launch. */
int slu_pack_cuda_hashes(struct slu_pack_cuda *c);

/* Adds up to n bins of bin_tok ids each to the window that is launched next. Returns
 * how many it has room for; not 0 if it is empty. */
uint64_t slu_pack_cuda_add(struct slu_pack_cuda *c, uint64_t n, uint64_t bin_tok);
/* Starts the window that bins were added to. */
int slu_pack_cuda_launch(struct slu_pack_cuda *c);
/* Waits for the first window that was not waited for. *hash: of its bins; NULL if ids
 * have marks. */
int slu_pack_cuda_wait(struct slu_pack_cuda *c, const void **tok,
                       struct slu_u128 **hash);

/* Frees all but the windows that were waited for. */
void slu_pack_cuda_leave(struct slu_pack_cuda *c);
void slu_pack_cuda_close(struct slu_pack_cuda *c);

#endif
