/* shard_card.c - collects the engine's facts for the data card, and writes its
 * files. */
#include <stdlib.h>
#include <string.h>

#include "formats/shards/shard_private.h"

int slu_shards_card_init(struct slu_shards_card *k, const struct slu_shards *s,
                         const struct slu_account *account, struct slu_err *err)
{
    struct slu_domains all = SLU_DOMAINS_INIT;
    int rc = SLU_OK;

    *k = (struct slu_shards_card){.card = {.cfg = &s->cfg,
                                           .state = s->state,
                                           .header = &s->header,
                                           .account = account,
                                           .sum = &s->sum,
                                           .steps = &k->steps,
                                           .sections = &s->sections,
                                           .n_packed = s->n_packed,
                                           .bucket = k->bucket}};
    for (unsigned i = 0; i < s->n_bucket && !rc; i++) {
        const struct slu_shards_bucket *b = &s->bucket[i];
        if (b->pub.n_seq)
            k->bucket[k->card.n_bucket++] =
                (struct slu_card_bucket){&b->pub, b->sum.n.documents, b->n_short};
        rc = slu_domains_add(&all, &b->domains, err);
    }
    if (!rc && s->lengths)
        rc = slu_lengths_rows(s->lengths, &k->length, &k->card.n_length, err);
    k->card.length = k->length;
    if (!rc)
        rc = slu_domains_list(&all, s->cfg.names, &k->domain, &k->card.n_domain, err);
    k->card.domain = k->domain;
    if (!rc)
        rc = slu_steps_of(&k->steps, &s->header, &s->steps, err);
    slu_domains_release(&all);
    return rc;
}

void slu_shards_card_release(struct slu_shards_card *k)
{
    free(k->domain);
    free(k->length);
    slu_steps_release(&k->steps);
    k->domain = NULL;
    k->length = NULL;
}

static int put(struct slu_shards *s, const char *name, const struct slu_buf *text,
               struct slu_err *err)
{
    struct slu_shard_extra *e;
    struct slu_out *out;
    int rc = slu_shards_open_extra(s, name, &e, &out, err);

    if (rc)
        return rc;
    rc = slu_out_write(out, text->data, text->len, err);
    if (!rc)
        return slu_out_close(out, err);
    slu_out_abort(out);
    return rc;
}

int slu_shards_card_write(struct slu_shards *s, const struct slu_shards_card *k,
                          struct slu_err *err)
{
    struct slu_buf text = SLU_BUF_INIT;
    int rc = slu_card_svg(&k->card, &text, err);

    if (!rc)
        rc = put(s, "lengths.svg", &text, err);
    slu_buf_clear(&text);
    if (!rc)
        rc = slu_card_markdown(&k->card, &text, err);
    if (!rc)
        rc = put(s, "README.md", &text, err);
    slu_buf_release(&text);
    return rc;
}
