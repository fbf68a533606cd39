#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/ids/tokens_private.h"
#include "formats/shards/set_out.h"
#include "formats/shards/shard_dir.h"
#include "formats/shards/shardset_private.h"
#include "lib/decompose/decompose.h"

int slu_shardset_incomplete(const struct slu_shardset *s, const char *what,
                            struct slu_err *err)
{
    return slu_fail(
        err, SLU_E_TRUNCATED,
        "%s: the set is incomplete: %s; its shuffle did not finish, run it again",
        s->dir, what);
}

int slu_shardset_path(const struct slu_shardset *s, char out[PATH_MAX],
                      struct slu_err *err, const char *a, const char *b, const char *c)
{
    int n = snprintf(out, PATH_MAX, "%s/%s%s%s%s", s->dir, a, *a ? "/" : "", b, c);
    return n > 0 && n < PATH_MAX ? SLU_OK
                                 : slu_fail(err, SLU_E_IO, "%s: name too long", s->dir);
}

/* Opens the segments of bucket i, or SLU_SHARD_EMPTY if the set has no bucket. Sets of
 * versions up to 0.2 lack that file: they then have no header. */
static int open_segments(struct slu_shardset *s, unsigned i, struct slu_err *err)
{
    char path[PATH_MAX];
    const char *p = path;
    const bool empty = s->n_bucket == 0;
    int rc = empty ? slu_shardset_path(s, path, err, "", SLU_SHARD_EMPTY, "")
                   : slu_shardset_path(s, path, err, "segments", s->bucket[i].pub.name,
                                       ".tks");
    if (rc)
        return rc;
    struct stat st;
    if (stat(path, &st))
        return empty ? SLU_OK : slu_shardset_incomplete(s, path, err);
    struct slu_reader_cfg cfg = {
        .path = &p, .n_path = 1, .masks = true, .inner_padding = true};
    rc = slu_check_regular(path, err);
    if (!rc)
        rc = slu_reader_open(&s->segments, &cfg, err);
    if (!rc && !slu_reader_header(s->segments)->no_tokens)
        rc = slu_fail(err, SLU_E_FORMAT, "%s: holds tokens; expected segments alone",
                      path);
    if (!rc && slu_reader_header(s->segments)->masks != s->masks)
        rc = slu_fail(err, SLU_E_FORMAT,
                      "%s: has %s masks, and report.json says that the set has %s",
                      path, s->masks ? "no" : "the", s->masks ? "them" : "none");
    return rc;
}

bool slu_shardset_get_u64(struct slu_json_value v, const char *key, uint64_t *out)
{
    struct slu_json_value x;
    return slu_json_get(v, key, &x) && slu_json_u64(x, out);
}

/* Takes the set's only bucket of whole documents, if it is a set of these. */
static void read_documents(struct slu_shardset *s)
{
    struct slu_json_value v;

    s->documents = slu_json_get(slu_json_root(s->report), "whole_documents", &v);
    if (!s->documents || s->n_bucket ||
        !slu_shardset_get_u64(slu_json_root(s->report), "sequences",
                              &s->bucket[0].pub.shard_sequences) ||
        !s->bucket[0].pub.shard_sequences)
        return;
    slu_shard_bucket_name(0, s->bucket[0].pub.name);
    s->n_bucket = 1;
}

/* Fails; a folder of streams, as a batch of programs makes one, is named. */
static int not_a_set(const char *dir, struct slu_err *err)
{
    const struct dirent *e;
    DIR *d = opendir(dir);
    bool streams = false;
    while (d && !streams && (e = readdir(d))) {
        size_t n = strlen(e->d_name);
        streams = n > 4 && !strcmp(e->d_name + n - 4, ".tks");
    }
    if (d)
        closedir(d);
    return streams ? slu_fail(err, SLU_E_FORMAT,
                              "%s: a folder of streams; name the files in it: %s/*.tks",
                              dir, dir)
                   : slu_fail(err, SLU_E_FORMAT,
                              "%s: a folder, and not a set of shards, which has a "
                              "report.json; name a set, or a stream",
                              dir);
}

/* Reads report.json. */
static int read_text(const struct slu_shardset *s, struct slu_buf *text,
                     struct slu_err *err)
{
    char path[PATH_MAX];
    int rc = slu_shardset_path(s, path, err, "", "report.json", "");

    return rc ? rc : slu_read_regular(text, path, UINT64_C(1) << 32, err);
}

struct slu_u128 slu_shardset_id(const struct slu_shardset *s)
{
    return s->id;
}

int slu_shardset_same(const struct slu_shardset *s, struct slu_err *err)
{
    struct slu_buf text = SLU_BUF_INIT;
    int rc = read_text(s, &text, err);

    if (rc && slu_set_being_replaced(s->dir, err)) {
        slu_buf_release(&text);
        return SLU_E_TRUNCATED;
    }
    if (rc) { /* it may have got its name in between */
        slu_buf_clear(&text);
        rc = read_text(s, &text, err);
    }
    if (!rc && slu_u128_cmp(slu_hash128(text.data, text.len), s->id) != 0)
        rc = slu_fail(err, SLU_E_MISMATCH,
                      "%s: the set was replaced while it was read; run the command "
                      "again",
                      s->dir);
    slu_buf_release(&text);
    return rc;
}

/* What is wrong with a set that is another one meanwhile is no fault of its files. */
static int of_this_set(const struct slu_shardset *s, int rc, struct slu_err *err)
{
    struct slu_err why = SLU_ERR_INIT;

    if (rc >= 0 || !s->report || !slu_shardset_same(s, &why) ||
        (why.code != SLU_E_MISMATCH && why.code != SLU_E_TRUNCATED))
        return rc;
    *err = why;
    return why.code;
}

static int read_report(struct slu_shardset *s, struct slu_err *err)
{
    char path[PATH_MAX];
    struct slu_json_value root = {{0, 0}}, v;
    struct slu_buf text = SLU_BUF_INIT;
    struct stat st;
    const char *name = NULL;
    size_t n;
    int rc = slu_shard_dir_not_batch(s->dir, err);
    if (!rc)
        rc = slu_shardset_path(s, path, err, "", "report.json", "");
    if (rc)
        return rc;
    if (stat(s->dir, &st))
        return slu_fail_errno(err, "%s: cannot be opened", s->dir);
    if (!S_ISDIR(st.st_mode))
        return slu_fail(err, SLU_E_FORMAT,
                        "%s: a file, and a set of shards is a folder", s->dir);
    rc = slu_set_being_replaced(s->dir, err);
    if (rc)
        return rc;
    if (stat(path, &st))
        return slu_shard_dir_begun(s->dir)
                   ? slu_shardset_incomplete(s, "there is no report.json", err)
                   : not_a_set(s->dir, err);
    rc = read_text(s, &text, err);
    s->id = slu_hash128(text.data, text.len);
    if (!rc && (rc = slu_json_parse(&s->report, text.data, text.len, err)))
        slu_err_at(err, "%s", path);
    slu_buf_release(&text);
    if (rc)
        return rc;
    root = slu_json_root(s->report);
    if (slu_json_get(root, "format", &v))
        (void)!slu_json_string(v, &name, &n);
    s->layout = name ? slu_shard_layout_find(name) : NULL;
    if (!s->layout || slu_shard_format_find(&s->format, name, NULL))
        return slu_fail(err, SLU_E_UNSUPPORTED, "%s: format %s cannot be read back",
                        path, name ? name : "(none)");
    struct slu_json_iter it;
    s->masks = slu_json_get(root, "mask_checksum", &v);
    if (s->masks && !s->layout->masks)
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "%s: masks in format %s cannot be read back", path, name);
    if (!slu_json_get(root, "buckets", &v))
        return slu_fail(err, SLU_E_FORMAT, "%s: no buckets", path);
    slu_json_iter_init(&it, v);
    while (slu_json_next(&it) && s->n_bucket < SLU_MAX_BUCKETS) {
        struct slu_shard_bucket *b = &s->bucket[s->n_bucket].pub;
        /* A possible length, so that the number of bytes of a sequence does not
         * overflow. */
        if (!slu_shardset_get_u64(it.value, "length", &b->length) || !b->length ||
            b->length > SLU_MAX_BUCKET_TOK ||
            !slu_shardset_get_u64(it.value, "shard_sequences", &b->shard_sequences))
            return slu_fail(err, SLU_E_FORMAT,
                            "%s: a bucket without a sound length or shard_sequences",
                            path);
        slu_shard_bucket_name(b->length, b->name);
        s->n_bucket++;
    }
    read_documents(s);
    return SLU_OK;
}

/* Whether the manifest's next line is a shard of the current bucket. */
static int peek_shard(struct slu_shardset *s, struct slu_err *err)
{
    const char *name = s->bucket[s->at].pub.name;
    size_t n = strlen(name);
    int rc = slu_shardset_peek(s, err);
    if (rc)
        return rc;
    return s->next.is_shard && !strncmp(s->next.file, name, n) && s->next.file[n] == '/'
               ? SLU_OK
               : SLU_EOF;
}

/* Compares the files of the current shard with the manifest: where some shards are
 * skipped, no sum of all sequences will do it. */
static int check_files(const struct slu_shardset *s, const char *const *path,
                       unsigned n, struct slu_err *err)
{
    struct slu_buf scratch = SLU_BUF_INIT;
    int rc = SLU_OK;
    for (unsigned i = 0; i < n && !rc; i++) {
        struct slu_digest is;
        rc = slu_file_digest(path[i], &scratch, &is, err);
        if (!rc && (is.n_byte != s->facts.n_byte[i] || is.xxh3 != s->facts.xxh3[i]))
            rc = slu_fail(err, SLU_E_CHECKSUM,
                          "%s: is not the file that manifest.jsonl lists; the set is "
                          "damaged",
                          path[i]);
    }
    slu_buf_release(&scratch);
    return rc;
}

/* Opens the bucket's next shard; SLU_EOF after the last. */
static int open_shard(struct slu_shardset *s, struct slu_err *err)
{
    struct slu_shardset_bucket *b = &s->bucket[s->at];
    char path[SLU_SHARD_FILES][PATH_MAX];
    const char *p[SLU_SHARD_FILES];
    s->facts = (struct slu_shard_facts){.number = b->pub.n_shard};
    const unsigned n_file = s->format->n_file + (s->masks ? s->format->n_mask_file : 0);
    for (unsigned i = 0; i < n_file; i++) {
        int rc = peek_shard(s, err);
        if (rc == SLU_EOF && i == 0)
            return rc;
        if (rc < 0)
            return rc;
        if (rc || s->next.shard != b->pub.n_shard || s->next.part != i)
            return slu_fail(
                err, SLU_E_FORMAT,
                "%s/manifest.jsonl:%llu: expected file %u of shard %llu of %s", s->dir,
                (unsigned long long)s->n_line, i, (unsigned long long)b->pub.n_shard,
                b->pub.name);
        rc = slu_shardset_path(s, path[i], err, "", s->next.file, "");
        if (rc)
            return rc;
        p[i] = path[i];
        s->facts.n_byte[i] = s->next.n_byte;
        s->facts.xxh3[i] = s->next.xxh3;
        if (i == 0) {
            memcpy(s->shard, s->next.file, sizeof s->shard);
            s->facts.n_seq = s->n_expected = s->next.n_seq;
        }
        s->have_next = false;
    }
    s->n_here = 0;
    b->pub.n_shard++;
    s->id_bytes = s->layout->narrow && !s->masks ? b->pub.id_bytes : 4;
    s->open = true;
    if (s->skips && s->skips(s->skips_ctx, s->at, s->facts.number))
        return SLU_OK;
    int rc = s->skips ? check_files(s, p, n_file, err) : SLU_OK;
    if (rc)
        return rc;
    rc = s->layout->open(&s->state, p, &b->pub, s->n_expected, err);
    return rc ? slu_err_at(err, "%s/%s", s->dir, s->shard) : SLU_OK;
}

int slu_shardset_open(struct slu_shardset **out, const char *dir, struct slu_err *err)
{
    struct slu_shardset *s = calloc(1, sizeof *s);
    *out = NULL;
    if (!s)
        return slu_fail_nomem(err, sizeof *s);
    slu_header_init(&s->header);
    slu_batch_init(&s->rows, 2);
    s->dir = strdup(dir);
    int rc = s->dir ? read_report(s, err) : slu_fail_nomem(err, strlen(dir));
    if (!rc)
        rc = open_segments(s, 0, err);
    if (!rc && s->segments)
        rc = slu_header_copy(&s->header, slu_reader_header(s->segments), err);
    s->header.no_tokens = false;
    for (unsigned i = 0; !rc && i < s->n_bucket; i++) {
        struct slu_shard_bucket *b = &s->bucket[i].pub;
        b->n_id = s->documents ? 0 : slu_header_ids(&s->header, b->length);
        b->tok_bytes = b->id_bytes = slu_header_stored(&s->header);
        if (s->documents && s->format->id_bytes)
            b->id_bytes = s->format->id_bytes(&s->header);
        b->masks = s->masks;
        b->inner_padding = s->header.inner_padding;
    }
    if (!rc)
        rc = slu_shardset_open_manifest(s, err);
    rc = of_this_set(s, rc, err);
    if (rc)
        slu_shardset_free(s);
    else
        *out = s;
    return rc;
}

const struct slu_header *slu_shardset_header(const struct slu_shardset *s)
{
    return &s->header;
}

const char *slu_shardset_format(const struct slu_shardset *s)
{
    return s->layout->format;
}

struct slu_names *slu_shardset_names(struct slu_shardset *s)
{
    return s->segments ? slu_reader_names(s->segments) : NULL;
}

/* ---- sequences ---- */

enum { BATCH_TOK = 1 << 16 };

/* Counts the next sequence of a shard whose ids are not read. */
static int next_skipped(struct slu_shardset *s, uint64_t n_tok)
{
    s->tok = NULL;
    s->n_tok = n_tok;
    return s->n_here == s->n_expected ? SLU_EOF : SLU_OK;
}

/* Appends the ids of the bucket's next sequence to `ids`, as s->tok; its segments have
 * n_tok; 0: SLU_EOF is expected, after the last. */
static int next_ids(struct slu_shardset *s, uint64_t n_tok, struct slu_buf *ids,
                    struct slu_err *err)
{
    const size_t had = ids->len;
    const uint64_t n_id = s->documents ? n_tok : s->bucket[s->at].pub.n_id;

    for (;;) {
        int rc = s->open ? SLU_OK : open_shard(s, err);
        if (rc)
            return rc;
        rc = s->state ? s->layout->next(s->state, n_id, ids, err)
                      : next_skipped(s, n_tok);
        if (rc == SLU_EOF && s->n_here != s->n_expected)
            rc = slu_fail(
                err, SLU_E_FORMAT, "has %llu sequences, and its manifest says %llu",
                (unsigned long long)s->n_here, (unsigned long long)s->n_expected);
        if (rc < 0)
            return slu_err_at(err, "%s/%s", s->dir, s->shard);
        if (!rc) {
            s->n_here++;
            if (s->state) {
                s->tok = ids->data + had;
                s->n_tok = (ids->len - had) / s->id_bytes;
            }
            return SLU_OK;
        }
        if (s->state)
            s->layout->close(s->state);
        s->state = NULL;
        s->open = false;
    }
}

static void close_bucket(struct slu_shardset *s)
{
    slu_batch_release(&s->rows);
    slu_batch_init(&s->rows, s->header.tok_bytes);
    slu_reader_free(s->segments);
    s->segments = NULL;
}

/* Names the first id that is not in the vocabulary. */
static int not_in_vocabulary(const struct slu_shardset *s, struct slu_err *err)
{
    const void *ids = s->tok;
    uint32_t id = 0;
    for (size_t i = 0; i < s->n_tok && id < s->header.vocab_size; i++)
        id = s->id_bytes == 2
                 ? ((const uint16_t *)ids)[i]
                 : ((const uint32_t *)ids)[i] & (s->masks ? ~SLU_TRAINED : UINT32_MAX);
    return slu_fail(err, SLU_E_FORMAT, "%s/%s: id %u is not in the vocabulary", s->dir,
                    s->shard, id);
}

/* Checks ids against the vocabulary size, and converts them to the stream's width. */
static int narrow(struct slu_shardset *s, struct slu_err *err)
{
    const size_t n = s->n_tok;
    uint64_t most = 0;
    const uint32_t *id = s->tok;
    if (!s->masks)
        most = slu_ids_largest(s->tok, n, s->id_bytes);
    for (size_t i = 0; i < n && s->masks; i++)
        most = (id[i] & ~SLU_TRAINED) > most ? id[i] & ~SLU_TRAINED : most;
    if (n && most >= s->header.vocab_size)
        return not_in_vocabulary(s, err);
    slu_ids_convert(s->tok, n, s->id_bytes, s->header.tok_bytes);
    return SLU_OK;
}

/* Compares the marks of the ids with those of the segment rows. */
static int check_marks(const struct slu_shardset *s, const struct slu_seq *q,
                       struct slu_err *err)
{
    const uint32_t *id = s->tok, *row = slu_batch_at(&s->rows, q->tok_off);
    for (uint64_t i = 0; i < q->len_tok; i++)
        if ((id[i] ^ row[i]) & SLU_TRAINED)
            return slu_fail(err, SLU_E_FORMAT,
                            "%s/%s: sequence %llu is%s trained on at token %llu, and "
                            "segments/%s.tks says that it is%s; the set is damaged",
                            s->dir, s->shard, (unsigned long long)s->n_here - 1,
                            id[i] & SLU_TRAINED ? "" : " not", (unsigned long long)i,
                            s->bucket[s->at].pub.name,
                            id[i] & SLU_TRAINED ? " not" : "");
    return SLU_OK;
}

/* Takes the marks of the first tokens of segments from the segment rows. */
static void mark_first(struct slu_shardset *s, const struct slu_seq *q)
{
    uint32_t *id = s->tok;
    const uint32_t *row = slu_batch_at(&s->rows, q->tok_off);
    uint64_t at = 0;
    for (uint64_t k = 0; k < q->n_seg; at += s->rows.seg[q->seg_off + k++].len_tok)
        id[at] |= row[at] & SLU_TRAINED;
}

/* Joins the tokens with the current segment rows; so many at a time that the next steps
 * find the ids in the cache. */
static int join(struct slu_shardset *s, struct slu_batch *b, struct slu_err *err)
{
    struct slu_shardset_bucket *k = &s->bucket[s->at];
    /* The ids of a file that are those of the stream are read to their place. */
    const bool own =
        s->layout->narrow && !s->masks && k->pub.id_bytes == s->header.tok_bytes;
    while (s->row < s->rows.n_seq && slu_batch_weight(b) < BATCH_TOK) {
        if (s->skips && b->n_seq && s->n_here == s->n_expected)
            break; /* the next one is of another shard */
        const struct slu_seq *q = &s->rows.seq[s->row++];
        slu_buf_clear(&s->ids);
        int rc = next_ids(s, q->len_tok, own ? &b->own : &s->ids, err);
        if (rc == SLU_EOF)
            return slu_fail(err, SLU_E_FORMAT,
                            "%s/%s: fewer sequences than segments/%s.tks has", s->dir,
                            k->pub.name, k->pub.name);
        if (!rc && s->n_tok != q->len_tok)
            rc = slu_fail(err, SLU_E_FORMAT,
                          "%s/%s: sequence %llu has %zu ids, its segments have %llu",
                          s->dir, s->shard, (unsigned long long)s->n_here - 1, s->n_tok,
                          (unsigned long long)q->len_tok);
        if (!rc && s->state && s->masks && s->layout->no_first)
            mark_first(s, q);
        if (!rc && s->state && s->masks)
            rc = check_marks(s, q, err);
        if (!rc && s->state)
            rc = narrow(s, err);
        const void *tok = own ? NULL : s->tok;
        if (!s->state && s->masks)
            tok = slu_batch_at(&s->rows, q->tok_off);
        if (!rc)
            rc = slu_batch_add(b, tok, q->len_tok, &s->rows.seg[q->seg_off], q->n_seg,
                               s->rows.str.data, err);
        if (rc)
            return rc;
        b->tok = s->state || s->masks ? b->own.data : NULL;
        b->marks_only = !s->state && s->masks;
        k->pub.n_seq++;
        k->n_tok += q->len_tok;
    }
    return SLU_OK;
}

static int next(struct slu_shardset *s, struct slu_batch *b, struct slu_err *err)
{
    slu_batch_clear(b);
    b->tok_bytes = s->header.tok_bytes;
    b->masks = s->masks;
    b->marks_only = false;
    while (s->at < s->n_bucket) {
        int rc = s->segments ? SLU_OK : open_segments(s, s->at, err);
        if (!rc && s->row == s->rows.n_seq) {
            s->row = 0;
            rc = slu_reader_next(s->segments, &s->rows, err);
        }
        if (!rc)
            return join(s, b, err);
        if (rc != SLU_EOF)
            return rc;
        rc = slu_reader_finish(s->segments, NULL, err);
        if (!rc && (rc = next_ids(s, 0, &s->ids, err)) != SLU_EOF)
            rc = rc ? rc
                    : slu_fail(err, SLU_E_FORMAT,
                               "%s/%s: more sequences than segments/%s.tks has", s->dir,
                               s->bucket[s->at].pub.name, s->bucket[s->at].pub.name);
        if (rc != SLU_EOF)
            return rc;
        close_bucket(s);
        s->at++;
    }
    return SLU_EOF;
}

int slu_shardset_next(struct slu_shardset *s, struct slu_batch *b, struct slu_err *err)
{
    return of_this_set(s, next(s, b, err), err);
}

void slu_shardset_skip(struct slu_shardset *s, slu_shardset_skips *skips, void *ctx)
{
    s->skips = skips;
    s->skips_ctx = ctx;
}

const struct slu_shard_facts *slu_shardset_shard(const struct slu_shardset *s,
                                                 unsigned *bucket)
{
    *bucket = s->at;
    return &s->facts;
}

struct slu_json_value slu_shardset_report(const struct slu_shardset *s)
{
    return slu_json_root(s->report);
}

unsigned slu_shardset_n_bucket(const struct slu_shardset *s)
{
    return s->n_bucket;
}

const struct slu_shard_bucket *slu_shardset_bucket(const struct slu_shardset *s,
                                                   unsigned i)
{
    return &s->bucket[i].pub;
}

int slu_shardset_finish(struct slu_shardset *s, const struct slu_sum *seen,
                        struct slu_err *err)
{
    struct slu_json_value v;
    const char *want;
    size_t n;
    char got[33];
    int rc = slu_shardset_same(s, err);
    if (rc)
        return rc;
    slu_u128_hex(seen->checksum, got);
    if (!slu_json_get(slu_json_root(s->report), "checksum", &v) ||
        !slu_json_string(v, &want, &n))
        return slu_fail(err, SLU_E_FORMAT, "%s/report.json: no checksum", s->dir);
    if (strcmp(want, got))
        return slu_fail(err, SLU_E_CHECKSUM,
                        "%s: the shards' checksum is %s, and report.json says %s; the "
                        "set is damaged",
                        s->dir, got, want);
    slu_u128_hex(seen->mask_checksum, got);
    if (s->masks && (!slu_json_get(slu_json_root(s->report), "mask_checksum", &v) ||
                     !slu_json_is(v, got)))
        return slu_fail(err, SLU_E_CHECKSUM,
                        "%s: the checksum of the shards' masks is %s, and report.json "
                        "says another; the set is damaged",
                        s->dir, got);
    return SLU_OK;
}

/* ---- what is known before ---- */

/* Finds the longest document: one more pass over the segment rows. */
static int longest(struct slu_shardset *s, uint64_t *n_tok, struct slu_err *err)
{
    int rc = s->segments || !s->n_bucket ? SLU_OK : open_segments(s, 0, err);

    *n_tok = 0;
    while (!rc && s->n_bucket) {
        rc = slu_reader_next(s->segments, &s->rows, err);
        for (size_t i = 0; !rc && i < s->rows.n_seq; i++)
            if (s->rows.seq[i].len_tok > *n_tok)
                *n_tok = s->rows.seq[i].len_tok;
    }
    return rc < 0 ? rc : SLU_OK;
}

static int summarize(struct slu_shardset *s, bool close, struct slu_summary *p,
                     struct slu_err *err)
{
    struct slu_json_value root = slu_json_root(s->report);
    uint64_t sum[2];

    if (!slu_shardset_get_u64(root, "sequences", &p->sum.n.sequences) ||
        !slu_shardset_get_u64(root, "tokens", &p->sum.n.tokens) ||
        !slu_shards_hex(root, "checksum", sum, 2))
        return SLU_EOF;
    p->sum.checksum = (struct slu_u128){sum[0], sum[1]};
    p->longest = p->sum.n.tokens;
    p->id = s->id;
    return close ? longest(s, &p->longest, err) : SLU_OK;
}

int slu_shardset_summary(const char *dir, bool close, struct slu_summary *p,
                         struct slu_err *err)
{
    struct slu_shardset *s;
    int rc = slu_shardset_open(&s, dir, err);

    *p = (struct slu_summary){0};
    if (rc)
        return rc;
    rc = summarize(s, close, p, err);
    slu_shardset_free(s);
    return rc;
}

int slu_shardset_buckets(struct slu_shardset *s, char **json, struct slu_err *err)
{
    struct slu_buf b = SLU_BUF_INIT;
    int rc = slu_buf_printf(&b, err, "[");
    for (unsigned i = 0; !rc && i < s->n_bucket; i++)
        rc = slu_buf_printf(
            &b, err,
            "%s{\"name\": \"%s\", \"sequences\": %llu, \"tokens\": %llu, "
            "\"shards\": %llu}",
            i ? ", " : "", s->bucket[i].pub.name,
            (unsigned long long)s->bucket[i].pub.n_seq,
            (unsigned long long)s->bucket[i].n_tok,
            (unsigned long long)s->bucket[i].pub.n_shard);
    if (!rc)
        rc = slu_buf_append(&b, "]", 2, err);
    *json = rc ? NULL : strdup((char *)b.data);
    slu_buf_release(&b);
    return rc || *json ? rc : slu_fail_nomem(err, 1);
}

void slu_shardset_free(struct slu_shardset *s)
{
    if (!s)
        return;
    if (s->state)
        s->layout->close(s->state);
    close_bucket(s);
    if (s->manifest)
        fclose(s->manifest);
    slu_batch_release(&s->rows);
    slu_header_release(&s->header);
    slu_json_free(s->report);
    slu_buf_release(&s->ids);
    free(s->dir);
    free(s);
}
