/* words_main.c - the judges' view of lib/filter/text.h, for other people's filters.
 *
 * Standard input: requests, each a byte 'w' or 's', a u32 length, and a text. Standard
 * output: for 'w' a u32 length and the words, each with "\n" behind it; for 's' a u32
 * count and the end of each sentence, in characters, as u32.
 *
 *   words RULES
 *
 * asks these rules (lib/filter/rules.h) about the texts of all requests instead, and
 * prints the processor seconds that this took.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lib/base/buf.h"
#include "lib/filter/rules.h"
#include "lib/filter/text.h"

static struct slu_err err;

static void check(int rc)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "words: %s\n", err.msg);
    exit(1);
}

static void words(const uint8_t *p, size_t n, struct slu_buf *out)
{
    const uint8_t *end = p + n;
    struct slu_word w;
    while (slu_word_next(&p, end, &w)) {
        check(slu_buf_append(out, w.p, w.n_byte, &err));
        check(slu_buf_append(out, "\n", 1, &err));
    }
}

static void sentences(const uint8_t *p, size_t n, struct slu_buf *out)
{
    uint32_t at = 0;
    for (size_t i = 0, len; i < n; i += len) {
        len = slu_sentence(p + i, n - i);
        at += (uint32_t)slu_text_chars(p + i, len);
        check(slu_buf_append(out, &at, sizeof at, &err));
    }
}

static void measure(const char *list)
{
    struct slu_buf text = SLU_BUF_INIT;
    struct slu_rules *rules;
    struct slu_rules_run *run;
    enum slu_rule failed;
    clock_t all = 0;
    uint32_t n;
    check(slu_rules_new(&rules, &err));
    check(slu_rules_add(rules, list, &err));
    check(slu_rules_run_new(&run, rules, UINT64_C(1) << 32, &err));
    while (getchar() != EOF && fread(&n, sizeof n, 1, stdin) == 1) {
        slu_buf_clear(&text);
        check(slu_buf_reserve(&text, n, &err));
        if (fread(text.data, 1, n, stdin) != n)
            exit(1);
        const clock_t start = clock();
        check(slu_rules_ask(run, (const char *)text.data, n, &failed, &err));
        all += clock() - start;
    }
    printf("%.3f\n", (double)all / CLOCKS_PER_SEC);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        measure(argv[1]);
        return 0;
    }
    struct slu_buf in = SLU_BUF_INIT, out = SLU_BUF_INIT;
    uint32_t n;
    int kind;
    while ((kind = getchar()) != EOF) {
        if (fread(&n, sizeof n, 1, stdin) != 1)
            return 1;
        slu_buf_clear(&in);
        slu_buf_clear(&out);
        check(slu_buf_reserve(&in, n, &err));
        if (fread(in.data, 1, n, stdin) != n)
            return 1;
        (kind == 'w' ? words : sentences)(in.data, n, &out);
        n = (uint32_t)(kind == 'w' ? out.len : out.len / 4);
        if (fwrite(&n, sizeof n, 1, stdout) != 1 ||
            fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout))
            return 1;
    }
    return 0;
}
