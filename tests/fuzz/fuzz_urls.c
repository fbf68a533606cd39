/* Fuzzes lists of hosts and URLs (lib/filter/urlset.h): any bytes are refused in one line
 * that names the file, or are a set that has each of its lines; any URL is asked for,
 * twice with one answer.
 *
 * Input: the list, then a URL (folder.h). */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "folder.h"
#include "lib/filter/urlset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool has(const struct slu_idset *s, const uint8_t *url, size_t n)
{
    struct slu_buf scratch = SLU_BUF_INIT;
    bool yes;
    must(slu_urlset_has(s, (const char *)url, n, &scratch, &yes, NULL) == SLU_OK);
    slu_buf_release(&scratch);
    return yes;
}

static bool counts(const uint8_t *p, size_t n)
{
    while (n && (*p == ' ' || (*p >= '\t' && *p <= '\r'))) {
        p++;
        n--;
    }
    return n && *p != '#';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_idset *s;
    const uint8_t *list;
    const size_t len = next_file(&list, &data, &n, false);
    put_file("urls", list, len);
    if (slu_urlset_read(&s, in_folder("urls"), 1 << 20, &err)) {
        must(!s && err.msg[0] && !strchr(err.msg, '\n') && strstr(err.msg, "urls"));
        return 0;
    }
    /* A byte order mark before the first line is no part of it. */
    const size_t first = len >= 3 && !memcmp(list, "\xef\xbb\xbf", 3) ? 3 : 0;
    for (size_t i = first, end; i < len; i = end + 1) {
        const uint8_t *nl = memchr(list + i, '\n', len - i);
        end = nl ? (size_t)(nl - list) : len;
        const size_t line = end - i - (end > i && list[end - 1] == '\r');
        must(!counts(list + i, line) || has(s, list + i, line));
    }
    must(has(s, data, n) == has(s, data, n));
    slu_idset_free(s);
    return 0;
}
