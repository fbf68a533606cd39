/* test_cut.c - texts that are cut at the positions of slu_tokenizer_cut have the ids of
 * the whole text: with one cut, and with all cuts, on random texts of difficult
 * characters. tests/judges/ids.py compares real vocabularies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/hash.h"
#include "lib/token/cut.h"
#include "lib/token/encode_parts.h"
#include "lib/token/pre.h"
#include "lib/token/tokenizer.h"

enum { N_TEXT = 400, MAX_CHAR = 60 };

static uint64_t draws;
static struct slu_err err;
static char path[] = "/tmp/test_cut.XXXXXX";

/* The alphabet; what begins a line twice is more frequent. */
static const char *const CHARS[] = {
    " ",      " ",       " ",      " ",        "\n",
    "\n",     "\n",      "a",      "a",        "b",
    "s",      "S",       "T",      "l",        "L",
    "re",     "'",       "'s",     "'ll",      "\u2019",
    ".",      ",",       "!",      "/",        "//",
    "(",      "1",       "23",     "4567",     "-",
    "_",      "\t",      "\r",     "\r\n",     "\v",
    "\x01",   "\x1c",    "\u00a0", "\xc2\x85", "\u2028",
    "\u3000", "\u4e2d",  "\u6587", "\u3002",   "\u300c",
    "\u3042", "\u0301",  "\u0308", "\u0338",   "\u00e9",
    "\u00c9", "e\u0301", "\u1100", "\u1161",   "\u11a8",
    "\u0660", "\u01c5",  "\u02b0", "\u017f",   "\u037e",
    "\u2000", "\u1fef",  "\u00a8", "\u200d",   "\U0001f600",
    "<|x|>",  "a b",     "x\ny",   " qz",      "qz ",
    "qz",     "  ",      "   ",    "\n\n",     "<|endoftext|>",
};
enum { N_CHARS = sizeof CHARS / sizeof *CHARS };

static size_t make_text(char *text)
{
    size_t n = 0;
    unsigned n_char =
        2 + (unsigned)slu_draw_below(slu_draw(1, draws++, 0, 0, 0), MAX_CHAR - 2);
    /* A part of the alphabet each time, so that rare neighbours meet. */
    unsigned first = (unsigned)slu_draw_below(slu_draw(1, draws++, 1, 0, 0), N_CHARS);
    for (unsigned i = 0; i < n_char; i++) {
        uint64_t r = slu_draw(1, draws++, 2, 0, 0);
        size_t k = r % 3 == 0   ? slu_draw_below(r, 12)
                   : r % 3 == 1 ? (first + slu_draw_below(r, 8)) % N_CHARS
                                : slu_draw_below(r, N_CHARS);
        size_t len = strlen(CHARS[k]);
        memcpy(text + n, CHARS[k], len);
        n += len;
    }
    return n;
}

struct tester {
    struct slu_tokenizer *t;
    struct slu_encoder *e;
    struct slu_ids whole, parts;
    unsigned n_space, n_line, n_beginning; /* cuts that were tried */
};

static void append(struct tester *x, const char *p, size_t n, struct slu_ids *ids)
{
    assert_int_equal(slu_encode(x->e, p, n, ids, &err), SLU_OK);
}

static void same(const struct tester *x, const char *text, size_t n, size_t at)
{
    if (x->parts.n == x->whole.n &&
        !memcmp(x->parts.id, x->whole.id, x->whole.n * sizeof *x->whole.id))
        return;
    fprintf(stderr, "cut at %zu: \"%.*s|%.*s\"\n", at, (int)at, text, (int)(n - at),
            text + at);
    fail();
}

static void check_text(struct tester *x, const char *text, size_t n)
{
    size_t at = 0, next;
    x->whole.n = 0;
    append(x, text, n, &x->whole);
    for (;;) {
        at = slu_tokenizer_cut(x->t, text, n, at + 1, n);
        if (at == SIZE_MAX)
            break;
        if (text[at] == ' ')
            x->n_space++;
        else
            x->n_line++;
        x->parts.n = 0;
        append(x, text, at, &x->parts);
        append(x, text + at, n - at, &x->parts);
        same(x, text, n, at);
    }
    x->parts.n = 0;
    for (at = 0; at < n; at = next) {
        next = slu_tokenizer_cut(x->t, text, n, at + 1, n);
        next = next == SIZE_MAX ? n : next;
        append(x, text + at, next - at, &x->parts);
    }
    same(x, text, n, n);
}

/* Cuts a text of which only the first bytes are known; the ids of both halves must be
 * those of the text. */
static void check_beginnings(struct tester *x, const char *text, size_t n)
{
    for (unsigned i = 0; i < 8; i++) {
        uint64_t r = slu_draw(2, draws++, 0, 0, 0);
        size_t known = slu_draw_below(r, n + 1), from = r % 3 ? 0 : known / 2;
        char *p = malloc(known + 1); /* nothing after it may be read */
        assert_non_null(p);
        memcpy(p, text, known);
        size_t at = slu_encode_cut(x->t, p, known, from);
        free(p);
        if (!at)
            continue;
        assert_true(at >= from && at < known);
        assert_true(((uint8_t)text[at] & 0xC0) != 0x80);
        x->n_beginning++;
        x->parts.n = 0;
        append(x, text, at, &x->parts);
        append(x, text + at, n - at, &x->parts);
        same(x, text, n, at);
    }
}

/* For bytes that are not text: nothing outside their memory may be read. */
static void check_garbage(const struct tester *x)
{
    for (unsigned i = 0; i < N_TEXT; i++) {
        uint64_t r = slu_draw(3, draws++, 0, 0, 0);
        size_t n = slu_draw_below(r, 40);
        uint8_t *p = malloc(n + 1);
        assert_non_null(p);
        for (size_t k = 0; k < n; k++) {
            static const uint8_t some[] = {'\n', '\n', 'a',  ' ', 0xFF,
                                           0xF9, 0xF4, 0xBF, 0x80};
            p[k] = some[slu_draw(3, draws++, 1, 0, 0) % sizeof some];
        }
        assert_true(slu_encode_cut(x->t, p, n, 0) <= n);
        free(p);
    }
}

/* kinds: what must be found, and nothing else. */
static void check_spec(const char *spec, bool parse, unsigned kinds)
{
    struct slu_tokenizer_cfg cfg = {.spec = spec, .special_parse = parse};
    struct tester x = {0};
    char text[MAX_CHAR * 13];

    memset(&err, 0, sizeof err);
    if (slu_tokenizer_load(&x.t, &cfg, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(slu_encoder_new(&x.e, x.t, 2 << 20, &err), SLU_OK);
    for (unsigned i = 0; i < N_TEXT; i++) {
        size_t n = make_text(text);
        check_text(&x, text, n);
        check_beginnings(&x, text, n);
    }
    check_garbage(&x);
    assert_int_equal(slu_encode_cuts(x.t), kinds != 0);
    assert_int_equal(x.n_beginning > 0, kinds != 0);
    if (kinds != CUT_ANY) {
        assert_int_equal(x.n_space > 0, (kinds & CUT_SPACE) != 0);
        assert_int_equal(x.n_line > 0, (kinds & CUT_LINE) != 0);
    }
    slu_encoder_free(x.e);
    slu_tokenizer_free(x.t);
    slu_ids_release(&x.whole);
    slu_ids_release(&x.parts);
}

/* ---- made-up tokenizers ---- */

static int make_path(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    if (fd < 0)
        return -1;
    close(fd);
    return 0;
}

static int remove_path(void **state)
{
    (void)state;
    return unlink(path);
}

static void put_utf8(FILE *f, unsigned c)
{
    if (c == '"' || c == '\\')
        fputc('\\', f);
    if (c < 0x80)
        fputc((int)c, f);
    else
        fprintf(f, "%c%c", (int)(0xC0 | c >> 6), (int)(0x80 | (c & 63)));
}

static void put_json(FILE *f, const char *s)
{
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            fputc('\\', f);
        if (*s == '\n')
            fputs("\\n", f);
        else
            fputc(*s, f);
    }
}

/* GPT-2's alphabet, and merges of whatever a wrong cut would take apart. */
static void write_json(const char *head, const char *pre, const char *added)
{
    static const char *const MERGE[] = {
        "a \u0120", "s \u0120",      "\u010a a", "\u010a \u010a",
        ". \u010a", "\u0120 \u0120", "\u0120 a", "\u010a \u00e4",
        "/ \u010a", "\u010a /",      "1 \u010a", "' s",
        "' l",      "\u0120 \u010a", "a b",      "l l",
    };
    FILE *f = fopen(path, "w");
    unsigned next = 0x100, id = 256;

    fprintf(f, "{%s\"pre_tokenizer\":%s,\"model\":{\"type\":\"BPE\",\"vocab\":{", head,
            pre);
    for (unsigned b = 0; b < 256; b++) {
        fputs(b ? ",\"" : "\"", f);
        put_utf8(f, (b >= '!' && b <= '~') || (b >= 0xA1 && b != 0xAD) ? b : next++);
        fprintf(f, "\":%u", b);
    }
    for (size_t i = 0; i < sizeof MERGE / sizeof *MERGE; i++) {
        const char *space = strchr(MERGE[i], ' ');
        fprintf(f, ",\"%.*s%s\":%u", (int)(space - MERGE[i]), MERGE[i], space + 1,
                id++);
    }
    fputs("},\"merges\":[", f);
    for (size_t i = 0; i < sizeof MERGE / sizeof *MERGE; i++)
        fprintf(f, "%s\"%s\"", i ? "," : "", MERGE[i]);
    fprintf(f, "]},\"added_tokens\":[%s]}", added);
    fclose(f);
}

static const char GPT2[] =
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true}";
static const char PREFIX[] =
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"use_regex\":true}";

static void put_split(FILE *f, const char *regex)
{
    fputs("{\"type\":\"Split\",\"pattern\":{\"Regex\":\"", f);
    put_json(f, regex);
    fputs("\"},\"behavior\":\"Isolated\"},", f);
}

/* A row of splits, NULL at the end, with the normalizers that leave both kinds. */
static void check_splits(const char *const *regex)
{
    static const char *const NORM[] = {
        "", "\"normalizer\":{\"type\":\"NFC\"},",
        "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFD\"},"
        "{\"type\":\"Lowercase\"}]},"};
    for (size_t i = 0; i < sizeof NORM / sizeof *NORM; i++) {
        char pre[4096];
        FILE *f = fmemopen(pre, sizeof pre, "w");
        fputs("{\"type\":\"Sequence\",\"pretokenizers\":[", f);
        for (const char *const *r = regex; *r; r++)
            put_split(f, *r);
        fputs("{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
              "\"use_regex\":false}]}",
              f);
        fclose(f);
        write_json(NORM[i], pre, "");
        check_spec(path, false, CUT_SPACE | CUT_LINE);
    }
}

static void every_split(void **state)
{
    /* cl100k's expression is no other than in rank files. */
    static const char *const NAME[] = {"gpt2",   "r50k",  "p50k",   "llama3", "qwen2",
                                       "qwen35", "o200k", "tekken", "kimi"};
    static const char *const DEEPSEEK[] = {
        "\\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
        "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"
        "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|"
        "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
        NULL};
    (void)state;
    for (size_t i = 0; i < sizeof NAME / sizeof *NAME; i++)
        check_splits((const char *const[]){pre_regex_by_name(NAME[i]), NULL});
    check_splits(DEEPSEEK);
    write_json("",
               "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\","
               "\"individual_digits\":true},"
               "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}]}",
               "");
    check_spec(path, false, CUT_SPACE | CUT_LINE);
}

/* Ranks of single bytes, and a few more, with the split of cl100k. */
static void ranks(void **state)
{
    static const char BASE64[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static const char *const MORE[] = {"ICA=", "Cgo=", "IGE=", "YWI=", "IQo="};
    char name[] = "/tmp/test_cut.cl100k.XXXXXX.tiktoken";
    int fd = mkstemps(name, 9);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    (void)state;
    assert_non_null(f);
    for (unsigned i = 0; i < 256; i++)
        fprintf(f, "%c%c== %u\n", BASE64[i >> 2], BASE64[(i & 3) << 4], i);
    for (unsigned i = 0; i < sizeof MORE / sizeof *MORE; i++)
        fprintf(f, "%s %u\n", MORE[i], 256 + i);
    assert_int_equal(fclose(f), 0);
    check_spec(name, false, CUT_SPACE | CUT_LINE);
    unlink(name);
}

static void normalizers(void **state)
{
    static const struct {
        const char *json;
        unsigned kinds;
    } norm[] = {
        {"{\"type\":\"NFKC\"}", CUT_SPACE},
        {"{\"type\":\"NFKD\"}", CUT_SPACE},
        {"{\"type\":\"StripAccents\"}", CUT_SPACE},
        {"{\"type\":\"Prepend\",\"prepend\":\"x\"}", 0},
        {"{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"_\"}", 0},
        {"{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true}", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof norm / sizeof *norm; i++) {
        char head[200];
        snprintf(head, sizeof head, "\"normalizer\":%s,", norm[i].json);
        write_json(head, GPT2, "");
        check_spec(path, false, norm[i].kinds);
    }
}

static void own_tokenizers(void **state)
{
    (void)state;
    check_spec("builtin", false, CUT_SPACE | CUT_LINE);
    check_spec("builtin", true, CUT_SPACE | CUT_LINE);
    check_spec("bytes", false, CUT_ANY);
    check_spec("bytes", true, CUT_ANY);
}

/* Steps before and after the split change the places where a text may be cut. */
static void steps(void **state)
{
    (void)state;
    write_json("", PREFIX, "");
    check_spec(path, false, CUT_SPACE);
    write_json(
        "",
        "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","
        "\"pattern\":{\"Regex\":\"a ?b|\\\\n+.\"},\"behavior\":\"Isolated\"},"
        "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}]}",
        "");
    check_spec(path, false, 0); /* unknown */
    write_json("",
               "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
               "\"use_regex\":false}",
               "");
    check_spec(path, false, 0); /* no split at all */
}

static void added_tokens(void **state)
{
    static const char *const FLAGS[] = {
        "", ",\"lstrip\":true", ",\"rstrip\":true", ",\"single_word\":true",
        ",\"lstrip\":true,\"rstrip\":true,\"single_word\":true"};
    enum { PLAIN, L, R, W, ALL, N_FLAGS };
    static const struct {
        const char *text; /* in JSON */
        unsigned kinds[N_FLAGS];
    } token[] = {
        {"<|x|>", {3, 1, 3, 3, 1}},  {"qz", {3, 1, 2, 3, 0}},
        {"a b", {2, 0, 2, 2, 0}},    {"qz ", {2, 0, 2, 2, 0}},
        {" qz", {3, 1, 2, 2, 0}},    {"x\\ny", {1, 1, 0, 1, 0}},
        {"\\n", {3, 1, 3, 1, 1}},    {"\\n\\n", {1, 1, 1, 1, 1}},
        {" ", {3, 1, 3, 2, 0}},      {"   ", {3, 1, 3, 2, 0}},
        {"\u4e2d", {3, 1, 3, 3, 1}}, {". ", {3, 1, 3, 3, 1}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof token / sizeof *token; i++)
        for (unsigned k = 0; k < 4 * N_FLAGS; k++) {
            char added[200];
            bool special = k / N_FLAGS & 1, nfc = k / N_FLAGS & 2;
            snprintf(
                added, sizeof added,
                "{\"id\":272,\"content\":\"%s\",\"special\":%s,\"normalized\":%s%s}",
                token[i].text, special ? "true" : "false", nfc ? "true" : "false",
                FLAGS[k % N_FLAGS]);
            write_json(nfc ? "\"normalizer\":{\"type\":\"NFC\"}," : "", GPT2, added);
            check_spec(path, true, token[i].kinds[k % N_FLAGS]);
            if (special)
                check_spec(path, false, token[i].kinds[k % N_FLAGS]);
        }
}

static void places(void **state)
{
    struct slu_tokenizer_cfg cfg = {0};
    struct slu_tokenizer *t;
    (void)state;
    assert_int_equal(slu_tokenizer_load(&t, &cfg, &err), SLU_OK);
    static const char text[] = "ab cd\nef";
    assert_int_equal(slu_tokenizer_cut(t, text, 8, 0, 8), 2);
    assert_int_equal(slu_tokenizer_cut(t, text, 8, 2, 8), 2);
    assert_int_equal(slu_tokenizer_cut(t, text, 8, 3, 8), 6);
    assert_true(slu_tokenizer_cut(t, text, 8, 3, 6) == SIZE_MAX);
    assert_true(slu_tokenizer_cut(t, text, 8, 7, SIZE_MAX) == SIZE_MAX);
    assert_true(slu_tokenizer_cut(t, text, 0, 0, SIZE_MAX) == SIZE_MAX);
    assert_true(slu_tokenizer_cut(t, "\n\n\n/ 1 \n", 8, 0, 8) == SIZE_MAX);
    assert_int_equal(slu_tokenizer_cut(t, "\u3002\n\u4e2d", 7, 0, 7), 4);
    assert_true(slu_tokenizer_cut(t, "\u3000\n\u4e2d", 7, 0, 7) == SIZE_MAX);
    assert_true(slu_tokenizer_cut(t, "\u3002\n\u3000", 7, 0, 7) == SIZE_MAX);
    slu_tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places),      cmocka_unit_test(own_tokenizers),
        cmocka_unit_test(every_split), cmocka_unit_test(ranks),
        cmocka_unit_test(steps),       cmocka_unit_test(added_tokens),
        cmocka_unit_test(normalizers),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
