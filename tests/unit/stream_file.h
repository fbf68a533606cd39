/* stream_file.h - what the tests of the stream share: files in a folder of their own,
 * streams of any shape in them. */
#ifndef SLU_TESTS_STREAM_FILE_H
#define SLU_TESTS_STREAM_FILE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/le.h"
#include "lib/stream/frame.h"
#include "lib/stream/stream.h"
#include "lib/stream/stream_private.h"
#include "lib/stream/token_hash.h"

static char dir[] = "/tmp/sluice-stream-XXXXXX";
static char path_a[128], path_b[128], path_c[128];

static struct slu_err err;
static struct slu_joint *joint; /* if not NULL, streams go through it, not to files */

#define OK(call)                                                                       \
    do {                                                                               \
        int rc_ = (call);                                                              \
        if (rc_)                                                                       \
            print_error("%s\n", err.msg);                                              \
        assert_int_equal(rc_, SLU_OK);                                                 \
    } while (0)

static int setup(void **state)
{
    (void)state;
    if (!mkdtemp(dir))
        return -1;
    snprintf(path_a, sizeof path_a, "%s/a.tks", dir);
    snprintf(path_b, sizeof path_b, "%s/b.tks", dir);
    snprintf(path_c, sizeof path_c, "%s/c.tks", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(path_a);
    unlink(path_b);
    unlink(path_c);
    return rmdir(dir);
}

/* ---- a stream to write: sequences of given lengths, with packed ones and padding
 * among them */

struct shape {
    unsigned tok_bytes;
    int zstd_level;
    bool vocab, domains, no_tokens, scores, masks, inner_padding, metadata;
    uint64_t n_seq;
    uint64_t len[8];       /* lengths, taken in turn */
    uint64_t n_seg[8];     /* segments, likewise (0: 1) */
    uint64_t batch;        /* sequences a batch: must not matter */
    bool gaps;             /* every third sequence is not written */
    uint64_t part;         /* tokens a part, at least; then documents come in parts */
    uint64_t first_source; /* ordinal */
    const char *name;      /* source names begin with it */
};

static uint64_t pick(const uint64_t v[8], uint64_t i)
{
    unsigned n = 0;
    while (n < 8 && v[n])
        n++;
    return n ? v[i % n] : 1;
}

static uint32_t id_at(uint64_t seq, uint64_t i, unsigned tok_bytes)
{
    uint64_t x = (seq * 2654435761u + i * 40503u) ^ (i >> 7);
    return (uint32_t)(tok_bytes == 2 ? x % 60000 : x % 200000);
}

/* Whether the shapes train on token i of a sequence that is not padding. */
static bool trained_at(uint64_t seq, uint64_t i)
{
    return seq % 2 == 0 ? i % 4 == 1 || i % 4 == 2 : i % 3 == 0;
}

static const struct slu_meta_fields *meta_fields(void)
{
    static struct slu_meta_fields t;
    if (t.n)
        return &t;
    OK(slu_meta_add(&t, "url", 3, SLU_META_IS_TEXT, &err));
    OK(slu_meta_add(&t, "lang", 4, SLU_META_IS_NAME, &err));
    OK(slu_meta_add(&t, "n", 1, SLU_META_IS_U8, &err));
    return &t;
}

/* Appends the values of segment i of a sequence: by turns all, some, none. */
static void add_metadata(struct slu_buf *out, uint64_t number, uint64_t i)
{
    const struct slu_meta_field *f = meta_fields()->field;
    char url[32];
    if ((number + i) % 3 == 2)
        return;
    OK(slu_meta_put(out, f[0].key, number % 2 ? "de" : "en", 2, &err));
    if ((number + i) % 3 == 1)
        return;
    OK(slu_meta_put(out, f[1].key, &(uint8_t){(uint8_t)(number % 255)}, 1, &err));
    int n = snprintf(url, sizeof url, "u/%llu", (unsigned long long)number);
    OK(slu_meta_put(out, f[2].key, url, (size_t)n, &err));
}

static void add(struct slu_batch *b, const struct shape *s, struct slu_names *names,
                uint64_t number)
{
    uint64_t len = pick(s->len, number), k = pick(s->n_seg, number), at = 0;
    char *tok = malloc(len * 4 + 8);
    struct slu_seg *seg = calloc(k, sizeof *seg);
    struct slu_buf id = SLU_BUF_INIT;
    assert_non_null(tok);
    assert_non_null(seg);
    b->masks = s->masks;
    b->tok_bytes = s->masks ? 4 : s->tok_bytes;
    b->marks_only = s->masks && s->no_tokens;
    for (uint64_t i = 0; i < len; i++) {
        uint32_t v = b->marks_only ? 0 : id_at(number, i, s->tok_bytes);
        if (s->masks && trained_at(number, i))
            v |= SLU_TRAINED;
        if (b->tok_bytes == 2)
            ((uint16_t *)(void *)tok)[i] = (uint16_t)v;
        else
            ((uint32_t *)(void *)tok)[i] = v;
    }
    for (uint64_t i = 0; i < k; i++) {
        uint64_t n = i + 1 < k ? len / k : len - at;
        seg[i] = (struct slu_seg){.source = s->first_source + number % 3,
                                  .document = number * 1000 + i,
                                  .offset = i % 2 * 17,
                                  .len_tok = n,
                                  .domain = SLU_NO_DOMAIN};
        if (s->domains) {
            const char *d = number % 2 ? "code" : "web";
            OK(slu_names_domain_number(names, d, strlen(d), &seg[i].domain, &err));
            seg[i].id_len = (uint32_t)(number % 9);
        }
        seg[i].id_off = id.len & 0xffffff;
        OK(slu_buf_append(&id, "record-\0", seg[i].id_len, &err));
        if (s->metadata)
            add_metadata(&id, number, i);
        seg[i].meta_len = (id.len - seg[i].id_off - seg[i].id_len) & 0xffffff;
        if (s->scores && (number + i) % 2 == 0)
            seg[i].extra[SLU_SCORE] = slu_score_bits(0.5 + (double)number);
        if ((k > 2 && i + 1 == k) || (s->inner_padding && i % 3 == 1)) {
            seg[i] = (struct slu_seg){
                .source = SLU_PADDING, .len_tok = n, .domain = SLU_NO_DOMAIN};
            for (uint64_t t = at; s->masks && t < at + n; t++)
                ((uint32_t *)(void *)tok)[t] &= ~SLU_TRAINED;
        }
        at += n;
    }
    OK(slu_batch_add(b, s->no_tokens && !s->masks ? NULL : tok, len, seg, k, id.data,
                     &err));
    slu_buf_release(&id);
    free(tok);
    free(seg);
}

/* The same as slu_writer_put for a batch of one document, of which nobody knows how
 * long it gets. */
static void put_in_parts(struct slu_writer *w, const struct slu_batch *b, uint64_t part)
{
    struct slu_seg seg = b->seg[0];
    struct slu_token_hash *h;
    seg.len_tok = 12345; /* does not count */
    OK(slu_writer_begin(w, &seg, slu_seg_str(&seg) ? b->str.data + seg.id_off : NULL,
                        &err));
    OK(slu_token_hash_new(&h, 0, "/tmp", &err));
    for (uint64_t at = 0; at < b->n_tok;) {
        uint64_t n = part + at % 7 < b->n_tok - at ? part + at % 7 : b->n_tok - at;
        OK(slu_writer_part(w, slu_batch_at(b, at), n, &err));
        OK(slu_writer_part(w, NULL, 0, &err));
        OK(slu_token_hash_add(h, slu_batch_at(b, at), n, b->tok_bytes, &err));
        at += n;
    }
    struct slu_u128 hash;
    OK(slu_token_hash_end(h, &hash, &err));
    slu_token_hash_free(h);
    assert_int_equal(
        slu_u128_cmp(hash, slu_hash_tokens(b->tok, b->n_tok, b->tok_bytes)), 0);
    OK(slu_writer_end(w, hash, &err));
}

/* first: number of the first sequence. */
static void leave_gaps(struct slu_batch *b, uint64_t first)
{
    size_t n = 0;
    for (size_t k = 0; k < b->n_seq; k++)
        if ((first + k) % 3 != 1)
            b->seq[n++] = b->seq[k];
    b->n_seq = n;
}

static void write_stream(const char *path, const struct shape *s)
{
    static const uint64_t off[4] = {0, 1, 3, 3};
    static const uint8_t flags[3] = {0, 0, SLU_VOCAB_SPECIAL};
    struct slu_header h;
    struct slu_names *names;
    struct slu_writer *w;
    struct slu_out *o;
    struct slu_batch b;
    slu_header_init(&h);
    h.tok_bytes = s->masks ? 4 : s->tok_bytes;
    h.masks = s->masks;
    h.inner_padding = s->inner_padding;
    h.no_tokens = s->no_tokens;
    h.has[SLU_SCORE] = s->scores;
    if (s->metadata)
        h.meta = *meta_fields();
    h.vocab_size = s->vocab ? 3 : s->tok_bytes == 2 ? 65536 : 200000;
    h.eos = 2;
    h.n_bucket = 2;
    h.bucket[0] = 256;
    h.bucket[1] = 512;
    OK(slu_header_add_step(&h, "test", "1", "--x=1", 7, &err));
    OK(slu_names_new(&names, &err));
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%d", s->name ? s->name : "source-", i);
        OK(slu_names_set_source(names, s->first_source + (uint64_t)i, name, &err));
    }
    if (s->vocab) {
        struct slu_vocab_table v = {
            .n = 3, .off = off, .bytes = (const uint8_t *)"abc", .flags = flags};
        OK(slu_names_set_vocab(names, &v, &err));
    }
    struct slu_writer_cfg cfg = {s->zstd_level, !s->vocab, names, .joint = joint};
    o = NULL;
    if (!joint)
        OK(slu_out_open(&o, path, &err));
    OK(slu_writer_open(&w, o, &h, &cfg, &err));
    slu_batch_init(&b, s->tok_bytes);
    for (uint64_t i = 0; i < s->n_seq; i++) {
        add(&b, s, names, i);
        if (s->part && b.seg[0].offset == 0 && b.n_seg == 1) {
            put_in_parts(w, &b, s->part);
            slu_batch_clear(&b);
        } else if (b.n_seq == (s->batch ? s->batch : 1) || i + 1 == s->n_seq) {
            if (s->gaps)
                leave_gaps(&b, i + 1 - b.n_seq);
            OK(slu_writer_put(w, &b, &err));
            slu_batch_clear(&b);
        }
    }
    OK(slu_writer_close(w, &err));
    slu_batch_release(&b);
    slu_names_free(names);
    slu_header_release(&h);
}

static int open_one(struct slu_reader **r, const char *const *path, size_t n)
{
    struct slu_reader_cfg cfg = {
        path, n, 0, .masks = true, .inner_padding = true, .joint = joint};
    return slu_reader_open(r, &cfg, &err);
}

static size_t slurp(const char *path, uint8_t **out)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    size_t n = (size_t)ftell(f);
    rewind(f);
    *out = malloc(n + 1);
    assert_int_equal(fread(*out, 1, n, f), n);
    fclose(f);
    return n;
}

#endif
