/* tokens_set.c - the sets that shuffle writes as input of other programs: their
 * sequences with segments, ids of records, domains and masks (formats/ids/tokens.h).
 *
 * Sets are read one after the other, each in its own order, and compared with the sums
 * in their report.json; --verify of inspect also compares the bytes of their files. A
 * source whose number another set's source has, under another name, gets a number
 * above all known ones, and if one set has masks the others get them, as in streams
 * that are joined. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/ids/tokens_private.h"
#include "formats/shards/shard_private.h"
#include "formats/shards/shardset.h"
#include "lib/base/hash.h"
#include "lib/base/map.h"
#include "lib/stream/mask.h"
#include "lib/stream/stream_private.h"

struct sets {
    struct slu_tokens_cfg cfg;
    size_t at; /* the current set */
    struct slu_shardset *set;
    struct slu_u128 *id; /* of each set, when its header was read */
    struct slu_sum seen; /* of the current set */
    struct slu_count given;
    struct slu_names *names; /* of the reader */
    bool masks;              /* one of the sets has masks */
    struct slu_map moved;    /* hash of a source's number and name -> its new number */
    uint64_t next_source;    /* above all numbers in use */
    struct slu_batch first;  /* read at the opening, for the vocabulary */
    bool have_first;
    _Atomic uint64_t n_byte;
};

/* ---- names ---- */

/* Gives the number of a source in the reader. */
static int source_number(struct sets *x, uint64_t was, const char *name, uint64_t *is,
                         struct slu_err *err)
{
    const char *had = slu_names_source(x->names, was);
    struct slu_u128 key;

    *is = was;
    if (had && !strcmp(had, name))
        return SLU_OK;
    key = slu_hash128(name, strlen(name));
    if (had && slu_map_get(&x->moved, key.lo ^ was, is))
        return SLU_OK;
    if (had) {
        *is = x->next_source;
        int rc = slu_map_set(&x->moved, key.lo ^ was, *is, err);
        if (rc)
            return rc;
    }
    if (*is >= x->next_source)
        x->next_source = *is + 1;
    return slu_names_set_source(x->names, *is, name, err);
}

/* Gives sources and domains the reader's numbers. */
static int rename_all(struct sets *x, struct slu_batch *b, struct slu_err *err)
{
    struct slu_names *from = slu_shardset_names(x->set);
    uint64_t was = SLU_PADDING, is = SLU_PADDING;
    int rc = slu_shardset_domains(b, from, x->names, err);

    for (size_t i = 0; i < b->n_seg && !rc; i++) {
        struct slu_seg *g = &b->seg[i];
        if (g->source != SLU_PADDING && g->source != was) {
            const char *name = slu_names_source(from, g->source);
            was = g->source;
            rc = source_number(x, was, name ? name : "", &is, err);
            b->sum_valid &= is == was; /* the trace checksum has the sources */
        }
        if (g->source != SLU_PADDING)
            g->source = is;
    }
    return rc;
}

/* ---- reading ---- */

static int too_long(const struct sets *x, const struct slu_batch *b,
                    struct slu_err *err)
{
    for (size_t i = 0; i < b->n_seq && x->cfg.max_seq_tok; i++)
        if (b->seq[i].len_tok > x->cfg.max_seq_tok)
            return slu_advise(
                err, SLU_ADVISE_MEMORY,
                slu_fail(err, SLU_E_LIMIT,
                         "%s: a sequence of %llu tokens; the memory allows %llu",
                         x->cfg.path[x->at], (unsigned long long)b->seq[i].len_tok,
                         (unsigned long long)x->cfg.max_seq_tok));
    return SLU_OK;
}

/* Reads the next batch of the current set; SLU_EOF at its end. */
static int next(struct sets *x, struct slu_batch *b, struct slu_err *err)
{
    int rc = slu_shardset_next(x->set, b, err);

    if (rc == SLU_EOF) {
        int bad = slu_shardset_finish(x->set, &x->seen, err);
        return bad ? bad : rc;
    }
    if (!rc)
        rc = too_long(x, b, err);
    if (!rc && x->masks && !b->masks)
        rc = slu_batch_mark_all(b, err);
    if (rc)
        return rc;
    b->input = (uint32_t)x->at;
    slu_batch_sum(b);
    slu_sum_add(&x->seen, &b->sum);
    slu_count_add(&x->given, b->sum.n);
    x->n_byte += b->own.len;
    return rename_all(x, b, err);
}

static int fetch(void *input, struct slu_batch *b, struct slu_err *err)
{
    struct sets *x = input;
    int rc;

    if (x->have_first) {
        struct slu_batch empty = *b;
        *b = x->first;
        x->first = empty;
        x->have_first = false;
        return SLU_OK;
    }
    while ((rc = next(x, b, err)) == SLU_EOF && x->at + 1 < x->cfg.n_path) {
        slu_shardset_free(x->set);
        x->set = NULL;
        x->seen = (struct slu_sum){0};
        rc = slu_shardset_open(&x->set, x->cfg.path[++x->at], err);
        if (!rc && slu_u128_cmp(slu_shardset_id(x->set), x->id[x->at]) != 0)
            rc = slu_fail(err, SLU_E_MISMATCH,
                          "%s: the set was replaced while others were read; run the "
                          "command again",
                          x->cfg.path[x->at]);
        if (rc)
            return rc;
    }
    return rc;
}

/* The set has compared the ids with its vocabulary size. */
static int open_batch(const void *input, struct slu_batch *b, struct slu_err *err)
{
    (void)input;
    (void)err;
    b->tok = b->own.data;
    return SLU_OK;
}

static int finish(void *input, const struct slu_sum *seen, struct slu_err *err)
{
    return slu_tokens_all_seen(&((const struct sets *)input)->given, seen, err);
}

static int summarize(const void *input, bool close, struct slu_summary *p,
                     struct slu_err *err)
{
    const struct sets *x = input;
    int rc = SLU_OK;

    for (size_t i = 0; i < x->cfg.n_path && !rc; i++) {
        struct slu_summary more;
        rc = slu_shardset_summary(x->cfg.path[i], close, &more, err);
        if (!rc)
            slu_summary_add(p, &more);
    }
    p->bucketed = true;
    p->by_bucket = x->cfg.n_path == 1;
    return rc;
}

static uint64_t bytes(const void *input)
{
    return ((const struct sets *)input)->n_byte;
}

static void free_input(void *input)
{
    struct sets *x = input;

    slu_shardset_free(x->set);
    slu_map_release(&x->moved);
    slu_batch_release(&x->first);
    free(x->id);
    free(x);
}

/* ---- opening ---- */

static bool probe(const struct slu_tokens_cfg *cfg, const struct slu_tokens_look *at)
{
    static const char *const want[] = {"report.json", "manifest.jsonl", "segments"};
    struct slu_buf path = SLU_BUF_INIT;
    bool is = true;

    (void)cfg;
    for (unsigned i = 0; i < 3 && is; i++) {
        slu_buf_clear(&path);
        is = !slu_buf_printf(&path, NULL, "%s/%s", at->path, want[i]) &&
             !access((const char *)path.data, F_OK);
    }
    slu_buf_release(&path);
    /* Then opening says so; some of the old files, or of the new ones, may be there. */
    return is || slu_set_being_replaced(at->path, NULL);
}

/* Refuses sets that cannot be handed on. */
static int check_header(const struct slu_tokens_cfg *cfg, const struct slu_header *h,
                        const char *path, struct slu_err *err)
{
    if (!h->vocab_size)
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "%s: the set has no sequences, and no %s, which newer versions "
                        "write; expected to find its tokenizer there; leave it out, or "
                        "write it again",
                        path, SLU_SHARD_EMPTY);
    return !h->inner_padding || cfg->inner_padding
               ? SLU_OK
               : slu_fail(err, SLU_E_UNSUPPORTED,
                          "%s: has padding between segments, which this step cannot "
                          "keep; give it the stream that was padded",
                          path);
}

/* Opens all sets once, and compares them with the first, whose header is *h; it gets
 * masks if one of them has. Adds their steps, and takes their ids. */
static int check(struct sets *x, struct slu_header *h, struct slu_step_list *steps,
                 struct slu_err *err)
{
    const struct slu_tokens_cfg *cfg = &x->cfg;

    if (cfg->eos != SLU_NO_TOKEN || cfg->tok_bytes || cfg->vocab_size || cfg->column)
        return slu_advise(err, SLU_ADVISE_IDS,
                          slu_fail(err, SLU_E_USAGE,
                                   "%s: is a set that says what its ids are, and "
                                   "options for files of ids were given",
                                   cfg->path[0]));
    int rc = check_header(cfg, h, cfg->path[0], err);
    for (size_t i = 1; i < cfg->n_path && !rc; i++) {
        struct slu_shardset *set;
        rc = slu_shardset_open(&set, cfg->path[i], err);
        if (rc)
            return rc;
        const struct slu_header *o = slu_shardset_header(set);
        rc = check_header(cfg, o, cfg->path[i], err);
        if (!rc && (rc = slu_header_compatible(h, o, err)))
            slu_err_at(err, "%s", cfg->path[i]);
        slu_header_join(h, o);
        if (!rc)
            rc = slu_shardset_steps(set, steps, err);
        x->id[i] = slu_shardset_id(set);
        slu_shardset_free(set);
    }
    return rc;
}

/* Reads the vocabulary, and the first batch of the first set if it has one. */
static int read_first(struct sets *x, struct slu_err *err)
{
    int rc = slu_names_read_vocab(slu_shardset_names(x->set), err);
    const struct slu_vocab_table *v =
        rc ? NULL : slu_names_vocab(slu_shardset_names(x->set));

    if (v)
        rc = slu_names_set_vocab(x->names, v, err);
    if (!rc)
        rc = next(x, &x->first, err);
    x->have_first = !rc;
    return rc == SLU_EOF ? SLU_OK : rc;
}

static int open_reader(struct slu_reader **r, const struct slu_tokens_cfg *cfg,
                       struct slu_err *err)
{
    static const struct slu_input_ops ops = {.fetch = fetch,
                                             .open = open_batch,
                                             .finish = finish,
                                             .bytes = bytes,
                                             .free = free_input};
    struct sets *x = calloc(1, sizeof *x);

    *r = NULL;
    if (!x)
        return slu_fail_nomem(err, sizeof *x);
    x->cfg = *cfg;
    slu_batch_init(&x->first, 2);
    struct slu_header h; /* its pointers are the first set's */
    struct slu_step_list steps = SLU_STEPS_INIT;
    x->id = calloc(cfg->n_path, sizeof *x->id);
    int rc = x->id ? slu_shardset_open(&x->set, cfg->path[0], err)
                   : slu_fail_nomem(err, cfg->n_path * sizeof *x->id);
    if (!rc)
        rc = slu_shardset_steps(x->set, &steps, err);
    if (!rc) {
        h = *slu_shardset_header(x->set);
        rc = check(x, &h, &steps, err);
        x->masks = h.masks;
    }
    if (rc)
        free_input(x);
    else
        rc = slu_reader_over(r, &ops, x, &h, err);
    if (!rc) {
        slu_reader_set_summary(*r, summarize);
        x->names = slu_reader_names(*r);
        rc = slu_reader_add_steps(*r, &steps, err);
        if (!rc)
            rc = read_first(x, err);
        if (rc) {
            slu_reader_free(*r);
            *r = NULL;
        }
    }
    slu_steps_release(&steps);
    return rc;
}

/* The files are those that the set's own lists name (tools/cli/cli_inputs.c). */
static int each_file(const struct slu_tokens_cfg *cfg, const char *folder,
                     int (*each)(void *arg, const char *path, struct slu_err *err),
                     void *arg, struct slu_err *err)
{
    (void)cfg;
    (void)folder;
    (void)each;
    (void)arg;
    (void)err;
    return SLU_OK;
}

const struct slu_tokens_format slu_tokens_set = {.name = "set",
                                                 .probe = probe,
                                                 .folders = true,
                                                 .each_file = each_file,
                                                 .open = open_reader};
