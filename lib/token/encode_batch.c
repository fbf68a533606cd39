/* encode_batch.c - the ids of a batch of pretokens, from the cache or by BPE. */
#include "lib/token/encode_private.h"

#include <string.h>

/* Ends a text, which has all its ids, and begins the next one. There is room for two
 * more ids. */
static void end_text(struct slu_encoder *e)
{
    struct slu_ids *ids = e->ids;

    if (ids->n == e->text_from + (e->bos != TOK_NONE))
        ids->n = e->text_from;
    else if (e->eos != TOK_NONE)
        ids->id[ids->n++] = e->eos;
    *e->text_end++ = e->text_from = ids->n;
    if (e->bos != TOK_NONE)
        ids->id[ids->n++] = e->bos;
}

int encode_end_text(struct slu_encoder *e, struct slu_err *err)
{
    struct slu_ids *ids = e->ids;
    int rc = e->n_end == HOT_MOST ? encode_flush(e, err) : SLU_OK;

    if (!rc && e->n_wait) {
        e->end_mark[e->n_end++] = (uint32_t)e->n_wait;
        return SLU_OK;
    }
    if (!rc)
        rc = slu_grow(&ids->id, &ids->cap, ids->n + 2, sizeof *ids->id, err);
    if (!rc)
        end_text(e);
    return rc;
}

/* Encodes the k pretokens of p without a cache. */
static int encode_plainly(struct slu_encoder *e, const uint8_t *p, size_t k,
                          struct slu_err *err)
{
    const uint32_t *at = e->batch.at;
    struct slu_ids *ids = e->ids;
    size_t end = 0;
    int rc = SLU_OK;

    for (size_t i = 0; i <= k && !rc; i++) {
        for (; end < e->n_end && e->end_mark[end] == i && !rc; end++) {
            rc = slu_grow(&ids->id, &ids->cap, ids->n + 2, sizeof *ids->id, err);
            if (!rc)
                end_text(e);
        }
        if (i < k && !rc)
            rc = bpe_encode(e->t->model, &e->bpe, p + at[i], at[i + 1] - at[i], ids,
                            err);
    }
    return rc;
}

/* Looks up a short pretoken in a set. Returns 1 if it is there. */
static inline unsigned look_in(struct miss *m, const struct words *w,
                               const struct word_set *set)
{
    const unsigned is = word_find(set, m->key);

    m->set = set;
    m->place = (uint32_t)__builtin_ctz(is | 1 << (WORD_SET - 1));
    __builtin_prefetch(word_ids(w, set, m->place));
    return is != 0;
}

/* Looks up the pretokens that are not in the hot table: puts the slots of known ones into
 * e->found, and lists the new ones. Returns how many are new. Hits cannot be predicted,
 * nor which pretokens need a second set; these sets are prefetched, and looked up last. */
static size_t find_known(struct slu_encoder *e, const uint8_t *p)
{
    struct words *w = &e->words;
    size_t n_new = 0, n_known = 0, n_beside = 0;

    for (size_t j = 0; j < e->batch.n_miss; j++) {
        struct miss *m = &e->miss[j];
        unsigned is, is_full = 0;
        if (m->n <= WORD_SHORT) {
            struct word_set *set = word_set(w->view, m->hash);
            is = look_in(m, w, set);
            is_full = word_set_is_full(set);
            e->known_miss[n_known] = e->beside_miss[n_beside] = (uint32_t)j;
            n_known += is;
            n_beside += is_full & ~is;
            __builtin_prefetch(is_full & ~is ? word_beside(set) : set);
        } else {
            is = m->n <= WORD_LONG &&
                 word_find_long(w, p + m->from, m->n, m->hash, &e->found[j]);
        }
        e->fresh_miss[n_new] = (uint32_t)j;
        n_new += !(is | is_full);
        word_looked(w, m->n);
    }
    for (size_t i = 0; i < n_beside; i++) {
        const uint32_t j = e->beside_miss[i];
        struct miss *m = &e->miss[j];
        const unsigned is = look_in(m, w, word_beside(m->set));
        e->known_miss[n_known] = e->fresh_miss[n_new] = j;
        n_known += is;
        n_new += !is;
    }
    for (size_t i = 0; i < n_known; i++) {
        const uint32_t j = e->known_miss[i];
        const struct miss *m = &e->miss[j];
        e->found[j] = word_at(w, m->set, m->place);
    }
    return n_new;
}

/* Returns the slot of a pretoken whose n ids are at e->apart.id + first, with readable
 * memory after them. n cannot be predicted, so there is no branch. */
static inline struct word_slot slot_apart(const struct slu_encoder *e,
                                          struct word_key key, size_t first, size_t n)
{
    struct word_slot s = {key, {0}};
    uint32_t many = -(uint32_t)(n > WORD_IDS);
    const uint32_t apart[WORD_IDS] = {
        [MANY_OFF] = (uint32_t)first, [MANY_N] = (uint32_t)n, [MANY_APART] = 1};

    s.key.b |= word_count_bits(n);
    memcpy(s.id, e->apart.id + first, sizeof s.id);
    for (unsigned i = 0; i < WORD_IDS; i++)
        s.id[i] = (s.id[i] & ~many) | (apart[i] & many);
    return s;
}

/* Collects the pretokens that the cache does not know, each once: text soon repeats a new
 * word. Words with the same place in fresh_at may still be there more than once.
 * Repeats cannot be predicted, so there is hardly a branch. Returns the number of
 * pretokens. */
static size_t gather_new(struct slu_encoder *e, const uint8_t *p, size_t n_new)
{
    size_t n = 0;

    for (size_t i = 0; i < n_new; i++) {
        const struct miss *m = &e->miss[e->fresh_miss[i]];
        const bool is_long = m->n > WORD_SHORT;
        const struct word_key key = is_long ? (struct word_key){0, 0} : m->key;
        const uint8_t *from = is_long ? p + m->from : (const uint8_t *)&m->key;
        uint16_t *at = &e->fresh_at[m->hash >> (64 - FRESH_BITS)];
        word_was_new(&e->words, m->n);
        const struct word_new *x = &e->fresh[*at];
        size_t is = (*at < n) & (x->key.a == key.a) & (x->key.b == key.b);
        if (is_long && is)
            is = x->hash == m->hash && x->n == m->n && !memcmp(x->p, from, m->n);
        const size_t which = n ^ ((n ^ *at) & -is);
        e->fresh[n] =
            (struct word_new){.p = from, .n = m->n, .key = key, .hash = m->hash};
        e->fresh_pretoken[n] = (struct bpe_pretoken){.p = from, .n = m->n};
        e->fresh_of[i] = *at = (uint16_t)which;
        n += !is;
    }
    return n;
}

/* Encodes by BPE the pretokens that the cache does not know: n_new of the misses, and the
 * skipped pretokens after the misses. n bytes of p can be read. *n_fresh: how many of the
 * new ones there are, each once. */
static int encode_new(struct slu_encoder *e, const uint8_t *p, size_t n, size_t n_new,
                      size_t *n_fresh, struct slu_err *err)
{
    struct slu_ids *ids = &e->apart;
    struct bpe_pretoken *pretoken = e->fresh_pretoken;
    const size_t n_look = e->batch.n_miss, n_skip = e->batch.n_skipped;
    const size_t once = gather_new(e, p, n_new);
    int rc;

    ids->n = 0;
    *n_fresh = once;
    for (size_t j = 0; j < n_skip; j++) {
        struct miss *m = &e->miss[n_look + j];
        const uint8_t *at = p + m->from;
        if (n - m->from < 16 && m->n <= WORD_SHORT) {
            m->key = word_key_at_end(at, m->n);
            at = (const uint8_t *)&m->key;
        }
        pretoken[once + j] = (struct bpe_pretoken){.p = at, .n = m->n};
    }
    if ((rc = bpe_encode_many(e->t->model, &e->bpe, pretoken, once + n_skip, ids,
                              err)) < 0 ||
        (rc = slu_grow(&ids->id, &ids->cap, ids->n + WORD_MANY, sizeof *ids->id, err)) <
            0)
        return rc;
    for (size_t i = 0; i < once; i++) {
        e->fresh[i].id = ids->id + pretoken[i].at;
        e->fresh[i].n_id = pretoken[i].n_id;
    }
    for (size_t i = 0; i < n_new; i++) {
        const size_t k = e->fresh_of[i];
        e->found[e->fresh_miss[i]] =
            slot_apart(e, e->fresh[k].key, pretoken[k].at, pretoken[k].n_id);
    }
    for (size_t j = 0; j < n_skip; j++)
        e->found[n_look + j] = slot_apart(
            e, (struct word_key){0, 0}, pretoken[once + j].at, pretoken[once + j].n_id);
    return SLU_OK;
}

/* Returns the key of n bytes at p, where n_read can be read. */
static struct word_key key_of(const uint8_t *p, size_t n, size_t n_read)
{
    return n_read >= 16 ? word_key(p, (uint32_t)n) : word_key_at_end(p, (uint32_t)n);
}

static inline void set_place(struct miss *m, uint32_t pretoken, const uint32_t *at)
{
    m->pretoken = pretoken;
    m->from = at[pretoken];
    m->n = at[pretoken + 1] - m->from;
}

/* Computes keys and hashes of the pretokens that are not in the hot table, and prefetches
 * their sets. Skipped pretokens only get their places, after the others. */
static void prepare(struct slu_encoder *e, const uint8_t *p, size_t n)
{
    const struct words *w = &e->words;
    const struct hot_batch *b = &e->batch;
    size_t n_long = 0;

    for (size_t j = 0; j < b->n_miss; j++) {
        struct miss *m = &e->miss[j];
        set_place(m, b->miss[j], b->at);
        if (m->n <= WORD_SHORT) {
            m->key = key_of(p + m->from, m->n, n - m->from);
            m->hash = word_hash(m->key);
            __builtin_prefetch(word_set(w->view, m->hash));
        } else if (m->n <= WORD_LONG) {
            m->hash = word_hash_long(p + m->from, m->n);
            __builtin_prefetch(word_far_set(w->view, m->hash));
            n_long++;
        }
    }
    for (size_t j = 0; n_long && j < b->n_miss; j++) {
        const struct miss *m = &e->miss[j];
        if (m->n <= WORD_SHORT || m->n > WORD_LONG)
            continue;
        const struct word_far *f = word_far_find(w->view, m->hash);
        if (f)
            __builtin_prefetch(w->view->text + f->off);
        n_long--;
    }
    for (size_t j = 0; j < b->n_skipped; j++)
        set_place(&e->miss[b->n_miss + j], b->skipped[j], b->at);
}

static inline bool is_apart(const struct word_slot *s)
{
    return (word_count(s) >= WORD_IDS) & (s->id[MANY_APART] != 0);
}

/* In batch.id, a pretoken that was not in the hot table has the index of its slot in
 * e->found, with this bit. */
#define IS_FOUND (UINT32_C(1) << 24)

/* Writes the ids of pretokens first .. to - 1 to out; returns the place after them. *slow:
 * the index in b->slow of the first entry that is not before these pretokens, then of the
 * first after them. out has room for the ids, WORD_MANY more per pretoken, and a RUN. Ids
 * of pretokens with one are adjacent. The place and number of other ids cannot be
 * predicted: 8 are always copied, without a branch. Their number is read apart from
 * them, so that no pretoken waits for the ids of the one before. */
WORD_READS_PAST static uint32_t *put_ids(const struct slu_encoder *e, size_t first,
                                         size_t to, size_t *slow, uint32_t *out)
{
    enum { RUN = 16, FIRST = 8, AHEAD = 12 }; /* most runs are shorter */
    const struct hot_batch *b = &e->batch;
    const uintptr_t text = (uintptr_t)e->words.view->text,
                    apart = (uintptr_t)e->apart.id;
    size_t done = first;

    for (size_t j = *slow;; j++) {
        const size_t pretoken = b->slow[j] < to ? b->slow[j] : to;
        memcpy(out, b->id + done, RUN * sizeof *out);
        for (size_t i = done + RUN; i < pretoken; i += RUN)
            memcpy(out + (i - done), b->id + i, RUN * sizeof *out);
        out += pretoken - done;
        done = pretoken + 1;
        if (pretoken == to) {
            *slow = j;
            return out;
        }
        const uint32_t value = b->id[pretoken];
        __builtin_prefetch(word_hot_ids(&e->words, b->place[j + AHEAD]));
        const uintptr_t is_found = -(uintptr_t)(value / IS_FOUND & 1);
        const struct word_slot *s = &e->found[value & (IS_FOUND - 1) & is_found];
        uintptr_t from = ((uintptr_t)s->id & is_found) |
                         ((uintptr_t)word_hot_ids(&e->words, b->place[j]) & ~is_found);
        const uint32_t count = (word_count(s) & (uint32_t)is_found) |
                               (value >> HOT_COUNT_SHIFT & ~(uint32_t)is_found);
        const uint32_t *id = (const uint32_t *)from;
        const uintptr_t many = -(uintptr_t)(count >= WORD_IDS), off = id[MANY_OFF],
                        is_apart = -(uintptr_t)(id[MANY_APART] != 0);
        from = (from & ~many) | ((apart + off * sizeof *out) & is_apart & many) |
               ((text + off) & ~is_apart & many);
        const size_t n =
            __builtin_expect(count == WORD_MANY, 0) ? id[MANY_N] : count + 1;
        memcpy(out, (const void *)from, FIRST * sizeof *out);
        if (n > FIRST)
            memcpy(out + FIRST, (const uint32_t *)from + FIRST,
                   (n - FIRST) * sizeof *out);
        out += n;
    }
}

int encode_batch(struct slu_encoder *e, const uint8_t *p, size_t n, size_t k,
                 struct slu_err *err)
{
    struct words *w = &e->words;
    struct hot_batch *b = &e->batch;
    struct slu_ids *ids = e->ids;
    size_t n_new, n_fresh = 0;
    size_t need = ids->n + (k + 2) * WORD_MANY + e->n_end * 2;
    size_t first = 0, slow = 0;
    int rc;

    words_begin(w);
    hot_look(b, w, e->find_hot, p, n, k);
    prepare(e, p, n);
    n_new = find_known(e, p);
    if (n_new + b->n_skipped && (rc = encode_new(e, p, n, n_new, &n_fresh, err)))
        return rc;
    if (words_judge(w, k, b->n_miss + b->n_skipped, n_new + b->n_skipped) && n_fresh)
        words_put(w, e->fresh, n_fresh);
    for (size_t j = 0; j < b->n_miss + b->n_skipped; j++) {
        const struct word_slot *s = &e->found[j];
        b->id[e->miss[j].pretoken] = IS_FOUND | (uint32_t)j;
        need += s->id[MANY_N] & -(uint32_t)(word_count(s) == WORD_MANY);
    }
    if (need > ids->cap &&
        (rc = slu_grow(&ids->id, &ids->cap, need, sizeof *ids->id, err)))
        return rc;
    b->slow[b->n_slow] = UINT32_MAX;
    for (size_t i = 0; i <= e->n_end; i++) {
        const size_t to = i < e->n_end ? e->end_mark[i] : k;
        ids->n = (size_t)(put_ids(e, first, to, &slow, ids->id + ids->n) - ids->id);
        first = to;
        if (i < e->n_end)
            end_text(e);
    }
    /* Hot slots are written only after all ids of the batch were copied. */
    for (size_t j = 0; j < b->n_miss; j++) {
        const struct miss *m = &e->miss[j];
        if ((m->n <= HOT_BYTES) & !is_apart(&e->found[j]))
            word_hot_put(w, m->hash, &e->found[j]);
    }
    return SLU_OK;
}

int encode_flush(struct slu_encoder *e, struct slu_err *err)
{
    const size_t k = e->n_wait, n = k ? e->batch.at[k] : 0;
    int rc = SLU_OK;

    if (k && e->words.hot)
        rc = encode_batch(e, e->wait, e->wait_byte, k, err);
    else if (k)
        rc = encode_plainly(e, e->wait, k, err);
    if (n) /* wait is NULL until a pretoken waits */
        e->wait += n;
    e->wait_byte -= n;
    e->n_wait = e->n_end = 0;
    return rc;
}
