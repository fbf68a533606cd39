/* test_input.c - formats/text/input.h: the records of a file, for any size of blocks
 * and shares, compared with a plain loop over its lines. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/text/input.h"

struct rec {
    uint64_t source, document, line;
    char *text;
    size_t len;
};
struct recs {
    struct rec r[4096];
    size_t n;
};

static char top[64], before[4096];

static int set_up(void **state)
{
    (void)state;
    strcpy(top, "/tmp/sluice-input-XXXXXX");
    return getcwd(before, sizeof before) && mkdtemp(top) ? chdir(top) : -1;
}

static int tear_down(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", top);
    return chdir(before) || system(command);
}

static void save(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void add(struct recs *a, struct rec r, const uint8_t *text, size_t len)
{
    assert_true(a->n < 4096);
    r.text = malloc(len + 1);
    assert_non_null(r.text);
    memcpy(r.text, text, len);
    r.text[len] = 0;
    r.len = len;
    a->r[a->n++] = r;
}

static void clear(struct recs *a)
{
    while (a->n > 0)
        free(a->r[--a->n].text);
}

/* Parts become records again. */
static void join(struct recs *a, const struct slu_record_ref *r, const uint8_t *p)
{
    struct rec *last = a->n ? &a->r[a->n - 1] : NULL;
    if (!r->part_off) {
        add(a, (struct rec){r->source, r->document, r->line, NULL, 0}, p, r->len);
        return;
    }
    assert_non_null(last);
    assert_int_equal(last->source, r->source);
    assert_int_equal(last->document, r->document);
    assert_int_equal(last->len, r->part_off);
    last->text = realloc(last->text, last->len + r->len + 1);
    assert_non_null(last->text);
    memcpy(last->text + last->len, p, r->len);
    last->len += r->len;
    last->text[last->len] = 0;
}

/* A place behind the last line end that is followed by three bytes more. */
static size_t cut(void *ctx, const uint8_t *p, size_t n, size_t from)
{
    unsigned *calls = ctx;
    (*calls)++;
    for (size_t i = n > 3 ? n - 4 : 0; i > 0 && i >= from; i--)
        if (p[i - 1] == '\n')
            return i;
    return 0;
}

/* Appends the records of one share; returns the result of the last fetch. */
static unsigned cuts; /* calls of cut */
static bool in_parts;

static int collect(struct recs *a, const char *const *path, size_t n_path,
                   uint64_t part, uint64_t n_part, size_t block_byte, uint64_t max_byte,
                   struct slu_err *err)
{
    struct slu_sources s;
    struct slu_sources_cfg scfg = {path, n_path, NULL};
    struct slu_input *in;
    struct slu_block b;
    int rc;

    assert_int_equal(slu_sources_resolve(&s, &scfg, err), SLU_OK);
    assert_int_equal(
        slu_sources_share(&s, part, n_part, slu_input_splittable, NULL, err), SLU_OK);
    struct slu_input_cfg cfg = {.sources = &s,
                                .block_byte = block_byte,
                                .max_record_byte = max_byte,
                                .quit_fd = -1};
    bool goes_on = false;
    cfg.ctx = &cuts;
    cfg.cut = in_parts ? cut : NULL;
    assert_int_equal(slu_input_new(&in, &cfg, err), SLU_OK);
    slu_block_init(&b);
    while ((rc = slu_input_fetch(in, &b, err)) == SLU_OK) {
        assert_int_equal(slu_block_split(&b, err), SLU_OK);
        for (size_t i = 0; i < b.n_rec; i++) {
            struct slu_record_ref *r = &b.rec[i];
            assert_true(r->off + r->len <= b.raw.len);
            assert_true((r->part_off > 0) == (i == 0 && goes_on));
            assert_true(!r->goes_on || (in_parts && i + 1 == b.n_rec));
            join(a, r, b.raw.data + r->off);
        }
        goes_on = b.n_rec && b.rec[b.n_rec - 1].goes_on;
    }
    slu_block_release(&b);
    slu_input_free(in);
    slu_sources_release(&s);
    return rc;
}

static void same(const struct recs *a, const struct recs *b, bool lines)
{
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        assert_int_equal(a->r[i].source, b->r[i].source);
        assert_int_equal(a->r[i].document, b->r[i].document);
        if (lines)
            assert_int_equal(a->r[i].line, b->r[i].line);
        assert_string_equal(a->r[i].text, b->r[i].text);
    }
}

static void reference(struct recs *a, uint64_t source, const char *p, size_t n)
{
    uint64_t line = 1;
    for (size_t i = n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; i < n;
         line++) {
        size_t len = 0;
        while (i + len < n && p[i + len] != '\n')
            len++;
        struct rec r = {source, i, line, NULL, 0};
        if (strspn(p + i, " \t\r") < len)
            add(a, r, (const uint8_t *)p + i, len);
        i += len + 1;
    }
}

static void lines(void **state)
{
    static char text[40000];
    static const char *const path[] = {"a.jsonl", "b.jsonl", "empty.jsonl", "c.jsonl"};
    static const size_t block[] = {4096, 4097, 9000, 1 << 20};
    struct recs *want = calloc(1, sizeof *want), *got = calloc(1, sizeof *got);
    struct slu_err err = SLU_ERR_INIT;
    size_t n = 0, len;
    (void)state;
    assert_true(want && got);

    for (size_t i = 0; n < 30000; i++) { /* lengths from 0 to past a block */
        len = i % 40 == 7 ? 5000 : i * 7 % 90;
        for (size_t k = 0; k < len; k++)
            text[n++] = (char)('a' + (i + k) % 26);
        text[n++] = '\n';
        if (i % 11 == 0) {
            memcpy(text + n, " \t\r\n", 4);
            n += 4;
        }
    }
    save("a.jsonl", text, n);                    /* ends in a newline */
    save("empty.jsonl", "\n", 1);                /* of records */
    save("b.jsonl", "\xef\xbb\xbf{1}\n{2}", 10); /* does not; has a byte order mark */
    save("c.jsonl", text, 12345);
    reference(want, 0, text, n);
    reference(want, 1, "\xef\xbb\xbf{1}\n{2}", 10);
    reference(want, 3, text, 12345);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(collect(got, path, 4, 0, 1, block[i], 1 << 20, &err), SLU_EOF);
        same(got, want, true);
        clear(got);
    }
    for (uint64_t parts = 2; parts < 3000; parts = parts * 3 / 2 + 1) {
        for (uint64_t p = 0; p < parts; p++)
            assert_int_equal(collect(got, path, 4, p, parts, 4096, 1 << 20, &err),
                             SLU_EOF);
        same(got, want, false);
        clear(got);
    }
    assert_int_equal(collect(got, path, 4, 0, 1, 4096, 2000, &err), SLU_E_LIMIT);
    assert_non_null(strstr(err.msg, "a.jsonl: byte "));
    clear(got);
    clear(want);
    free(got);
    free(want);
}

static void count_bytes(void *ctx, uint64_t ordinal, uint64_t n_byte, bool empty)
{
    (void)ordinal;
    assert_false(empty);
    *(uint64_t *)ctx = n_byte;
}

/* A file with a byte order mark in as many shares as it has bytes. */
static void byte_order_mark(void **state)
{
    static const char text[] = "\xef\xbb\xbf{\"a\":1}\n{\"b\":2}\n";
    static const char *const path[] = {"m.jsonl"};
    struct recs *got = calloc(1, sizeof *got);
    struct slu_err err = SLU_ERR_INIT;
    (void)state;
    assert_non_null(got);
    save("m.jsonl", text, strlen(text));
    for (uint64_t parts = 1; parts < 30; parts++) {
        for (uint64_t p = 0; p < parts; p++)
            assert_int_equal(collect(got, path, 1, p, parts, 4096, 4096, &err),
                             SLU_EOF);
        assert_int_equal(got->n, 2);
        assert_int_equal(got->r[0].document, 3);
        assert_string_equal(got->r[0].text, "{\"a\":1}");
        assert_int_equal(got->r[1].document, 11);
        clear(got);
    }
    free(got);
}

/* A record over most of the shares: they look for its end in their own bytes, and no
 * further. */
static void long_record(void **state)
{
    static const char *const path[] = {"l.jsonl"};
    static char text[100000];
    struct slu_err err = SLU_ERR_INIT;
    struct slu_sources s;
    struct slu_sources_cfg scfg = {path, 1, NULL};
    (void)state;
    memset(text, 'x', sizeof text);
    memcpy(text + sizeof text - 6, "\n{}\n{}", 6);
    save("l.jsonl", text, sizeof text);
    for (uint64_t part = 1; part < 9; part++) {
        struct slu_input *in;
        struct slu_block b;
        uint64_t n_byte = 7;
        assert_int_equal(slu_sources_resolve(&s, &scfg, &err), SLU_OK);
        assert_int_equal(
            slu_sources_share(&s, part, 10, slu_input_splittable, NULL, &err), SLU_OK);
        struct slu_input_cfg cfg = {.sources = &s,
                                    .block_byte = 4096,
                                    .max_record_byte = 1 << 20,
                                    .quit_fd = -1,
                                    .ctx = &n_byte,
                                    .end = count_bytes};
        assert_int_equal(slu_input_new(&in, &cfg, &err), SLU_OK);
        slu_block_init(&b);
        assert_int_equal(slu_input_fetch(in, &b, &err), SLU_EOF);
        assert_true(slu_input_stored(in) <= sizeof text / 10 + 4096);
        assert_int_equal(n_byte, 0);
        slu_block_release(&b);
        slu_input_free(in);
        slu_sources_release(&s);
    }
}

static void texts(void **state)
{
    static const char *const path[] = {"a.txt", "b.md",    "none.txt",
                                       "c",     "big.txt", "d.txt"};
    static char big[50000];
    struct recs *got = calloc(1, sizeof *got);
    struct slu_err err = SLU_ERR_INIT;
    (void)state;
    assert_non_null(got);
    memset(big, 'b', sizeof big);
    save("a.txt", "one\ntwo\n", 8);
    save("b.md", "{\"looks\": \"like JSON\"}", 22); /* but its name says text */
    save("none.txt", "", 0);
    save("c", "#include", 8); /* no name, no JSON */
    save("big.txt", big, sizeof big);
    save("d.txt", "d", 1);
    for (size_t block = 4096; block < 1 << 17; block *= 3) {
        assert_int_equal(collect(got, path, 6, 0, 1, block, 1 << 20, &err), SLU_EOF);
        assert_int_equal(got->n, 6);
        assert_string_equal(got->r[0].text, "one\ntwo\n");
        assert_string_equal(got->r[1].text, "{\"looks\": \"like JSON\"}");
        assert_int_equal(got->r[2].source, 2);
        assert_string_equal(got->r[2].text, ""); /* a text like any other */
        assert_int_equal(got->r[3].source, 3);
        assert_int_equal(strlen(got->r[4].text), sizeof big);
        assert_string_equal(got->r[5].text, "d");
        clear(got);
    }
    assert_int_equal(collect(got, path, 6, 0, 1, 4096, 40000, &err), SLU_E_LIMIT);
    clear(got);
    free(got);
}

/* Texts that can be cut, and come in parts; what cannot is in one. */
static void texts_in_parts(void **state)
{
    static const char *const path[] = {"a.txt",     "big.txt",     "b.txt",
                                       "plain.txt", "pipe.txt.gz", "d.txt"};
    static char big[300000], plain[100000];
    struct recs *got = calloc(1, sizeof *got);
    struct slu_err err = SLU_ERR_INIT;
    (void)state;
    assert_non_null(got);
    in_parts = true;
    for (size_t i = 0; i < sizeof big; i++) /* lines of many lengths, also very long */
        big[i] = i * i % 8191 < 3 || i % 77777 == 5 ? '\n' : (char)('a' + i % 26);
    memset(plain, 'x', sizeof plain);
    plain[70000] = '\n'; /* far from the end */
    save("a.txt", "one\ntwo\n", 8);
    save("big.txt", big, sizeof big);
    save("b.txt", "b", 1);
    save("plain.txt", plain, sizeof plain);
    save("pipe.txt", big, sizeof big);
    assert_int_equal(system("gzip pipe.txt"), 0);
    save("d.txt", "d", 1);
    for (size_t block = 4096; block < 1 << 20; block = block * 3 + 1) {
        cuts = 0;
        assert_int_equal(collect(got, path, 6, 0, 1, block, 1 << 20, &err), SLU_EOF);
        assert_int_equal(got->n, 6);
        assert_int_equal(got->r[1].len, sizeof big);
        assert_memory_equal(got->r[1].text, big, sizeof big);
        assert_string_equal(got->r[2].text, "b");
        assert_int_equal(got->r[3].len, sizeof plain);
        assert_memory_equal(got->r[3].text, plain, sizeof plain);
        assert_memory_equal(got->r[4].text, big, sizeof big);
        assert_string_equal(got->r[5].text, "d");
        if (block < 100000)
            assert_true(cuts > 300000 / block);
        clear(got);
    }
    /* A part that cannot be cut is too long, not the text. */
    assert_int_equal(collect(got, path + 1, 1, 0, 1, 4096, 40000, &err), SLU_EOF);
    clear(got);
    assert_int_equal(collect(got, path + 3, 1, 0, 1, 4096, 40000, &err), SLU_E_LIMIT);
    clear(got);
    in_parts = false;
    free(got);
}

/* The format of a file follows from its name, else from its first bytes. */
static void guesses(void **state)
{
    static const struct {
        const char *name, *bytes;
        size_t records;
    } t[] = {
        {"x.jsonl", "1\n2\n", 2},
        {"x.json", "1\n2\n", 2},
        {"x.NDJSON", "1\n2\n", 2},
        {"x.txt", "{\"a\":1}\n{\"a\":2}\n", 2},
        {"x.md", "{\"a\":1}\n\n{\"a\":2}", 2},
        {"x.text", "{\"a\":1}", 1},
        {"y.txt", "{\"a\":1}\nis one\n", 1},
        {"z.txt", "{\"a\":\n1}\n{}\n", 1},
        {"u.txt", "{a}\n{b}\n", 1},
        {"v.txt", "[{\"a\":1}]\n[]\n", 1},
        {"x", "{\"a\":1}\n{\"a\":2}\n", 2},
        {"x.dat", " \n{ \"a\":1}\n{\"a\":2}\n", 2},
        {"x.c", "{ int a;\n}\n", 1},
        {"x.log", "a\nb\n", 1},
    };
    struct recs *got = calloc(1, sizeof *got);
    struct slu_err err = SLU_ERR_INIT;
    (void)state;
    assert_non_null(got);
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        const char *const path[] = {t[i].name};
        save(t[i].name, t[i].bytes, strlen(t[i].bytes));
        assert_int_equal(collect(got, path, 1, 0, 1, 4096, 4096, &err), SLU_EOF);
        assert_int_equal(got->n, t[i].records);
        clear(got);
    }
    const char *const parquet[] = {"p"};
    save("p", "PAR1....", 8);
    /* Taken for Parquet, which this build may not have. */
    int rc = collect(got, parquet, 1, 0, 1, 4096, 4096, &err);
    assert_true(rc == SLU_E_UNSUPPORTED || rc == SLU_E_TRUNCATED);
    assert_non_null(strstr(err.msg, "Parquet"));
    free(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines, set_up, tear_down),
        cmocka_unit_test_setup_teardown(byte_order_mark, set_up, tear_down),
        cmocka_unit_test_setup_teardown(long_record, set_up, tear_down),
        cmocka_unit_test_setup_teardown(texts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(texts_in_parts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(guesses, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
