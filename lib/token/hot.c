#include "lib/token/hot.h"

hot_find_fn *hot_find_of_level(const char *level)
{
#if defined(__x86_64__)
    if (!strcmp(level, "avx512"))
        return hot_find_avx512;
    if (!strcmp(level, "avx2"))
        return hot_find_avx2;
#endif
    (void)level;
    return hot_find_portable;
}

/* Looks up pretokens from .. to - 1; byte `base` of their text is at p. */
static inline void look(struct hot_batch *b, const struct words *w, const uint8_t *p,
                        uint32_t base, size_t from, size_t to, uint32_t skip)
{
    struct word_key key[HOT_GROUP];
    uint32_t place[HOT_GROUP], skipped[HOT_GROUP];

    for (; from < to; from += HOT_GROUP) {
        const size_t n = to - from < HOT_GROUP ? to - from : HOT_GROUP;
        const uint32_t *at = b->at + from;
        for (size_t i = 0; i < n; i++) {
            key[i] = word_key(p + (at[i] - base), at[i + 1] - at[i]);
            skipped[i] = skip >> (key[i].b >> WORD_LEN_SHIFT) & 1;
            /* Skipped pretokens all read the first place, which is in the cache. */
            place[i] = word_hot_place(w, word_hash(key[i])) & (skipped[i] - 1);
            __builtin_prefetch(word_hot_slot(w, place[i]));
        }
        for (size_t i = 0; i < n; i++) {
            const struct word_key s = *word_hot_slot(w, place[i]);
            const uint32_t value = (uint32_t)(s.b >> 32) & HOT_VALUE;
            uint32_t is_other = !hot_is(s, key[i]), pretoken = (uint32_t)(from + i);
            b->id[pretoken] = value;
            b->slow[b->n_slow] = b->miss[b->n_miss] = pretoken;
            b->skipped[b->n_skipped] = pretoken;
            b->place[b->n_slow] = place[i];
            b->n_slow += is_other | skipped[i] | (value >> HOT_COUNT_SHIFT != 0);
            b->n_miss += is_other & ~skipped[i];
            b->n_skipped += skipped[i];
        }
    }
}

size_t hot_find_portable(struct hot_batch *b, const struct words *w, const uint8_t *p,
                         size_t from, size_t to, uint32_t skip)
{
    look(b, w, p, 0, from, to, skip);
    return to;
}

void hot_look(struct hot_batch *b, const struct words *w, hot_find_fn *find,
              const uint8_t *p, size_t n, size_t k)
{
    uint8_t end[32] = {
        0}; /* a copy of the last pretokens, where 16 bytes can be read */
    size_t safe = k;
    uint32_t skip;

    while (safe && b->at[safe - 1] + (size_t)16 > n)
        safe--;
    b->n_slow = b->n_miss = b->n_skipped = 0;
    for (size_t i = 0; i < safe;) {
        size_t some = words_alike(w, i, &skip);
        const size_t to = some < safe - i ? i + some : safe;
        i = find(b, w, p, i, to, skip);
        look(b, w, p, 0, i, to, skip);
        i = to;
    }
    if (safe == k)
        return;
    words_alike(w, safe, &skip);
    memcpy(end, p + b->at[safe], n - b->at[safe]);
    look(b, w, end, b->at[safe], safe, k, skip);
}
