/* rules_ask.c - asks the families of rules.h about a text. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/filter/rules_private.h"

static rules_family_ask *const ask[FAMILIES] = {
    [GOPHER_QUALITY] = rules_gopher_quality,
    [GOPHER_REPETITION] = rules_gopher_repetition,
    [C4] = rules_c4,
    [FINEWEB] = rules_fineweb,
};

/* Buffers that grew for a long text are given back. */
#define KEEP_BYTE ((size_t)4 << 20)

int slu_rules_run_new(struct slu_rules_run **run, const struct slu_rules *r,
                      uint64_t most_byte, struct slu_err *err)
{
    *run = calloc(1, sizeof **run);
    if (!*run)
        return slu_fail_nomem(err, sizeof **run);
    (*run)->rules = r;
    (*run)->most_byte = most_byte;
    return SLU_OK;
}

void slu_rules_run_free(struct slu_rules_run *run)
{
    if (!run)
        return;
    slu_buf_release(&run->table);
    slu_buf_release(&run->words);
    slu_buf_release(&run->joined);
    slu_buf_release(&run->kept);
    slu_buf_release(&run->line);
    slu_buf_release(&run->low);
    free(run);
}

int rules_room(struct slu_rules_run *run, struct slu_buf *b, size_t n,
               struct slu_err *err)
{
    const size_t has = run->table.cap + run->words.cap + run->joined.cap - b->cap;
    slu_buf_clear(b);
    if (n <= b->cap)
        return SLU_OK;
    slu_buf_release(b);
    if (has + n > run->most_byte)
        return slu_advise(
            err, SLU_ADVISE_MEMORY,
            slu_fail(err, SLU_E_LIMIT,
                     "a text of %zu bytes: its lines or n-grams do not fit in memory",
                     run->n));
    return slu_buf_reserve(b, n, err);
}

int rules_table(struct slu_rules_run *run, size_t n, size_t slot_byte, size_t *mask,
                struct slu_err *err)
{
    size_t n_slot = 64;
    while (n_slot < 2 * n)
        n_slot *= 2;
    *mask = n_slot - 1;
    int rc = rules_room(run, &run->table, n_slot * slot_byte, err);
    if (!rc)
        memset(run->table.data, 0, n_slot * slot_byte);
    return rc;
}

/* ---- pieces that occur again ---- */

struct piece {
    uint64_t hash; /* 0: an empty slot */
    uint32_t off, n;
};

int rules_twice_begin(struct slu_rules_run *run, struct rules_twice *t, size_t n,
                      struct slu_err *err)
{
    *t = (struct rules_twice){.n_again = 0};
    return rules_table(run, n, sizeof(struct piece), &t->mask, err);
}

void rules_twice_add(struct slu_rules_run *run, struct rules_twice *t, const uint8_t *p,
                     size_t n)
{
    struct piece *slot = (void *)run->table.data;
    const uint64_t hash = slu_hash64(p, n) | 1;
    size_t i = (size_t)(hash >> 32) & t->mask;
    for (; slot[i].hash; i = (i + 1) & t->mask)
        if (slot[i].hash == hash && slot[i].n == n &&
            !memcmp(run->p + slot[i].off, p, n)) {
            t->n_again++;
            t->n_char += slu_text_chars(p, n);
            return;
        }
    slot[i] = (struct piece){hash, (uint32_t)(p - run->p), (uint32_t)n};
}

/* ---- asking ---- */

/* Counts characters and "\n" of the text, some hundred bytes at a time, for SIMD. */
static void count(struct slu_rules_run *run)
{
    run->n_char = run->n_newline = 0;
    for (size_t i = 0, end; i < run->n; i = end) {
        uint8_t chars = 0, newlines = 0;
        end = run->n - i > 255 ? i + 255 : run->n;
        for (size_t k = i; k < end; k++) {
            chars = (uint8_t)(chars + ((run->p[k] & 0xC0) != 0x80));
            newlines = (uint8_t)(newlines + (run->p[k] == '\n'));
        }
        run->n_char += chars;
        run->n_newline += newlines;
    }
}

static int take(struct slu_rules_run *run, const char *text, size_t n,
                struct slu_err *err)
{
    run->p = (const uint8_t *)text;
    run->n = n;
    slu_buf_trim(&run->table, KEEP_BYTE);
    slu_buf_trim(&run->words, KEEP_BYTE);
    slu_buf_trim(&run->joined, KEEP_BYTE);
    slu_buf_trim(&run->kept, KEEP_BYTE);
    slu_buf_trim(&run->line, KEEP_BYTE);
    slu_buf_trim(&run->low, KEEP_BYTE);
    if (n >= UINT32_MAX)
        return slu_fail(err, SLU_E_LIMIT,
                        "a text of %zu bytes; rules take less than 4 GiB", n);
    count(run);
    return SLU_OK;
}

int slu_rules_ask(struct slu_rules_run *run, const char *text, size_t n,
                  enum slu_rule *failed, struct slu_err *err)
{
    *failed = SLU_RULE_N;
    if (!n)
        return SLU_OK;
    int rc = take(run, text, n, err);
    for (unsigned i = 0; i < run->rules->n_family && !rc && *failed == SLU_RULE_N; i++)
        rc = ask[run->rules->family[i]](run, failed, err);
    return rc;
}

int slu_rules_c4_lines(struct slu_rules_run *run, const char *text, size_t n,
                       struct slu_c4_cut *cut, enum slu_rule *failed,
                       struct slu_err *err)
{
    *failed = SLU_RULE_N;
    *cut = (struct slu_c4_cut){.text = text, .n = n};
    if (!n)
        return SLU_OK;
    int rc = take(run, text, n, err);
    return rc ? rc : rules_c4_cut(run, cut, failed, err);
}
