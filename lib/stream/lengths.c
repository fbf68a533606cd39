#include "lengths.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/device.h"
#include "kernels/histogram.h"
#include "lib/base/buf.h"

#define LONG        (UINT64_C(1) << 20) /* lengths from here on go to the list */
#define BLOCK       16384               /* lengths that are taken at once */
#define BATCH       (1 << 24)           /* and that a device counts at once, at most */
#define FIRST_TABLE 256

struct slu_lengths {
    struct slu_device *device; /* borrowed; NULL: the CPU */
    uint64_t *left_byte;       /* borrowed; NULL: no limit */
    uint64_t *count;           /* by length, below n_bin */
    size_t n_bin;
    struct slu_length_count *list; /* long lengths: n_sorted in order, then others */
    size_t n_list, cap_list, n_sorted;
    /* With a device, lengths wait for it in batches: as many as the memory allows.
     * Under auto they stay on the host until their counts are back, so that an error
     * loses nothing. */
    uint32_t *pending;
    size_t n_pending, cap_pending;
    void *dev_len, *dev_count; /* on the device */
    size_t dev_cap, dev_bin;   /* lengths and counts that there is room for */
};

int slu_lengths_new(struct slu_lengths **out, struct slu_device *device,
                    uint64_t *left_byte, struct slu_err *err)
{
    struct slu_lengths *l = calloc(1, sizeof *l);
    *out = l;
    if (!l)
        return slu_fail_nomem(err, sizeof *l);
    l->device = device;
    l->left_byte = left_byte;
    return SLU_OK;
}

static void free_device_memory(struct slu_lengths *l)
{
    slu_device_free(l->dev_len);
    slu_device_free(l->dev_count);
    l->dev_len = l->dev_count = NULL;
    l->dev_cap = l->dev_bin = 0;
}

/* Has the pending lengths counted on the device. Returns a code of the device. */
static int send(struct slu_lengths *l)
{
    int code = slu_device_select(l->device->ordinal);
    if (code == 0 && l->dev_cap < l->n_pending) {
        slu_device_free(l->dev_len);
        code = slu_device_alloc(&l->dev_len, l->cap_pending * sizeof *l->pending);
        l->dev_cap = code ? 0 : l->cap_pending;
    }
    if (code == 0 && !l->dev_bin) {
        code = slu_device_alloc(&l->dev_count, l->n_bin * sizeof *l->count);
        if (code == 0) {
            l->dev_bin = l->n_bin;
            code = slu_device_zero(l->dev_count, l->n_bin * sizeof *l->count, NULL);
        }
    }
    if (code == 0)
        code = slu_device_put(l->dev_len, l->pending, l->n_pending * sizeof *l->pending,
                              NULL);
    if (code == 0)
        code = slu_histogram_cuda(l->dev_len, l->n_pending, l->dev_count, l->dev_bin,
                                  NULL);
    return code;
}

/* Adds the device's counts to the host's and frees them. */
static int fetch(struct slu_lengths *l, uint64_t *host)
{
    size_t n_byte = l->dev_bin * sizeof *l->count;
    int code = slu_device_select(l->device->ordinal);
    if (code == 0)
        code = slu_device_get(host, l->dev_count, n_byte, NULL);
    for (size_t v = 0; v < l->dev_bin && code == 0; v++)
        l->count[v] += host[v];
    slu_device_free(l->dev_count);
    l->dev_count = NULL;
    l->dev_bin = 0;
    return code;
}

/* Counts the pending lengths. all: also fetches the device's counts. */
static int flush(struct slu_lengths *l, bool all, struct slu_err *err)
{
    if (!l->n_pending && !l->dev_bin)
        return SLU_OK;
    int code = 0;
    bool device = l->device->ordinal >= 0;
    uint64_t *host = NULL;
    if (device && (all || l->device->kind == SLU_DEVICE_AUTO)) {
        host = malloc(l->n_bin * sizeof *host);
        if (!host)
            return slu_fail_nomem(err, l->n_bin * sizeof *host);
    }
    if (device && l->n_pending)
        code = send(l);
    if (device && code == 0 && host)
        code = fetch(l, host);
    free(host);
    if (code) {
        free_device_memory(l);
        int rc = slu_device_fault(l->device, code, err);
        if (rc)
            return rc;
    }
    if (!device || code)
        slu_histogram_cpu(l->pending, l->n_pending, l->count, l->n_bin);
    l->n_pending = 0;
    return SLU_OK;
}

/* Subtracts n_byte from the memory that is left. */
static int charge(struct slu_lengths *l, uint64_t n_byte, struct slu_err *err)
{
    if (!l->left_byte)
        return SLU_OK;
    if (*l->left_byte < n_byte)
        return slu_advise(
            err, SLU_ADVISE_MEMORY,
            slu_fail(err, SLU_E_LIMIT,
                     "the length histogram outgrows its share of memory"));
    *l->left_byte -= n_byte;
    return SLU_OK;
}

static int grow_table(struct slu_lengths *l, uint64_t longest, struct slu_err *err)
{
    size_t n_bin = l->n_bin ? l->n_bin : FIRST_TABLE;
    while (n_bin <= longest)
        n_bin *= 2;
    int rc = charge(l, (n_bin - l->n_bin) * sizeof *l->count, err);
    if (!rc)
        rc = flush(l, true, err);
    if (rc)
        return rc;
    uint64_t *count = realloc(l->count, n_bin * sizeof *count);
    if (!count)
        return slu_fail_nomem(err, n_bin * sizeof *count);
    memset(count + l->n_bin, 0, (n_bin - l->n_bin) * sizeof *count);
    l->count = count;
    l->n_bin = n_bin;
    return SLU_OK;
}

static int by_length(const void *a, const void *b)
{
    const struct slu_length_count *x = a, *y = b;
    return x->len_tok < y->len_tok ? -1 : x->len_tok > y->len_tok;
}

/* Sorts the list and joins rows of one length. */
static void tidy_list(struct slu_lengths *l)
{
    if (l->n_sorted == l->n_list)
        return;
    qsort(l->list, l->n_list, sizeof *l->list, by_length);
    size_t n = 0;
    for (size_t i = 0; i < l->n_list; i++)
        if (n && l->list[n - 1].len_tok == l->list[i].len_tok)
            l->list[n - 1].count += l->list[i].count;
        else
            l->list[n++] = l->list[i];
    l->n_list = l->n_sorted = n;
}

static int add_long(struct slu_lengths *l, uint64_t len_tok, struct slu_err *err)
{
    if (l->n_list == l->cap_list) {
        tidy_list(l);
        if (l->n_list > l->cap_list / 2 || !l->cap_list) {
            size_t cap = l->cap_list ? 2 * l->cap_list : 64;
            int rc = charge(l, (cap - l->cap_list) * sizeof *l->list, err);
            if (!rc)
                rc = slu_grow(&l->list, &l->cap_list, cap, sizeof *l->list, err);
            if (rc)
                return rc;
        }
    }
    l->list[l->n_list++] = (struct slu_length_count){len_tok, 1};
    return SLU_OK;
}

/* Makes room for a block of pending lengths, up to a batch. Without memory for more, or
 * where a batch is full, the device counts those that there are. */
static int reserve_pending(struct slu_lengths *l, struct slu_err *err)
{
    if (l->cap_pending - l->n_pending >= BLOCK)
        return SLU_OK;
    size_t cap = l->cap_pending ? 2 * l->cap_pending : 4 * BLOCK;
    cap = cap < BATCH ? cap : BATCH;
    uint64_t n_byte = (cap - l->cap_pending) * sizeof *l->pending;
    if (cap > l->cap_pending && (!l->left_byte || *l->left_byte / 2 >= n_byte)) {
        int rc = charge(l, n_byte, err);
        return rc ? rc
                  : slu_grow(&l->pending, &l->cap_pending, cap, sizeof *l->pending,
                             err);
    }
    if (l->cap_pending)
        return flush(l, false, err);
    /* The least is not charged: the device needs it. */
    return slu_grow(&l->pending, &l->cap_pending, 2 * BLOCK, sizeof *l->pending, err);
}

/* Counts up to BLOCK lengths. */
static int add_block(struct slu_lengths *l, const uint64_t *len_tok, size_t n,
                     struct slu_err *err)
{
    uint32_t len[BLOCK], longest = 0;
    size_t n_long = 0;
    int rc = SLU_OK;
    for (size_t i = 0; i < n; i++) {
        bool is_long = len_tok[i] >= LONG;
        len[i] = is_long ? UINT32_MAX : (uint32_t)len_tok[i];
        longest = !is_long && len[i] > longest ? len[i] : longest;
        n_long += is_long;
    }
    if (n > n_long && longest >= l->n_bin)
        rc = grow_table(l, longest, err);
    for (size_t i = 0; i < n && n_long && !rc; i++)
        if (len_tok[i] >= LONG) {
            rc = add_long(l, len_tok[i], err);
            n_long--;
        }
    if (rc || !l->n_bin)
        return rc;
    if (!slu_device_take(l->device, SLU_WORK_HISTOGRAM, n)) {
        slu_histogram_cpu(len, n, l->count, l->n_bin);
        return SLU_OK;
    }
    rc = reserve_pending(l, err);
    if (rc)
        return rc;
    memcpy(l->pending + l->n_pending, len, n * sizeof *len);
    l->n_pending += n;
    return SLU_OK;
}

int slu_lengths_add(struct slu_lengths *l, const uint64_t *len_tok, size_t n,
                    struct slu_err *err)
{
    int rc = SLU_OK;
    for (size_t at = 0; at < n && !rc; at += BLOCK)
        rc = add_block(l, len_tok + at, n - at < BLOCK ? n - at : BLOCK, err);
    return rc;
}

int slu_lengths_make_rows(const uint64_t *count, size_t n_bin, size_t more,
                          struct slu_length_count **row, size_t *n, struct slu_err *err)
{
    size_t n_row = more, k = 0;
    for (size_t v = 0; v < n_bin; v++)
        n_row += count[v] != 0;
    struct slu_length_count *r = malloc((n_row ? n_row : 1) * sizeof *r);
    *row = r;
    *n = 0;
    if (!r)
        return slu_fail_nomem(err, n_row * sizeof *r);
    for (size_t v = 0; v < n_bin; v++)
        if (count[v])
            r[k++] = (struct slu_length_count){v, count[v]};
    *n = k;
    return SLU_OK;
}

int slu_lengths_rows(struct slu_lengths *l, struct slu_length_count **row, size_t *n,
                     struct slu_err *err)
{
    *row = NULL;
    *n = 0;
    int rc = flush(l, true, err);
    if (rc)
        return rc;
    tidy_list(l);
    rc = slu_lengths_make_rows(l->count, l->n_bin, l->n_list, row, n, err);
    if (!rc && l->n_list)
        memcpy(*row + *n, l->list, l->n_list * sizeof **row);
    *n += rc ? 0 : l->n_list;
    return rc;
}

void slu_lengths_free(struct slu_lengths *l)
{
    if (!l)
        return;
    free_device_memory(l);
    free(l->count);
    free(l->list);
    free(l->pending);
    free(l);
}
