/* test_tokenizer.c - text to ids by whole tokenizers, good and bad files (test_bpe.c: the
 * merges; test_pre.c: the cutting of text). tests/judges/ids.py compares real
 * vocabularies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/json.h"
#include "lib/token/pre.h"
#include "lib/token/tokenizer.h"
#include "tests/unit/below.h"

/* ---- whole tokenizers ---- */

static const char *const CHARS[] = {
    "a",          "B",         "s",        "S",      "t",      "r",      "e",
    "v",          "l",         "m",        "d",      "'",      " ",      " ",
    "\n",         "\r",        "\t",       "1",      "2",      "!",      "/",
    "_",          "\x0b",      "\x1c",     "\u017f", "\u212a", "\u0301", "\u4e2d",
    "\u01c5",     "\u02b0",    "\u00e9",   "\u00c9", "\u0661", "\u00bd", "\u2167",
    "\u00a0",     "\u3000",    "\xc2\x85", "\u180e", "\u2028", "\u200b", "\U0001f600",
    "\U00010d50", "\U0001e5d0"};

static char path[] = "/tmp/test_tokenizer.XXXXXX";

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

static int load(struct slu_tokenizer **t, const char *spec, bool parse,
                struct slu_err *err)
{
    struct slu_tokenizer_cfg cfg = {.spec = spec, .special_parse = parse};
    return slu_tokenizer_load(t, &cfg, err);
}

/* The text three times, with nothing and with half of it between: each has the ids that
 * it has alone, and its own ends. */
static void check_together(struct slu_encoder *e, const char *text, size_t n,
                           uint64_t bos, uint64_t eos)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_ids all = {0}, one = {0};
    size_t half = n / 2, end[5], id_end[5], from = 3;

    while (half && ((uint8_t)text[half] & 0xC0) == 0x80)
        half--;
    const size_t len[5] = {n, 0, n, half, n};
    char *texts = malloc(3 * n + half + 1);
    assert_non_null(texts);
    for (size_t i = 0, at = 0; i < 5; i++) {
        memcpy(texts + at, text, len[i]);
        end[i] = at += len[i];
    }
    const struct slu_texts t = {texts, end, 5, bos, eos};
    all.id = calloc(all.cap = from, sizeof *all.id);
    assert_non_null(all.id);
    all.n = from;
    assert_int_equal(slu_encode_texts(e, &t, &all, id_end, &err), SLU_OK);
    for (size_t i = 0; i < 5; from = id_end[i++]) {
        one.n = 0;
        assert_int_equal(slu_encode_valid(e, text, len[i], &one, &err), SLU_OK);
        const size_t has_bos = one.n && bos != SLU_NO_TOKEN,
                     has_eos = one.n && eos != SLU_NO_TOKEN;
        assert_int_equal(id_end[i] - from, has_bos + one.n + has_eos);
        if (one.n)
            assert_memory_equal(all.id + from + has_bos, one.id,
                                one.n * sizeof *one.id);
        assert_true(!has_bos || all.id[from] == bos);
        assert_true(!has_eos || all.id[id_end[i] - 1] == eos);
    }
    assert_int_equal(all.n, from);
    slu_ids_release(&all);
    slu_ids_release(&one);
    free(texts);
}

/* "id id id" of a text. */
static const char *encode(const struct slu_tokenizer *t, const char *text)
{
    static char out[1 << 14];
    struct slu_err err = SLU_ERR_INIT;
    struct slu_ids ids = {0};
    struct slu_encoder *e;
    size_t n = 0;

    out[0] = 0;
    assert_int_equal(slu_encoder_new(&e, t, 2 << 20, &err), SLU_OK);
    if (slu_encode(e, text, strlen(text), &ids, &err) < 0)
        snprintf(out, sizeof out, "%s", err.msg);
    else if (slu_utf8_valid_prefix((const uint8_t *)text, strlen(text)) == strlen(text))
        check_together(e, text, strlen(text), 7, 9);
    for (size_t i = 0; i < ids.n && n < sizeof out; i++)
        n += (size_t)snprintf(out + n, sizeof out - n, "%s%u", i ? " " : "", ids.id[i]);
    slu_ids_release(&ids);
    slu_encoder_free(e);
    return out;
}

static void bytes_are_bytes(void **state)
{
    (void)state;
    struct slu_err err = SLU_ERR_INIT;
    struct slu_tokenizer *t, *p;

    assert_int_equal(load(&t, "bytes", false, &err), SLU_OK);
    assert_int_equal(load(&p, "bytes", true, &err), SLU_OK);
    assert_int_equal(slu_tokenizer_vocab_size(t), 257);
    assert_int_equal(slu_tokenizer_eos(t), 256);
    assert_int_equal(slu_tokenizer_pad(t), 256);
    assert_true(slu_tokenizer_bos(t) == SLU_NO_TOKEN);
    assert_string_equal(encode(t, "a\xff<|"), "97 255 60 124");
    assert_string_equal(encode(t, "<|endoftext|>"),
                        "60 124 101 110 100 111 102 116 101 120 116 124 62");
    assert_string_equal(encode(p, "a<|endoftext|>b<|endoftext|"),
                        "97 256 98 60 124 101 110 100 111 102 116 101 120 116 124");
    assert_memory_equal(slu_tokenizer_fingerprint(t), slu_tokenizer_fingerprint(p), 16);
    slu_tokenizer_free(t);
    slu_tokenizer_free(p);
}

static void check_round_trip(const struct slu_tokenizer *t, const char *text, size_t n)
{
    const struct slu_vocab_table *v = slu_tokenizer_vocab(t);
    /* None, too little for any, the smallest tables, and larger ones. */
    static const uint64_t CACHE[] = {0, 4096, (1 << 20) + (1 << 16), 4 << 20};
    struct slu_err err = SLU_ERR_INIT;
    struct slu_ids first = {0};

    for (size_t k = 0; k < 4; k++) {
        struct slu_ids ids = {0};
        struct slu_encoder *e;
        assert_int_equal(slu_encoder_new(&e, t, CACHE[k], &err), SLU_OK);
        for (unsigned round = 0; round < 2; round++) {
            ids.n = 0;
            if (ids.cap) /* or ids of the first round would do for the second */
                memset(ids.id, 0xA5, ids.cap * sizeof *ids.id);
            assert_int_equal(slu_encode(e, text, n, &ids, &err), SLU_OK);
        }
        slu_encoder_free(e);
        size_t pos = 0;
        for (size_t i = 0; i < ids.n; i++) {
            size_t len = v->off[ids.id[i] + 1] - v->off[ids.id[i]];
            assert_true(pos + len <= n);
            assert_memory_equal(v->bytes + v->off[ids.id[i]], text + pos, len);
            pos += len;
        }
        assert_int_equal(pos, n);
        if (k) {
            assert_int_equal(ids.n, first.n);
            assert_memory_equal(ids.id, first.id, ids.n * sizeof *ids.id);
            slu_ids_release(&ids);
        } else {
            first = ids;
        }
    }
    slu_ids_release(&first);
}

static void builtin_keeps_every_byte(void **state)
{
    (void)state;
    struct slu_err err = SLU_ERR_INIT;
    struct slu_tokenizer *t;
    char *text = malloc(1 << 20);

    assert_int_equal(load(&t, NULL, false, &err), SLU_OK);
    assert_int_equal(slu_tokenizer_vocab_size(t), 32768);
    assert_int_equal(slu_tokenizer_eos(t), 32767);
    assert_int_equal(slu_tokenizer_pad(t), 32766);
    static const char *const RUN[] = {"a",      " ",      "\n", "7",   "=",
                                      "\u4e2d", "\u0301", "ab", " \n", "a "};
    for (size_t k = 0; k < sizeof RUN / sizeof *RUN; k++) {
        size_t len = strlen(RUN[k]), n = (1 << 18) / len * len;
        for (size_t i = 0; i < n; i++)
            text[i] = RUN[k][i % len];
        check_round_trip(t, text, n);
    }
    size_t n = 0;
    while (n < 50000) {
        const char *c = CHARS[below(44)];
        memcpy(text + n, c, strlen(c));
        n += strlen(c);
    }
    check_round_trip(t, text, n);
    check_round_trip(t, "", 0);
    assert_string_equal(encode(t, "ab\xc3\x28"), "byte 2: not valid UTF-8");
    slu_tokenizer_free(t);
    free(text);
}

/* ---- tokenizer.json ---- */

static void put_utf8(FILE *f, unsigned c)
{
    if (c == '"' || c == '\\')
        fputc('\\', f);
    if (c < 0x80)
        fputc((int)c, f);
    else
        fprintf(f, "%c%c", (int)(0xC0 | c >> 6), (int)(0x80 | (c & 63)));
}

static const char GPT2_PRE[] =
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true}";

/* GPT-2's alphabet as ids by byte value and then he=256 ll=257 hell=258 hello=259 "
 * w"=260. */
static void write_json(const char *head, const char *pre, const char *model,
                       const char *merges, const char *added)
{
    FILE *f = fopen(path, "w");
    unsigned next = 0x100;

    fprintf(f, "{%s\"pre_tokenizer\":%s,\"model\":{\"type\":\"BPE\",%s\"vocab\":{",
            head, pre, model);
    for (unsigned b = 0; b < 256; b++) {
        fputc('"', f);
        put_utf8(f, (b >= '!' && b <= '~') || (b >= 0xA1 && b != 0xAD) ? b : next++);
        fprintf(f, "\":%u,", b);
    }
    fprintf(f,
            "\"he\":256,\"ll\":257,\"hell\":258,\"hello\":259,\"\u0120w\":260},"
            "\"merges\":%s},"
            "\"added_tokens\":[%s]}",
            merges, added);
    fclose(f);
}

#define MERGES "[\"h e\",\"l l\",\"he ll\",\"\u0120 w\"]"
#define PAIRS  "[[\"h\",\"e\"],[\"l\",\"l\"],[\"he\",\"ll\"],[\"\u0120\",\"w\"]]"

static void check(const char *text, bool parse, const char *want)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_tokenizer *t;

    assert_int_equal(load(&t, path, parse, &err), SLU_OK);
    assert_string_equal(encode(t, text), want);
    slu_tokenizer_free(t);
}

/* A text that hardly repeats anything, of which the cache gives up lengths, and what it
 * knows in between; ends anywhere. Caller frees. */
static char *new_text(size_t n)
{
    static const char ALNUM[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = malloc(n);

    assert_non_null(text);
    for (size_t i = 0; i < n;) {
        unsigned kind = below(8), len = 1 + below(kind ? 14 : 120);
        for (unsigned k = 0; k < len && i < n; k++)
            text[i++] =
                kind == 1 ? "the of\nto"[k % 9] : ALNUM[below(kind & 1 ? 64 : 52)];
        if (i < n && kind > 2)
            text[i++] = ' ';
    }
    return text;
}

/* Words of lengths that the cache gave up are encoded correctly. */
static void text_that_is_new(void **state)
{
    (void)state;
    struct slu_err err = SLU_ERR_INIT;
    struct slu_tokenizer *t;
    struct slu_encoder *plain, *cached;
    struct slu_ids want = {0}, got = {0};

    assert_int_equal(load(&t, NULL, false, &err), SLU_OK);
    assert_int_equal(slu_encoder_new(&plain, t, 0, &err), SLU_OK);
    assert_int_equal(slu_encoder_new(&cached, t, 4 << 20, &err), SLU_OK);
    for (size_t k = 0; k < 300; k++) {
        size_t n = k < 10 ? 50000 : 1 + below(3000);
        char *text = new_text(n);
        want.n = got.n = 0;
        assert_int_equal(slu_encode(plain, text, n, &want, &err), SLU_OK);
        assert_int_equal(slu_encode(cached, text, n, &got, &err), SLU_OK);
        assert_int_equal(got.n, want.n);
        assert_memory_equal(got.id, want.id, want.n * sizeof *want.id);
        check_together(k % 2 ? plain : cached, text, n, k % 4 < 2 ? 7 : SLU_NO_TOKEN,
                       k % 8 < 4 ? 9 : SLU_NO_TOKEN);
        free(text);
    }
    slu_ids_release(&want);
    slu_ids_release(&got);
    slu_encoder_free(plain);
    slu_encoder_free(cached);
    slu_tokenizer_free(t);
}

static void json_merges_in_both_spellings(void **state)
{
    (void)state;
    struct slu_err err = SLU_ERR_INIT;
    struct slu_tokenizer *t[3];

    write_json("", GPT2_PRE, "", MERGES, "");
    check("hello world\n", false, "258 111 260 111 114 108 100 10");
    assert_int_equal(load(&t[0], path, false, &err), SLU_OK);
    write_json("", GPT2_PRE, "", PAIRS, "");
    check("hello world\n", false, "258 111 260 111 114 108 100 10");
    assert_int_equal(load(&t[1], path, false, &err), SLU_OK);
    write_json("", GPT2_PRE, "\"ignore_merges\":true,", PAIRS, "");
    check("hello hello\n", false, "259 32 258 111 10");
    assert_int_equal(load(&t[2], path, false, &err), SLU_OK);
    assert_memory_equal(slu_tokenizer_fingerprint(t[0]),
                        slu_tokenizer_fingerprint(t[1]), 16);
    assert_memory_not_equal(slu_tokenizer_fingerprint(t[0]),
                            slu_tokenizer_fingerprint(t[2]), 16);
    assert_true(slu_tokenizer_eos(t[0]) == SLU_NO_TOKEN);
    for (int i = 0; i < 3; i++)
        slu_tokenizer_free(t[i]);
}

#define ADDED(id, text, more) "{\"id\":" #id ",\"content\":\"" text "\"" more "}"

static void json_added_tokens(void **state)
{
    (void)state;
    write_json(
        "", GPT2_PRE, "", MERGES,
        ADDED(261, "<s>", ",\"special\":true") "," ADDED(262, "<s>x", "") "," ADDED(263, "<l>", ",\"lstrip\":true") "," ADDED(
            264, "<r>",
            ",\"rstrip\":true") "," ADDED(265, "wd",
                                          ",\"single_word\":true") "," ADDED(266,
                                                                             "</s>",
                                                                             ",\"specia"
                                                                             "l\":"
                                                                             "true"));
    check("h<s>h", false, "104 60 115 62 104");
    check("h<s>h", true, "104 261 104");
    check("h<s>xh", false, "104 262 104");
    check("h <l> h", false, "104 263 32 104");
    check("h\u3000\n<l><l>", false, "104 263 263");
    check("<r> \u00a0h", false, "264 104");
    check("wd awd wd_ (wd)", false, "265 32 97 119 100 260 100 95 32 40 265 41");
    /* A special token that does not match still hides what is inside it. */
    write_json("", GPT2_PRE, "", MERGES,
               ADDED(261, "<a<b>", ",\"special\":true") "," ADDED(262, "<b>", ""));
    check("<a<b>", false, "60 97 60 98 62");
    check("<a<b>", true, "261");
    check("<a <b>", false, "60 97 32 262");
}

static void json_steps(void **state)
{
    (void)state;
    write_json("",
               "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"use_regex\":false}",
               "", MERGES, ADDED(261, "<x>", ""));
    check("w<x>w w", false, "260 261 260 260");
    write_json("\"normalizer\":{\"type\":\"NFC\"},",
               "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\","
               "\"individual_digits\":true},{\"type\":\"Split\",\"pattern\":{"
               "\"String\":\"he\"},"
               "\"behavior\":\"Isolated\",\"invert\":false},{\"type\":\"ByteLevel\","
               "\"add_prefix_space\":false,\"use_regex\":false}]}",
               "", MERGES, "");
    check("hell", false, "256 257");
    check("e\u0301", false, "195 169");
    write_json(
        "",
        "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{"
        "\"Regex\":\"[a-z]+|\\\\p{N}\"},\"behavior\":\"Removed\",\"invert\":true},{"
        "\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}]}",
        "", MERGES, "");
    check("hell! 12", false, "258 49 50");
}

static void json_that_cannot_be_reproduced(void **state)
{
    (void)state;
    static const struct {
        const char *head, *pre, *model, *name;
    } BAD[] = {
        {"\"normalizer\":{\"type\":\"BertNormalizer\"},", GPT2_PRE, "",
         "BertNormalizer"},
        {"", "{\"type\":\"Metaspace\"}", "", "Metaspace"},
        {"", "null", "", "byte-level"},
        {"", GPT2_PRE, "\"type\":\"Unigram\",", "Unigram"},
        {"", GPT2_PRE, "\"dropout\":0.1,", "dropout"},
        {"", GPT2_PRE, "\"end_of_word_suffix\":\"</w>\",", "end_of_word_suffix"},
        {"",
         "{\"type\":\"Split\",\"pattern\":{\"String\":\" \"},\"behavior\":\"Doubled\"}",
         "", "Doubled"},
        {"",
         "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{"
         "\"Regex\":\"\\\\h+\"},\"behavior\":\"Isolated\"},{\"type\":\"ByteLevel\"}]}",
         "", "\\h"},
    };

    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        struct slu_err err = SLU_ERR_INIT;
        struct slu_tokenizer *t;
        write_json(BAD[i].head, BAD[i].pre, BAD[i].model, MERGES, "");
        assert_int_equal(load(&t, path, false, &err), SLU_E_UNSUPPORTED);
        assert_non_null(strstr(err.msg, BAD[i].name));
        assert_null(t);
    }
}

static void json_that_is_damaged(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "",
        "{}",
        "[1]",
        "{\"model\":{\"vocab\":{\"a\":1}}}",
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":99999999999},\"merges\":[]},"
        "\"pre_tokenizer\":{\"type\":\"ByteLevel\"}}",
        "{\"model\":{\"vocab\":{\"a\":\"b\"},\"merges\":[]},\"pre_tokenizer\":{"
        "\"type\":"
        "\"ByteLevel\"}}",
    };

    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        struct slu_err err = SLU_ERR_INIT;
        struct slu_tokenizer *t;
        FILE *f = fopen(path, "w");
        fputs(BAD[i], f);
        fclose(f);
        assert_true(load(&t, path, false, &err) < 0);
        assert_non_null(strstr(err.msg, path));
    }
    struct slu_err err = SLU_ERR_INIT;
    struct slu_tokenizer *t;
    write_json("", GPT2_PRE, "", "[\"h zz\"]", "");
    assert_int_equal(load(&t, path, false, &err), SLU_E_FORMAT);
    assert_int_equal(load(&t, "/nonexistent/tokenizer.json", false, &err), SLU_E_IO);
}

/* ---- rank files ---- */

static void write_ranks(const char *more)
{
    static const char A[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    FILE *f = fopen(path, "w");

    for (unsigned b = 0; b < 256; b++)
        fprintf(f, "%c%c== %u\n", A[b >> 2], A[(b & 3) << 4], b);
    fputs(more, f);
    fclose(f);
}

static int load_ranks(struct slu_tokenizer **t, const char *pattern, const char *eos,
                      struct slu_err *err)
{
    struct slu_tokenizer_cfg cfg = {.spec = path, .pattern = pattern, .eos = eos};
    return slu_tokenizer_load(t, &cfg, err);
}

static void rank_files(void **state)
{
    (void)state;
    struct slu_err err = SLU_ERR_INIT;
    struct slu_tokenizer *t;

    /* he ll hell xyz, the last of which no merge makes */
    write_ranks("aGU= 256\nbGw= 257\naGVsbA== 258\r\n\neHl6 259\n");
    assert_int_equal(load_ranks(&t, "qwen2", NULL, &err), SLU_OK);
    assert_string_equal(encode(t, "hello xyz\nxyz"), "258 111 32 120 121 122 10 259");
    assert_int_equal(slu_tokenizer_eos(t), 260);
    slu_tokenizer_free(t);
    assert_int_equal(load_ranks(&t, "llama3", "<|eot_id|>", &err), SLU_OK);
    assert_int_equal(slu_tokenizer_bos(t), 260);
    assert_int_equal(slu_tokenizer_eos(t), 269);
    assert_int_equal(slu_tokenizer_vocab_size(t), 516);
    slu_tokenizer_free(t);
    assert_int_equal(load_ranks(&t, "llama3", "<none>", &err), SLU_E_USAGE);
    assert_int_equal(load_ranks(&t, "gpt9", NULL, &err), SLU_E_USAGE);
    assert_int_equal(load_ranks(&t, "gpt2", NULL, &err), SLU_OK);
    assert_int_equal(slu_tokenizer_vocab_size(t), 50257);
    slu_tokenizer_free(t);
    write_ranks("aGU 256\nnonsense\n");
    assert_int_equal(load_ranks(&t, "gpt2", NULL, &err), SLU_E_FORMAT);
    assert_non_null(strstr(err.msg, "line 258"));
    write_ranks("aGU= 255\n");
    assert_int_equal(load_ranks(&t, "gpt2", NULL, &err), SLU_E_FORMAT);
    write_ranks("aGU= 50256\n");
    assert_int_equal(load_ranks(&t, "gpt2", NULL, &err), SLU_E_FORMAT);
    assert_non_null(strstr(err.msg, "pattern"));
}

/* Two special tokens, the bytes, and "ab"; `rank` is that of byte 5, `pattern` behind
 * what Tekken has. */
static void write_tekken(unsigned rank, const char *pattern)
{
    static const char BASE64[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("{\"config\":{\"default_vocab_size\":259,\"default_num_special_tokens\":2,"
          "\"pattern\":\"",
          f);
    for (const char *p = pre_regex_by_name("tekken"); *p; p++)
        fprintf(f, *p == '\\' ? "\\%c" : "%c", *p);
    fprintf(f, "%s\"},\"vocab\":[", pattern);
    for (unsigned i = 0; i < 256; i++)
        fprintf(f, "{\"rank\":%u,\"token_bytes\":\"%c%c==\"},", i == 5 ? rank : i,
                BASE64[i >> 2], BASE64[(i & 3) << 4]);
    fputs("{\"rank\":256,\"token_bytes\":\"YWI=\"},{}]}", f);
    assert_int_equal(fclose(f), 0);
}

static void tekken_files(void **state)
{
    (void)state;
    struct slu_err err = SLU_ERR_INIT;
    struct slu_tokenizer *t;
    struct slu_encoder *e;
    struct slu_ids ids = {NULL, 0, 0};
    static const uint32_t WANT[] = {'!' + 2, 258, '\n' + 2};

    write_tekken(5, "");
    assert_int_equal(load(&t, path, false, &err), SLU_OK);
    assert_int_equal(slu_tokenizer_vocab_size(t), 259);
    assert_int_equal(slu_encoder_new(&e, t, 0, &err), SLU_OK);
    assert_int_equal(slu_encode(e, "!ab\n", 4, &ids, &err), SLU_OK);
    assert_int_equal(ids.n, 3);
    assert_memory_equal(ids.id, WANT, sizeof WANT);
    slu_ids_release(&ids);
    slu_encoder_free(e);
    slu_tokenizer_free(t);
    write_tekken(6, "");
    assert_int_equal(load(&t, path, false, &err), SLU_E_FORMAT);
    write_tekken(5, "|x");
    assert_int_equal(load(&t, path, false, &err), SLU_E_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "pattern"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_bytes),
        cmocka_unit_test(builtin_keeps_every_byte),
        cmocka_unit_test(text_that_is_new),
        cmocka_unit_test(json_merges_in_both_spellings),
        cmocka_unit_test(json_added_tokens),
        cmocka_unit_test(json_steps),
        cmocka_unit_test(json_that_cannot_be_reproduced),
        cmocka_unit_test(json_that_is_damaged),
        cmocka_unit_test(rank_files),
        cmocka_unit_test(tekken_files),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
