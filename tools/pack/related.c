/* related.c - pack --order related: computes the features of documents while they are
 * read. */
#include <stdlib.h>
#include <string.h>

#include "tools/pack/pack.h"

void pack_related_release(struct pack_related_slot *s)
{
    slu_buf_release(&s->plain);
    slu_relater_scratch_release(&s->scratch);
    free(s->key);
}

int pack_related_sign(const struct slu_relater *r, struct pack_related_slot *s,
                      struct slu_names *names, const struct slu_batch *b,
                      const struct slu_run *run, size_t n_run, struct slu_err *err)
{
    int rc = slu_grow(&s->key, &s->cap_key, n_run * SLU_RELATED_KEYS + 1,
                      sizeof *s->key, err);
    for (size_t i = 0; i < n_run && !rc; i++) {
        const struct slu_seg *g = &run[i].seg;
        const char *name = (const char *)b->str.data + g->id_off;
        size_t n = g->id_len;
        if (!n || !memchr(name, '/', n)) {
            name = g->document == 0 ? slu_names_source(names, g->source) : NULL;
            n = name ? strlen(name) : 0;
        }
        const void *ids;
        rc = slu_batch_ids(b, run[i].tok_off, g->len_tok, false, &s->plain, &ids, NULL,
                           err);
        if (!rc)
            rc = slu_relater_keys(r, &s->scratch, ids, g->len_tok, name, n,
                                  s->key + i * SLU_RELATED_KEYS, err);
    }
    return rc;
}

int pack_related_check(const struct pack_opts *o, struct slu_err *err)
{
    const bool cuts = slu_pack_cuts(pack_method(o));
    const char *other = cuts      ? "--method "
                        : o->plan ? "--plan, which knows lengths only"
                        : o->save_plan || o->apply_plan ? "--save-plan and --apply-plan"
                        : o->max_segments               ? "--max-segments"
                                                        : NULL;
    return o->order == 1 && other
               ? slu_fail(err, SLU_E_USAGE,
                          "--order related cannot be combined with %s%s", other,
                          cuts ? slu_pack_method_name[o->method] : "")
               : SLU_OK;
}
