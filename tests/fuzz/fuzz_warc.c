/* Fuzzes the headers of WARC records and of HTTP responses (formats/text/warc.h): any
 * bytes are refused in one line, or need more, or are a header whose values lie in it; no
 * shorter piece of it is one, and what follows it changes nothing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "folder.h"
#include "formats/text/warc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void inside(struct slu_warc_value v, const uint8_t *p, size_t used)
{
    const char *begin = (const char *)p;
    must(!v.p || (v.p >= begin && v.p + v.n <= begin + used));
    must(!v.p || !memchr(v.p, '\n', v.n));
    (void)slu_warc_text_of(v);
}

static void record(const uint8_t *p, size_t n)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_warc w, again;
    size_t used, used_again;
    int rc = slu_warc_parse(p, n, &w, &used, &err);
    must(rc == SLU_OK || (rc == SLU_E_FORMAT && *err.msg && !strchr(err.msg, '\n')));
    must(used <= n && used <= SLU_WARC_HEAD);
    if (rc || !used)
        return;
    const struct slu_warc_value v[] = {w.type_name,    w.id,       w.url,      w.date,
                                       w.content_type, w.language, w.truncated};
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        inside(v[i], p, used);
    must(slu_warc_parse(p, used, &again, &used_again, &err) == SLU_OK);
    must(used_again == used && again.content_byte == w.content_byte);
    rc = slu_warc_parse(p, used - 1, &again, &used_again, &err);
    must(rc || !used_again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct slu_http h;
    size_t used;
    uint8_t *p = malloc(n + 1); /* of its size, so that a read beyond it is seen */
    must(p != NULL);
    memcpy(p, data, n);
    record(p, n);
    if (slu_http_parse(p, n, &h, &used)) {
        must(used && used <= n);
        inside(h.content_type, p, used);
    }
    free(p);
    return 0;
}
