/* passages_phase_stream.c - the phases that read a part's stream and write what it has
 * for each range of keys: blocks (sign), then windows (ask). */
#include <stdlib.h>
#include <string.h>

#include "lib/dedup/passages_phase_private.h"
#include "lib/io.h"
#include "lib/sidecar.h"

enum { COPY_REC = 4096 }; /* records on their way to the file */

struct part {
    const struct slu_phase_cfg *cfg;
    struct slu_specials special;
    struct slu_cells *cells; /* one a range */
    uint64_t n_seq, n_place;

    struct slu_scan *scan; /* sign: one a thread, */
    struct slu_sidecar blocks;

    struct slu_windows windows; /* ask */
    struct slu_sorter *asked;
};

static int new_cells(struct part *t, uint64_t n_range, unsigned group_bits,
                     uint64_t budget_byte, struct slu_err *err)
{
    const struct slu_cells_cfg cfg = {budget_byte, t->cfg->tmpdir, n_range, group_bits,
                                      true};
    return slu_cells_new_of(&t->cells, &cfg, err);
}

static void release(struct part *t)
{
    for (unsigned i = 0; t->scan && i < t->cfg->n_threads; i++)
        slu_scan_release(&t->scan[i]);
    free(t->scan);
    slu_sidecar_release(&t->blocks);
    slu_cells_free(t->cells);
    slu_sorter_free(t->asked);
}

/* A section for each range: its records, in the order in which they came. */
static int write_cells(struct part *t, const struct slu_phase_own *own,
                       struct slu_err *err)
{
    uint64_t n_range = own->want.count[N_RANGE];
    struct slu_keyed *buf = malloc(COPY_REC * sizeof *buf);
    struct slu_workfile_out *out = NULL;
    int rc = buf ? slu_cells_seal(t->cells, err)
                 : slu_fail_nomem(err, COPY_REC * sizeof *buf);

    if (rc == SLU_OK)
        rc = slu_workfile_create(&out, own->path, own->want.kind, err);
    for (uint64_t j = 0; rc == SLU_OK && j < n_range; j++) {
        struct slu_cells_cursor at = {.cell = j};
        size_t n = COPY_REC;
        rc = slu_workfile_section(out, j, err);
        while (rc == SLU_OK && n == COPY_REC) {
            rc = slu_cells_read(t->cells, &at, buf, COPY_REC, &n, err);
            if (rc == SLU_OK && n)
                rc = slu_workfile_put(out, &buf->hi, KEYED * n, err);
        }
    }
    free(buf);
    if (rc == SLU_OK)
        return slu_workfile_close(out, &own->want, n_range, err);
    slu_workfile_abort(out);
    return rc;
}

/* ---- sign ---- */

static int sign_work(void *ctx, unsigned worker, struct slu_batch *b,
                     struct slu_err *err)
{
    struct part *t = ctx;
    struct slu_buf *buf;
    int rc = slu_sidecar_of(&t->blocks, b, &buf, err);

    return rc ? rc : slu_passages_scan(&t->scan[worker], &t->special, b, buf, err);
}

static int sign_emit(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    struct part *t = ctx;
    uint64_t base = t->n_place;
    struct slu_buf *buf;
    int rc = slu_sidecar_of(&t->blocks, b, &buf, err);

    if (rc)
        return rc;
    for (size_t i = 0; i < b->n_seq; i++)
        t->n_place += slu_seq_places(b->seq[i].len_tok, b->seq[i].n_seg);
    t->n_seq += b->n_seq;
    if (t->n_place >> SLU_PLACE_BITS)
        return slu_fail(err, SLU_E_LIMIT, "passages of more than 2^%d tokens",
                        SLU_PLACE_BITS);
    struct slu_keyed *r = (void *)buf->data;
    size_t n = buf->len / sizeof *r;
    for (size_t i = 0; i < n; i++)
        r[i].val += base << 16;
    return slu_cells_put(t->cells, r, n, err);
}

static int sign_make(struct part *t, struct slu_reader *r, unsigned n_slots,
                     struct slu_phase_own *own, struct slu_sum *total,
                     struct slu_passages_phase_result *result, struct slu_err *err)
{
    static const struct slu_stream_ops ops = {sign_work, sign_emit};
    const struct slu_phase_cfg *c = t->cfg;
    uint64_t *count = own->want.count;
    int rc = new_cells(t, c->ranges, SLU_ANCHOR_BITS, c->budget_byte - (1 << 20), err);

    t->scan = calloc(c->n_threads, sizeof *t->scan);
    if (rc == SLU_OK && !t->scan)
        rc = slu_fail_nomem(err, c->n_threads * sizeof *t->scan);
    for (unsigned i = 0; rc == SLU_OK && i < c->n_threads; i++)
        rc = slu_scan_init(&t->scan[i], c->n_passage_tok, err);
    if (rc == SLU_OK)
        rc = slu_stream_run(r, &ops, t, c->n_threads, n_slots, total, err);
    if (rc)
        return rc;
    rc = slu_phase_note_stream(count, r, total, err);
    if (rc)
        return rc;
    count[N_PLACE] = t->n_place;
    count[N_BLOCK] = slu_cells_count(t->cells);
    count[SPECIALS] = slu_passages_special_hash(slu_reader_header(r));
    if (t->n_seq != total->n.sequences)
        return slu_fail(err, SLU_E_CONSERVATION,
                        "internal error: %llu sequences were read and %llu signed; "
                        "please report it",
                        (unsigned long long)total->n.sequences,
                        (unsigned long long)t->n_seq);
    rc = write_cells(t, own, err);
    result->spilled_byte = slu_cells_spilled(t->cells);
    return rc;
}

int slu_passages_phase_sign(const struct slu_phase_cfg *c, struct slu_reader *r,
                            unsigned n_slots, struct slu_sum *total,
                            struct slu_passages_phase_result *result,
                            struct slu_err *err)
{
    struct slu_phase_own own = {
        .want = {.kind = SLU_WORKFILE_SIGN, .part = c->part, .of = c->of}};
    struct part t = {.cfg = c};

    *result = (struct slu_passages_phase_result){0};
    slu_sidecar_init(&t.blocks);
    slu_passages_specials(&t.special, slu_reader_header(r));
    slu_reader_track(r);
    memcpy(own.want.fingerprint, slu_reader_header(r)->fingerprint, 16);
    int rc = slu_mkdirs(c->work, err);
    if (rc == SLU_OK)
        rc = slu_phase_own(&own, c, c->ranges, err);
    if (rc == SLU_OK && own.done)
        rc = slu_phase_compare(c, r, n_slots, &own.is, own.path, total, err);
    else if (rc == SLU_OK)
        rc = sign_make(&t, r, n_slots, &own, total, result, err);
    result->skipped = own.done;
    result->sequences = total->n.sequences;
    result->tokens = total->n.tokens;
    result->blocks = (own.done ? own.is : own.want).count[N_BLOCK];
    release(&t);
    slu_phase_own_release(&own);
    return rc;
}

/* ---- ask ---- */

/* The questions about this part, of all ranges. */
static int take_asked(struct part *t, const struct slu_phase_parts *parts,
                      struct slu_passages_phase_result *result, struct slu_err *err)
{
    const struct slu_phase_cfg *c = t->cfg;
    uint64_t n_place = parts->head[c->part].count[N_PLACE], place, count;
    int rc = SLU_OK;

    for (uint64_t j = 0; rc == SLU_OK && j < parts->n_range; j++) {
        struct slu_workfile *f;
        rc = slu_phase_open(c, SLU_WORKFILE_MERGE, j, parts->n_range, parts->n_range,
                            parts->fingerprint, &parts->ids, &f, err);
        if (rc == SLU_OK)
            rc = slu_workfile_begin(f, c->part, err);
        while (rc == SLU_OK) {
            rc = slu_passages_next_run(f, n_place, &place, &count, err);
            if (rc)
                break;
            const struct slu_piece piece = {&count, sizeof count};
            result->asked_blocks++;
            rc = slu_sorter_add(t->asked,
                                (struct slu_u128){0, place << t->windows.spread},
                                &piece, 1, err);
        }
        slu_workfile_free(f);
        rc = rc == SLU_EOF ? SLU_OK : rc;
    }
    return rc;
}

static int ask_emit(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    struct part *t = ctx;
    int rc = SLU_OK;

    for (size_t i = 0; rc == SLU_OK && i < b->n_seq; i++) {
        rc = slu_windows_seq(&t->windows, b, &b->seq[i], t->n_place, err);
        t->n_place += slu_seq_places(b->seq[i].len_tok, b->seq[i].n_seg);
    }
    /* Only of another stream is a question about what is not there. */
    return rc == SLU_E_CONSERVATION
               ? slu_passages_other_stream(t->cfg->part, t->cfg->of, err)
               : rc;
}

static int ask_make(struct part *t, struct slu_reader *r, unsigned n_slots,
                    const struct slu_phase_parts *parts, struct slu_phase_own *own,
                    struct slu_sum *total, struct slu_passages_phase_result *result,
                    struct slu_err *err)
{
    static const struct slu_stream_ops ops = {NULL, ask_emit};
    const struct slu_phase_cfg *c = t->cfg;
    const struct slu_workfile_head *sign = &parts->head[c->part];
    struct slu_sorter_cfg sc = {c->budget_byte / 2, c->tmpdir, c->n_threads};
    int rc = slu_sorter_new(&t->asked, &sc, err);

    if (rc == SLU_OK)
        rc = new_cells(t, parts->n_range, 64, c->budget_byte / 2 - (1 << 20), err);
    t->windows = (struct slu_windows){
        .special = &t->special,
        .n_tok = c->n_passage_tok,
        .spread = (unsigned)__builtin_clzll(sign->count[N_PLACE] | 1),
        .asked = t->asked,
        .to = t->cells,
        .astray = "internal error"};
    if (rc == SLU_OK)
        rc = take_asked(t, parts, result, err);
    if (rc == SLU_OK)
        rc = slu_windows_begin(&t->windows, err);
    if (rc == SLU_OK)
        rc = slu_stream_run(r, &ops, t, c->n_threads, n_slots, total, err);
    if (rc)
        return rc;
    const uint64_t *n = sign->count;
    bool same;
    rc = slu_phase_same_stream(&same, n, r, total, err);
    if (rc)
        return rc;
    if (!same || n[N_PLACE] != t->n_place ||
        n[SPECIALS] != slu_passages_special_hash(slu_reader_header(r)) ||
        t->windows.has)
        return slu_passages_other_stream(c->part, c->of, err);
    memcpy(own->want.count, sign->count, sizeof own->want.count);
    own->want.count[N_WINDOW] = slu_cells_count(t->cells);
    result->spilled_byte = slu_sorter_spilled(t->asked);
    rc = write_cells(t, own, err);
    result->spilled_byte += slu_cells_spilled(t->cells);
    return rc;
}

/* Whether the part's sign file is of this tokenizer. */
static int signed_with(const struct slu_phase_cfg *c, const uint8_t *fingerprint,
                       struct slu_err *err)
{
    struct slu_workfile *f;
    int rc = slu_phase_open(c, SLU_WORKFILE_SIGN, c->part, c->of, c->ranges,
                            fingerprint, NULL, &f, err);
    slu_workfile_free(f);
    return rc;
}

int slu_passages_phase_ask(const struct slu_phase_cfg *c, struct slu_reader *r,
                           unsigned n_slots, struct slu_sum *total,
                           struct slu_passages_phase_result *result,
                           struct slu_err *err)
{
    struct slu_phase_own own = {
        .want = {.kind = SLU_WORKFILE_PASSAGES_ASK, .part = c->part, .of = c->of}};
    struct slu_phase_parts parts = {0};
    struct part t = {.cfg = c};

    *result = (struct slu_passages_phase_result){0};
    slu_sidecar_init(&t.blocks);
    slu_passages_specials(&t.special, slu_reader_header(r));
    slu_reader_track(r);
    memcpy(own.want.fingerprint, slu_reader_header(r)->fingerprint, 16);
    int rc = signed_with(c, own.want.fingerprint, err);
    if (rc == SLU_OK)
        rc = slu_phase_parts_read(&parts, c, c->of, err);
    own.want.inputs = parts.ids;
    if (rc == SLU_OK)
        rc = slu_phase_mix(&parts, c, SLU_WORKFILE_MERGE, parts.n_range, &parts.ids,
                           &own.want.inputs, err);
    if (rc == SLU_OK)
        rc = slu_phase_own(&own, c, parts.n_range, err);
    if (rc == SLU_OK && own.done)
        rc = slu_phase_compare(c, r, n_slots, &own.is, own.path, total, err);
    else if (rc == SLU_OK)
        rc = ask_make(&t, r, n_slots, &parts, &own, total, result, err);
    result->skipped = own.done;
    result->sequences = total->n.sequences;
    result->tokens = total->n.tokens;
    result->asked_windows = (own.done ? own.is : own.want).count[N_WINDOW];
    slu_phase_parts_release(&parts);
    release(&t);
    slu_phase_own_release(&own);
    return rc;
}
