/* shard_part.c - writes one part of a shard set that several processes write (shard.h):
 * its journal; also checks the sequences of its source. */
#include "formats/shards/shard_part.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "formats/shards/shard_dir.h"

/* ---- the files of an earlier run ---- */

/* Takes over a complete part if all its files exist, not yet published or in a finished
 * set; its counts become those of this part. */
static int adopt(struct slu_shards *s, const char *dir, const struct slu_buf *text,
                 size_t head, size_t end, const struct slu_shards_end *e,
                 struct slu_err *err)
{
    struct slu_filelist set = SLU_FILELIST_INIT;
    const bool finished = dir == s->dir;
    const uint8_t *nl;
    int rc = slu_shards_check_rows(s, s->part.work, s->part.index, s->part.of, e, err);

    if (!rc && finished) /* as far as it is sound */
        (void)!slu_filelist_load_set(&set, dir, NULL);
    for (size_t at = head; at < end && !rc; at = (size_t)(nl - text->data) + 1) {
        struct slu_shards_done d;
        unsigned k;
        nl = memchr(text->data + at, '\n', text->len - at);
        if (!slu_shards_read_line(s, text->data + at, (size_t)(nl - text->data) - at,
                                  &d, &k))
            rc = slu_fail(err, SLU_E_FORMAT, "%s: a line does not describe a shard",
                          (const char *)s->journal_path.data);
        if (!rc)
            rc = slu_shards_check_files(s, dir, finished ? &set : NULL, &s->bucket[k],
                                        &d.facts, err);
        if (!rc)
            rc = slu_shards_adopt(&s->bucket[k], &d, err);
    }
    for (unsigned i = 0; i < s->n_bucket && !rc; i++)
        slu_sum_add(&s->sum, &s->bucket[i].sum);
    s->dropped = e->dropped;
    slu_filelist_release(&set);
    return rc;
}

static void forget(struct slu_shards *s)
{
    s->sum = s->dropped = (struct slu_sum){0};
    for (unsigned i = 0; i < s->n_bucket; i++) {
        struct slu_shards_bucket *b = &s->bucket[i];
        b->pub.n_shard = b->pub.n_seq = b->n_short = 0;
        b->sum = (struct slu_sum){0};
    }
}

/* Reads the existing journal, if it is ours. *found: shards may be taken over; skipped:
 * the part is complete. */
static int load(struct slu_shards *s, const struct slu_buf *head,
                const struct slu_buf *mark, bool *found, struct slu_err *err)
{
    const char *path = (const char *)s->journal_path.data;
    struct slu_buf text = SLU_BUF_INIT;
    struct slu_shards_end e;
    char what[512];
    size_t at;
    bool damaged;
    int rc = SLU_OK;

    *found = !access(path, F_OK);
    if (*found)
        rc = slu_read_regular(&text, path, SLU_SHARDS_MAX_JOURNAL, err);
    if (*found && s->cfg.force) { /* the part is made again */
        if (!rc && !slu_shards_is_head(&text))
            rc =
                slu_shard_dir_in_the_way(s->part.work, "", strrchr(path, '/') + 1, err);
        *found = false;
    }
    if (!*found || rc) {
        slu_buf_release(&text);
        return rc;
    }
    if (slu_shards_head_differs(&text, head, true, what, sizeof what))
        rc = slu_advise(err, SLU_ADVISE_FORCE,
                        slu_fail(err, SLU_E_MISMATCH, "%s: %s; remove it", path, what));
    const int there = rc ? rc : slu_set_check_mark(s->dir, mark, NULL);
    if (!rc && there >= 0 && slu_shards_get_end(s, &text, &e, &at, &damaged)) {
        char partial[4096];
        snprintf(partial, sizeof partial, "%s/" SLU_SET_PARTIAL, s->dir);
        s->skipped =
            !adopt(s, there ? s->dir : partial, &text, head->len, at, &e, NULL);
        if (!s->skipped)
            forget(s);
    }
    if (!rc && !s->skipped)
        rc = slu_shards_read_lines(s, text.data + head->len, text.data + text.len, err);
    slu_buf_release(&text);
    return rc;
}

/* ---- the source, counted ---- */

struct counted {
    struct slu_shards *s;
    slu_shards_source *source;
    void *ctx;
    uint64_t n[SLU_MAX_BUCKETS];
    int last;
};

/* Checks that the bucket's span is complete. */
static int check_span(const struct counted *c, unsigned k, struct slu_err *err)
{
    uint64_t want = c->s->part.span[k].n_seq;

    if (c->n[k] == want || c->s->cfg.documents) /* of which spans have shards */
        return SLU_OK;
    return slu_fail(err, SLU_E_CONSERVATION,
                    "internal error: part %llu/%llu has %llu sequences of %s, and was "
                    "to have %llu; please report it",
                    (unsigned long long)c->s->part.index,
                    (unsigned long long)c->s->part.of, (unsigned long long)c->n[k],
                    c->s->bucket[k].pub.name, (unsigned long long)want);
}

/* Called before the engine sees a bucket's end, because the engine ends a short shard
 * there. */
static int counted(void *ctx, struct slu_pipe *pipe, struct slu_batch *b,
                   struct slu_err *err)
{
    struct counted *c = ctx;
    int rc = c->source(c->ctx, pipe, b, err);

    for (size_t i = 0; i < b->n_seq && !rc; i++) {
        int k = slu_shards_bucket_of(c->s, b->seq[i].len_tok);
        if (k < 0)
            break; /* the engine reports this fault */
        if (c->s->cfg.by_bucket && c->last >= 0 && c->last != k)
            rc = check_span(c, (unsigned)c->last, err);
        c->last = k;
        if (++c->n[k] > c->s->part.span[k].n_seq && !rc) /* fails */
            rc = check_span(c, (unsigned)k, err);
    }
    for (unsigned i = 0; i < c->s->n_bucket && rc == SLU_EOF; i++) {
        int bad = check_span(c, i, err);
        rc = bad ? bad : rc;
    }
    return rc;
}

/* ---- the part ---- */

static int set_part(struct slu_shards *s, const struct slu_shards_part *part,
                    struct slu_err *err)
{
    int rc;

    s->keep = true;
    s->part = *part;
    for (unsigned i = 0; i < s->n_bucket; i++) {
        const struct slu_shards_span *n = &part->span[i];
        s->bucket[i].first = n->n_seq ? n->first_shard : 0;
        if (s->cfg.documents)
            continue;
        s->bucket[i].place = s->bucket[i].first * s->bucket[i].pub.rule.size;
        if (!n->last && n->n_seq % s->bucket[i].pub.shard_sequences)
            return slu_fail(err, SLU_E_CONSERVATION,
                            "internal error: part %llu/%llu ends in the middle of a "
                            "shard of %s; please report it",
                            (unsigned long long)part->index,
                            (unsigned long long)part->of, s->bucket[i].pub.name);
    }
    rc = slu_shards_part_path(part->work, part->index, part->of, "jsonl",
                              &s->journal_path, err);
    return rc;
}

/* All files are on disk: writes the journal anew, in order and with its last line. */
static int close_journal(struct slu_shards *s, struct slu_buf *head,
                         const struct slu_buf *mark, struct slu_err *err)
{
    struct slu_shards_end e = {.dropped = s->dropped};
    int rc = slu_shards_sync(s, err);

    if (!rc)
        rc = slu_set_check_mark(s->dir, mark, err);
    if (rc == SLU_EOF)
        rc = slu_fail(err, SLU_E_MISMATCH,
                      "%s: another shuffle has written here in the meantime", s->dir);
    for (unsigned i = 0; i < s->n_bucket && !rc; i++) {
        const struct slu_shards_bucket *b = &s->bucket[i];
        for (uint64_t k = 0; k < b->pub.n_shard && !rc; k++)
            rc = slu_shards_line(s, b, &b->noted[k], head, err);
        e.n_shard += b->pub.n_shard;
        if (b->pub.n_shard)
            e.rows[i] = b->rows_file->digest;
    }
    if (!rc)
        rc = slu_shards_put_end(s, &e, head, err);
    return rc ? rc
              : slu_out_whole((const char *)s->journal_path.data, head->data, head->len,
                              err);
}

static int write_part(struct slu_shards *s, struct counted *c, struct slu_buf *head,
                      const struct slu_buf *mark, bool found, unsigned n_threads,
                      unsigned n_slots, struct slu_err *err)
{
    size_t first = head->len;
    int rc =
        slu_set_begin_part(&s->out, s->dir, s->cfg.format, mark, s->cfg.replace, err);

    if (!rc)
        rc = slu_set_lock_part(&s->out, s->part.index, s->part.of, err);
    if (!rc && found)
        rc = slu_shards_look(s, n_threads, err);
    if (!rc)
        rc = slu_shards_write_journal(s, head, err);
    if (!rc)
        rc = slu_shards_run(s, counted, c, n_threads, n_slots, err);
    for (unsigned i = 0; i < s->n_bucket && !rc; i++)
        rc = slu_shards_end_bucket(s, &s->bucket[i], err);
    head->len = first;
    return rc ? rc : close_journal(s, head, mark, err);
}

int slu_shards_write_part(struct slu_shards *s, const struct slu_shards_part *part,
                          slu_shards_source *source, void *ctx,
                          const struct slu_sum *input, unsigned n_threads,
                          unsigned n_slots, struct slu_err *err)
{
    struct counted c = {.s = s, .source = source, .ctx = ctx, .last = -1};
    struct slu_buf head = SLU_BUF_INIT, mark = SLU_BUF_INIT;
    bool found = false;
    int rc = set_part(s, part, err);

    if (!rc)
        rc = slu_shards_part_mark(s, part->of, input, &mark, err);
    if (!rc)
        rc = slu_shards_part_head(s, part, input, &head, err);
    if (!rc)
        rc = load(s, &head, &mark, &found, err);
    if (!rc && !s->skipped)
        rc = write_part(s, &c, &head, &mark, found, n_threads, n_slots, err);
    slu_buf_release(&mark);
    slu_buf_release(&head);
    return rc;
}

bool slu_shards_skipped(const struct slu_shards *s)
{
    return s->skipped;
}
