/* test_stream_faults.c - a damaged stream is refused, and so is what its writer must not
 * be given; streams one after another. */
#include <fcntl.h>

#include "tests/unit/stream_file.h"

/* In place: for a file that is emptied first, ext4 writes to the disk at once. */
static void spit(const char *path, const uint8_t *p, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, p, n, 0), n);
    assert_int_equal(ftruncate(fd, (off_t)n), 0);
    close(fd);
}

/* A sequence that is written in parts begins at offset 0, has tokens, and is ended
 * before the next one and before the close. */
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

static void cut_and_flip(const struct shape *small)
{
    uint8_t *p;
    write_stream(path_a, small);
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
    assert_int_equal(verdict(path_b), SLU_E_FORMAT);
    more[n] = p[0]; /* another stream could begin so */
    spit(path_b, more, n + 1);
    assert_int_equal(verdict(path_b), SLU_E_TRUNCATED);
    free(more);
    free(p);
}

static void every_cut_and_every_flip_is_seen(void **state)
{
    struct shape small = {.tok_bytes = 2,
                          .n_seq = 9,
                          .len = {5, 1, 40},
                          .n_seg = {1, 1, 3},
                          .domains = true};
    (void)state;
    cut_and_flip(&small);
    small.masks = true;
    cut_and_flip(&small);
}

/* Sets the hashes of frame `type` right, after its payload was changed. */
static void rehash(uint8_t *p, size_t n, const char *type)
{
    for (size_t at = 0; at < n; at += 64 + ((slu_le64(p + at + 32) + 63) & ~63u)) {
        if (memcmp(p + at + 4, type, 4))
            continue;
        slu_put_le64(p + at + 48,
                     slu_hash64(p + at + 64, (slu_le64(p + at + 32) + 63) & ~63u));
        slu_put_le64(p + at + 56, slu_hash64(p + at, 56));
    }
}

/* A mask bit that was flipped together with the hash of its frame. */
static void mask_bits_have_a_checksum(void **state)
{
    static const struct shape s = {
        .tok_bytes = 2, .n_seq = 2, .len = {4, 2}, .n_seg = {1}, .masks = true};
    uint8_t *p;
    (void)state;
    write_stream(path_a, &s);
    size_t n = slurp(path_a, &p);
    assert_int_equal(p[0x3c0], 0x16); /* as in the third example of STREAM.md */
    for (unsigned bit = 0; bit < 8; bit++) {
        p[0x3c0] ^= (uint8_t)(1 << bit);
        rehash(p, n, "DATA");
        spit(path_b, p, n);
        assert_int_equal(verdict(path_b), bit < 6 ? SLU_E_CHECKSUM : SLU_E_FORMAT);
        assert_non_null(
            strstr(err.msg, bit < 6 ? "end frame" : "after the last token"));
        p[0x3c0] ^= (uint8_t)(1 << bit);
    }
    /* Two bits exchanged, so that the number of trained tokens stays. */
    p[0x3c0] = 0x15;
    rehash(p, n, "DATA");
    spit(path_b, p, n);
    assert_int_equal(verdict(path_b), SLU_E_CHECKSUM);
    free(p);
}

/* Fields that the caller does not keep are refused; so are fields that the first stream
 * lacks, unless its file could be read before. */
static void masks_and_inner_padding_are_not_lost(void **state)
{
    static const struct shape masks = {.tok_bytes = 2,
                                       .n_seq = 2,
                                       .len = {9},
                                       .masks = 1},
                              inner = {.tok_bytes = 2,
                                       .n_seq = 2,
                                       .len = {9},
                                       .n_seg = {3},
                                       .inner_padding = true};
    const char *p = path_a;
    struct slu_reader *r;
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct slu_reader_cfg cfg = {&p, 1, 0, .masks = i, .inner_padding = !i};
        write_stream(path_a, i ? &inner : &masks);
        memset(&err, 0, sizeof err);
        assert_int_equal(slu_reader_open(&r, &cfg, &err), SLU_E_UNSUPPORTED);
        assert_non_null(strstr(err.msg, i ? "padding between" : "has masks"));
        assert_true(!i || strstr(err.msg, "; give it the stream"));
        assert_non_null(strstr(err.msg, path_a));
    }
}

/* A stream without masks beside one that has them: all tokens but padding are trained
 * on, and its checksums still hold. */
static void without_masks_all_are_trained_on(void **state)
{
    static const struct shape with = {.tok_bytes = 2,
                                      .n_seq = 40,
                                      .len = {9, 33},
                                      .n_seg = {1, 3},
                                      .name = "a",
                                      .masks = true},
                              plain = {.tok_bytes = 2,
                                       .n_seq = 40,
                                       .len = {9, 33},
                                       .n_seg = {1, 3},
                                       .name = "b"};
    const char *order[2][2] = {{path_a, path_b}, {path_b, path_a}};
    (void)state;
    write_stream(path_a, &with);
    write_stream(path_b, &plain);
    for (int k = 0; k < 2; k++) {
        struct slu_reader *r;
        struct slu_batch b;
        struct slu_sum t;
        uint64_t seen = 0, n_loss = 0;
        int rc;
        OK(open_one(&r, order[k], 2));
        assert_true(slu_reader_header(r)->masks);
        assert_int_equal(slu_header_stored(slu_reader_header(r)), 2);
        slu_batch_init(&b, 2);
        while (!(rc = slu_reader_next(r, &b, &err)))
            for (size_t i = 0; i < b.n_seq; i++, seen++) {
                const struct slu_seq *q = &b.seq[i];
                const bool marked = (seen < 40) == (k == 0);
                for (uint64_t j = 0; j < q->len_tok; j++) {
                    bool padding = q->n_seg == 3 && j >= q->len_tok / 3 * 2;
                    bool want = !padding && (!marked || trained_at(seen % 40, j));
                    assert_int_equal(slu_batch_trained(&b, q->tok_off + j), want);
                    assert_int_equal(slu_batch_id(&b, q->tok_off + j),
                                     id_at(seen % 40, j, 2));
                    n_loss += want;
                }
            }
        assert_int_equal(rc, SLU_EOF);
        OK(slu_reader_finish(r, &t, &err));
        assert_int_equal(t.n.loss_tokens, n_loss);
        slu_batch_release(&b);
        slu_reader_free(r);
    }
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

/* Writes a stream of one sequence of 41 tokens; one of them is `id`. */
static void write_id(unsigned tok_bytes, uint64_t vocab_size, uint32_t id, unsigned at)
{
    struct slu_header h;
    struct slu_names *names;
    struct slu_writer *w;
    struct slu_out *o;
    struct slu_batch b;
    struct slu_seg seg = {.len_tok = 41, .domain = SLU_NO_DOMAIN};
    uint32_t wide[41] = {0};
    uint16_t half[41] = {0};
    wide[at] = id;
    half[at] = (uint16_t)id;
    slu_header_init(&h);
    h.tok_bytes = tok_bytes;
    h.vocab_size = vocab_size;
    OK(slu_names_new(&names, &err));
    OK(slu_names_set_source(names, 0, "a", &err));
    struct slu_writer_cfg cfg = {0, true, names};
    OK(slu_out_open(&o, path_a, &err));
    OK(slu_writer_open(&w, o, &h, &cfg, &err));
    slu_batch_init(&b, tok_bytes);
    OK(slu_batch_add(&b, tok_bytes == 2 ? (void *)half : wide, 41, &seg, 1, NULL,
                     &err));
    b.tok = b.own.data;
    OK(slu_writer_put(w, &b, &err));
    OK(slu_writer_close(w, &err));
    slu_batch_release(&b);
    slu_names_free(names);
    slu_header_release(&h);
}

static void ids_are_in_the_vocabulary(void **state)
{
    static const struct {
        unsigned tok_bytes;
        uint64_t vocab_size;
        uint32_t good, bad; /* bad 0: there is none */
    } rows[] = {
        {2, 10, 9, 10},
        {2, 10, 9, 0xFFFF},
        {2, 0x8000, 0x7FFF, 0x8000},
        {2, 40000, 39999, 40000},
        {2, 65536, 0xFFFF, 0},
        {4, 100000, 99999, 100000},
        {4, 100000, 99999, 0x7FFFFFFF},
        {4, 100000, 99999, 0x80000000},
        {4, 100000, 99999, 0xFFFFFFFF},
        {4, UINT64_C(1) << 31, 0x7FFFFFFF, 0x80000000},
        {4, 3000000000, 2999999999, 3000000000},
        {4, UINT64_C(1) << 32, 0xFFFFFFFF, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (unsigned at = 0; at < 41; at += 8) {
            write_id(rows[i].tok_bytes, rows[i].vocab_size, rows[i].good, at);
            assert_int_equal(verdict(path_a), SLU_OK);
            if (!rows[i].bad)
                continue;
            write_id(rows[i].tok_bytes, rows[i].vocab_size, rows[i].bad, at);
            assert_int_equal(verdict(path_a), SLU_E_FORMAT);
            assert_non_null(strstr(err.msg, "not in the vocabulary"));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_ended),
        cmocka_unit_test(every_cut_and_every_flip_is_seen),
        cmocka_unit_test(mask_bits_have_a_checksum),
        cmocka_unit_test(masks_and_inner_padding_are_not_lost),
        cmocka_unit_test(without_masks_all_are_trained_on),
        cmocka_unit_test(concatenation),
        cmocka_unit_test(other_tokenizers_do_not_mix),
        cmocka_unit_test(too_long_is_named),
        cmocka_unit_test(ids_are_in_the_vocabulary),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
