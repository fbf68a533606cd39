#include <string.h>

#include "formats/shards/shardset.h"

int slu_shardset_domains(struct slu_batch *b, struct slu_names *from,
                         struct slu_names *to, struct slu_err *err)
{
    uint32_t was = SLU_NO_DOMAIN, is = SLU_NO_DOMAIN;
    int rc = SLU_OK;

    for (size_t i = 0; i < b->n_seg && !rc; i++) {
        struct slu_seg *g = &b->seg[i];
        if (g->domain != SLU_NO_DOMAIN && g->domain != was) {
            const char *name = slu_names_domain(from, g->domain);
            was = g->domain;
            rc = slu_names_domain_number(to, name ? name : "", name ? strlen(name) : 0,
                                         &is, err);
        }
        g->domain = g->domain == SLU_NO_DOMAIN ? SLU_NO_DOMAIN : is;
    }
    return rc;
}
