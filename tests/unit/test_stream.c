/* test_stream.c - the stream: streams of every shape are written and read; damaged
 * streams are refused; frames are cut only by the sequences; the writer makes the
 * specification's examples. */
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
    bool vocab, domains, no_tokens, scores;
    uint64_t n_seq;
    uint64_t len[8];       /* lengths, taken in turn */
    uint64_t n_seg[8];     /* segments, likewise (0: 1) */
    uint64_t batch;        /* sequences a batch: must not matter */
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

static void add(struct slu_batch *b, const struct shape *s, struct slu_names *names,
                uint64_t number)
{
    uint64_t len = pick(s->len, number), k = pick(s->n_seg, number), at = 0;
    char *tok = malloc(len * s->tok_bytes + 8);
    struct slu_seg *seg = calloc(k, sizeof *seg);
    char id[16] = "record-";
    assert_non_null(tok);
    assert_non_null(seg);
    for (uint64_t i = 0; i < len; i++) {
        uint32_t v = id_at(number, i, s->tok_bytes);
        if (s->tok_bytes == 2)
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
        if (s->scores && (number + i) % 2 == 0)
            seg[i].extra[SLU_SCORE] = slu_score_bits(0.5 + (double)number);
        if (k > 2 && i + 1 == k)
            seg[i] = (struct slu_seg){
                .source = SLU_PADDING, .len_tok = n, .domain = SLU_NO_DOMAIN};
        at += n;
    }
    OK(slu_batch_add(b, s->no_tokens ? NULL : tok, len, seg, k, (uint8_t *)id, &err));
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
    OK(slu_writer_begin(w, &seg, seg.id_len ? b->str.data + seg.id_off : NULL, &err));
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
    h.tok_bytes = s->tok_bytes;
    h.no_tokens = s->no_tokens;
    h.has[SLU_SCORE] = s->scores;
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
    struct slu_writer_cfg cfg = {s->zstd_level, !s->vocab, names};
    OK(slu_out_open(&o, path, &err));
    OK(slu_writer_open(&w, o, &h, &cfg, &err));
    slu_batch_init(&b, s->tok_bytes);
    for (uint64_t i = 0; i < s->n_seq; i++) {
        add(&b, s, names, i);
        if (s->part && b.seg[0].offset == 0 && b.n_seg == 1) {
            put_in_parts(w, &b, s->part);
            slu_batch_clear(&b);
        } else if (b.n_seq == (s->batch ? s->batch : 1) || i + 1 == s->n_seq) {
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
    struct slu_reader_cfg cfg = {path, n, 0};
    return slu_reader_open(r, &cfg, &err);
}

/* A reader keeps the vocabulary as the frame stores it, which is what packing it makes.
 */
static void compare_packed(const struct slu_vocab_table *v)
{
    struct slu_buf packed = SLU_BUF_INIT;

    OK(slu_vocab_pack(v, &packed, &err));
    assert_int_equal(v->packed_byte, packed.len);
    assert_memory_equal(v->packed, packed.data, packed.len);
    slu_buf_release(&packed);
}

static void read_and_compare(const char *path, const struct shape *s)
{
    struct slu_reader *r;
    struct slu_batch b, want;
    uint64_t number = 0;
    struct slu_sum total;
    int rc;
    OK(open_one(&r, &path, 1));
    slu_batch_init(&b, 2);
    assert_int_equal(slu_reader_header(r)->tok_bytes, s->tok_bytes);
    assert_int_equal(slu_reader_header(r)->n_step, 1);
    assert_string_equal(slu_reader_header(r)->step[0].arguments, "--x=1");
    if (s->vocab)
        compare_packed(slu_names_vocab(slu_reader_names(r)));
    while (!(rc = slu_reader_next(r, &b, &err))) {
        for (size_t i = 0; i < b.n_seq; i++, number++) {
            const struct slu_seq *q = &b.seq[i];
            slu_batch_init(&want, s->tok_bytes);
            add(&want, s, slu_reader_names(r), number);
            assert_int_equal(q->len_tok, want.n_tok);
            assert_int_equal(q->n_seg, want.n_seg);
            if (!s->no_tokens)
                assert_memory_equal(slu_batch_at(&b, q->tok_off), want.tok,
                                    q->len_tok * s->tok_bytes);
            for (uint64_t k = 0; k < q->n_seg; k++) {
                const struct slu_seg *x = &b.seg[q->seg_off + k], *y = &want.seg[k];
                assert_true(x->source == y->source && x->document == y->document &&
                            x->offset == y->offset && x->len_tok == y->len_tok &&
                            x->id_len == y->id_len);
                if (x->domain == SLU_NO_DOMAIN || y->domain == SLU_NO_DOMAIN)
                    assert_int_equal(x->domain, y->domain);
                else
                    assert_string_equal(
                        slu_names_domain(slu_reader_names(r), x->domain),
                        number % 2 ? "code" : "web");
                assert_memory_equal(b.str.data ? b.str.data + x->id_off : (uint8_t *)"",
                                    "record-\0", x->id_len);
            }
            slu_batch_release(&want);
        }
    }
    if (rc != SLU_EOF)
        print_error("%s\n", err.msg);
    assert_int_equal(rc, SLU_EOF);
    assert_int_equal(number, s->n_seq);
    OK(slu_reader_finish(r, &total, &err));
    assert_int_equal(total.n.sequences, s->n_seq);
    slu_batch_release(&b);
    slu_reader_free(r);
}

static const struct shape shapes[] = {
    {.tok_bytes = 2, .n_seq = 0},
    {.tok_bytes = 2, .n_seq = 1, .len = {1}},
    {.tok_bytes = 2,
     .n_seq = 1000,
     .len = {3, 700, 1, 257},
     .domains = true,
     .vocab = false},
    {.tok_bytes = 4,
     .n_seq = 3000,
     .len = {300, 2, 9000},
     .n_seg = {1, 2, 5},
     .zstd_level = 1},
    {.tok_bytes = 4,
     .n_seq = 5,
     .len = {1 << 20, 1, (1 << 20) + 1, 5000000},
     .domains = true},
    {.tok_bytes = 2, .n_seq = 4, .len = {3 << 20}, .n_seg = {7}, .zstd_level = 3},
    {.tok_bytes = 2, .n_seq = 4, .len = {1 << 19, 1 << 19, 1}},
    {.tok_bytes = 2, .n_seq = 2, .len = {400000}, .n_seg = {200000}},
    {.tok_bytes = 2, .n_seq = 140000, .len = {1}, .batch = 997},
    {.tok_bytes = 2, .n_seq = 500, .len = {257}, .n_seg = {3}, .no_tokens = true},
};

static void round_trips(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        write_stream(path_a, &shapes[i]);
        read_and_compare(path_a, &shapes[i]);
    }
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

static void spit(const char *path, const uint8_t *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    fclose(f);
}

/* Batches of any size give the same bytes. */
static void batches_do_not_matter(void **state)
{
    (void)state;
    for (size_t i = 2; i < 9; i++) {
        struct shape s = shapes[i];
        uint8_t *a, *b;
        s.batch = 1;
        write_stream(path_a, &s);
        s.batch = 131;
        write_stream(path_b, &s);
        size_t n = slurp(path_a, &a);
        assert_int_equal(slurp(path_b, &b), n);
        assert_memory_equal(a, b, n);
        free(a);
        free(b);
    }
}

/* Nor does it matter whether documents come whole or in parts, whatever these are. */
static void parts_do_not_matter(void **state)
{
    static const uint64_t part[] = {1, 1000, 1 << 18, 1 << 20, 3 << 20};
    static const struct shape more[] = {
        {.tok_bytes = 4, .n_seq = 6, .len = {(1 << 20) - 1, 2, 1 << 20}},
        {.tok_bytes = 2, .n_seq = 6, .len = {1, (1 << 20) - 1, (2 << 20) + 1}},
        {.tok_bytes = 2, .n_seq = 3, .len = {2 << 20}, .domains = true},
        {.tok_bytes = 2, .n_seq = 70000, .len = {2, 3}, .n_seg = {1, 2}},
    };
    (void)state;
    for (size_t i = 0; i < 10 + sizeof more / sizeof *more; i++) {
        struct shape s = i < 10 ? shapes[i] : more[i - 10];
        uint8_t *a, *b;
        if (s.no_tokens)
            continue;
        s.batch = 1;
        write_stream(path_a, &s);
        size_t n = slurp(path_a, &a);
        for (size_t k = 0; k < sizeof part / sizeof *part; k++) {
            s.part = part[k];
            if (s.part == 1 && s.len[0] * s.n_seq > 1000000)
                continue;
            write_stream(path_b, &s);
            assert_int_equal(slurp(path_b, &b), n);
            assert_memory_equal(a, b, n);
            free(b);
        }
        free(a);
    }
}

/* What the functions for parts refuse. */
static void parts_are_ended(void **state)
{
    struct slu_header h;
    struct slu_names *names;
    struct slu_writer *w;
    struct slu_out *o;
    const struct slu_seg seg = {.domain = SLU_NO_DOMAIN},
                         inner = {.offset = 1, .domain = SLU_NO_DOMAIN};
    const uint16_t tok[1] = {1};
    (void)state;
    slu_header_init(&h);
    h.tok_bytes = 2;
    h.vocab_size = 10;
    OK(slu_names_new(&names, &err));
    struct slu_writer_cfg cfg = {0, true, names};
    for (int i = 0; i < 4; i++) {
        memset(&err, 0, sizeof err);
        OK(slu_out_open(&o, path_a, &err));
        OK(slu_writer_open(&w, o, &h, &cfg, &err));
        int rc = slu_writer_begin(w, i == 3 ? &inner : &seg, NULL, &err);
        if (i == 3) {
            assert_int_equal(rc, SLU_E_USAGE);
        } else if (i == 0) { /* without tokens */
            assert_int_equal(slu_writer_end(w, (struct slu_u128){0, 0}, &err),
                             SLU_E_FORMAT);
        } else if (i == 1) { /* in another one */
            assert_int_equal(slu_writer_begin(w, &seg, NULL, &err), SLU_E_USAGE);
        } else { /* never */
            OK(slu_writer_part(w, tok, 1, &err));
            assert_int_equal(slu_writer_close(w, &err), SLU_E_USAGE);
            w = NULL;
        }
        slu_writer_abort(w);
    }
    slu_names_free(names);
    slu_header_release(&h);
}

/* Reads everything; returns the code of the first fault, SLU_OK without. */
static int verdict(const char *path)
{
    struct slu_reader *r;
    struct slu_batch b;
    memset(&err, 0, sizeof err);
    int rc = open_one(&r, &path, 1);
    if (rc)
        return rc;
    slu_batch_init(&b, 2);
    while (!(rc = slu_reader_next(r, &b, &err)))
        ;
    if (rc == SLU_EOF)
        rc = slu_reader_finish(r, NULL, &err);
    slu_batch_release(&b);
    slu_reader_free(r);
    return rc;
}

static void every_cut_and_every_flip_is_seen(void **state)
{
    static const struct shape small = {.tok_bytes = 2,
                                       .n_seq = 9,
                                       .len = {5, 1, 40},
                                       .n_seg = {1, 1, 3},
                                       .domains = true};
    uint8_t *p;
    (void)state;
    write_stream(path_a, &small);
    size_t n = slurp(path_a, &p);
    assert_true(n > 1000 && n < 8192);
    for (size_t i = 0; i < n; i++) {
        spit(path_b, p, i);
        assert_int_equal(verdict(path_b), SLU_E_TRUNCATED);
        assert_non_null(strstr(err.msg, i ? "ends early" : "is empty"));
    }
    for (size_t i = 0; i < 8 * n; i += 1 + i % 3) {
        p[i / 8] ^= (uint8_t)(1 << i % 8);
        spit(path_b, p, n);
        assert_true(verdict(path_b) < 0);
        assert_true(err.msg[0]);
        p[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    uint8_t *more = malloc(n + 100);
    memcpy(more, p, n);
    memset(more + n, 0, 100);
    spit(path_b, more, n + 100);
    assert_int_equal(verdict(path_b), SLU_E_FORMAT); /* trailing garbage */
    spit(path_b, more, n + 1);
    assert_int_equal(verdict(path_b), SLU_E_TRUNCATED);
    free(more);
    free(p);
}

/* Two streams one after another, in one file and as two, with ordinals that collide. */
static void concatenation(void **state)
{
    static const struct shape a = {
        .tok_bytes = 2, .n_seq = 50, .len = {9, 33}, .name = "a"};
    static const struct shape b = {
        .tok_bytes = 2, .n_seq = 50, .len = {9, 33}, .name = "b"};
    const char *two[2] = {path_a, path_b}, *one[1] = {path_c};
    uint8_t *p, *q;
    (void)state;
    write_stream(path_a, &a);
    write_stream(path_b, &b);
    size_t n = slurp(path_a, &p), m = slurp(path_b, &q);
    uint8_t *both = malloc(n + m);
    memcpy(both, p, n);
    memcpy(both + n, q, m);
    spit(path_c, both, n + m);
    for (int k = 0; k < 2; k++) {
        struct slu_reader *r;
        struct slu_batch x;
        struct slu_sum t;
        uint64_t seen = 0;
        int rc;
        OK(open_one(&r, k ? one : two, k ? 1 : 2));
        slu_batch_init(&x, 2);
        while (!(rc = slu_reader_next(r, &x, &err)))
            for (size_t i = 0; i < x.n_seq; i++, seen++) {
                const char *name =
                    slu_names_source(slu_reader_names(r), x.seg[i].source);
                assert_non_null(name);
                assert_int_equal(name[0], seen < 50 ? 'a' : 'b');
                assert_int_equal(name[1] - '0', seen % 50 % 3);
                if (seen < 50)
                    assert_int_equal(x.seg[i].source, seen % 3);
                else
                    assert_true(x.seg[i].source >= 3 && x.seg[i].source < 6);
            }
        assert_int_equal(rc, SLU_EOF);
        OK(slu_reader_finish(r, &t, &err));
        assert_int_equal(t.n.sequences, 100);
        slu_batch_release(&x);
        slu_reader_free(r);
    }
    free(p);
    free(q);
    free(both);
}

static void other_tokenizers_do_not_mix(void **state)
{
    static const struct shape a = {.tok_bytes = 2, .n_seq = 2, .len = {9}};
    static const struct shape b = {.tok_bytes = 4, .n_seq = 2, .len = {9}};
    const char *two[2] = {path_a, path_b};
    struct slu_reader *r;
    (void)state;
    write_stream(path_a, &a);
    write_stream(path_b, &b);
    assert_int_equal(open_one(&r, two, 2), SLU_E_MISMATCH);
    assert_null(r);
    assert_non_null(strstr(err.msg, path_b));
}

/* A sequence larger than the reader's limit is refused and named. */
static void too_long_is_named(void **state)
{
    static const struct shape s = {.tok_bytes = 2, .n_seq = 1, .len = {5000000}};
    const char *p = path_a;
    struct slu_reader_cfg cfg = {&p, 1, 2000000};
    struct slu_reader *r;
    struct slu_batch b;
    (void)state;
    write_stream(path_a, &s);
    OK(slu_reader_open(&r, &cfg, &err));
    slu_batch_init(&b, 2);
    assert_int_equal(slu_reader_next(r, &b, &err), SLU_E_LIMIT);
    assert_non_null(strstr(err.msg, "document 0 of source 0"));
    slu_batch_release(&b);
    slu_reader_free(r);
}

/* The examples of STREAM.md section 11, byte for byte. */
static void specification_example(void **state)
{
    struct slu_buf want = SLU_BUF_INIT;
    char line[256];
    uint8_t *p;
    unsigned x;
    bool inside = false;
    FILE *f = fopen("formats/STREAM.md", "r");
    (void)state;
    if (!f)
        fail_msg(
            "formats/STREAM.md cannot be read: run the tests from the project's root");
    while (fgets(line, sizeof line, f)) {
        if (!strncmp(line, "```", 3)) {
            inside = !strncmp(line, "```hex", 6);
            continue;
        }
        for (char *s = line + 5;
             inside && strlen(line) > 5 && sscanf(s, "%2x", &x) == 1; s += 3) {
            uint8_t v = (uint8_t)x;
            OK(slu_buf_append(&want, &v, 1, &err));
        }
    }
    fclose(f);
    static const struct shape s = {
        .tok_bytes = 2, .n_seq = 2, .len = {4, 2}, .n_seg = {1}, .domains = true};
    static const struct shape scores = {
        .tok_bytes = 2, .n_seq = 2, .len = {4, 2}, .n_seg = {1}, .scores = true};
    const struct shape *const shape[] = {&s, &scores};
    size_t at = 0;
    for (int k = 0; k < 2; k++) {
        write_stream(path_a, shape[k]);
        size_t n = slurp(path_a, &p);
        if (getenv("SLU_PRINT_EXAMPLE"))
            for (size_t i = 0; i < n; i += 16) {
                printf("%04zx", i);
                for (size_t j = i; j < i + 16 && j < n; j++)
                    printf(" %02x", p[j]);
                printf("\n");
            }
        assert_true(n <= want.len - at);
        assert_memory_equal(p, want.data + at, n);
        at += n;
        free(p);
    }
    assert_int_equal(at, want.len);
    slu_buf_release(&want);
}

/* The checksums by their definition, one sequence at a time. */
static void checksums_follow_the_definition(void **state)
{
    static const struct shape s = {
        .tok_bytes = 2, .n_seq = 3, .len = {5, 90000, 300}, .n_seg = {1, 1, 200}};
    struct slu_batch b;
    struct slu_u128 sum = {0, 0}, trace = {0, 0};
    (void)state;
    slu_batch_init(&b, 2);
    for (uint64_t i = 0; i < s.n_seq; i++)
        add(&b, &s, NULL, i);
    slu_batch_sum(&b);
    for (size_t i = 0; i < b.n_seq; i++) {
        const struct slu_seq *q = &b.seq[i];
        uint8_t *k = malloc(8 + 4 * q->len_tok), *t = malloc(16 + 32 * q->n_seg);
        slu_put_le64(k, q->len_tok);
        for (uint64_t j = 0; j < q->len_tok; j++)
            slu_put_le32(k + 8 + 4 * j, slu_batch_id(&b, q->tok_off + j));
        struct slu_u128 h = slu_hash128(k, 8 + 4 * q->len_tok);
        slu_put_le64(t, h.lo);
        slu_put_le64(t + 8, h.hi);
        for (uint64_t j = 0; j < q->n_seg; j++) {
            const struct slu_seg *g = &b.seg[q->seg_off + j];
            const uint64_t v[4] = {g->source, g->document, g->offset, g->len_tok};
            for (int c = 0; c < 4; c++)
                slu_put_le64(t + 16 + 32 * j + 8 * (uint64_t)c, v[c]);
        }
        sum = slu_u128_add(sum, h);
        trace = slu_u128_add(trace, slu_hash128(t, 16 + 32 * q->n_seg));
        free(k);
        free(t);
    }
    assert_int_equal(slu_u128_cmp(sum, b.sum.checksum), 0);
    assert_int_equal(slu_u128_cmp(trace, b.sum.trace_checksum), 0);
    slu_batch_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trips),
        cmocka_unit_test(batches_do_not_matter),
        cmocka_unit_test(parts_do_not_matter),
        cmocka_unit_test(parts_are_ended),
        cmocka_unit_test(every_cut_and_every_flip_is_seen),
        cmocka_unit_test(concatenation),
        cmocka_unit_test(other_tokenizers_do_not_mix),
        cmocka_unit_test(too_long_is_named),
        cmocka_unit_test(checksums_follow_the_definition),
        cmocka_unit_test(specification_example),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
