/* shards.c - inspect on a shard directory: the same modes as for a stream. */
#include <stdlib.h>

#include "formats/shards/shardset.h"
#include "tools/inspect/inspect.h"

static int count(struct inspect_seen *seen, const struct slu_batch *b,
                 struct slu_err *err)
{
    for (size_t i = 0; i < b->n_seq; i++) {
        uint64_t n = 0;
        slu_map_get(&seen->lengths, b->seq[i].len_tok, &n);
        int rc = slu_map_set(&seen->lengths, b->seq[i].len_tok, n + 1, err);
        if (rc)
            return rc;
    }
    return SLU_OK;
}

/* The segments of each bucket are a stream of their own, with their own names of
 * domains. */
static int count_domains(struct inspect_seen *seen, struct slu_shardset *set,
                         struct slu_batch *b, struct slu_err *err)
{
    struct slu_names *names = slu_shardset_names(set);
    int rc = inspect_rename_domains(b, names, seen->names, err);
    return rc ? rc
              : slu_domains_add_batch(&seen->domains, b, slu_names_vocab(names), err);
}

static int print_records(const struct inspect_opts *o, struct slu_shardset *set,
                         struct slu_batch *b, struct slu_buf *line, uint64_t *left,
                         struct slu_err *err)
{
    struct slu_names *names = slu_shardset_names(set);
    const struct slu_vocab_table *v = slu_names_vocab(names);
    if ((o->text || o->jsonl) && !v)
        return slu_fail(
            err, SLU_E_MISMATCH,
            "the set has no vocabulary, so there is no text; shuffle a stream that "
            "has one (tokenize without --no-vocab)");
    const struct inspect_names in = {names, &slu_shardset_header(set)->meta,
                                     o->text || o->jsonl ? v : NULL};
    for (size_t i = 0; i < b->n_seq && *left; i++) {
        const struct slu_seq *q = &b->seq[i];
        int rc = o->jsonl ? inspect_print_text(b, q, &in, line, err)
                          : inspect_print_record(b, q, &in, line, err);
        if (rc)
            return rc;
        *left -= *left != UINT64_MAX;
    }
    return SLU_OK;
}

int inspect_shards(struct cli_ctx *ctx, const char *dir, struct slu_err *err)
{
    const struct inspect_opts *o = ctx->opts;
    struct inspect_seen seen = {.kind = "shards"};
    struct slu_shardset *set;
    struct slu_summary all;
    struct slu_batch b;
    struct slu_buf line = SLU_BUF_INIT;
    bool records = o->records != NO_RECORDS || o->jsonl;
    uint64_t left = o->jsonl ? UINT64_MAX : o->records;
    int rc = slu_shardset_open(&set, dir, err);
    if (rc)
        return rc;
    slu_batch_init(&b, 2);
    rc = slu_names_new(&seen.names, err);
    seen.header = slu_shardset_header(set);
    seen.format = slu_shardset_format(set);
    if (!slu_shardset_summary(dir, false, &all, NULL))
        cli_pass(ctx, NULL, 0, all.sum.n.tokens);
    while (!rc && (!records || left)) {
        rc = slu_shardset_next(set, &b, err);
        if (rc)
            break;
        slu_batch_sum(&b);
        slu_sum_add(&seen.sum, &b.sum);
        rc = records ? print_records(o, set, &b, &line, &left, err)
                     : count(&seen, &b, err);
        if (!rc && inspect_wants_domains(o))
            rc = count_domains(&seen, set, &b, err);
        cli_progress(ctx, 0, seen.sum.n.tokens);
    }
    if (rc == SLU_EOF)
        rc = slu_shardset_finish(set, &seen.sum, err);
    if (!rc && o->verify) {
        cli_pass(ctx, "checking bytes,", 0, 0);
        slu_shardset_progress(set, cli_progress_of, ctx);
        rc = slu_shardset_verify_files(set, (unsigned)ctx->common.threads, err);
    }
    if (!rc)
        rc = slu_shardset_buckets(set, &seen.shards_json, err);
    cli_erase(ctx);
    if (!rc)
        rc = slu_shardset_steps(set, &seen.steps, err);
    if (!rc && !records)
        rc = inspect_show(&seen, o, err);
    ctx->account.in = ctx->account.out = seen.sum.n;
    free(seen.shards_json);
    slu_steps_release(&seen.steps);
    slu_map_release(&seen.lengths);
    slu_domains_release(&seen.domains);
    slu_names_free(seen.names);
    slu_buf_release(&line);
    slu_batch_release(&b);
    slu_shardset_free(set);
    return rc;
}
