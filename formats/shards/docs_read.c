/* docs_read.c - reads back the shards of datatrove's and of Megatron's layout that
 * sluice writes, with the readers of files of ids (formats/ids/tokens_docs.h). Also
 * checks that ids have the set's width, that sequences have the bucket's length, and
 * that no file is missing. Of whole documents, each is a sequence, as long as the index
 * says. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "formats/ids/raw_file.h"
#include "formats/ids/tokens_docs.h"
#include "formats/shards/shardset.h"

struct shard {
    const struct slu_docs_format *format;
    struct slu_docs_file file;
    struct slu_raw *raw;       /* file of the ids */
    char *path;                /* name of the ids; owned */
    uint64_t n_id, n_seq, seq; /* n_id 0: whole documents */
    uint64_t at_tok, docs;     /* ids and documents read */
    bool segments;             /* a sequence may have several documents */
};

static void shard_close(void *state)
{
    struct shard *s = state;
    if (!s)
        return;
    if (s->file.state)
        s->format->close(&s->file);
    slu_raw_free(s->raw);
    free(s->path);
    free(s);
}

static int check_files(const struct shard *s, unsigned tok_bytes, struct slu_err *err)
{
    if (slu_id_bytes(s->file.type) != tok_bytes)
        return slu_fail(err, SLU_E_FORMAT, "%s: ids of %u bytes; the set's ids have %u",
                        s->path, slu_id_bytes(s->file.type), tok_bytes);
    if (!s->n_id)
        return s->file.n_doc == s->n_seq
                   ? SLU_OK
                   : slu_fail(err, SLU_E_FORMAT,
                              "%s: %llu documents in its index; %llu were expected",
                              s->path, (unsigned long long)s->file.n_doc,
                              (unsigned long long)s->n_seq);
    if (s->n_seq > UINT64_MAX / s->n_id || s->file.n_tok != s->n_seq * s->n_id)
        return slu_fail(err, SLU_E_FORMAT,
                        "%s: %llu ids; %llu sequences of %llu were expected", s->path,
                        (unsigned long long)s->file.n_tok, (unsigned long long)s->n_seq,
                        (unsigned long long)s->n_id);
    return SLU_OK;
}

static int shard_open(void **state, const struct slu_docs_format *format,
                      const char *const *path, bool segments,
                      const struct slu_shard_bucket *b, uint64_t n_seq,
                      struct slu_err *err)
{
    const struct slu_tokens_cfg cfg = {.eos = SLU_NO_TOKEN};
    struct shard *s = calloc(1, sizeof *s);
    *state = NULL;
    if (!s)
        return slu_fail_nomem(err, sizeof *s);
    s->format = format;
    s->n_id = b->n_id;
    s->n_seq = n_seq;
    s->segments = segments;
    s->path = strdup(path[0]);
    int rc = s->path ? format->open(&s->file, &cfg, s->path, err)
                     : slu_fail_nomem(err, strlen(path[0]));
    if (!rc)
        rc = check_files(s, b->id_bytes, err);
    if (!rc) {
        rc = slu_raw_open(&s->raw, s->path, false, NULL, err);
        if (rc)
            slu_err_at(err, "%s", s->path);
    }
    if (rc)
        shard_close(s);
    else
        *state = s;
    return rc;
}

static int ds_open(void **state, const char *const *path,
                   const struct slu_shard_bucket *b, uint64_t n_seq,
                   struct slu_err *err)
{
    struct stat st;
    *state = NULL;
    if (stat(path[2], &st)) /* the reader would accept the shard without this file */
        return slu_fail_errno(err, "%s: cannot be opened", path[2]);
    return shard_open(state, &slu_docs_ds, path, true, b, n_seq, err);
}

static int mg_open(void **state, const char *const *path,
                   const struct slu_shard_bucket *b, uint64_t n_seq,
                   struct slu_err *err)
{
    return shard_open(state, &slu_docs_megatron, path, false, b, n_seq, err);
}

/* Gives the ids of the next document. */
static int document(struct shard *s, uint64_t *n_id, struct slu_err *err)
{
    uint64_t end = s->at_tok;
    int rc = s->format->next(&s->file, &end, err);

    s->docs++;
    *n_id = end - s->at_tok;
    return rc;
}

/* Checks that the index ends a document where the sequence ends. */
static int check_ends(struct shard *s, struct slu_err *err)
{
    const uint64_t want = s->at_tok + s->n_id;
    uint64_t end = s->at_tok, was;
    do {
        was = end;
        if (s->docs++ == s->file.n_doc)
            return slu_fail(err, SLU_E_FORMAT, "%s: its index ends after sequence %llu",
                            s->path, (unsigned long long)s->seq);
        int rc = s->format->next(&s->file, &end, err);
        if (rc)
            return rc;
        if (end == was || end > want || (!s->segments && end != want))
            return slu_fail(
                err, SLU_E_FORMAT,
                "%s: its index has an end at id %llu; sequence %llu ends at id %llu",
                s->path, (unsigned long long)end, (unsigned long long)s->seq,
                (unsigned long long)want);
    } while (end < want);
    return SLU_OK;
}

static int shard_end(struct shard *s, struct slu_err *err)
{
    if (s->docs != s->file.n_doc)
        return slu_fail(err, SLU_E_FORMAT, "%s: its index has %llu ends too many",
                        s->path, (unsigned long long)(s->file.n_doc - s->docs));
    int rc = slu_raw_end(s->raw, err);
    return rc ? slu_err_at(err, "%s", s->path) : SLU_EOF;
}

static int shard_next(void *state, uint64_t n_id, struct slu_buf *ids,
                      struct slu_err *err)
{
    struct shard *s = state;
    const unsigned bytes = slu_id_bytes(s->file.type);
    if (s->seq == s->n_seq)
        return shard_end(s, err);
    const size_t had = ids->len;
    int rc = s->n_id ? check_ends(s, err) : document(s, &n_id, err);
    if (!rc) {
        rc = slu_raw_append(s->raw, ids, n_id * bytes, err);
        if (rc)
            return slu_err_at(err, "%s", s->path);
    }
    if (!rc)
        rc = slu_ids_take(ids->data + had, n_id, s->file.type, bytes, UINT64_C(1) << 32,
                          s->path, s->at_tok, err);
    s->at_tok += n_id;
    s->seq++;
    return rc;
}

const struct slu_shard_layout slu_shard_layout_ds = {.format = "ds",
                                                     .narrow = true,
                                                     .open = ds_open,
                                                     .next = shard_next,
                                                     .close = shard_close};
const struct slu_shard_layout slu_shard_layout_megatron = {.format = "megatron",
                                                           .narrow = true,
                                                           .open = mg_open,
                                                           .next = shard_next,
                                                           .close = shard_close};
