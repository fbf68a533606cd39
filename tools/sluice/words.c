#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "tools/sluice/sluice.h"

int line_add(struct line_words *w, const char *p, size_t n, struct slu_err *err)
{
    int rc = slu_grow(&w->word, &w->cap, w->n + 2, sizeof *w->word, err);

    if (rc)
        return rc;
    w->word[w->n + 1] = NULL;
    w->word[w->n] = strndup(p, n);
    return w->word[w->n++] ? SLU_OK : slu_fail_nomem(err, n);
}

void line_release(struct line_words *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->word[i]);
    free(w->word);
    *w = (struct line_words){0};
}

/* Appends what is in quotes at s, which begins with one of them, to b; returns the
 * character behind them, NULL: they do not end. */
static const char *quoted(const char *s, struct slu_buf *b, int *rc,
                          struct slu_err *err)
{
    const char quote = *s++;

    for (; *s && *s != quote && !*rc; s++) {
        if (quote == '"' && *s == '\\' && (s[1] == '"' || s[1] == '\\'))
            s++;
        *rc = slu_buf_append(b, s, 1, err);
    }
    return *s ? s + 1 : NULL;
}

/* Appends the word at *s, which is not blank, and moves *s behind it. */
static int one_word(struct line_words *w, const char **at, struct slu_buf *b,
                    struct slu_err *err)
{
    const char *s = *at;
    bool plain = true; /* nothing is quoted */
    int rc = SLU_OK;

    slu_buf_clear(b);
    while (*s && !strchr(" \t\r\n|", *s) && !rc) {
        if (strchr("*?[~$;&<>()`", *s))
            return slu_fail(err, SLU_E_USAGE,
                            "'%c' at \"%.20s\": no shell reads this text; quote it, or "
                            "give the line as words of your shell, with ! between the "
                            "programs",
                            *s, s);
        if (*s == '\'' || *s == '"') {
            const char *from = s;
            plain = false;
            if (!(s = quoted(s, b, &rc, err)))
                return rc ? rc
                          : slu_fail(err, SLU_E_USAGE, "%c at \"%.20s\" does not end",
                                     *from, from);
            continue;
        }
        if (*s == '\\' && s[1]) {
            plain = false;
            s++;
        }
        rc = slu_buf_append(b, s++, 1, err);
    }
    if (!rc && s == *at) { /* | */
        s++;
        rc = slu_buf_append(b, "!", 1, err);
    } else if (!rc && !plain && b->len == 1 && *b->data == '!') {
        rc = slu_fail(err, SLU_E_USAGE, "! alone stands between programs");
    }
    *at = s;
    return rc ? rc : line_add(w, b->len ? (const char *)b->data : "", b->len, err);
}

int line_split(struct line_words *w, const char *text, bool comments,
               struct slu_err *err)
{
    struct slu_buf b = SLU_BUF_INIT;
    int rc = SLU_OK;

    while (!rc && *(text += strspn(text, " \t\r\n"))) {
        if (comments && *text == '#')
            text += strcspn(text, "\n");
        else
            rc = one_word(w, &text, &b, err);
    }
    slu_buf_release(&b);
    return rc;
}
