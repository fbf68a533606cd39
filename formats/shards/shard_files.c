/* shard_files.c - files of a shard set: opens them, hashes them while they are written,
 * and notes them. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/shards/filelist.h"
#include "formats/shards/shard_private.h"
#include "lib/base/xxh3.h"

/* work: the folder of a part's rows; NULL: a file of the set. */
static int open_out(const struct slu_shards *s, const char *work, const char *name,
                    struct slu_digest *d, struct slu_out **out, struct slu_err *err)
{
    struct slu_buf path = SLU_BUF_INIT;
    int rc = work ? slu_buf_printf(&path, err, "%s/%s", work, name) : SLU_OK;

    *out = NULL;
    if (!rc)
        rc = work ? slu_out_open(out, (const char *)path.data, err)
                  : slu_set_create(&s->out, name, out, err);
    if (!rc)
        rc = slu_out_digest(*out, d, err);
    if (rc) {
        slu_out_abort(*out);
        *out = NULL;
    }
    slu_buf_release(&path);
    return rc;
}

void slu_shards_file_name(const struct slu_shards *s, const struct slu_shards_bucket *b,
                          uint64_t number, unsigned file, char out[SLU_SHARD_NAME])
{
    int n = snprintf(out, SLU_SHARD_NAME, "%s/", b->pub.name);

    s->cfg.format->file_name(s->state, number, file, out + n,
                             SLU_SHARD_NAME - (size_t)n);
}

int slu_shards_open_file(struct slu_shards *s, const struct slu_shards_bucket *b,
                         uint64_t number, unsigned file, struct slu_digest *d,
                         struct slu_out **out, struct slu_err *err)
{
    char name[SLU_SHARD_NAME];

    slu_shards_file_name(s, b, number, file, name);
    int rc = open_out(s, NULL, name, d, out, err);
    if (!rc)
        slu_out_leave_folder(*out); /* which are synced at once, at the end */
    return rc;
}

static int open_extra(struct slu_shards *s, const char *work, const char *name,
                      struct slu_shard_extra **e, struct slu_out **out,
                      struct slu_err *err)
{
    size_t n = strlen(name) + 1;

    *out = NULL;
    *e = calloc(1, sizeof **e + n);
    if (!*e)
        return slu_fail_nomem(err, sizeof **e + n);
    memcpy((*e)->name, name, n);
    *s->extra_end = *e;
    s->extra_end = &(*e)->next;
    return open_out(s, work, name, &(*e)->digest, out, err);
}

int slu_shards_open_extra(struct slu_shards *s, const char *name,
                          struct slu_shard_extra **e, struct slu_out **out,
                          struct slu_err *err)
{
    return open_extra(s, NULL, name, e, out, err);
}

int slu_shard_set_open(const struct slu_shard_set *set, const char *name,
                       struct slu_out **out, struct slu_err *err)
{
    struct slu_shard_extra *e;

    return slu_shards_open_extra(set->engine, name, &e, out, err);
}

void slu_shards_rows_name(const struct slu_shards_bucket *b, uint64_t index,
                          uint64_t of, char out[128])
{
    snprintf(out, 128, "rows.%llu-of-%llu.%s.tks", (unsigned long long)index,
             (unsigned long long)of, b->pub.name);
}

int slu_shards_begin_bucket(struct slu_shards *s, struct slu_shards_bucket *b,
                            struct slu_err *err)
{
    /* Parts omit the vocabulary, which is large. */
    struct slu_writer_cfg cfg = {s->cfg.zstd_level, s->part.of != 0, s->cfg.names};
    struct slu_out *out;
    char name[128];

    if (s->part.of)
        slu_shards_rows_name(b, s->part.index, s->part.of, name);
    else
        snprintf(name, sizeof name, "segments/%s.tks", b->pub.name);
    int rc =
        open_extra(s, s->part.of ? s->part.work : NULL, name, &b->rows_file, &out, err);
    return rc ? rc : slu_writer_open(&b->rows, out, &s->header, &cfg, err);
}

/* Number of sequences with several segments, not counting padding. */
static uint64_t count_packed(const struct slu_batch *b)
{
    uint64_t n = 0;

    for (size_t i = 0; i < b->n_seq; i++) {
        const struct slu_seg *seg = &b->seg[b->seq[i].seg_off];
        uint64_t n_text = 0;
        for (uint64_t k = 0; k < b->seq[i].n_seg; k++)
            n_text += seg[k].source != SLU_PADDING;
        n += n_text > 1;
    }
    return n;
}

static int count_lengths(struct slu_shards *s, const struct slu_batch *b,
                         struct slu_err *err)
{
    enum { MOST = 256 };
    uint64_t length[MOST];
    int rc = SLU_OK;

    for (size_t i = 0; i < b->n_seq && !rc;) {
        size_t n = 0;
        while (n < MOST && i < b->n_seq)
            length[n++] = b->seq[i++].len_tok;
        rc = slu_lengths_add(s->lengths, length, n, err);
    }
    return rc;
}

int slu_shards_put_rows(struct slu_shards *s, struct slu_shards_bucket *b,
                        struct slu_batch *rows, struct slu_err *err)
{
    int rc = s->lengths ? count_lengths(s, rows, err) : SLU_OK;

    if (!s->lengths)
        s->n_packed += count_packed(rows);
    if (!rc)
        rc = slu_domains_add_batch(&b->domains, rows, NULL, err);
    if (!rc)
        rc = slu_writer_put(b->rows, rows, err);
    slu_batch_clear(rows);
    return rc;
}

int slu_shards_add_shard(struct slu_shards *s, struct slu_shards_bucket *b,
                         const struct slu_shards_done *d, const struct slu_sum *sum,
                         struct slu_err *err)
{
    const struct slu_shard_facts *f = &d->facts;
    const struct slu_shards_done *before = slu_shards_done(b, f->number);
    int rc = slu_grow(&b->facts, &b->cap_facts, b->pub.n_shard + 1, sizeof *f, err);

    if (!rc && before && !before->given &&
        (before->facts.n_seq != f->n_seq || slu_u128_cmp(before->content, d->content)))
        return slu_shards_differs(s, b, f->number, err);
    struct slu_shards_done is = before ? *before : *d;
    is.n = sum->n;
    is.checksum = sum->checksum;
    is.mask_checksum = sum->mask_checksum;
    if (!rc && !before)
        rc = slu_shards_note(s, b, &is, err);
    if (!rc && s->part.of)
        rc = slu_grow(&b->noted, &b->cap_noted, b->pub.n_shard + 1, sizeof is, err);
    if (rc)
        return rc;
    if (s->part.of)
        b->noted[b->pub.n_shard] = is;
    b->facts[b->pub.n_shard++] = is.facts;
    b->pub.n_seq += f->n_seq;
    if (!b->pub.rule.per_tok && f->n_seq < b->pub.shard_sequences)
        b->n_short = f->n_seq;
    slu_sum_add(&b->sum, sum);
    return SLU_OK;
}

int slu_file_digest(const char *path, struct slu_buf *scratch, struct slu_digest *d,
                    struct slu_err *err)
{
    enum { PIECE = 1 << 18 };
    XXH3_state_t st;
    size_t got = PIECE;
    int fd, rc = slu_open_regular(&fd, path, NULL, err);

    XXH3_64bits_reset(&st);
    d->n_byte = 0;
    slu_buf_clear(scratch);
    if (!rc)
        rc = slu_buf_reserve(scratch, PIECE, err);
    while (!rc && got == PIECE) {
        rc = slu_read_full(fd, scratch->data, PIECE, &got, err);
        if (!rc)
            slu_xxh3_64_update(&st, scratch->data, got);
        d->n_byte += rc ? 0 : got;
    }
    d->xxh3 = slu_xxh3_64_digest(&st);
    if (fd >= 0)
        close(fd);
    return rc ? slu_err_at(err, "%s", path) : SLU_OK;
}

bool slu_file_is(const char *dir, const char *name, const struct slu_digest *d,
                 struct slu_buf *scratch)
{
    struct slu_digest is;
    struct stat st;
    char *path = NULL;
    bool ok = !slu_set_path(&path, dir, name, NULL) && !lstat(path, &st) &&
              S_ISREG(st.st_mode) && (uint64_t)st.st_size == d->n_byte &&
              !slu_file_digest(path, scratch, &is, NULL) && is.n_byte == d->n_byte &&
              is.xxh3 == d->xxh3;

    free(path);
    return ok;
}

/* Writes the format's file of a bucket: index.json or manifest.jsonl. */
static int bucket_file(struct slu_shards *s, struct slu_shards_bucket *b,
                       struct slu_err *err)
{
    const struct slu_shard_format *f = s->cfg.format;
    struct slu_shard_extra *e;
    struct slu_out *out;
    char name[300];

    snprintf(name, sizeof name, "%s/%s", b->pub.name, f->bucket_file);
    int rc = slu_shards_open_extra(s, name, &e, &out, err);
    if (rc)
        return rc;
    rc = f->bucket(s->state, &b->pub, b->facts, out, err);
    if (!rc)
        return slu_out_close(out, err);
    slu_out_abort(out);
    return rc;
}

/* Removes the file from the list of the set. */
static void forget(struct slu_shards *s, struct slu_shard_extra *e)
{
    struct slu_shard_extra **at = &s->extra;

    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    if (!*at)
        s->extra_end = at;
    free(e);
}

int slu_shards_end_bucket(struct slu_shards *s, struct slu_shards_bucket *b,
                          struct slu_err *err)
{
    if (!b->rows)
        return SLU_OK;
    if (b->pub.n_seq == 0) { /* all its sequences were dropped */
        slu_writer_abort(b->rows);
        b->rows = NULL;
        forget(s, b->rows_file);
        b->rows_file = NULL;
        return SLU_OK;
    }
    const struct slu_sum *rows = slu_writer_sum(b->rows);
    if (memcmp(&rows->n, &b->sum.n, sizeof rows->n))
        return slu_fail(
            err, SLU_E_CONSERVATION,
            "internal error: %s has %llu sequences in its shards and %llu in "
            "its segments, and %llu and %llu tokens that are trained on; please "
            "report it",
            b->pub.name, (unsigned long long)b->sum.n.sequences,
            (unsigned long long)rows->n.sequences,
            (unsigned long long)b->sum.n.loss_tokens,
            (unsigned long long)rows->n.loss_tokens);
    struct slu_sum sum = *rows; /* whose checksums are those of no ids */
    sum.checksum = b->sum.checksum;
    sum.mask_checksum = b->sum.mask_checksum;
    slu_sum_add(&s->sum, &sum);
    b->rows_file->n_seq = rows->n.sequences;
    b->rows_file->n_tok = rows->n.tokens;
    struct slu_writer *w = b->rows;
    b->rows = NULL;
    int rc = slu_writer_close(w, err);
    return rc || s->part.of || !s->cfg.format->bucket_file ? rc
                                                           : bucket_file(s, b, err);
}

int slu_shards_put_empty(struct slu_shards *s, struct slu_err *err)
{
    struct slu_writer_cfg cfg = {s->cfg.zstd_level, false, s->cfg.names};
    struct slu_shard_extra *e;
    struct slu_out *out;
    struct slu_writer *w;
    int rc = slu_shards_open_extra(s, SLU_SHARD_EMPTY, &e, &out, err);

    if (!rc)
        rc = slu_writer_open(&w, out, &s->header, &cfg, err);
    return rc ? rc : slu_writer_close(w, err);
}

int slu_shards_sync(const struct slu_shards *s, struct slu_err *err)
{
    struct slu_buf path = SLU_BUF_INIT;
    int rc = SLU_OK;

    for (unsigned i = 0; i < s->n_bucket && !rc; i++) {
        if (s->bucket[i].pub.n_seq == 0)
            continue;
        slu_buf_clear(&path);
        rc = slu_buf_printf(&path, err, "%s/%s", s->out.at, s->bucket[i].pub.name);
        if (!rc)
            rc = slu_sync_dir((const char *)path.data, err);
    }
    slu_buf_release(&path);
    return rc;
}

/* Adds the files of the format's folder beside the buckets, by its own list. */
static int list_folder(const struct slu_shards *s, struct slu_filelist *l,
                       struct slu_err *err)
{
    const char *folder = s->cfg.format->set_folder;
    struct slu_filelist own = SLU_FILELIST_INIT;
    struct slu_buf path = SLU_BUF_INIT, scratch = SLU_BUF_INIT;
    struct slu_digest d;
    char name[1024];
    int rc = slu_buf_printf(&path, err, "%s/%s", s->out.at, folder);

    if (!rc)
        rc = slu_filelist_load(&own, (const char *)path.data, err);
    for (size_t i = 0; i < own.n && !rc; i++) {
        snprintf(name, sizeof name, "%s/%s", folder, own.file[i].name);
        rc = slu_filelist_add(l, name, &own.file[i].digest, err);
    }
    if (!rc)
        rc = slu_buf_append(&path, "/manifest.jsonl", 16, err);
    if (!rc)
        rc = slu_file_digest((const char *)path.data, &scratch, &d, err);
    if (!rc) {
        snprintf(name, sizeof name, "%s/manifest.jsonl", folder);
        rc = slu_filelist_add(l, name, &d, err);
    }
    slu_buf_release(&scratch);
    slu_buf_release(&path);
    slu_filelist_release(&own);
    return rc == SLU_EOF ? SLU_OK : rc; /* there is none */
}

int slu_shards_list(const struct slu_shards *s, struct slu_filelist *l,
                    struct slu_err *err)
{
    char name[SLU_SHARD_NAME];
    int rc = slu_filelist_add(l, "report.json", &s->report, err);

    if (!rc)
        rc = slu_filelist_add(l, "manifest.jsonl", &s->manifest, err);
    for (unsigned i = 0; i < s->n_bucket && !rc; i++) {
        const struct slu_shards_bucket *b = &s->bucket[i];
        for (uint64_t k = 0; k < b->pub.n_shard && !rc; k++)
            for (unsigned j = 0; j < slu_shards_n_file(s) && !rc; j++) {
                const struct slu_shard_facts *f = &b->facts[k];
                slu_shards_file_name(s, b, f->number, j, name);
                rc = slu_filelist_add(
                    l, name, &(struct slu_digest){f->n_byte[j], f->xxh3[j]}, err);
            }
    }
    for (const struct slu_shard_extra *e = s->extra; e && !rc; e = e->next)
        rc = slu_filelist_add(l, e->name, &e->digest, err);
    return rc || !s->cfg.format->set_folder ? rc : list_folder(s, l, err);
}
