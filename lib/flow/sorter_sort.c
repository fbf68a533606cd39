/* sorter_sort.c - sorts entries (see sorter.c): by prefix, then the rest of the key,
 * then the bytes. */
#include <string.h>

#include "sorter_private.h"

enum { GROUP_BITS = 8, AT_ONCE = 1 << 14 /* entries */ };

static uint64_t first_word(const struct slu_rec *r)
{
    uint8_t b[8] = {0};
    uint64_t v = 0;

    memcpy(b, r + 1, r->n_byte < 8 ? r->n_byte : 8);
    for (unsigned i = 0; i < 8; i++)
        v = v << 8 | b[i];
    return v;
}

static int cmp_bytes(void *ctx, uint64_t ref_a, uint64_t ref_b)
{
    const struct slu_rec *a = slu_ref_rec(ctx, ref_a), *b = slu_ref_rec(ctx, ref_b);
    uint64_t n = a->n_byte < b->n_byte ? a->n_byte : b->n_byte;
    int c = memcmp(a + 1, b + 1, n);

    return c ? c : (a->n_byte > b->n_byte) - (a->n_byte < b->n_byte);
}

enum sort_stage { BY_KEY_HI, BY_KEY_LO, BY_FIRST_WORD };

/* Sorts e[0, n), whose prefixes are those of `stage`; sorts runs of equal prefixes by
 * the next stage. */
static void sort_run(struct slu_sorter *s, struct slu_entry *e, size_t n, unsigned skip,
                     enum sort_stage stage)
{
    slu_entry_sort(e, n);
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && e[j].prefix == e[i].prefix; j++)
            ;
        if (j - i == 1)
            continue;
        if (stage == BY_FIRST_WORD) {
            slu_entry_sort_by(e + i, j - i, cmp_bytes, s);
            continue;
        }
        for (size_t k = i; k < j; k++) {
            const struct slu_rec *r = slu_ref_rec(s, e[k].ref);
            e[k].prefix =
                stage == BY_KEY_HI ? slu_key_shift(r->key, skip).lo : first_word(r);
        }
        sort_run(s, e + i, j - i, skip, stage + 1);
    }
}

void slu_entries_sort(struct slu_sorter *s, struct slu_entry *e, size_t n,
                      unsigned skip)
{
    sort_run(s, e, n, skip, BY_KEY_HI);
}

/* ---- all of them in memory ---- */

/* Sorts the next group; if there is a mover, only the mover calls this. */
static void sort_group(struct slu_sorter *s, struct slu_arena *a)
{
    uint64_t from = s->start[s->sort_group], to = s->start[s->sort_group + 1];

    slu_entries_sort(s, a->entry + from, to - from, s->sort_skip);
    s->sort_group++;
}

void slu_sort_groups(struct slu_sorter *s, struct slu_arena *a)
{
    while (s->sort_group < (size_t)1 << s->sort_bits) {
        sort_group(s, a);
        pthread_mutex_lock(&s->mover->mu);
        s->mover->n_sorted_yet = s->start[s->sort_group];
        bool stopped = s->mover->ended;
        pthread_cond_broadcast(&s->mover->changed);
        pthread_mutex_unlock(&s->mover->mu);
        if (stopped)
            break;
    }
}

void slu_sort_begin(struct slu_sorter *s)
{
    struct slu_arena *a = s->a;
    unsigned shared = a->n_entry ? slu_key_shared(a->min, a->max) : 0;

    s->sort_skip = 0;
    if (shared > 8) {
        s->sort_skip = shared;
        for (size_t i = 0; i < a->n_entry; i++)
            a->entry[i].prefix =
                slu_key_shift(slu_ref_rec(s, a->entry[i].ref)->key, shared).hi;
    }
    a->next = 0;
    if (a->n_entry <= AT_ONCE) {
        slu_entries_sort(s, a->entry, a->n_entry, s->sort_skip);
        a->n_sorted = a->n_entry;
        return;
    }
    s->sort_bits = GROUP_BITS < s->max_bits ? GROUP_BITS : s->max_bits;
    s->sort_group = 0;
    slu_entry_partition(a->entry, a->n_entry, s->sort_bits, s->start);
    a->n_sorted = 0;
    if (!slu_mover_start(s))
        return;
    s->mover->n_sorted_yet = 0;
    s->task[0].kind = SLU_TASK_SORT;
    s->task[0].arena = a;
    slu_mover_submit(s, &s->task[0]);
}

void slu_sort_more(struct slu_sorter *s)
{
    struct slu_arena *a = s->a;

    if (!s->mover) {
        while (a->n_sorted <= a->next) {
            sort_group(s, a);
            a->n_sorted = s->start[s->sort_group];
        }
        return;
    }
    pthread_mutex_lock(&s->mover->mu);
    while (s->mover->n_sorted_yet <= a->next)
        pthread_cond_wait(&s->mover->changed, &s->mover->mu);
    a->n_sorted = s->mover->n_sorted_yet;
    pthread_mutex_unlock(&s->mover->mu);
}
