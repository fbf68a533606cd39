/* test_sp.c - SentencePiece's BPE with byte fallback, compared with the plain algorithm
 * on characters: random merges, random texts with spaces, U+2581 and characters that
 * the vocabulary lacks, and each way to put a space in front. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/hash.h"
#include "lib/token/sp.h"
#include "lib/token/tokenizer.h"

static uint64_t draws;

static unsigned below(unsigned n)
{
    return (unsigned)slu_draw_below(slu_draw(11, 2, 3, 4, draws++), n);
}

/* Ids: 0 <unk>, 1 to 256 the bytes, then characters, then what merges make. */
static const char *const CHARS[] = {SP_SPACE, "a",      "b",          "\n", "\u00e9",
                                    "\u65e5", "\u672c", "\U0001f600", "<",  ">"};
#define N_CHAR  (sizeof CHARS / sizeof *CHARS)
#define N_MERGE 40
#define FIRST   257
#define N_ID    (FIRST + N_CHAR + N_MERGE)

static char token[N_ID][64];
static struct {
    unsigned left, right, made;
} merge[N_MERGE];
static unsigned n_id, n_merge;
static char path[] = "/tmp/test_sp.XXXXXX", dir[sizeof path + 8];

static void make_vocab(void)
{
    n_merge = 0;
    n_id = FIRST;
    for (size_t i = 0; i < N_CHAR; i++)
        snprintf(token[n_id++], sizeof *token, "%s", CHARS[i]);
    while (n_merge < N_MERGE) {
        unsigned a = FIRST + below(n_id - FIRST), b = FIRST + below(n_id - FIRST),
                 k = FIRST;
        char both[2 * sizeof *token];
        snprintf(both, sizeof both, "%s%s", token[a], token[b]);
        if (strlen(both) >= sizeof *token)
            continue;
        while (k < n_id && strcmp(token[k], both))
            k++;
        if (k == n_id)
            snprintf(token[n_id++], sizeof *token, "%.63s", both);
        merge[n_merge].left = a;
        merge[n_merge].right = b;
        merge[n_merge++].made = k;
    }
}

static void put_string(FILE *f, const char *s)
{
    fprintf(f, strcmp(s, "\n") ? "\"" : "\"\\n\"");
    if (!strcmp(s, "\n"))
        return;
    for (; *s; s++)
        fprintf(f, *s == '\n' ? "\\n" : "%c", *s);
    fputc('"', f);
}

static void write_json(const char *before)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fprintf(f,
            "{%s\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,"
            "\"unk_token\":\"<unk>\",\"vocab\":{\"<unk>\":0",
            before);
    for (unsigned b = 0; b < 256; b++)
        fprintf(f, ",\"<0x%02X>\":%u", b, b + 1);
    for (unsigned k = FIRST; k < n_id; k++) {
        fputc(',', f);
        put_string(f, token[k]);
        fprintf(f, ":%u", k);
    }
    fprintf(f, "},\"merges\":[");
    for (unsigned k = 0; k < n_merge; k++) {
        fprintf(f, k ? ",[" : "[");
        put_string(f, token[merge[k].left]);
        fputc(',', f);
        put_string(f, token[merge[k].right]);
        fputc(']', f);
    }
    fprintf(f, "]}}");
    assert_int_equal(fclose(f), 0);
}

static unsigned char_len(const char *p)
{
    uint8_t c = (uint8_t)*p;

    return c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}

/* The reference: characters or their bytes, then the best pair until there is none. */
static unsigned plain(const char *p, size_t n, uint32_t *id)
{
    unsigned k = 0;

    for (size_t i = 0; i < n; i += char_len(p + i)) {
        unsigned c = FIRST, len = char_len(p + i);
        while (c < FIRST + N_CHAR &&
               (strlen(token[c]) != len || memcmp(token[c], p + i, len)))
            c++;
        if (c < FIRST + N_CHAR)
            id[k++] = c;
        for (unsigned j = 0; c == FIRST + N_CHAR && j < len; j++)
            id[k++] = 1u + (uint8_t)p[i + j];
    }
    for (;;) {
        unsigned best = n_merge, at = 0;
        for (unsigned i = 0; i + 1 < k; i++) {
            /* Of equal pairs the last one counts. */
            unsigned m = n_merge;
            for (unsigned x = 0; x < n_merge; x++) {
                if (merge[x].left == id[i] && merge[x].right == id[i + 1])
                    m = x;
            }
            if (m < best) {
                best = m;
                at = i;
            }
        }
        if (best == n_merge)
            return k;
        id[at] = merge[best].made;
        memmove(id + at + 1, id + at + 2, (k - at - 2) * sizeof *id);
        k--;
    }
}

enum way { PREPEND, FOLD, ALWAYS, FIRST_ONLY, NEVER, SPLIT, RAW, N_WAY };
#define FOLDED                                                                         \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\u2581\"}"
#define META(scheme, split)                                                            \
    "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\u2581\","            \
    "\"prepend_scheme\":\"" scheme "\",\"split\":" split "},"
static const char *const BEFORE[N_WAY] = {
    "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\","
    "\"prepend\":\"\u2581\"}," FOLDED "]},\"pre_tokenizer\":null,",
    "\"normalizer\":" FOLDED ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{"
    "\"String\":\" \"},\"behavior\":\"MergedWithPrevious\",\"invert\":false},",
    META("always", "false"),
    META("first", "false"),
    META("never", "false"),
    META("always", "true"),
    "",
};

/* Normalizes a text as it is given to the model. */
static size_t prepare(enum way way, const char *text, char *out)
{
    char *q = out;

    if (way == PREPEND && *text)
        q += sprintf(q, SP_SPACE);
    if ((way == ALWAYS || way == FIRST_ONLY || way == SPLIT) && *text && *text != ' ' &&
        strncmp(text, SP_SPACE, 3) != 0)
        q += sprintf(q, SP_SPACE);
    for (; *text; text++)
        q += sprintf(q, *text == ' ' && way != RAW ? SP_SPACE : "%c", *text);
    return (size_t)(q - out);
}

static unsigned want_ids(enum way way, const char *text, uint32_t *id)
{
    char p[2048];
    size_t n = prepare(way, text, p), from = 0;
    unsigned k = 0;

    for (size_t i = 1; i < n && way == SPLIT; i++) {
        if (!memcmp(p + i, SP_SPACE, 3)) {
            k += plain(p + from, i - from, id + k);
            from = i;
        }
    }
    return k + plain(p + from, n - from, id + k);
}

static void check_texts(enum way way, const struct slu_tokenizer *t, unsigned rounds)
{
    static const char *const MORE[] = {" ",      "  ",         "\u65e6", "\u00e8",
                                       "c",      "\U0001f601", "\u2580", "aab",
                                       "<0x0A>", "\x7f",       " a b"};
    struct slu_encoder *e[2];
    struct slu_err err = SLU_ERR_INIT;
    struct slu_ids ids = {0};

    assert_int_equal(slu_encoder_new(&e[0], t, 0, &err), SLU_OK);
    assert_int_equal(slu_encoder_new(&e[1], t, 2 << 20, &err), SLU_OK);
    while (rounds--) {
        uint32_t want[2048];
        char text[512] = "";
        for (unsigned n = below(30); n; n--) {
            unsigned k = below(N_CHAR + sizeof MORE / sizeof *MORE);
            strcat(text, k < N_CHAR ? CHARS[k] : MORE[k - N_CHAR]);
        }
        unsigned n_want = want_ids(way, text, want);
        for (int k = 0; k < 2; k++) {
            ids.n = 0;
            assert_int_equal(slu_encode(e[k], text, strlen(text), &ids, &err), SLU_OK);
            if (ids.n != n_want ||
                (n_want && memcmp(ids.id, want, n_want * sizeof *want)))
                fail_msg("way %d: \"%s\" has %zu ids, not the %u expected", way, text,
                         ids.n, n_want);
        }
    }
    slu_ids_release(&ids);
    slu_encoder_free(e[0]);
    slu_encoder_free(e[1]);
}

/* Loads what write_json wrote, compiled where `cache` says so. */
static struct slu_tokenizer *load(const char *cache)
{
    struct slu_tokenizer_cfg cfg = {.spec = path, .cache_dir = cache};
    struct slu_tokenizer *t;
    struct slu_err err = SLU_ERR_INIT;

    if (slu_tokenizer_load(&t, &cfg, &err) < 0)
        fail_msg("%s", err.msg);
    return t;
}

static void plain_bpe_on_characters(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 40; round++) {
        make_vocab();
        for (enum way way = 0; way < N_WAY; way++) {
            write_json(BEFORE[way]);
            struct slu_tokenizer *t = load(NULL);
            assert_int_equal(slu_tokenizer_vocab_size(t), n_id);
            check_texts(way, t, 40);
            slu_tokenizer_free(t);
        }
    }
}

static void compiled_ones_are_the_same(void **state)
{
    (void)state;
    make_vocab();
    for (enum way way = 0; way < N_WAY; way++) {
        write_json(BEFORE[way]);
        struct slu_tokenizer *a = load(dir), *b = load(dir);
        assert_memory_equal(slu_tokenizer_fingerprint(a), slu_tokenizer_fingerprint(b),
                            16);
        check_texts(way, b, 200);
        slu_tokenizer_free(a);
        slu_tokenizer_free(b);
    }
}

static void bytes_decode(void **state)
{
    (void)state;
    make_vocab();
    write_json(BEFORE[PREPEND]);
    struct slu_tokenizer *t = load(NULL);
    const struct slu_vocab_table *v = slu_tokenizer_vocab(t);

    assert_int_equal(v->n, n_id);
    for (unsigned b = 0; b < 256; b++) {
        assert_int_equal(v->off[b + 2] - v->off[b + 1], 1);
        assert_int_equal(v->bytes[v->off[b + 1]], b);
    }
    assert_int_equal(v->off[FIRST + 1] - v->off[FIRST], 1); /* U+2581 */
    assert_int_equal(v->bytes[v->off[FIRST]], ' ');
    slu_tokenizer_free(t);
}

static void first_is_the_first(void **state)
{
    static const char ADDED[] =
        "\"added_tokens\":[{\"id\":0,\"content\":\"<unk>\",\"special\":false}],";
    (void)state;
    make_vocab();
    n_merge = 0;
    for (int always = 0; always < 2; always++) {
        char before[1024];
        snprintf(before, sizeof before, "%s%s", BEFORE[always ? ALWAYS : FIRST_ONLY],
                 ADDED);
        write_json(before);
        struct slu_tokenizer *t = load(NULL);
        struct slu_encoder *e;
        struct slu_err err = SLU_ERR_INIT;
        struct slu_ids ids = {0};
        assert_int_equal(slu_encoder_new(&e, t, 0, &err), SLU_OK);
        assert_int_equal(slu_encode(e, "a<unk>b", 7, &ids, &err), SLU_OK);
        assert_int_equal(ids.n, 4 + always);
        assert_int_equal(ids.id[0], FIRST);
        assert_int_equal(ids.id[2], 0);
        assert_int_equal(ids.id[3], always ? FIRST : FIRST + 2);
        ids.n = 0;
        assert_int_equal(slu_encode(e, "<unk>b", 6, &ids, &err), SLU_OK);
        assert_int_equal(ids.n, 2 + always);
        slu_ids_release(&ids);
        slu_encoder_free(e);
        slu_tokenizer_free(t);
    }
}

static int make_path(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    snprintf(dir, sizeof dir, "%s.d", path);
    return fd < 0 || close(fd) || mkdir(dir, 0700);
}

static int remove_path(void **state)
{
    char command[sizeof dir + 16];
    (void)state;
    unlink(path);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_bpe_on_characters),
        cmocka_unit_test(compiled_ones_are_the_same),
        cmocka_unit_test(bytes_decode),
        cmocka_unit_test(first_is_the_first),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
