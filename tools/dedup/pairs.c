/* pairs.c - --pairs: writes each dropped sequence and the kept one as a JSON line. */
#include <string.h>

#include "lib/base/json_write.h"
#include "tools/dedup/dedup.h"

enum { FLUSH_BYTE = 64 << 10 };

int dedup_pairs_open(struct dedup_pairs *p, const char *path, struct slu_names *names,
                     struct slu_err *err)
{
    *p = (struct dedup_pairs){.names = names};
    return path ? slu_out_open(&p->out, path, err) : SLU_OK;
}

static int flush(struct dedup_pairs *p, struct slu_err *err)
{
    int rc = slu_out_write(p->out, p->text.data, p->text.len, err);

    slu_buf_clear(&p->text);
    return rc;
}

int dedup_put_place(struct slu_buf *text, struct slu_names *names, const char *key,
                    const struct slu_origin *place, struct slu_err *err)
{
    if (slu_origin_is_index(place))
        return slu_buf_printf(text, err, "\"%s\":{\"index\":%llu},", key,
                              (unsigned long long)place->document);
    const char *name = slu_names_source(names, place->source);
    int rc = slu_buf_printf(text, err, "\"%s\":{\"source\":", key);

    if (!rc)
        rc = slu_json_put_string(text, name ? name : "", name ? strlen(name) : 0, err);
    return rc ? rc
              : slu_buf_printf(
                    text, err,
                    ",\"source_number\":%llu,\"document\":%llu,\"offset\":%llu},",
                    (unsigned long long)place->source,
                    (unsigned long long)place->document,
                    (unsigned long long)place->offset);
}

static int put_similarity(struct dedup_pairs *p, uint64_t inter, uint64_t uni,
                          struct slu_err *err)
{
    unsigned long long m; /* millionths, rounded half up, computed in integers */

    if (inter == uni)
        return slu_buf_printf(&p->text, err, "\"similarity\":1}\n");
    m = (unsigned long long)(((unsigned __int128)inter * 2000000 + uni) /
                             ((unsigned __int128)uni * 2));
    return slu_buf_printf(&p->text, err, "\"similarity\":%llu.%06llu}\n", m / 1000000,
                          m % 1000000);
}

int dedup_pairs_put(struct dedup_pairs *p, const struct slu_origin *dropped,
                    const struct slu_origin *kept, uint64_t inter, uint64_t uni,
                    struct slu_err *err)
{
    if (!p->out)
        return SLU_OK;
    int rc = slu_buf_append(&p->text, "{", 1, err);
    if (!rc)
        rc = dedup_put_place(&p->text, p->names, "dropped", dropped, err);
    if (!rc)
        rc = dedup_put_place(&p->text, p->names, "kept", kept, err);
    if (!rc)
        rc = put_similarity(p, inter, uni, err);
    p->n++;
    if (!rc && p->text.len >= FLUSH_BYTE)
        rc = flush(p, err);
    return rc;
}

int dedup_pairs_close(struct dedup_pairs *p, struct slu_err *err)
{
    struct slu_out *out = p->out;
    int rc = out ? flush(p, err) : SLU_OK;

    if (rc || !out)
        return rc;
    p->out = NULL;
    return slu_out_close(out, err);
}

void dedup_pairs_abort(struct dedup_pairs *p)
{
    slu_out_abort(p->out);
    p->out = NULL;
    slu_buf_release(&p->text);
}
