/* pairs.c - --pairs: writes each dropped sequence and the kept one as a JSON line, with
 * the ids of their documents.
 *
 * A line names documents that have been read before, maybe long ago. So once a document
 * has an id, lines wait in a temporary file. A sort by document brings each id to the
 * lines that name the document; a second sort brings these ids in the order of the
 * lines. Without ids, lines are written at once.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/json_write.h"
#include "lib/flow/sorter.h"
#include "tools/dedup/dedup.h"

enum { FLUSH_BYTE = 64 << 10, MARKS = DEDUP_PAIRS_MARKS };

/* The memory for lines, and that of each sorter. */
static uint64_t wait_byte(uint64_t memory)
{
    const uint64_t n = memory / 64, most = 16 << 20, least = 1 << 20;

    return n < least ? least : n > most ? most : n;
}

uint64_t dedup_pairs_byte(const struct cli_ctx *ctx)
{
    return ((const struct dedup_opts *)ctx->opts)->pairs
               ? 3 * wait_byte(ctx->common.memory)
               : 0;
}

static int new_sorter(const struct dedup_pairs *p, struct slu_sorter **s,
                      struct slu_err *err)
{
    const struct slu_sorter_cfg cfg = {
        .budget_byte = p->wait_byte, .tmpdir = p->tmpdir, .n_threads = 1};

    return slu_sorter_new(s, &cfg, err);
}

int dedup_pairs_open(struct dedup_pairs *p, const char *path, struct slu_names *names,
                     const struct cli_ctx *ctx, struct slu_err *err)
{
    *p = (struct dedup_pairs){.names = names,
                              .tmpdir = ctx->common.tmpdir,
                              .wait_byte = wait_byte(ctx->common.memory),
                              .fd = -1};
    return path ? slu_out_open(&p->out, path, err) : SLU_OK;
}

/* Writes the lines so far, or moves them to the temporary file. */
static int flush(struct dedup_pairs *p, struct slu_err *err)
{
    int rc = p->ids ? slu_write_full(p->fd, p->text.data, p->text.len, err)
                    : slu_out_write(p->out, p->text.data, p->text.len, err);

    p->spilled_byte += p->ids ? p->text.len : 0;
    slu_buf_clear(&p->text);
    return rc;
}

/* From now on, lines wait for ids. */
static int wait_for_ids(struct dedup_pairs *p, struct slu_err *err)
{
    int rc = flush(p, err);

    if (!rc)
        rc = slu_tmpfile(&p->fd, p->tmpdir, err);
    return rc ? rc : new_sorter(p, &p->ids, err);
}

/* ---- what waits ---- */

/* Adds n bytes for a document, after a number: 0 for its id, else 1 + 2 * line + mark.
 * So the id comes first. */
static int add(struct dedup_pairs *p, uint64_t source, uint64_t document,
               uint64_t number, const void *id, size_t n, struct slu_err *err)
{
    const uint64_t key[] = {source, document};
    const struct slu_slice piece[] = {{&number, sizeof number}, {id, n}};

    return slu_sorter_add(p->ids, slu_hash128(key, sizeof key), piece, 2, err);
}

int dedup_pairs_seen(void *ctx, const struct slu_batch *b, struct slu_err *err)
{
    struct dedup_io *io = ctx;
    struct dedup_pairs *p = &io->pairs;
    int rc = SLU_OK;

    for (size_t i = 0; i < b->n_seq && !rc; i++) {
        const struct slu_seg *s = &b->seg[b->seq[i].seg_off];
        for (uint64_t k = 0; k < b->seq[i].n_seg && !rc; k++, s++) {
            if (!s->id_len)
                continue;
            if (!p->ids)
                rc = wait_for_ids(p, err);
            if (!rc)
                rc = add(p, s->source, s->document, 0, b->str.data + s->id_off,
                         s->id_len, err);
        }
    }
    return rc;
}

int dedup_pairs_begin(struct dedup_pairs *p, struct slu_err *err)
{
    p->line = (struct dedup_line){0};
    p->at = p->text.len;
    return p->ids ? slu_buf_append(&p->text, &p->line, sizeof p->line, err) : SLU_OK;
}

int dedup_pairs_id(struct dedup_pairs *p, const struct slu_origin *origin,
                   struct slu_err *err)
{
    struct dedup_line *l = &p->line;
    const uint64_t number = 1 + MARKS * p->n_waiting + l->n_mark;

    if (!p->ids)
        return SLU_OK;
    l->mark[l->n_mark++] = (uint32_t)(p->text.len - p->at - sizeof *l);
    return slu_origin_is_index(origin)
               ? SLU_OK
               : add(p, origin->source, origin->document, number, NULL, 0, err);
}

int dedup_pairs_end(struct dedup_pairs *p, struct slu_err *err)
{
    p->n++;
    if (p->ids) {
        p->line.n_byte = (uint32_t)(p->text.len - p->at - sizeof p->line);
        memcpy(p->text.data + p->at, &p->line, sizeof p->line);
        p->n_waiting++;
    }
    return p->text.len >= (p->ids ? p->wait_byte / 2 : FLUSH_BYTE) ? flush(p, err)
                                                                   : SLU_OK;
}

/* ---- lines ---- */

int dedup_put_origin(struct slu_buf *text, struct slu_names *names,
                     const struct slu_origin *origin, struct slu_err *err)
{
    const char *name = slu_names_source(names, origin->source);
    int rc = slu_buf_printf(text, err, "\"source\":");

    if (!rc)
        rc = slu_json_put_string(text, name ? name : "", name ? strlen(name) : 0, err);
    return rc ? rc
              : slu_buf_printf(
                    text, err,
                    ",\"source_number\":%llu,\"document\":%llu,\"offset\":%llu",
                    (unsigned long long)origin->source,
                    (unsigned long long)origin->document,
                    (unsigned long long)origin->offset);
}

static int put_place(struct dedup_pairs *p, const char *key,
                     const struct slu_origin *origin, struct slu_err *err)
{
    int rc = slu_buf_printf(&p->text, err, "\"%s\":{", key);

    if (!rc && slu_origin_is_index(origin))
        rc = slu_buf_printf(&p->text, err, "\"index\":%llu",
                            (unsigned long long)origin->document);
    else if (!rc)
        rc = dedup_put_origin(&p->text, p->names, origin, err);
    if (!rc)
        rc = dedup_pairs_id(p, origin, err);
    return rc ? rc : slu_buf_append(&p->text, "},", 2, err);
}

static int put_similarity(struct dedup_pairs *p, uint64_t inter, uint64_t uni,
                          struct slu_err *err)
{
    unsigned long long m; /* millionths, rounded half up, computed in integers */

    if (inter == uni)
        return slu_buf_printf(&p->text, err, "\"similarity\":1}\n");
    m = (unsigned long long)(((unsigned __int128)inter * 2000000 + uni) /
                             ((unsigned __int128)uni * 2));
    return slu_buf_printf(&p->text, err, "\"similarity\":%llu.%06llu}\n", m / 1000000,
                          m % 1000000);
}

int dedup_pairs_put(struct dedup_pairs *p, const struct slu_origin *dropped,
                    const struct slu_origin *kept, uint64_t inter, uint64_t uni,
                    struct slu_err *err)
{
    if (!p->out)
        return SLU_OK;
    int rc = dedup_pairs_begin(p, err);
    if (!rc)
        rc = slu_buf_append(&p->text, "{", 1, err);
    if (!rc)
        rc = put_place(p, "dropped", dropped, err);
    if (!rc)
        rc = put_place(p, "kept", kept, err);
    if (!rc)
        rc = put_similarity(p, inter, uni, err);
    return rc ? rc : dedup_pairs_end(p, err);
}

/* ---- the end ---- */

/* Moves the ids to the lines that wait for them: by number of line and mark. */
static int join(struct dedup_pairs *p, struct slu_sorter *to, struct slu_err *err)
{
    struct slu_buf id = SLU_BUF_INIT;
    struct slu_u128 key, of = {0, 0};
    const void *v;
    size_t n;
    int rc = slu_sorter_seal(p->ids, err);

    while (!rc && !(rc = slu_sorter_next(p->ids, &key, &v, &n, err))) {
        uint64_t number;
        memcpy(&number, v, sizeof number);
        if (!number) {
            of = key;
            slu_buf_clear(&id);
            rc = slu_buf_append(&id, (const uint8_t *)v + sizeof number,
                                n - sizeof number, err);
        } else if (id.len && !slu_u128_cmp(of, key)) {
            const struct slu_slice piece = {id.data, id.len};
            const uint64_t at = number - 1;
            const struct slu_u128 place = {
                .hi =
                    (uint64_t)(((unsigned __int128)at << 64) / (MARKS * p->n_waiting)),
                .lo = at};
            rc = slu_sorter_add(to, place, &piece, 1, err);
        }
    }
    slu_buf_release(&id);
    if (rc == SLU_EOF)
        rc = slu_sorter_seal(to, err);
    return rc;
}

/* Writes a line, with the ids that it has. *at, id, n: the next id, for mark *at. */
static int put_line(struct dedup_pairs *p, uint64_t number, const struct dedup_line *l,
                    const char *text, struct slu_sorter *ids, struct slu_u128 *at,
                    const void **id, size_t *n, struct slu_err *err)
{
    uint32_t from = 0;
    int rc = SLU_OK;

    for (uint32_t k = 0; k < l->n_mark && !rc; k++) {
        if (!*id || at->lo != MARKS * number + k)
            continue;
        rc = slu_buf_append(&p->text, text + from, l->mark[k] - from, err);
        if (!rc)
            rc = slu_buf_printf(&p->text, err, ",\"id\":");
        if (!rc)
            rc = slu_json_put_string(&p->text, *id, *n, err);
        from = l->mark[k];
        if (!rc)
            rc = slu_sorter_next(ids, at, id, n, err);
        if (rc == SLU_EOF) {
            *id = NULL;
            rc = SLU_OK;
        }
    }
    if (!rc)
        rc = slu_buf_append(&p->text, text + from, l->n_byte - from, err);
    if (!rc && p->text.len >= FLUSH_BYTE) {
        rc = slu_out_write(p->out, p->text.data, p->text.len, err);
        slu_buf_clear(&p->text);
    }
    return rc;
}

/* Writes the lines that waited, which are read from f. ids: sealed. */
static int put_lines(struct dedup_pairs *p, FILE *f, struct slu_sorter *ids,
                     struct slu_err *err)
{
    struct slu_buf text = SLU_BUF_INIT;
    struct slu_u128 at = {0, 0};
    const void *id = NULL;
    size_t n = 0;
    int rc = slu_sorter_next(ids, &at, &id, &n, err);

    if (rc == SLU_EOF) {
        id = NULL;
        rc = SLU_OK;
    }
    for (uint64_t i = 0; i < p->n_waiting && !rc; i++) {
        struct dedup_line l;
        slu_buf_clear(&text);
        if (fread(&l, sizeof l, 1, f) != 1)
            rc = slu_fail_errno(err, "%s: temporary file", p->tmpdir);
        if (!rc)
            rc = slu_buf_reserve(&text, l.n_byte, err);
        if (!rc && fread(text.data, 1, l.n_byte, f) != l.n_byte)
            rc = slu_fail_errno(err, "%s: temporary file", p->tmpdir);
        if (!rc)
            rc = put_line(p, i, &l, (const char *)text.data, ids, &at, &id, &n, err);
    }
    slu_buf_release(&text);
    return rc ? rc : slu_out_write(p->out, p->text.data, p->text.len, err);
}

/* Writes the lines that waited: those in the temporary file, if there are any, else
 * those in p->text. */
static int put_waiting(struct dedup_pairs *p, struct slu_err *err)
{
    struct slu_buf lines = SLU_BUF_INIT;
    struct slu_sorter *ids = NULL;
    FILE *f = NULL;
    int rc = p->spilled_byte ? flush(p, err) : SLU_OK;

    if (!rc && p->spilled_byte) {
        if (lseek(p->fd, 0, SEEK_SET) == 0 && (f = fdopen(p->fd, "r")))
            p->fd = -1;
    } else if (!rc) {
        lines = p->text;
        p->text = (struct slu_buf)SLU_BUF_INIT;
        f = fmemopen(lines.data, lines.len, "r");
    }
    if (!rc && !f)
        rc = slu_fail_errno(err, "%s: temporary file", p->tmpdir);
    if (!rc)
        rc = new_sorter(p, &ids, err);
    if (!rc)
        rc = join(p, ids, err);
    if (!rc)
        rc = put_lines(p, f, ids, err);
    if (!rc)
        p->spilled_byte += slu_sorter_spilled(p->ids) + slu_sorter_spilled(ids);
    slu_sorter_free(ids);
    if (f)
        fclose(f);
    slu_buf_release(&lines);
    return rc;
}

int dedup_pairs_close(struct dedup_pairs *p, struct slu_err *err)
{
    struct slu_out *out = p->out;
    int rc = !out ? SLU_OK : p->n_waiting ? put_waiting(p, err) : flush(p, err);

    if (rc || !out)
        return rc;
    p->out = NULL;
    return slu_out_close(out, err);
}

void dedup_pairs_abort(struct dedup_pairs *p)
{
    slu_out_abort(p->out);
    p->out = NULL;
    slu_sorter_free(p->ids);
    p->ids = NULL;
    if (p->fd > 0)
        close(p->fd);
    p->fd = -1;
    slu_buf_release(&p->text);
}
