/* dedup --phase: one step of many, with files between (lib/dedup/phases.h; those of
 * --substring are in dedup_substring_phases.c). */
#include "lib/dedup/phases.h"

#include <stdlib.h>
#include <string.h>

#include "tools/dedup_private.h"

/* Least -M; that of passages is the program's. */
#define FLOOR_BYTE (UINT64_C(64) << 20)

/* ---- options ---- */

/* Each mode has some of the phases. */
static int check_mode(const struct dedup_opts *o, enum dedup_mode mode,
                      struct slu_err *err)
{
    bool of_passages = o->phase == DEDUP_ASK || o->phase == DEDUP_MATCH;
    bool of_documents = o->phase == DEDUP_VERIFY || o->phase == DEDUP_CLUSTER;

    if (mode == DEDUP_SUBSTRING ? !of_documents : !of_passages)
        return SLU_OK;
    return slu_fail(err, SLU_E_USAGE, "--phase %s goes with %s; see --help",
                    dedup_phase_names[o->phase],
                    of_passages ? "--substring" : "--exact or --near");
}

static int check(const struct cli_ctx *ctx, const struct dedup_opts *o,
                 struct slu_phase_cfg *c, struct slu_err *err)
{
    const char *name = dedup_phase_names[o->phase];
    const struct cli_part *part = &ctx->common.part;
    bool streams =
        o->phase == DEDUP_SIGN || o->phase == DEDUP_ASK || o->phase == DEDUP_FILTER;

    if (!o->work)
        return slu_fail(err, SLU_E_USAGE, "--phase %s needs --work DIR", name);
    if (!c->n_passage_tok && !c->exact && ctx->common.memory < FLOOR_BYTE)
        return slu_fail(err, SLU_E_USAGE, "-M: --near needs at least %lluM",
                        (unsigned long long)(FLOOR_BYTE >> 20));
    if (o->phase == DEDUP_CLUSTER && part->n)
        return slu_fail(err, SLU_E_USAGE,
                        "--phase cluster is one job for all parts; leave --part out");
    if (o->phase != DEDUP_CLUSTER && !part->n)
        return slu_fail(err, SLU_E_USAGE, "--phase %s needs --part I/N", name);
    if (o->phase == DEDUP_VERIFY && c->exact)
        return slu_fail(err, SLU_E_USAGE,
                        "there is nothing to verify of exact duplicates; go on with "
                        "--phase cluster");
    if (!streams && ctx->n_input)
        return slu_fail(err, SLU_E_USAGE, "--phase %s reads no stream", name);
    if (o->phase != DEDUP_FILTER && ctx->common.output)
        return slu_fail(err, SLU_E_USAGE,
                        "--phase %s writes to --work only; -o goes with --phase filter",
                        name);
    if (o->ranges > 1 << 16 || (o->phase == DEDUP_SIGN && part->n > 1 << 16))
        return slu_fail(err, SLU_E_USAGE, "at most %d parts and ranges", 1 << 16);
    if (o->phase == DEDUP_CLUSTER)
        return SLU_OK;
    c->part = part->i;
    c->of = part->n;
    return SLU_OK;
}

/* --domains as one word of the parameters that files are compared by. */
static int keep_text(const char *domains, char *out, size_t n, struct slu_err *err)
{
    if ((size_t)snprintf(out, n, "domain-order:%s", domains) >= n)
        return slu_fail(err, SLU_E_USAGE, "--domains: the list is too long");
    for (; *out; out++)
        if (*out == ' ')
            *out = '_';
    return SLU_OK;
}

/* ---- sign, merge, verify, cluster ---- */

static void report(struct cli_ctx *ctx, const struct dedup_opts *o,
                   const struct slu_phase_result *r)
{
    ctx->spill_bytes = r->spilled_byte;
    cli_stat_json(ctx, "skipped", r->skipped ? "true" : "false");
    if (o->phase == DEDUP_SIGN || o->phase == DEDUP_CLUSTER)
        cli_stat_u64(ctx, "signed_sequences", r->documents);
    if (o->phase == DEDUP_MERGE || o->phase == DEDUP_CLUSTER)
        cli_stat_u64(ctx, "twins", r->twins);
    if (o->phase == DEDUP_VERIFY || o->phase == DEDUP_CLUSTER) {
        cli_stat_u64(ctx, "candidates", r->candidates);
        cli_stat_u64(ctx, "edges", r->edges);
        cli_stat_u64(ctx, "capped_documents", r->capped_documents);
    }
    if (o->phase == DEDUP_CLUSTER)
        cli_stat_u64(ctx, "to_drop", r->dropped);
    if (r->skipped)
        cli_note(ctx, "%s: was there already", dedup_phase_names[o->phase]);
    if (o->phase == DEDUP_CLUSTER && r->capped_documents)
        cli_warn(ctx,
                 "%llu documents came behind the first %llu of a band, and nothing is "
                 "compared with them there; raise --band-cap",
                 (unsigned long long)r->capped_documents,
                 (unsigned long long)o->band_cap);
}

struct keep {
    const struct dedup_opts *o;
    struct slu_names *names;
};

static uint64_t prio(void *ctx, const struct slu_batch *b, const struct slu_seq *q)
{
    const struct keep *k = ctx;

    return dedup_prio(k->o, k->names, b, q);
}

static int sign(struct cli_ctx *ctx, struct slu_phase_cfg *c, struct keep *keep,
                struct slu_phase_result *result, struct slu_err *err)
{
    struct slu_reader *r;
    struct slu_sum in = {0};
    uint64_t in_flight = ctx->common.memory / 4; /* batches and their sets */
    int rc = cli_open_reader(ctx, &r, err);

    if (rc)
        return rc;
    const struct slu_header *h = slu_reader_header(r);
    if (h->no_tokens)
        rc = slu_fail(err, SLU_E_MISMATCH,
                      "the stream has segment rows only, and no tokens to compare");
    c->budget_byte = ctx->common.memory - in_flight;
    keep->names = slu_reader_names(r);
    if (rc == SLU_OK)
        rc = slu_phase_sign(c, r, cli_slots(ctx, in_flight / 2), &in, result, err);
    slu_reader_free(r);
    return rc;
}

/* ---- filter ---- */

struct filter {
    struct dedup_io io;
    struct slu_phase_filter *filter;
    struct slu_count dropped;
};

static int emit(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    struct filter *f = ctx;
    int rc = slu_phase_filter_batch(f->filter, b, &f->dropped, err);

    return rc ? rc : dedup_emit(&f->io, b, err);
}

static int filter(struct cli_ctx *ctx, const struct slu_phase_cfg *c,
                  struct slu_err *err)
{
    static const struct slu_stream_ops ops = {NULL, emit};
    struct filter f = {.filter = NULL};
    struct slu_sum in = {0};
    int rc = dedup_open(&f.io, ctx, err);

    if (rc == SLU_OK)
        slu_reader_track(f.io.reader);
    if (rc == SLU_OK)
        rc = slu_phase_filter_open(&f.filter, c, slu_reader_header(f.io.reader), err);
    if (rc == SLU_OK)
        rc = slu_stream_run(f.io.reader, &ops, &f, c->n_threads,
                            cli_slots(ctx, ctx->common.memory / 2), &in, err);
    if (rc == SLU_OK)
        rc = slu_phase_filter_end(f.filter, f.io.reader, &in, err);
    if (rc == SLU_OK)
        rc = dedup_close(&f.io, &in, c->exact ? "exact-duplicate" : "near-duplicate",
                         f.dropped, err);
    slu_phase_filter_free(f.filter);
    dedup_abort(&f.io);
    return rc;
}

int dedup_phases(struct cli_ctx *ctx, enum dedup_mode mode, struct slu_err *err)
{
    const struct dedup_opts *o = ctx->opts;
    struct slu_phase_result result = {0};
    struct keep keep = {.o = o};
    char text[1024] = "first"; /* of --keep, for the files */
    struct slu_phase_cfg c = {
        .work = o->work,
        .ranges = o->ranges,
        .force = ctx->common.force,
        .n_passage_tok = mode == DEDUP_SUBSTRING ? (unsigned)o->substring : 0,
        .exact = mode == DEDUP_EXACT,
        .n_band = (unsigned)o->bands,
        .n_row = (unsigned)o->rows,
        .n_gram = (unsigned)dedup_ngram(o, DEDUP_NEAR_NGRAM),
        .unit = o->unit ? SLU_UNIT_TOKEN : SLU_UNIT_WORD,
        .seed = ctx->common.seed,
        .keep = text,
        .prio = mode == DEDUP_NEAR && o->keep != DEDUP_KEEP_FIRST ? prio : NULL,
        .ctx = &keep,
        .num = o->threshold_num,
        .den = o->threshold_den,
        .band_cap = o->band_cap,
        .verify = o->verify,
        .budget_byte = ctx->common.memory / 8 * 7,
        .tmpdir = ctx->common.tmpdir,
        .n_threads = (unsigned)ctx->common.threads,
    };
    int rc = mode == DEDUP_NEAR        ? dedup_near_check(ctx, o, err)
             : mode == DEDUP_SUBSTRING ? dedup_substring_check(o, err)
                                       : SLU_OK;

    if (rc == SLU_OK)
        rc = check_mode(o, mode, err);
    if (rc == SLU_OK)
        rc = check(ctx, o, &c, err);
    if (rc == SLU_OK && o->keep == DEDUP_KEEP_LONGEST)
        snprintf(text, sizeof text, "longest");
    if (rc == SLU_OK && o->keep == DEDUP_KEEP_DOMAIN)
        rc = keep_text(o->domains, text, sizeof text, err);
    if (rc)
        return rc;
    if (o->phase == DEDUP_SIGN && !c.ranges)
        c.ranges = c.of;
    if (mode == DEDUP_SUBSTRING)
        return dedup_substring_phase(ctx, &c, err);
    switch (o->phase) {
    case DEDUP_SIGN:
        rc = sign(ctx, &c, &keep, &result, err);
        break;
    case DEDUP_MERGE:
        rc = slu_phase_merge(&c, &result, err);
        break;
    case DEDUP_VERIFY:
        rc = slu_phase_verify(&c, &result, err);
        break;
    case DEDUP_CLUSTER:
        rc = slu_phase_cluster(&c, &result, err);
        break;
    default:
        return filter(ctx, &c, err);
    }
    if (rc == SLU_OK)
        report(ctx, o, &result);
    return rc;
}
