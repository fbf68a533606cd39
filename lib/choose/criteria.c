#include "criteria.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

const char *const slu_why_name[SLU_N_WHY] = {
    [SLU_WHY_DOMAIN] = "domain",     [SLU_WHY_SOURCE] = "source",
    [SLU_WHY_IDS_KEEP] = "ids-keep", [SLU_WHY_IDS_DROP] = "ids-drop",
    [SLU_WHY_LENGTH] = "length",     [SLU_WHY_SCORE] = "score",
    [SLU_WHY_WHERE] = "where",       [SLU_WHY_TOP] = "top",
};

enum { UNKNOWN, IN, OUT };

struct slu_criteria {
    const struct slu_criteria_cfg *cfg;
    struct slu_names *names;
    uint8_t *domain; /* by the domain's number: UNKNOWN, IN or OUT */
    size_t cap_domain;
    uint64_t source; /* the source that was asked for last, and the answer */
    bool source_in;
    struct slu_where *where;
};

int slu_criteria_new(struct slu_criteria **out, const struct slu_criteria_cfg *cfg,
                     const struct slu_header *h, struct slu_names *names,
                     struct slu_err *err)
{
    struct slu_criteria *c = calloc(1, sizeof *c);

    *out = c;
    if (!c)
        return slu_fail_nomem(err, sizeof *c);
    c->cfg = cfg;
    c->names = names;
    c->source = SLU_PADDING;
    if (!cfg->where || !h->vocab_size) /* a stage that reads no stream */
        return SLU_OK;
    int rc = slu_where_new(&c->where, cfg->where, h, names, err);
    return rc ? slu_err_at(err, "--where") : SLU_OK;
}

void slu_criteria_free(struct slu_criteria *c)
{
    if (!c)
        return;
    slu_where_free(c->where);
    free(c->domain);
    free(c);
}

/* ---- the criteria ---- */

static bool is_listed(const struct slu_criteria *c, const char *name)
{
    for (size_t i = 0; i < c->cfg->n_domain; i++)
        if (!strcmp(c->cfg->domain[i], name))
            return true;
    return false;
}

static int ask_domain(struct slu_criteria *c, const struct slu_batch *b,
                      const struct slu_seq *q, bool *in, struct slu_err *err)
{
    const size_t had = c->cap_domain;
    const struct slu_seg *s = slu_seq_first(b, q);
    const uint32_t number = s ? s->domain : SLU_NO_DOMAIN;
    int rc = slu_property_same(&slu_property_own[SLU_PROPERTY_DOMAIN], b, q, err);

    if (!rc && number == SLU_NO_DOMAIN)
        *in = is_listed(c, "");
    if (rc || number == SLU_NO_DOMAIN)
        return rc;
    if (number >= had) {
        rc = slu_grow(&c->domain, &c->cap_domain, (size_t)number + 1, 1, err);
        if (rc)
            return rc;
        memset(c->domain + had, UNKNOWN, c->cap_domain - had);
    }
    if (c->domain[number] == UNKNOWN)
        c->domain[number] = is_listed(c, slu_names_domain(c->names, number)) ? IN : OUT;
    *in = c->domain[number] == IN;
    return SLU_OK;
}

static bool matches(const struct slu_criteria *c, const char *name)
{
    for (size_t i = 0; i < c->cfg->n_source; i++)
        if (!fnmatch(c->cfg->source[i], name, 0))
            return true;
    return false;
}

static int ask_source(struct slu_criteria *c, const struct slu_batch *b,
                      const struct slu_seq *q, bool *in, struct slu_err *err)
{
    const struct slu_seg *s = slu_seq_first(b, q);
    int rc = slu_property_same(&slu_property_own[SLU_PROPERTY_SOURCE], b, q, err);

    if (rc || !s)
        return rc;
    if (s->source != c->source) {
        const char *name = slu_names_source(c->names, s->source);
        c->source = s->source;
        c->source_in = matches(c, name ? name : "");
    }
    *in = c->source_in;
    return SLU_OK;
}

static int ask_ids(struct slu_criteria *c, const struct slu_batch *b,
                   const struct slu_seq *q, bool *kept, bool *dropped,
                   struct slu_err *err)
{
    const struct slu_seg *s = slu_seq_first(b, q);
    int rc = slu_property_same(&slu_property_own[SLU_PROPERTY_ID], b, q, err);

    if (rc)
        return rc;
    const void *id = s && s->id_len ? b->str.data + s->id_off : NULL;
    *kept = !c->cfg->keep || (id && slu_idset_has(c->cfg->keep, id, s->id_len));
    *dropped = c->cfg->drop && id && slu_idset_has(c->cfg->drop, id, s->id_len);
    return SLU_OK;
}

static bool score_is_in(const struct slu_criteria *c, const struct slu_batch *b,
                        const struct slu_seq *q)
{
    const double v = slu_seq_score(b, q);

    for (unsigned i = 0; i < c->cfg->n_score; i++)
        if (!slu_compare_holds(&c->cfg->score[i], v))
            return false;
    return true;
}

int slu_criteria_ask(struct slu_criteria *c, const struct slu_batch *b,
                     const struct slu_seq *q, enum slu_why *why, struct slu_err *err)
{
    const struct slu_criteria_cfg *cfg = c->cfg;
    bool domain = true, source = true, kept = true, dropped = false, where = true;
    int rc = cfg->n_domain ? ask_domain(c, b, q, &domain, err) : SLU_OK;

    if (!rc && cfg->n_source)
        rc = ask_source(c, b, q, &source, err);
    if (!rc && (cfg->keep || cfg->drop))
        rc = ask_ids(c, b, q, &kept, &dropped, err);
    if (!rc && c->where && (rc = slu_where_ask(c->where, b, q, &where, err)))
        rc = slu_err_at(err, "--where");
    *why = !domain   ? SLU_WHY_DOMAIN
           : !source ? SLU_WHY_SOURCE
           : !kept   ? SLU_WHY_IDS_KEEP
           : dropped ? SLU_WHY_IDS_DROP
           : q->len_tok < cfg->least_tok || q->len_tok > cfg->most_tok ? SLU_WHY_LENGTH
           : cfg->n_score && !score_is_in(c, b, q)                     ? SLU_WHY_SCORE
           : !where                                                    ? SLU_WHY_WHERE
                                                                       : SLU_WHY_NOT;
    return rc;
}
