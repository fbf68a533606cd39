/* mix.c - shuffle: assigns the names in a mix to sources, and reports the mix. */
#include "tools/shuffle/mix.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/shards/shard.h"
#include "lib/base/json_write.h"
#include "tools/shuffle/shuffle.h"

enum { MOST_SHORT = 8 }; /* lines of warnings */

int shuffle_parse_mix_by(void *opts, const char *value, struct slu_err *err)
{
    ((struct opts *)opts)->mix.by = strcmp(value, "domain") ? value : NULL;
    return *value
               ? SLU_OK
               : slu_fail(err, SLU_E_USAGE,
                          "--mix-by: expected input, or what documents have, as domain "
                          "or a field of metadata");
}

bool shuffle_mix_by_input(const struct shuffle_mix_opts *o)
{
    return o->by && !strcmp(o->by, "input");
}

static bool has_expressions(const struct shuffle_mix *m)
{
    bool any = false;

    for (unsigned s = 0; s < m->mix.n_source; s++)
        any |= m->mix.source[s].where != NULL;
    return any;
}

static bool by_domains(const struct shuffle_mix *m)
{
    return !m->opts->by && !m->mix.bands;
}

int shuffle_mix_parse(struct shuffle_mix *m, struct cli_ctx *ctx,
                      const struct shuffle_mix_opts *o, struct slu_err *err)
{
    const char *text = o->mix ? o->mix : o->schedule;
    const bool by = cli_given(ctx, "mix-by");
    *m = (struct shuffle_mix){.ctx = ctx, .opts = o};
    if (o->mix && o->schedule)
        return slu_fail(err, SLU_E_USAGE,
                        "--mix and --mix-schedule cannot be combined; the periods of a "
                        "schedule have their own mixes");
    if (!text && (by || o->max_epochs))
        return slu_fail(err, SLU_E_USAGE,
                        "--mix-by and --max-epochs need --mix or --mix-schedule");
    if (o->batch_tokens && !o->schedule)
        return slu_fail(err, SLU_E_USAGE, "--batch-tokens needs --mix-schedule");
    if (!text)
        return SLU_OK;
    if (o->mix && slu_mix_has_bands(o->mix)) {
        if (by || o->max_epochs ||
            ((const struct opts *)ctx->opts)->max_tokens != UINT64_MAX)
            return slu_fail(err, SLU_E_USAGE,
                            "--mix with bands says how often each is taken; "
                            "leave --mix-by, --max-epochs and --max-tokens out");
        return slu_mix_parse_bands(&m->mix, o->mix, err);
    }
    int rc = slu_mix_parse(&m->mix, text, o->schedule, o->batch_tokens, err);
    return rc || !o->max_epochs ? rc
                                : slu_mix_parse_epochs(&m->mix, o->max_epochs, err);
}

/* Gives the mix's domains their numbers before anything is read, so that each reader of
 * the same input uses the same numbers. */
static int number_domains(const struct slu_mix *b, struct slu_reader *r,
                          uint32_t *number, struct slu_err *err)
{
    int rc = SLU_OK;
    for (unsigned s = 0; s < b->n_source && !rc; s++)
        if (*b->source[s].name)
            rc = slu_names_domain_number(slu_reader_names(r), b->source[s].name,
                                         strlen(b->source[s].name), &number[s], err);
    return rc;
}

static void close_where(struct shuffle_mix *m)
{
    for (unsigned s = 0; m->where && s < m->mix.n_source; s++)
        slu_where_free(m->where[s]);
    free(m->where);
    m->where = NULL;
}

/* Prepares the bands' expressions for what r reads. */
static int open_where(struct shuffle_mix *m, struct slu_reader *r, struct slu_err *err)
{
    int rc = SLU_OK;

    if (!m->where)
        m->where = calloc(m->mix.n_source, sizeof *m->where);
    if (!m->where)
        return slu_fail_nomem(err, m->mix.n_source * sizeof *m->where);
    for (unsigned s = 0; s < m->mix.n_source && !rc; s++) {
        slu_where_free(m->where[s]);
        m->where[s] = NULL;
        if (m->mix.source[s].where)
            rc = slu_where_new(&m->where[s], m->mix.source[s].where,
                               slu_reader_header(r), slu_reader_names(r), err);
    }
    return rc ? slu_err_at(err, "--mix") : SLU_OK;
}

static int again(void *ctx, struct slu_reader **r, struct slu_err *err)
{
    struct shuffle_mix *m = ctx;
    uint32_t number[SLU_MIX_SOURCES];
    int rc = cli_reopen_reader(m->ctx, r, err);
    if (rc)
        return rc;
    if (by_domains(m))
        rc = number_domains(&m->mix, *r, number, err);
    else if (m->where)
        rc = open_where(m, *r, err);
    if (rc)
        slu_reader_free(*r);
    return rc;
}

static int table(struct shuffle_mix *m, size_t n, struct slu_err *err)
{
    m->source = malloc((n + 1) * sizeof *m->source);
    if (!m->source)
        return slu_fail_nomem(err, n * sizeof *m->source);
    m->n_source = n;
    for (size_t i = 0; i < n; i++)
        m->source[i] = -1;
    return SLU_OK;
}

static int by_domain(struct shuffle_mix *m, struct slu_reader *r, struct slu_mix_by *by,
                     struct slu_err *err)
{
    uint32_t number[SLU_MIX_SOURCES], n = 0;
    int rc = number_domains(&m->mix, r, number, err);
    if (!rc)
        rc = table(m, n = slu_names_n_domain(slu_reader_names(r)), err);
    if (rc)
        return rc;
    *by = (struct slu_mix_by){SLU_BY_DOMAIN, m->source, n, -1};
    for (unsigned s = 0; s < m->mix.n_source; s++)
        if (*m->mix.source[s].name)
            m->source[number[s]] = (int)s;
        else
            by->none = (int)s;
    return SLU_OK;
}

static int by_bands(struct shuffle_mix *m, struct slu_reader *r, struct slu_mix_by *by,
                    struct slu_err *err)
{
    const bool where = has_expressions(m);
    bool scores = false;

    for (unsigned s = 0; s + 1 < m->mix.n_source; s++)
        scores |= !m->mix.source[s].where;
    if (scores && !slu_reader_header(r)->has[SLU_SCORE])
        return slu_fail(err, SLU_E_MISMATCH,
                        "the stream has no scores to mix by; tokenize --score-field "
                        "takes them from the records");
    int rc = where ? open_where(m, r, err) : SLU_OK;
    *by = (struct slu_mix_by){.by = where ? SLU_BY_WHERE : SLU_BY_SCORE,
                              .none = -1,
                              .bands = &m->mix,
                              .where = m->where};
    return rc;
}

/* Sets *value to what stands for the value of this name. */
static int value_of(const struct slu_property *p, const char *name, uint64_t *value,
                    struct slu_err *err)
{
    const struct slu_meta_field f = {.type = p->type};
    struct slu_value v = {
        .type = SLU_VALUE_STRING, .string = name, .len = strlen(name)};
    struct slu_buf entry = SLU_BUF_INIT;
    struct slu_meta_value is;
    char *end;
    int rc = SLU_OK;

    *value = 0;
    if (!*name)
        return SLU_OK;
    if (slu_meta_width(p->type)) {
        v = slu_value_of_number(name);
        (void)strtod(name, &end);
        rc = *end || name[strspn(name, "+-.0123456789eE")] ? SLU_E_FORMAT : SLU_OK;
    }
    if (!rc)
        rc = slu_meta_put_value(&entry, &f, &v, NULL);
    if (!rc && slu_meta_next(entry.data, entry.len, &is))
        *value = slu_mix_value(&is);
    slu_buf_release(&entry);
    return rc == SLU_E_FORMAT
               ? slu_fail(err, SLU_E_USAGE,
                          "--mix: '%s' is no value of '%s', which is of type %s", name,
                          p->name, slu_meta_type_name(p->type))
               : rc;
}

static int by_field(struct shuffle_mix *m, struct slu_reader *r, struct slu_mix_by *by,
                    struct slu_err *err)
{
    int rc = slu_property_find(&m->property, m->opts->by, slu_reader_header(r), err);

    if (rc)
        return slu_err_at(err, "--mix-by");
    m->value = calloc(m->mix.n_source, sizeof *m->value);
    if (!m->value)
        return slu_fail_nomem(err, m->mix.n_source * sizeof *m->value);
    *by = (struct slu_mix_by){.by = SLU_BY_FIELD,
                              .n = m->mix.n_source,
                              .none = -1,
                              .property = &m->property,
                              .names = slu_reader_names(r),
                              .value = m->value};
    for (unsigned s = 0; s < m->mix.n_source && !rc; s++) {
        const char *name = m->mix.source[s].name;
        rc = value_of(&m->property, name, &m->value[s], err);
        if (!*name)
            by->none = (int)s;
        for (unsigned k = 0; k < s && !rc; k++)
            if (m->value[k] == m->value[s])
                rc = slu_fail(err, SLU_E_USAGE,
                              "--mix: '%s' and '%s' are the same value",
                              m->mix.source[k].name, name);
    }
    return rc;
}

/* The input of this name: its path, the end of its path, or its number. */
static int find_input(const struct cli_ctx *ctx, const char *name, size_t *at)
{
    size_t n = ctx->n_input ? ctx->n_input : 1, found = 0;
    for (size_t i = 0; i < ctx->n_input; i++)
        if (!strcmp(ctx->input[i], name)) {
            *at = i;
            return 1;
        }
    for (size_t i = 0; i < ctx->n_input; i++) {
        const char *slash = strrchr(ctx->input[i], '/');
        if (slash && !strcmp(slash + 1, name)) {
            *at = i;
            found++;
        }
    }
    char *end;
    unsigned long v = strtoul(name, &end, 10);
    if (!found && *name >= '0' && *name <= '9' && !*end && v < n) {
        *at = v;
        found = 1;
    }
    return (int)found;
}

static int by_input(struct shuffle_mix *m, struct slu_mix_by *by, struct slu_err *err)
{
    struct cli_ctx *ctx = m->ctx;
    size_t n = ctx->n_input ? ctx->n_input : 1, at = 0;
    int rc = table(m, n, err);
    if (rc)
        return rc;
    for (unsigned s = 0; s < m->mix.n_source; s++) {
        const char *name = m->mix.source[s].name;
        int found = find_input(ctx, name, &at);
        if (found != 1)
            return slu_fail(err, SLU_E_USAGE,
                            "--mix: '%s' is %s; name an input by its path, or by its "
                            "number, from 0 to %zu",
                            name, found ? "the name of several inputs" : "no input",
                            n - 1);
        if (m->source[at] >= 0)
            return slu_fail(err, SLU_E_USAGE, "--mix: '%s' and '%s' are the same input",
                            m->mix.source[m->source[at]].name, name);
        m->source[at] = (int)s;
    }
    /* The sources of files of ids are these files; those of sets and streams, texts. */
    *by = (struct slu_mix_by){ctx->tokens && strcmp(ctx->tokens, "set") ? SLU_BY_FILE
                                                                        : SLU_BY_INPUT,
                              m->source, n, -1};
    return SLU_OK;
}

int shuffle_mix_open(struct shuffle_mix *m, struct slu_reader *r,
                     struct slu_permute_cfg *cfg, struct slu_err *err)
{
    if (cli_reads_twice(m->ctx)) {
        cfg->again = again;
        cfg->again_ctx = m;
    }
    if (!m->mix.n_source)
        return SLU_OK;
    cfg->mix = &m->mix;
    return m->mix.bands                    ? by_bands(m, r, &cfg->by, err)
           : by_domains(m)                 ? by_domain(m, r, &cfg->by, err)
           : shuffle_mix_by_input(m->opts) ? by_input(m, &cfg->by, err)
                                           : by_field(m, r, &cfg->by, err);
}

/* Appends the existing domains to an error that names a missing one. */
void shuffle_mix_explain(const struct shuffle_mix *m, const struct slu_permute *p,
                         struct slu_reader *r, struct slu_err *err)
{
    bool lacks = false;
    if (!m->mix.n_source || !p || !by_domains(m) || err->code != SLU_E_MISMATCH)
        return;
    struct slu_names *names = slu_reader_names(r);
    uint32_t n = slu_names_n_domain(names), put = 0;
    for (unsigned s = 0; s < m->mix.n_source; s++)
        lacks |= !slu_mixer_gave(slu_permute_mixer(p), s)->available.sequences;
    for (uint32_t i = 0; i < n && put < 8 && lacks; i++) {
        int s = i < m->n_source ? m->source[i] : -1;
        size_t at = strlen(err->msg);
        if (s >= 0 &&
            !slu_mixer_gave(slu_permute_mixer(p), (unsigned)s)->available.sequences)
            continue; /* this number exists only because the mix names the domain */
        snprintf(err->msg + at, sizeof err->msg - at, "%s%s",
                 put++ ? ", " : "; its domains are ", slu_names_domain(names, i));
    }
}

/* ---- the report ---- */

static int put_count(struct slu_buf *t, const char *key, struct slu_count n,
                     struct slu_err *err)
{
    return slu_buf_printf(
        t, err, "\"%s\": {\"documents\": %llu, \"sequences\": %llu, \"tokens\": %llu}",
        key, (unsigned long long)n.documents, (unsigned long long)n.sequences,
        (unsigned long long)n.tokens);
}

static double part(uint64_t a, uint64_t b)
{
    return b ? (double)a / (double)b : 0;
}

/* Whether a source falls short of what a period of --mix-schedule wants of it, by more
 * than a twentieth. */
static bool is_short(const struct shuffle_mix *m, uint64_t wanted, uint64_t tokens)
{
    return m->opts->schedule && tokens < wanted && wanted - tokens > wanted / 20;
}

/* Writes what a period wanted of a source and took. */
static int put_taken(const struct shuffle_mix *m, const struct slu_mixer *x, unsigned s,
                     unsigned p, struct slu_buf *t, struct slu_err *err)
{
    const struct slu_count n = slu_mixer_gave(x, s)->taken[p];
    const uint64_t wanted = slu_mixer_planned(x)->target[s][p];
    int rc =
        slu_buf_printf(t, err,
                       "%s{\"weight\": %.9g, \"wanted\": %llu, \"tokens\": %llu, "
                       "\"sequences\": %llu",
                       p ? ", " : "", (double)m->mix.source[s].weight[p] / SLU_MIX_ONE,
                       (unsigned long long)wanted, (unsigned long long)n.tokens,
                       (unsigned long long)n.sequences);
    if (!rc && is_short(m, wanted, n.tokens))
        rc = slu_buf_printf(t, err, ", \"short\": %llu",
                            (unsigned long long)(wanted - n.tokens));
    return rc ? rc : slu_buf_printf(t, err, "}");
}

static int put_source(const struct shuffle_mix *m, const struct slu_mixer *x,
                      unsigned s, uint64_t all, struct slu_buf *t, struct slu_err *err)
{
    const struct slu_mix *b = &m->mix;
    const struct slu_mix_gave *g = slu_mixer_gave(x, s);
    const struct slu_mix_plan *plan = slu_mixer_planned(x);
    struct slu_count taken = {0};
    for (unsigned p = 0; p < b->n_period; p++)
        slu_count_add(&taken, g->taken[p]);
    int rc = slu_buf_printf(t, err, "%s\n    {\"name\": ", s ? "," : "");
    if (!rc)
        rc = slu_json_put_string(t, b->source[s].name, strlen(b->source[s].name), err);
    if (!rc)
        rc = slu_buf_printf(t, err, ", ");
    if (!rc)
        rc = put_count(t, "available", g->available, err);
    if (!rc)
        rc = slu_buf_printf(t, err, ", ");
    if (!rc)
        rc = put_count(t, "taken", taken, err);
    if (!rc)
        rc = slu_buf_printf(t, err,
                            ",\n     \"epochs\": %.9g, \"max_epochs\": %.9g, "
                            "\"sequences_used\": %llu, \"share\": %.9g, "
                            "\"periods\": [",
                            part(taken.tokens, g->available.tokens),
                            (double)plan->max_epochs[s] / SLU_MIX_ONE,
                            (unsigned long long)g->sequences_used,
                            part(taken.tokens, all));
    for (unsigned p = 0; p < b->n_period && !rc; p++)
        rc = put_taken(m, x, s, p, t, err);
    return rc ? rc : slu_buf_printf(t, err, "]}");
}

/* Writes where period `p` begins in each bucket that has sequences: after the periods
 * before it. */
static int put_period(const struct slu_count *period, unsigned n_period,
                      const struct slu_header *h, unsigned p, struct slu_buf *t,
                      struct slu_err *err)
{
    unsigned n = h->n_bucket ? h->n_bucket : 1, put = 0;
    struct slu_count sum = {0};
    for (unsigned i = 0; i < n; i++)
        slu_count_add(&sum, period[i * n_period + p]);
    int rc = slu_buf_printf(
        t, err, "%s\n    {\"sequences\": %llu, \"tokens\": %llu, \"buckets\": [",
        p ? "," : "", (unsigned long long)sum.sequences,
        (unsigned long long)sum.tokens);
    for (unsigned i = 0; i < h->n_bucket && !rc; i++) {
        uint64_t before = 0, here = period[i * n_period + p].sequences;
        for (unsigned k = 0; k < p; k++)
            before += period[i * n_period + k].sequences;
        if (before || here)
            rc = slu_buf_printf(
                t, err, "%s{\"length\": %llu, \"begin\": %llu, \"sequences\": %llu}",
                put++ ? ", " : "", (unsigned long long)h->bucket[i],
                (unsigned long long)before, (unsigned long long)here);
    }
    return rc ? rc : slu_buf_printf(t, err, "]}");
}

static const char *name_of(const struct shuffle_mix *m, unsigned s)
{
    const char *name = m->mix.source[s].name;

    return *name ? name : m->opts->by ? "no value" : "no domain";
}

/* Names the sources of which nothing is taken although they have a share. */
static void warn_of_none(const struct shuffle_mix *m, const struct slu_mixer *x)
{
    for (unsigned s = 0; s < m->mix.n_source; s++) {
        const struct slu_mix_source *of = &m->mix.source[s];
        uint64_t target = 0, taken = 0, weight = 0;
        for (unsigned p = 0; p < m->mix.n_period; p++) {
            target += slu_mixer_planned(x)->target[s][p];
            taken += slu_mixer_gave(x, s)->taken[p].sequences;
            weight |= of->weight[p];
        }
        if (weight && !taken && (target || !m->mix.bands))
            cli_warn(m->ctx,
                     "--mix %s: its share, %llu token%s, is less than a sequence, so "
                     "none of it is "
                     "taken; give it a larger share, or mix more tokens",
                     name_of(m, s), (unsigned long long)target, slu_plural(target));
    }
}

/* Names the periods for which a source's sequences are too few or too long. A source of
 * which nothing is taken at all is named already. */
static void warn_of_short(const struct shuffle_mix *m, const struct slu_mixer *x)
{
    unsigned n = 0;
    for (unsigned s = 0; s < m->mix.n_source; s++) {
        const struct slu_count *taken = slu_mixer_gave(x, s)->taken;
        for (unsigned p = 0; p < m->mix.n_period; p++) {
            uint64_t wanted = slu_mixer_planned(x)->target[s][p];
            if (!slu_mixer_gave(x, s)->sequences_used ||
                !is_short(m, wanted, taken[p].tokens) || n++ >= MOST_SHORT)
                continue;
            cli_warn(m->ctx,
                     "--mix-schedule: period %u wants %llu token%s of %s and takes "
                     "%llu, in %llu whole sequence%s; make the period longer, or mix "
                     "shorter sequences",
                     p + 1, (unsigned long long)wanted, slu_plural(wanted),
                     name_of(m, s), (unsigned long long)taken[p].tokens,
                     (unsigned long long)taken[p].sequences,
                     slu_plural(taken[p].sequences));
        }
    }
    if (n > MOST_SHORT)
        cli_warn(m->ctx, "--mix-schedule: %u more fall short (see the report's mix)",
                 n - MOST_SHORT);
}

int shuffle_mix_report(struct shuffle_mix *m, const struct slu_mixer *x,
                       const struct slu_count *period, const struct slu_header *h,
                       struct slu_shards *shards, struct slu_err *err)
{
    struct slu_buf t = SLU_BUF_INIT;
    uint64_t all = 0;
    warn_of_none(m, x);
    warn_of_short(m, x);
    for (unsigned s = 0; s < m->mix.n_source; s++)
        for (unsigned k = 0; k < m->mix.n_period; k++)
            all += slu_mixer_gave(x, s)->taken[k].tokens;
    const char *by = has_expressions(m) ? "where"
                     : m->mix.bands     ? "score"
                     : m->opts->by      ? m->opts->by
                                        : "domain";
    int rc = slu_buf_printf(&t, err, "{\"by\": ");
    if (!rc)
        rc = slu_json_put_string(&t, by, strlen(by), err);
    if (!rc)
        rc = slu_buf_printf(
            &t, err, ", \"wanted\": %llu, \"tokens\": %llu, \"sources\": [",
            (unsigned long long)slu_mixer_planned(x)->tok, (unsigned long long)all);
    for (unsigned s = 0; s < m->mix.n_source && !rc; s++)
        rc = put_source(m, x, s, all, &t, err);
    if (!rc)
        rc = slu_buf_printf(&t, err, "],\n   \"periods\": [");
    for (unsigned k = 0; k < m->mix.n_period && !rc; k++)
        rc = put_period(period, m->mix.n_period, h, k, &t, err);
    if (!rc)
        rc = slu_buf_printf(&t, err, "]}");
    if (!rc)
        rc = slu_buf_append(&t, "", 1, err);
    if (!rc)
        cli_stat_json(m->ctx, "mix", (const char *)t.data);
    if (!rc && shards)
        rc = slu_shards_report_add(shards, "mix", (const char *)t.data, err);
    slu_buf_clear(&t);
    if (!rc && shards)
        rc = shuffle_mix_card(m, x, &t, err);
    if (!rc && shards)
        rc = slu_shards_card_add(shards, &t, err);
    slu_buf_release(&t);
    return rc;
}

void shuffle_mix_release(struct shuffle_mix *m)
{
    close_where(m);
    slu_mix_release(&m->mix);
    free(m->source);
    free(m->value);
    m->source = NULL;
    m->value = NULL;
}
