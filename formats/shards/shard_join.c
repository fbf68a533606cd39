/* shard_join.c - makes one shard set of parts: reads their journals, checks the sizes
 * of their files, and streams their segment rows into those of the set. */
#include "formats/shards/shard_part.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/shards/shardset.h"

struct join {
    struct slu_shards *s;
    const char *work;
    uint64_t of;
    struct slu_buf mark;
    const char *dir;             /* of the shards: DIR/.partial, or of a finished set */
    bool finished;               /* the set is already finished */
    struct slu_filelist *set;    /* files of the finished set, or NULL */
    bool ended[SLU_MAX_BUCKETS]; /* the bucket's last sequences have come */
    struct rows {
        char **path; /* path of each part's journal, in order */
        size_t n, cap;
    } rows[SLU_MAX_BUCKETS];
};

/* "…; run part J/R again" */
static int again(const struct join *j, uint64_t part, int code, const char *what,
                 struct slu_err *err)
{
    return slu_fail(err, code,
                    "%s/shards.%llu-of-%llu.jsonl: %s; run part %llu/%llu again",
                    j->work, (unsigned long long)part, (unsigned long long)j->of, what,
                    (unsigned long long)part, (unsigned long long)j->of);
}

/* ---- journals ---- */

/* Reads the journal's spans. false: it has none. */
static bool read_spans(const struct join *j, struct slu_json_value head,
                       struct slu_shards_span *span)
{
    struct slu_json_value list = SLU_JSON_NONE;
    struct slu_json_iter it;
    unsigned i = 0;
    bool ok = slu_json_get(head, "spans", &list);

    for (slu_json_iter_init(&it, list); ok && slu_json_next(&it); i++) {
        struct slu_json_iter of;
        uint64_t v[3] = {0};
        unsigned k = 0;
        for (slu_json_iter_init(&of, it.value); ok && slu_json_next(&of); k++)
            ok = k < 3 && slu_json_u64(of.value, &v[k]);
        ok = ok && k == 3 && i < j->s->n_bucket;
        if (ok)
            span[i] = (struct slu_shards_span){v[0], v[1], v[2] != 0};
    }
    return ok && i == j->s->n_bucket;
}

/* Checks that the journal's head is of this set and part. */
static int check_head(const struct join *j, uint64_t part, const struct slu_buf *text,
                      struct slu_shards_span *span, struct slu_err *err)
{
    struct slu_json *theirs = NULL;
    const uint8_t *nl = memchr(text->data, '\n', text->len);
    char what[512];
    uint64_t index, of;
    int rc = SLU_OK;

    if (!nl || slu_json_parse(&theirs, text->data, (size_t)(nl - text->data), NULL))
        rc = again(j, part, SLU_E_FORMAT, "is not the journal of a part", err);
    else if (slu_shards_head_differs(text, &j->mark, false, what, sizeof what))
        rc = again(j, part, SLU_E_MISMATCH, what, err);
    struct slu_json_value head = slu_json_root(theirs);
    if (!rc &&
        (!slu_shards_u64(head, "part", &index) || !slu_shards_u64(head, "of", &of) ||
         index != part || of != j->of || !read_spans(j, head, span)))
        rc = again(j, part, SLU_E_MISMATCH, "is of another part", err);
    slu_json_free(theirs);
    return rc;
}

/* The shards of a bucket that a part must have, and the number of sequences in the last
 * of them. */
struct expected {
    uint64_t n_shard, n_last;
    bool less; /* of whole documents: one less is right too, as none begins there */
};

/* Computes from the spans which shards must come. */
static int check_spans(struct join *j, uint64_t part,
                       const struct slu_shards_span *span, struct expected *x,
                       struct slu_err *err)
{
    for (unsigned i = 0; i < j->s->n_bucket; i++) {
        const struct slu_shards_bucket *b = &j->s->bucket[i];
        bool documents = j->s->cfg.documents;
        uint64_t full = documents ? 1 : b->pub.shard_sequences, n = span[i].n_seq;
        bool rest = n % full && !j->s->cfg.drop_last;
        const char *what = NULL;
        x[i] = (struct expected){n / full + rest, rest ? n % full : full,
                                 documents && span[i].last};
        if (n && j->ended[i])
            what = "has sequences after the last of";
        else if (n && span[i].first_shard < b->pub.n_shard)
            what = "has shards that earlier parts have, of";
        else if (n && span[i].first_shard > b->pub.n_shard)
            what = "does not begin with the next shard of";
        else if (n % full && !span[i].last)
            what = "ends in the middle of a shard of";
        if (what) {
            char text[128];
            snprintf(text, sizeof text, "%s %s", what, b->pub.name);
            return again(j, part, SLU_E_MISMATCH, text, err);
        }
        j->ended[i] = j->ended[i] || span[i].last;
    }
    return SLU_OK;
}

static int read_shards(struct join *j, uint64_t part, const uint8_t *p,
                       const uint8_t *end, const struct expected *x,
                       struct slu_err *err)
{
    struct slu_shards *s = j->s;
    uint64_t want[SLU_MAX_BUCKETS];
    const uint8_t *nl;
    int rc = SLU_OK;

    for (unsigned i = 0; i < s->n_bucket; i++)
        want[i] = s->bucket[i].pub.n_shard + x[i].n_shard;
    for (; p < end && !rc; p = nl + 1) {
        struct slu_shards_done d;
        unsigned k;
        nl = memchr(p, '\n', (size_t)(end - p)); /* a last line must follow */
        if (!nl || !slu_shards_read_line(s, p, (size_t)(nl - p), &d, &k))
            return again(j, part, SLU_E_FORMAT,
                         "has a line that does not describe a shard", err);
        struct slu_shards_bucket *b = &s->bucket[k];
        if (d.facts.number != b->pub.n_shard || b->pub.n_shard == want[k])
            return again(j, part, SLU_E_FORMAT, "has shards out of order", err);
        if (!s->cfg.documents &&
            d.facts.n_seq !=
                (d.facts.number + 1 == want[k] ? x[k].n_last : b->pub.shard_sequences))
            return again(j, part, SLU_E_FORMAT, "has a shard of the wrong size", err);
        rc = slu_shards_check_files(s, j->dir, j->set, b, &d.facts, err);
        if ((rc == SLU_E_TRUNCATED || rc == SLU_E_MISMATCH) && err)
            rc = again(j, part, rc, strdupa(err->msg), err);
        if (!rc)
            rc = slu_shards_adopt(b, &d, err);
    }
    for (unsigned i = 0; i < s->n_bucket && !rc; i++)
        if (s->bucket[i].pub.n_shard != want[i] &&
            !(x[i].less && s->bucket[i].pub.n_shard + 1 == want[i]))
            rc = again(j, part, SLU_E_FORMAT, "lacks shards", err);
    return rc;
}

/* Checks the hash of a rows file, because a complete stream may belong to another part.
 * The file is read soon afterwards. */
static int check_rows(struct join *j, uint64_t part, const char *path,
                      const struct slu_digest *want, struct slu_err *err)
{
    struct slu_buf scratch = SLU_BUF_INIT;
    struct slu_digest is;
    int rc = slu_file_digest(path, &scratch, &is, err);

    slu_buf_release(&scratch);
    if (!rc && (is.n_byte != want->n_byte || is.xxh3 != want->xxh3))
        rc = slu_fail(err, SLU_E_CHECKSUM,
                      "%s: differs from the part's journal; remove it and run part "
                      "%llu/%llu again",
                      path, (unsigned long long)part, (unsigned long long)j->of);
    return rc;
}

static int add_rows(struct join *j, uint64_t part, const struct slu_shards_end *e,
                    struct slu_err *err)
{
    int rc = slu_shards_check_rows(j->s, j->work, part, j->of, e, err);

    if (rc == SLU_E_TRUNCATED && err)
        rc = again(j, part, rc, strdupa(err->msg), err);
    for (unsigned i = 0; i < j->s->n_bucket && !rc; i++) {
        struct rows *rows = &j->rows[i];
        char name[128], *path = NULL;
        if (e->rows[i].n_byte == 0)
            continue;
        slu_shards_rows_name(&j->s->bucket[i], part, j->of, name);
        rc = slu_grow(&rows->path, &rows->cap, rows->n + 1, sizeof *rows->path, err);
        if (!rc && asprintf(&path, "%s/%s", j->work, name) < 0)
            rc = slu_fail_nomem(err, sizeof name);
        if (rc)
            break;
        rows->path[rows->n++] = path;
        if (!j->finished)
            rc = check_rows(j, part, path, &e->rows[i], err);
    }
    return rc;
}

static int read_part(struct join *j, uint64_t part, struct slu_err *err)
{
    struct slu_shards_span span[SLU_MAX_BUCKETS];
    struct expected x[SLU_MAX_BUCKETS];
    struct slu_buf path = SLU_BUF_INIT, text = SLU_BUF_INIT;
    struct slu_shards_end e;
    size_t at = 0;
    bool damaged = false;
    int rc = slu_shards_part_path(j->work, part, j->of, "jsonl", &path, err);

    if (!rc && access((const char *)path.data, F_OK))
        rc = again(j, part, SLU_E_MISMATCH, "is missing", err);
    if (!rc)
        rc = slu_read_regular(&text, (const char *)path.data, SLU_SHARDS_MAX_JOURNAL,
                              err);
    if (!rc)
        rc = check_head(j, part, &text, span, err);
    if (!rc && !slu_shards_get_end(j->s, &text, &e, &at, &damaged))
        rc =
            again(j, part, damaged ? SLU_E_CHECKSUM : SLU_E_TRUNCATED,
                  damaged ? "is damaged" : "has no end: the part is not complete", err);
    if (!rc)
        rc = check_spans(j, part, span, x, err);
    const uint8_t *first = rc ? NULL : memchr(text.data, '\n', text.len);
    if (!rc)
        rc = read_shards(j, part, first + 1, text.data + at, x, err);
    if (!rc)
        rc = add_rows(j, part, &e, err);
    if (!rc)
        slu_sum_add(&j->s->dropped, &e.dropped);
    slu_buf_release(&text);
    slu_buf_release(&path);
    return rc;
}

/* ---- rows ---- */

/* Notes the name of a source, which all parts must give it. */
static int note_source(struct slu_names *from, struct slu_names *to, uint64_t source,
                       struct slu_err *err)
{
    const char *name = slu_names_source(from, source);
    const char *had = slu_names_source(to, source);

    if (!had)
        return slu_names_set_source(to, source, name, err);
    return strcmp(had, name)
               ? slu_fail(err, SLU_E_MISMATCH,
                          "source %llu is named %s in one part and %s in another; "
                          "use one list of sources for all parts",
                          (unsigned long long)source, had, name)
               : SLU_OK;
}

/* Gives names their numbers in `to`. */
static int translate(struct slu_batch *b, struct slu_names *from, struct slu_names *to,
                     struct slu_err *err)
{
    uint64_t last = SLU_PADDING;
    int rc = slu_shardset_domains(b, from, to, err);

    for (size_t i = 0; i < b->n_seg && !rc; i++) {
        const uint64_t source = b->seg[i].source;
        if (source == SLU_PADDING || source == last)
            continue;
        rc = note_source(from, to, source, err);
        last = source;
    }
    return rc;
}

static int copy_rows(struct join *j, unsigned k, struct slu_err *err)
{
    struct slu_shards *s = j->s;
    struct slu_reader_cfg cfg = {.path = (const char *const *)j->rows[k].path,
                                 .n_path = j->rows[k].n,
                                 .masks = true,
                                 .inner_padding = true};
    struct slu_reader *r = NULL;
    struct slu_batch b;
    int rc = slu_shards_begin_bucket(s, &s->bucket[k], err);

    slu_batch_init(&b, s->header.tok_bytes);
    if (!rc)
        rc = slu_reader_open(&r, &cfg, err);
    while (!rc && (rc = slu_reader_next(r, &b, err)) == SLU_OK) {
        rc = translate(&b, slu_reader_names(r), s->cfg.names, err);
        if (!rc)
            rc = slu_shards_put_rows(s, &s->bucket[k], &b, err);
    }
    if (rc == SLU_EOF)
        rc = slu_reader_finish(r, NULL, err);
    slu_batch_release(&b);
    slu_reader_free(r);
    return rc;
}

/* ---- the set ---- */

/* Links the shards of a finished set to where the set is made again. */
static int reopen(struct join *j, struct slu_err *err)
{
    struct slu_shards *s = j->s;
    char name[SLU_SHARD_NAME];
    int rc = slu_set_reopen(&s->out, &j->mark, err);

    for (unsigned i = 0; i < s->n_bucket; i++) {
        const struct slu_shards_bucket *b = &s->bucket[i];
        for (uint64_t k = 0; k < b->pub.n_shard && !rc; k++)
            for (unsigned f = 0; f < slu_shards_n_file(s) && !rc; f++) {
                const struct slu_shard_facts *x = &b->facts[k];
                slu_shards_file_name(s, b, x->number, f, name);
                rc = slu_set_link(&s->out, s->dir, name,
                                  &(struct slu_digest){x->n_byte[f], x->xxh3[f]}, err);
            }
    }
    return rc;
}

static int make_set(struct join *j, struct slu_err *err)
{
    struct slu_shards *s = j->s;
    int rc = SLU_OK;

    for (unsigned i = 0; i < s->n_bucket && !rc; i++)
        if (s->bucket[i].pub.n_shard)
            rc = copy_rows(j, i, err);
    for (unsigned i = 0; i < s->n_bucket && !rc; i++)
        rc = slu_shards_end_bucket(s, &s->bucket[i], err);
    return rc;
}

int slu_shards_join(struct slu_shards *s, const char *work, uint64_t of,
                    const struct slu_sum *input, struct slu_err *err)
{
    struct join j = {.s = s, .work = work, .of = of};
    struct slu_filelist set = SLU_FILELIST_INIT;
    int there = SLU_OK, bad = SLU_OK;
    int rc = slu_shards_part_mark(s, of, input, &j.mark, err);

    s->keep = true;
    if (!rc)
        rc = there = slu_set_begin_join(&s->out, s->dir, s->cfg.format, &j.mark, err);
    j.dir = there == SLU_EOF ? s->dir : s->out.at;
    j.set = there == SLU_EOF ? &set : NULL;
    if (j.set) /* as far as it is sound */
        (void)!slu_filelist_load_set(j.set, s->dir, NULL);
    /* The set is made again if any of its files differs. */
    j.finished = j.set && !s->cfg.force && slu_shards_set_is_there(s, j.set);
    for (uint64_t i = 0; i < of && rc >= 0 && !bad; i++)
        bad = read_part(&j, i, err);
    rc = bad ? bad : rc;
    if (there == SLU_EOF && rc == SLU_EOF && !j.finished)
        rc = reopen(&j, err);
    if (rc == SLU_EOF)
        for (unsigned i = 0; i < s->n_bucket; i++)
            slu_sum_add(&s->sum, &s->bucket[i].sum);
    if (!rc)
        rc = make_set(&j, err);
    for (unsigned i = 0; i < s->n_bucket; i++) {
        for (size_t k = 0; k < j.rows[i].n; k++)
            free(j.rows[i].path[k]);
        free(j.rows[i].path);
    }
    slu_filelist_release(&set);
    slu_buf_release(&j.mark);
    return rc;
}
