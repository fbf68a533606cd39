/* ingest_account.c - the outcome of each document, and the counts. */
#include <math.h>

#include "formats/text/ingest_private.h"

/* Random variables of a document's draws: "holdout", "sample". */
#define HOLDOUT_DRAW UINT64_C(0x686f6c646f757400)
#define SAMPLE_DRAW  UINT64_C(0x73616d706c650000)

/* Draws by the text, not by its place, so equal texts are one draw. Copies of a text
 * stay on one side of a split, so held-out texts are not also in the training data. The
 * side does not change when files are added, sorted or tokenized one by one, nor with
 * the tokenizer; and a sample has the duplicates of the whole. */
static bool is_below(const struct slu_ingest_cfg *cfg, struct slu_u128 text,
                     uint64_t which, double fraction)
{
    uint64_t draw = slu_draw(cfg->seed, text.lo, text.hi, which, 0) >> 11;
    return (double)draw < ldexp(fraction, 53);
}

bool slu_ingest_chooses(const struct slu_ingest_cfg *cfg)
{
    return cfg->sample < 1 || cfg->holdout > 0;
}

enum slu_outcome slu_ingest_choose(const struct slu_ingest_cfg *cfg,
                                   struct slu_u128 text)
{
    if (cfg->sample < 1 && !is_below(cfg, text, SAMPLE_DRAW, cfg->sample))
        return OUTCOME_NOT_SAMPLED;
    if (cfg->holdout > 0 && is_below(cfg, text, HOLDOUT_DRAW, cfg->holdout))
        return OUTCOME_HELD;
    return OUTCOME_KEPT;
}

unsigned slu_ingest_lacks(const struct slu_ingest_cfg *cfg)
{
    unsigned lacks = 0;
    for (unsigned f = SLU_FIELD_TEXT + 1; f < SLU_FIELDS; f++)
        lacks |= (unsigned)(cfg->field[f] != NULL) << f;
    return lacks | ((1U << cfg->metadata.n) - 1) << SLU_FIELDS;
}

static void count_lacks(uint64_t *n, unsigned lacks)
{
    for (unsigned f = 0; lacks; f++, lacks >>= 1)
        n[f] += lacks & 1;
}

int slu_ingest_account(struct slu_ingest_account *b, struct slu_outcome_row text,
                       uint32_t domain, uint64_t n_tok, uint64_t n_loss,
                       struct slu_err *err)
{
    struct slu_account *l = b->account;
    struct slu_ingest_stat *s = b->stat;
    const unsigned outcome = text.what;
    struct slu_domain_row *row = &s->held;
    struct slu_count one = {1, 1, 0, 0};
    uint64_t special = (uint64_t)b->cfg->bos + b->cfg->eos;
    int rc = SLU_OK;

    if (outcome == OUTCOME_PART)
        return SLU_OK;
    slu_count_add(&l->in, one);
    const bool filtered =
        outcome >= OUTCOME_REJECTED &&
        slu_reject_is_filter((enum slu_reject)(outcome - OUTCOME_REJECTED));
    const bool unread =
        filtered && outcome < OUTCOME_RULE &&
        slu_reject_is_unread((enum slu_reject)(outcome - OUTCOME_REJECTED));
    if (outcome < OUTCOME_REJECTED || (filtered && !unread)) {
        s->accepted++;
        count_lacks(s->lacking, text.lacks);
    }
    if (outcome >= OUTCOME_REJECTED) {
        const enum slu_reject reason =
            outcome < OUTCOME_RULE ? (enum slu_reject)(outcome - OUTCOME_REJECTED)
                                   : SLU_REJECT_RULES;
        slu_account_drop(l,
                         outcome < OUTCOME_RULE
                             ? slu_reject_name(reason)
                             : slu_rule_name((enum slu_rule)(outcome - OUTCOME_RULE)),
                         one);
        s->rejected_by[reason]++;
        s->rejected += !filtered;
        s->filtered += filtered && !unread;
        s->unread += unread;
        if (!filtered)
            count_lacks(s->missed, text.lacks);
    } else if (outcome != OUTCOME_KEPT && outcome != OUTCOME_HELD) {
        slu_account_drop(l,
                         outcome == OUTCOME_EMPTY       ? "empty"
                         : outcome == OUTCOME_UNTRAINED ? "untrained"
                                                        : "sample",
                         one);
    } else {
        l->in.tokens += n_tok - special;
        l->in.loss_tokens += n_loss;
        l->created.tokens += special;
        s->documents++;
        s->text_byte += text.value;
        s->scored += !(text.lacks >> SLU_FIELD_SCORE & 1);
        if (outcome == OUTCOME_HELD)
            slu_account_drop(l, "holdout", (struct slu_count){1, 1, n_tok, n_loss});
        else
            rc = slu_domains_row(&s->domains, domain, &row, err);
        if (rc)
            return rc;
        row->documents++;
        row->tokens += n_tok;
        row->text_tok += n_tok - special;
        row->text_byte += text.value;
    }
    return rc;
}

bool slu_ingest_fits(struct slu_ingest_account *b, uint64_t n_before, uint64_t n_tok,
                     uint64_t source, uint64_t document)
{
    struct slu_ingest_stat *s = b->stat;
    uint64_t most = b->cfg->max_tok;
    if (most == UINT64_MAX)
        return true;
    uint64_t have = slu_writer_sum(b->cfg->out)->n.tokens + n_before;
    if (have <= most && n_tok <= most - have)
        return true;
    s->cut = true;
    s->cut_source = source;
    s->cut_document = document;
    return false;
}

static void keep_first(struct slu_batch *b, size_t n)
{
    if (n == b->n_seq)
        return;
    b->n_seq = b->n_seg = n; /* a document is one segment */
    b->sum_valid = false;
}

int slu_ingest_account_rows(struct slu_ingest_account *b,
                            const struct slu_outcome_row *row, size_t n,
                            struct slu_batch *kept, struct slu_batch *held,
                            size_t *n_done, struct slu_err *err)
{
    size_t i, n_kept = 0, n_held = 0;
    uint64_t n_tok = 0;
    int rc = SLU_OK;

    for (i = 0; i < n && !rc; i++) {
        const struct slu_seg *s = NULL;
        uint64_t n_loss = 0;
        if (row[i].what == OUTCOME_KEPT) {
            s = &kept->seg[n_kept];
            if (!slu_ingest_fits(b, n_tok, s->len_tok, s->source, s->document))
                break;
            n_loss = slu_batch_loss(kept, kept->seq[n_kept++].tok_off, s->len_tok);
            n_tok += s->len_tok;
        } else if (row[i].what == OUTCOME_HELD) {
            s = &held->seg[n_held];
            n_loss = slu_batch_loss(held, held->seq[n_held++].tok_off, s->len_tok);
        }
        rc = slu_ingest_account(b, row[i], s ? s->domain : SLU_NO_DOMAIN,
                                s ? s->len_tok : 0, n_loss, err);
    }
    *n_done = i;
    keep_first(kept, n_kept);
    keep_first(held, n_held);
    return rc;
}
