#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/le.h"
#include "lib/base/map.h"
#include "stream_private.h"

enum { PAGE = 1024, CHUNK = 64 << 10 };

/* A million sources are normal, so their names lie in chunks, and a page has pointers
 * to the names of PAGE ordinals. */
struct slu_names {
    pthread_mutex_t mu;
    struct slu_map source; /* ordinal / PAGE -> index in page */
    const char ***page;    /* PAGE names each, NULL: none */
    size_t n_page, cap_page;
    char **chunk;
    size_t n_chunk, cap_chunk, chunk_used;
    char **domain; /* by number */
    size_t n_domain, cap_domain;
    /* Hash of the name -> number; after a collision at hash + 1, … */
    struct slu_map domain_hash;
    struct slu_vocab_table vocab;
    void *vocab_mem;
    /* The frame that the vocabulary is decoded from when it is first asked for. */
    struct slu_frame kept;
    uint64_t kept_size; /* the header's vocab_size */
    struct slu_err kept_err;
};

int slu_names_new(struct slu_names **out, struct slu_err *err)
{
    struct slu_names *n = calloc(1, sizeof *n);
    *out = n;
    if (!n)
        return slu_fail_nomem(err, sizeof *n);
    pthread_mutex_init(&n->mu, NULL);
    return SLU_OK;
}

static void forget_vocab(struct slu_names *n)
{
    free(n->vocab_mem);
    n->vocab_mem = NULL;
    n->vocab = (struct slu_vocab_table){.n = 0};
    slu_frame_release(&n->kept);
    n->kept_err.code = SLU_OK;
}

void slu_names_free(struct slu_names *n)
{
    if (!n)
        return;
    for (size_t i = 0; i < n->n_page; i++)
        free(n->page[i]);
    for (size_t i = 0; i < n->n_chunk; i++)
        free(n->chunk[i]);
    for (size_t i = 0; i < n->n_domain; i++)
        free(n->domain[i]);
    free(n->page);
    free(n->chunk);
    free(n->domain);
    forget_vocab(n);
    slu_map_release(&n->source);
    slu_map_release(&n->domain_hash);
    pthread_mutex_destroy(&n->mu);
    free(n);
}

/* Appends a copy of name[0 … len) to a list of strings. */
static int push(char ***list, size_t *n, size_t *cap, const char *name, size_t len,
                struct slu_err *err)
{
    int rc = slu_grow(list, cap, *n + 1, sizeof **list, err);
    if (rc)
        return rc;
    char *copy = strndup(name, len);
    if (!copy)
        return slu_fail_nomem(err, len);
    (*list)[(*n)++] = copy;
    return SLU_OK;
}

/* Makes a copy of name that lives as long as n. */
static int keep(struct slu_names *n, const char *name, const char **copy,
                struct slu_err *err)
{
    size_t len = strlen(name) + 1, room = len > CHUNK ? len : CHUNK;
    if (!n->n_chunk || len > CHUNK - n->chunk_used) {
        int rc =
            slu_grow(&n->chunk, &n->cap_chunk, n->n_chunk + 1, sizeof *n->chunk, err);
        if (rc)
            return rc;
        char *fresh = malloc(room);
        if (!fresh)
            return slu_fail_nomem(err, room);
        n->chunk[n->n_chunk++] = fresh;
        n->chunk_used = 0;
    }
    char *at = n->chunk[n->n_chunk - 1] + n->chunk_used;
    memcpy(at, name, len);
    n->chunk_used = len > CHUNK ? CHUNK : n->chunk_used + len;
    *copy = at;
    return SLU_OK;
}

/* Finds the place of an ordinal's name; makes the page if it is missing. */
static int place_of(struct slu_names *n, uint64_t ordinal, const char ***place,
                    struct slu_err *err)
{
    uint64_t i;
    if (!slu_map_get(&n->source, ordinal / PAGE, &i)) {
        int rc = slu_grow(&n->page, &n->cap_page, n->n_page + 1, sizeof *n->page, err);
        if (rc)
            return rc;
        const char **page = calloc(PAGE, sizeof *page);
        if (!page)
            return slu_fail_nomem(err, PAGE * sizeof *page);
        n->page[i = n->n_page++] = page;
        rc = slu_map_set(&n->source, ordinal / PAGE, i, err);
        if (rc)
            return rc;
    }
    *place = &n->page[i][ordinal % PAGE];
    return SLU_OK;
}

int slu_names_set_source(struct slu_names *n, uint64_t ordinal, const char *name,
                         struct slu_err *err)
{
    const char **place = NULL;
    pthread_mutex_lock(&n->mu);
    int rc = place_of(n, ordinal, &place, err);
    if (!rc && !*place)
        rc = keep(n, name, place, err);
    pthread_mutex_unlock(&n->mu);
    return rc;
}

const char *slu_names_source(struct slu_names *n, uint64_t ordinal)
{
    uint64_t i;
    pthread_mutex_lock(&n->mu);
    const char *s =
        slu_map_get(&n->source, ordinal / PAGE, &i) ? n->page[i][ordinal % PAGE] : NULL;
    pthread_mutex_unlock(&n->mu);
    return s;
}

static int by_key(const void *a, const void *b)
{
    const struct slu_map_slot *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

int slu_names_each_source(struct slu_names *n,
                          int (*each)(void *ctx, uint64_t ordinal, const char *name,
                                      struct slu_err *err),
                          void *ctx, struct slu_err *err)
{
    size_t k = 0;
    pthread_mutex_lock(&n->mu);
    struct slu_map_slot *page = malloc((n->source.n + 1) * sizeof *page);
    int rc = page ? SLU_OK : slu_fail_nomem(err, (n->source.n + 1) * sizeof *page);
    for (size_t i = 0; page && i < n->source.cap; i++)
        if (n->source.slot[i].used)
            page[k++] = n->source.slot[i];
    if (page)
        qsort(page, k, sizeof *page, by_key);
    for (size_t i = 0; i < k && !rc; i++)
        for (size_t j = 0; j < PAGE && !rc; j++)
            if (n->page[page[i].value][j])
                rc = each(ctx, page[i].key * PAGE + j, n->page[page[i].value][j], err);
    pthread_mutex_unlock(&n->mu);
    free(page);
    return rc;
}

struct first { /* the first sources, and the number of all */
    const char **name;
    size_t most, have;
    uint64_t count;
};

static int take_first(void *ctx, uint64_t ordinal, const char *name,
                      struct slu_err *err)
{
    struct first *f = ctx;
    if (f->have < f->most)
        f->name[f->have++] = name;
    f->count++;
    (void)ordinal;
    (void)err;
    return SLU_OK;
}

int slu_names_sources(struct slu_names *n, const char **name, size_t most,
                      uint64_t *count, struct slu_err *err)
{
    struct first f = {name, most, 0, 0};
    int rc = slu_names_each_source(n, take_first, &f, err);
    *count = f.count;
    return rc;
}

int slu_names_domain_number(struct slu_names *n, const char *name, size_t len,
                            uint32_t *number, struct slu_err *err)
{
    uint64_t h = slu_hash64(name, len), i;
    int rc = SLU_OK;
    pthread_mutex_lock(&n->mu);
    for (;; h++) {
        if (!slu_map_get(&n->domain_hash, h, &i)) {
            if (n->n_domain >= SLU_NO_DOMAIN)
                rc = slu_fail(err, SLU_E_LIMIT, "more than 2^32 domains");
            if (!rc)
                rc = push(&n->domain, &n->n_domain, &n->cap_domain, name, len, err);
            if (!rc)
                rc = slu_map_set(&n->domain_hash, h, i = n->n_domain - 1, err);
            break;
        }
        if (strlen(n->domain[i]) == len && !memcmp(n->domain[i], name, len))
            break;
    }
    pthread_mutex_unlock(&n->mu);
    *number = (uint32_t)i;
    return rc;
}

const char *slu_names_domain(struct slu_names *n, uint32_t number)
{
    pthread_mutex_lock(&n->mu);
    const char *s = number < n->n_domain ? n->domain[number] : NULL;
    pthread_mutex_unlock(&n->mu);
    return s;
}

uint32_t slu_names_n_domain(struct slu_names *n)
{
    pthread_mutex_lock(&n->mu);
    uint32_t k = (uint32_t)n->n_domain;
    pthread_mutex_unlock(&n->mu);
    return k;
}

int slu_names_set_vocab(struct slu_names *n, const struct slu_vocab_table *v,
                        struct slu_err *err)
{
    size_t n_off = (v->n + 1) * sizeof *v->off, n_byte = v->off[v->n];
    size_t n_packed = v->packed ? v->packed_byte : 0;
    size_t n_all = n_off + n_byte + v->n + n_packed;
    uint8_t *m = malloc(n_all);
    if (!m)
        return slu_fail_nomem(err, n_all);
    memcpy(m, v->off, n_off);
    if (n_byte)
        memcpy(m + n_off, v->bytes, n_byte);
    if (v->n)
        memcpy(m + n_off + n_byte, v->flags, v->n);
    if (n_packed)
        memcpy(m + n_all - n_packed, v->packed, n_packed);
    forget_vocab(n);
    n->vocab_mem = m;
    n->vocab =
        (struct slu_vocab_table){.n = v->n,
                                 .off = (const uint64_t *)(void *)m,
                                 .bytes = m + n_off,
                                 .flags = m + n_off + n_byte,
                                 .packed = n_packed ? m + n_all - n_packed : NULL,
                                 .packed_byte = n_packed};
    return SLU_OK;
}

void slu_names_lend_vocab(struct slu_names *n, const struct slu_vocab_table *v)
{
    forget_vocab(n);
    n->vocab = *v;
}

bool slu_names_keep_vocab(struct slu_names *n, struct slu_frame *f, uint64_t size)
{
    if (n->vocab.off || n->kept.stored.data)
        return false;
    n->kept = *f;
    n->kept.early = n->kept.tok = (struct slu_buf)SLU_BUF_INIT;
    n->kept_size = size;
    f->stored = f->raw = (struct slu_buf)SLU_BUF_INIT;
    return true;
}

/* Decodes the kept frame, which stays for writers. */
static int decode_kept(struct slu_names *n, struct slu_err *err)
{
    struct slu_frame f = n->kept;
    const uint8_t *p;
    size_t n_byte;
    int rc = slu_frame_payload(&f, &p, &n_byte, err);

    n->kept = (struct slu_frame){.stored = SLU_BUF_INIT};
    if (!rc)
        rc = slu_vocab_decode(n, n->kept_size, p, n_byte, err);
    slu_buf_release(&f.raw);
    n->kept = f;
    if (!rc && f.flags & SLU_FLAG_ZSTD) {
        n->vocab.packed = f.stored.data;
        n->vocab.packed_byte = f.stored_byte;
    }
    return rc;
}

int slu_names_read_vocab(struct slu_names *n, struct slu_err *err)
{
    pthread_mutex_lock(&n->mu);
    if (n->kept.stored.data && !n->vocab.off && !n->kept_err.code)
        (void)decode_kept(n, &n->kept_err);
    pthread_mutex_unlock(&n->mu);
    return slu_names_check_vocab(n, err);
}

int slu_names_check_vocab(const struct slu_names *n, struct slu_err *err)
{
    if (n->kept_err.code && err)
        *err = n->kept_err;
    return n->kept_err.code;
}

const struct slu_vocab_table *slu_names_vocab(struct slu_names *n)
{
    return slu_names_read_vocab(n, NULL) || !n->vocab.off ? NULL : &n->vocab;
}

int slu_vocab_encode(const struct slu_vocab_table *v, struct slu_buf *out,
                     struct slu_err *err)
{
    uint8_t t[8];
    slu_buf_clear(out);
    int rc = slu_buf_reserve(out, 8 + 9 * v->n + v->off[v->n], err);
    slu_put_le64(t, v->n);
    if (!rc)
        rc = slu_buf_append(out, t, 8, err);
    for (uint64_t i = 0; !rc && i < v->n; i++) {
        slu_put_le64(t, v->off[i + 1] - v->off[i]);
        rc = slu_buf_append(out, t, 8, err);
    }
    if (!rc)
        rc = slu_buf_append(out, v->flags, v->n, err);
    if (!rc)
        rc = slu_buf_append(out, v->bytes, v->off[v->n], err);
    return rc;
}

int slu_names_put_vocab(struct slu_names *n, struct slu_framer *w, struct slu_err *err)
{
    const struct slu_frame *f = &n->kept;
    const struct slu_vocab_table *v = &n->vocab;
    struct slu_buf raw = SLU_BUF_INIT;

    if (f->stored.data && f->flags & SLU_FLAG_ZSTD)
        return slu_framer_put_packed(w, SLU_VOCB, f->raw_byte, f->stored.data,
                                     f->stored_byte, err);
    int rc = slu_names_read_vocab(n, err);
    if (rc || !n->vocab.off)
        return rc;
    if (v->packed)
        return slu_framer_put_packed(w, SLU_VOCB, 8 + 9 * v->n + v->off[v->n],
                                     v->packed, v->packed_byte, err);
    rc = slu_vocab_encode(v, &raw, err);
    const struct slu_span p = {raw.data, raw.len};
    if (!rc)
        rc = slu_framer_put(w, SLU_VOCB, 0, 0, &p, 1, SLU_VOCAB_LEVEL, true, err);
    slu_buf_release(&raw);
    return rc;
}

int slu_vocab_pack(const struct slu_vocab_table *v, struct slu_buf *out,
                   struct slu_err *err)
{
    struct slu_framer w = {0};
    struct slu_buf raw = SLU_BUF_INIT;
    int rc = slu_vocab_encode(v, &raw, err);
    const struct slu_span p = {raw.data, raw.len};
    if (!rc)
        rc = slu_framer_pack(&w, &p, 1, SLU_VOCAB_LEVEL, err);
    slu_buf_release(&raw);
    slu_buf_release(out);
    *out = w.packed;
    w.packed = (struct slu_buf)SLU_BUF_INIT;
    slu_framer_release(&w);
    return rc;
}

int slu_vocab_decode(struct slu_names *names, uint64_t vocab_size, const uint8_t *p,
                     size_t n, struct slu_err *err)
{
    static const char bad[] = "the vocabulary frame has offsets that do not ascend, or "
                              "end elsewhere than its text";
    struct slu_cursor c = {p, n, 0};
    const uint8_t *head = slu_cursor_take(&c, 8);
    uint64_t n_id = head ? slu_le64(head) : 0;
    const uint8_t *len = head && n_id <= n / 9 ? slu_cursor_take(&c, 8 * n_id) : NULL;
    const uint8_t *flags = len ? slu_cursor_take(&c, n_id) : NULL;
    if (!flags || n_id != vocab_size)
        return slu_fail(err, SLU_E_FORMAT, bad);
    uint64_t *off = malloc((n_id + 1) * sizeof *off);
    if (!off)
        return slu_fail_nomem(err, (n_id + 1) * sizeof *off);
    uint64_t sum = 0, left = n - c.at;
    int rc = SLU_OK;
    for (uint64_t i = 0; !rc && i < n_id; i++) {
        uint64_t l = slu_le64(len + 8 * i);
        off[i] = sum;
        if (l > left - sum)
            rc = slu_fail(err, SLU_E_FORMAT, bad);
        else
            sum += l;
    }
    off[n_id] = sum;
    if (!rc && sum != left)
        rc = slu_fail(err, SLU_E_FORMAT, bad);
    if (!rc) {
        struct slu_vocab_table v = {
            .n = n_id, .off = off, .bytes = p + c.at, .flags = flags};
        rc = slu_names_set_vocab(names, &v, err);
    }
    free(off);
    return rc;
}
