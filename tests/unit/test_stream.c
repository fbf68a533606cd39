/* test_stream.c - the stream: streams of every shape are written and read; frames are cut
 * only by the sequences; the writer makes the specification's examples
 * (test_stream_faults.c: damage). */
#include <math.h>

#include <pthread.h>

#include "lib/stream/joint.h"
#include "lib/stream/mask.h"
#include "tests/unit/stream_file.h"

/* The same as assert_memory_equal, which looks at one byte at a time. */
static void equal(const void *a, const void *b, size_t n)
{
    if (n && memcmp(a, b, n))
        assert_memory_equal(a, b, n);
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
    assert_int_equal(slu_reader_header(r)->tok_bytes, s->masks ? 4 : s->tok_bytes);
    assert_int_equal(slu_reader_header(r)->masks, s->masks);
    assert_int_equal(slu_reader_header(r)->inner_padding, s->inner_padding);
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
            if (!s->no_tokens || s->masks)
                equal(slu_batch_at(&b, q->tok_off), want.tok,
                      q->len_tok * want.tok_bytes);
            assert_true(b.masks == s->masks);
            for (uint64_t k = 0; k < q->n_seg; k++) {
                const struct slu_seg *x = &b.seg[q->seg_off + k], *y = &want.seg[k];
                assert_true(x->source == y->source && x->document == y->document &&
                            x->offset == y->offset && x->len_tok == y->len_tok &&
                            x->id_len == y->id_len && x->meta_len == y->meta_len);
                if (x->domain == SLU_NO_DOMAIN || y->domain == SLU_NO_DOMAIN)
                    assert_int_equal(x->domain, y->domain);
                else
                    assert_string_equal(
                        slu_names_domain(slu_reader_names(r), x->domain),
                        number % 2 ? "code" : "web");
                if (slu_seg_str(x))
                    equal(b.str.data + x->id_off, want.str.data + y->id_off,
                          slu_seg_str(x));
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
    {.tok_bytes = 2,
     .n_seq = 900,
     .len = {3, 700, 1, 257},
     .n_seg = {1, 3},
     .masks = 1},
    {.tok_bytes = 4, .n_seq = 5, .len = {1 << 20, 1, (1 << 20) + 1, 5}, .masks = true},
    {.tok_bytes = 2, .n_seq = 3, .len = {3 << 20}, .n_seg = {7}, .masks = true},
    {.tok_bytes = 2,
     .n_seq = 3,
     .len = {3 << 20, 5},
     .n_seg = {7, 2},
     .no_tokens = true,
     .masks = true},
    {.tok_bytes = 4,
     .n_seq = 300,
     .len = {900, 5},
     .n_seg = {5, 4},
     .inner_padding = true,
     .masks = true,
     .zstd_level = 1},
    {.tok_bytes = 2, .n_seq = 9, .len = {90}, .n_seg = {4}, .inner_padding = true},
    {.tok_bytes = 2,
     .n_seq = 900,
     .len = {3, 700, 1, 257},
     .n_seg = {1, 3},
     .domains = true,
     .metadata = true},
    {.tok_bytes = 4,
     .n_seq = 9,
     .len = {1 << 20, 1, (1 << 20) + 1, 5, 3 << 20},
     .n_seg = {1, 1, 1, 1, 7},
     .metadata = true,
     .zstd_level = 1},
    {.tok_bytes = 2, .n_seq = 2, .len = {400000}, .n_seg = {200000}, .metadata = true},
    {.tok_bytes = 2,
     .n_seq = 5,
     .len = {3 << 20, 5},
     .n_seg = {7, 2},
     .no_tokens = true,
     .masks = true,
     .metadata = true},
};

static void round_trips(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        write_stream(path_a, &shapes[i]);
        read_and_compare(path_a, &shapes[i]);
    }
}

/* Whether a shape is written only in check-more, where another one, or another way, of as
 * many tokens is written before. */
static bool left_out(const struct shape *s, uint64_t way)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < s->n_seq; i++)
        n += pick(s->len, i) + pick(s->n_seg, i);
    return way && n > 100000 && !getenv("CHECK_MORE");
}

static void *write_shape(void *shape)
{
    write_stream(NULL, shape);
    return NULL;
}

/* The same through a joint, with whole documents and parts of them. */
static void joints(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * sizeof shapes / sizeof *shapes; i++) {
        struct shape s = shapes[i / 2];
        pthread_t writer;
        if (i % 2 && (s.no_tokens || s.masks || s.n_seq > 1000))
            continue;
        s.part = i % 2 ? 1000 : 0;
        s.batch = s.part ? 0 : 100;
        if (left_out(&s, (i + i / 2) % 2))
            continue;
        OK(slu_joint_new(&joint, &err));
        assert_int_equal(pthread_create(&writer, NULL, write_shape, &s), 0);
        read_and_compare("-", &s);
        pthread_join(writer, NULL);
        assert_false(slu_joint_refused(joint));
        slu_joint_free(joint);
        joint = NULL;
    }
}

/* A writer learns that the reader has closed; a reader, that the writer has failed. */
static void joints_that_end(void **state)
{
    struct slu_frame f = {0};
    struct slu_header h;
    struct slu_names *names;
    struct slu_writer *w;
    struct slu_reader *r;
    const char *path = "-";
    (void)state;
    OK(slu_joint_new(&joint, &err));
    slu_joint_close(joint);
    assert_int_equal(slu_joint_put(joint, &f, &err), SLU_E_IO);
    assert_true(slu_joint_refused(joint));
    slu_joint_end(joint);
    assert_false(slu_joint_take(joint, &f));
    assert_int_equal(open_one(&r, &path, 1), SLU_E_TRUNCATED);
    slu_joint_free(joint);

    slu_header_init(&h);
    h.tok_bytes = 2;
    OK(slu_names_new(&names, &err));
    OK(slu_joint_new(&joint, &err));
    OK(slu_writer_open(&w, NULL, &h,
                       &(struct slu_writer_cfg){.names = names, .joint = joint}, &err));
    slu_writer_abort(w);
    assert_int_equal(open_one(&r, &path, 1), SLU_E_TRUNCATED);
    assert_non_null(strstr(err.msg, "the program before"));
    slu_joint_free(joint);
    joint = NULL;
    slu_names_free(names);
    slu_header_release(&h);
}

/* Batches of any size give the same bytes, also if sequences are left out of them. */
static void batches_do_not_matter(void **state)
{
    const size_t n_shape = sizeof shapes / sizeof *shapes;
    (void)state;
    for (size_t i = 4; i < 2 * n_shape; i++) {
        struct shape s = shapes[i / 2];
        uint8_t *a, *b;
        if (left_out(&s, (i + i / 2) % 2))
            continue;
        s.gaps = i % 2;
        s.batch = 1;
        write_stream(path_a, &s);
        s.batch = 131;
        write_stream(path_b, &s);
        size_t n = slurp(path_a, &a);
        assert_int_equal(slurp(path_b, &b), n);
        equal(a, b, n);
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
    const size_t n_shape = sizeof shapes / sizeof *shapes;
    for (size_t i = 0; i < n_shape + sizeof more / sizeof *more; i++) {
        struct shape s = i < n_shape ? shapes[i] : more[i - n_shape];
        uint8_t *a, *b;
        if (s.no_tokens || s.masks)
            continue;
        s.batch = 1;
        write_stream(path_a, &s);
        size_t n = slurp(path_a, &a);
        for (size_t k = 0; k < sizeof part / sizeof *part; k++) {
            s.part = part[k];
            if (s.part == 1 && s.len[0] * s.n_seq > 1000000)
                continue;
            if (left_out(&s, (k + i) % 2))
                continue;
            write_stream(path_b, &s);
            assert_int_equal(slurp(path_b, &b), n);
            equal(a, b, n);
            free(b);
        }
        free(a);
    }
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
    static const struct shape masks = {
        .tok_bytes = 2, .n_seq = 2, .len = {4, 2}, .n_seg = {1}, .masks = true};
    static const struct shape metadata = {
        .tok_bytes = 2, .n_seq = 2, .len = {4, 2}, .n_seg = {1}, .metadata = true};
    const struct shape *const shape[] = {&s, &scores, &masks, &metadata};
    size_t at = 0;
    for (int k = 0; k < 4; k++) {
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

static void compare_checksums(const struct shape *s)
{
    struct slu_batch b;
    struct slu_u128 sum = {0, 0}, trace = {0, 0}, mask = {0, 0};
    uint64_t n_loss = 0;
    slu_batch_init(&b, 2);
    for (uint64_t i = 0; i < s->n_seq; i++)
        add(&b, s, NULL, i);
    slu_batch_sum(&b);
    for (size_t i = 0; i < b.n_seq; i++) {
        const struct slu_seq *q = &b.seq[i];
        uint8_t *k = malloc(8 + 4 * q->len_tok), *t = malloc(32 + 32 * q->n_seg);
        size_t at = 16;
        bool all = true;
        uint8_t *bit = calloc(q->len_tok / 8 + 17, 1);
        slu_put_le64(k, q->len_tok);
        for (uint64_t j = 0; j < q->len_tok; j++)
            slu_put_le32(k + 8 + 4 * j, id_at(i, j, s->tok_bytes));
        for (uint64_t j = 0; s->masks && j < q->len_tok; j++) {
            bool padding = q->n_seg > 2 && j >= q->len_tok / q->n_seg * (q->n_seg - 1);
            unsigned is = trained_at(i, j) && !padding;
            bit[j / 8] = (uint8_t)(bit[j / 8] | is << j % 8);
            n_loss += is;
            all = all && (is || padding);
        }
        struct slu_u128 h = slu_hash128(k, 8 + 4 * q->len_tok);
        slu_put_le64(t, h.lo);
        slu_put_le64(t + 8, h.hi);
        memcpy(bit + (q->len_tok + 7) / 8, t, 16);
        const struct slu_u128 m = slu_hash128(bit, (q->len_tok + 7) / 8 + 16);
        if (s->masks)
            mask = slu_u128_add(mask, m);
        if (s->masks && !all) {
            slu_put_le64(t + 16, m.lo);
            slu_put_le64(t + 24, m.hi);
            at = 32;
        }
        for (uint64_t j = 0; j < q->n_seg; j++) {
            const struct slu_seg *g = &b.seg[q->seg_off + j];
            const uint64_t v[4] = {g->source, g->document, g->offset, g->len_tok};
            for (int c = 0; c < 4; c++, at += 8)
                slu_put_le64(t + at, v[c]);
        }
        sum = slu_u128_add(sum, h);
        trace = slu_u128_add(trace, slu_hash128(t, at));
        free(bit);
        free(k);
        free(t);
    }
    assert_int_equal(slu_u128_cmp(sum, b.sum.checksum), 0);
    assert_int_equal(slu_u128_cmp(trace, b.sum.trace_checksum), 0);
    assert_int_equal(slu_u128_cmp(mask, b.sum.mask_checksum), 0);
    assert_int_equal(n_loss, b.sum.n.loss_tokens);
    slu_batch_release(&b);
}

/* The checksums by their definition, one sequence at a time. */
static void checksums_follow_the_definition(void **state)
{
    struct shape s = {.tok_bytes = 2,
                      .n_seq = 6,
                      .len = {5, 90000, 300, 4096, 4097, 12288},
                      .n_seg = {1, 1, 200, 1, 3, 1}};
    (void)state;
    compare_checksums(&s);
    s.masks = true;
    compare_checksums(&s);
}

static void mask_bytes(void **state)
{
    uint32_t id[4] = {7, 0, 0x7fffffff, 9};
    const uint8_t mask[4] = {1, 0, 1, 2};
    (void)state;

    assert_int_equal(slu_mask_mark_bytes(id, mask, 3), 3);
    assert_int_equal(id[0], SLU_TRAINED | 7);
    assert_int_equal(id[1], 0);
    assert_int_equal(id[2], 0xffffffff);
    assert_int_equal(slu_mask_mark_bytes(id, mask, 4), 3); /* 2 is no bit */
    assert_int_equal(id[3], 9);
    assert_int_equal(slu_mask_mark_bytes(id, mask + 3, 0), 0);
}

/* What fits each type, and its bytes; the least and the most. */
static void metadata_values(void **state)
{
    static const struct {
        enum slu_meta_type type;
        double v;
        uint64_t bits; /* UINT64_MAX: does not fit */
    } number[] = {
        {SLU_META_IS_U8, 254, 254},
        {SLU_META_IS_U8, 255, UINT64_MAX},
        {SLU_META_IS_U8, -1, UINT64_MAX},
        {SLU_META_IS_U8, 0.5, UINT64_MAX},
        {SLU_META_IS_U32, 4294967294.0, 4294967294},
        {SLU_META_IS_U32, 4294967295.0, UINT64_MAX},
        {SLU_META_IS_U64, 9007199254740992.0, 9007199254740992},
        {SLU_META_IS_U64, 0x1p63, UINT64_C(1) << 63},
        {SLU_META_IS_U64, 0x1p64, UINT64_MAX},
        {SLU_META_IS_I64, -2, (uint64_t)-2},
        {SLU_META_IS_I64, -0x1p62, (uint64_t)3 << 62},
        {SLU_META_IS_I64, 0x1p63, UINT64_MAX},
        {SLU_META_IS_I64, -0x1p63, UINT64_MAX},
        {SLU_META_IS_F32, 0.5, 0x3f000000},
        {SLU_META_IS_F32, 1e39, UINT64_MAX},
        {SLU_META_IS_F64, 0.5, 0x3fe0000000000000},
        {SLU_META_IS_F64, -0.0, 0},
        {SLU_META_IS_F64, INFINITY, UINT64_MAX},
        {SLU_META_IS_NAME, 7, '7'},
        {SLU_META_IS_TEXT, 0x1p64, UINT64_MAX},
    };
    static const char nul[] = "a\0b";
    struct slu_meta_field f = {.name = "f", .key = 1};
    struct slu_meta_value v;
    struct slu_buf b = SLU_BUF_INIT;
    (void)state;
    for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
        const struct slu_value x = {.type = SLU_VALUE_NUMBER, .number = number[i].v};
        uint64_t bits = 0;
        f.type = number[i].type;
        slu_buf_clear(&b);
        if (number[i].bits == UINT64_MAX) {
            assert_int_equal(slu_meta_put_value(&b, &f, &x, &err), SLU_E_FORMAT);
            assert_int_equal(b.len, 0);
            continue;
        }
        OK(slu_meta_put_value(&b, &f, &x, &err));
        assert_int_equal(slu_meta_next(b.data, b.len, &v), b.len);
        memcpy(&bits, v.p, v.n);
        assert_true(bits == number[i].bits);
        if (f.type > SLU_META_IS_TEXT)
            assert_true(slu_meta_to_value(f.type, &v).number == number[i].v);
    }
    const struct slu_value null = {.type = SLU_VALUE_NULL},
                           yes = {.type = SLU_VALUE_BOOL, .boolean = true},
                           list = {.type = SLU_VALUE_LIST},
                           text = {.type = SLU_VALUE_STRING, .string = nul, .len = 3};
    slu_buf_clear(&b);
    f.type = SLU_META_IS_U8;
    OK(slu_meta_put_value(&b, &f, &null, &err));
    assert_int_equal(b.len, 0);
    OK(slu_meta_put_value(&b, &f, &yes, &err));
    assert_int_equal(b.data[b.len - 1], 1);
    f.type = SLU_META_IS_TEXT;
    OK(slu_meta_put_value(&b, &f, &text, &err));
    assert_int_equal(slu_meta_put_value(&b, &f, &list, &err), SLU_E_FORMAT);
    f.type = SLU_META_IS_NAME; /* names end in a NUL */
    assert_int_equal(slu_meta_put_value(&b, &f, &text, &err), SLU_E_FORMAT);
    slu_buf_release(&b);
}

static void metadata_fields(void **state)
{
    struct slu_meta_fields t = {0};
    char name[SLU_META_NAME + 2];
    (void)state;
    memset(name, 'x', sizeof name);
    OK(slu_meta_add(&t, "b", 1, SLU_META_IS_U8, &err));
    OK(slu_meta_add(&t, "ba", 2, SLU_META_IS_U8, &err));
    OK(slu_meta_add(&t, "a", 1, SLU_META_IS_TEXT, &err));
    OK(slu_meta_add(&t, "b", 1, SLU_META_IS_U8, &err));
    assert_int_equal(t.n, 3);
    assert_int_equal(slu_meta_find(&t, "a", 1), 0);
    assert_int_equal(slu_meta_find(&t, "ba", 2), 2);
    assert_int_equal(slu_meta_find(&t, "bb", 2), -1);
    assert_int_equal(slu_meta_add(&t, "b", 1, SLU_META_IS_U32, &err), SLU_E_MISMATCH);
    assert_int_equal(slu_meta_add(&t, "", 0, SLU_META_IS_U8, &err), SLU_E_FORMAT);
    assert_int_equal(slu_meta_add(&t, "\n", 1, SLU_META_IS_U8, &err), SLU_E_FORMAT);
    assert_int_equal(slu_meta_add(&t, name, sizeof name - 1, SLU_META_IS_U8, &err),
                     SLU_E_FORMAT);
    slu_meta_remove(&t, 1);
    assert_int_equal(slu_meta_find(&t, "ba", 2), 1);
    for (char c = 'c'; t.n < SLU_META_FIELDS; c++)
        OK(slu_meta_add(&t, &c, 1, SLU_META_IS_F32, &err));
    assert_int_equal(slu_meta_add(&t, "z", 1, SLU_META_IS_U8, &err), SLU_E_LIMIT);
}

/* A vocabulary of another size than the header's is found when it is asked for, and the
 * reader's end says so too. */
static void damaged_vocabulary(void **state)
{
    static const uint64_t off[4] = {0, 1, 3, 3};
    static const uint8_t flags[3] = {0, 0, SLU_VOCAB_SPECIAL};
    const struct slu_vocab_table v = {
        .n = 3, .off = off, .bytes = (const uint8_t *)"abc", .flags = flags};
    const char *path = path_a;
    struct slu_header h;
    struct slu_names *names;
    struct slu_writer_cfg cfg = {0};
    struct slu_writer *w;
    struct slu_out *o;

    slu_header_init(&h);
    h.vocab_size = 4;
    OK(slu_names_new(&names, &err));
    OK(slu_names_set_vocab(names, &v, &err));
    cfg.names = names;
    OK(slu_out_open(&o, path, &err));
    OK(slu_writer_open(&w, o, &h, &cfg, &err));
    OK(slu_writer_close(w, &err));
    slu_names_free(names);
    for (int ask = 0; ask < 3; ask++) {
        struct slu_reader *r;
        struct slu_batch b;
        OK(open_one(&r, &path, 1));
        slu_batch_init(&b, 2);
        if (ask == 1)
            assert_null(slu_names_vocab(slu_reader_names(r)));
        if (ask == 2)
            assert_int_equal(slu_reader_read_vocab(r, &err), SLU_E_FORMAT);
        assert_int_equal(slu_reader_next(r, &b, &err), SLU_EOF);
        assert_int_equal(slu_reader_finish(r, NULL, &err), ask ? SLU_E_FORMAT : SLU_OK);
        if (ask)
            assert_memory_equal(err.msg, path, strlen(path));
        slu_batch_release(&b);
        slu_reader_free(r);
    }
    slu_header_release(&h);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trips),
        cmocka_unit_test(joints),
        cmocka_unit_test(joints_that_end),
        cmocka_unit_test(batches_do_not_matter),
        cmocka_unit_test(parts_do_not_matter),
        cmocka_unit_test(checksums_follow_the_definition),
        cmocka_unit_test(specification_example),
        cmocka_unit_test(mask_bytes),
        cmocka_unit_test(metadata_values),
        cmocka_unit_test(metadata_fields),
        cmocka_unit_test(damaged_vocabulary),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
