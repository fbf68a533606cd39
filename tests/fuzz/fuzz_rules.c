/* Fuzzes rules (lib/filter/rules.h): any file of thresholds is refused in one line or
 * makes a set whose text is such a file again, and any text is judged twice alike; what
 * C4's lines leave is no longer than the text, and comes out the same once more.
 *
 * Input: the file, a zero byte, and the text. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/filter/rules.h"
#include "lib/filter/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(bool good)
{
    if (!good)
        abort();
}

/* Words are parts of the text, in order, and have no white space. */
static void walk(const uint8_t *p, size_t n)
{
    const uint8_t *at = p, *last = p, *end = p + n;
    struct slu_word w;
    unsigned len;
    while (slu_word_next(&at, end, &w)) {
        must(w.p >= last && w.n_byte && w.p + w.n_byte == at && at <= end);
        must(w.n_char == slu_text_chars(w.p, w.n_byte));
        for (size_t i = 0; i < w.n_byte; i += len)
            must(!(slu_char_at(w.p + i, &len) & SLU_CHAR_SPACE));
        last = at;
    }
    for (size_t i = 0, step; i < n; i += step) {
        step = slu_sentence(p + i, n - i);
        must(step && step <= n - i);
    }
}

static void judge(const struct slu_rules *r, const char *text, size_t n)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_rules_run *run;
    struct slu_c4_cut cut;
    enum slu_rule one, two;
    must(slu_rules_run_new(&run, r, UINT64_C(1) << 28, &err) == SLU_OK);
    must(slu_rules_ask(run, text, n, &one, &err) == SLU_OK);
    must(slu_rules_ask(run, text, n, &two, &err) == SLU_OK && one == two);
    must(slu_rules_c4_lines(run, text, n, &cut, &one, &err) == SLU_OK);
    must(cut.n <= n && (cut.changed || cut.n == n));
    must(slu_utf8_valid_prefix((const uint8_t *)cut.text, cut.n) == cut.n);
    slu_rules_run_free(run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const uint8_t *zero = n ? memchr(data, 0, n) : NULL;
    const size_t n_file = zero ? (size_t)(zero - data) : n;
    struct slu_err err = SLU_ERR_INIT;
    struct slu_rules *r;
    char path[64], *text;
    int fd = memfd_create("rules", MFD_CLOEXEC);
    must(fd >= 0 && write(fd, data, n_file) == (ssize_t)n_file);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    must(slu_rules_new(&r, &err) == SLU_OK);
    int rc = slu_rules_add(r, path, &err);
    close(fd);
    n -= zero ? n_file + 1 : n;
    if (rc)
        must(rc == SLU_E_FORMAT && strstr(err.msg, ": line ") &&
             !strchr(err.msg, '\n'));
    /* Exactly as long as it is, for the sanitizer. */
    text = malloc(n ? n : 1);
    must(text != NULL);
    if (n)
        memcpy(text, zero + 1, n);
    n = slu_utf8_valid_prefix((const uint8_t *)text, n);
    walk((const uint8_t *)text, n);
    if (!rc)
        judge(r, text, n);
    free(text);
    slu_rules_free(r);
    return 0;
}
