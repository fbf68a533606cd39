/* tokens_mds.c - the format mds: folders of MosaicML's MDS shards (mds.h); a sample is
 * a document. Its number is the number of the sample in its folder, in the order of
 * index.json.
 *
 * fetch reads a shard from beginning to end, because this is the only way to check its
 * hashes and sizes, and to decompress it without holding all of it. The rest of the
 * work, converting the ids from the column's type to the stream's, is done by open, in
 * parallel. */
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "formats/ids/tokens_private.h"
#include "formats/mds/mds.h"

struct mds {
    struct slu_tokens_cfg cfg;
    struct slu_mds_index *index; /* one for each folder */
    uint64_t vocab_size;
    unsigned want_width;

    size_t folder, shard; /* the current shard, or the next one */
    struct slu_mds_file *file;
    uint64_t number; /* number of the next sample in its folder */
    bool waits;      /* the next sample was found; its facts follow */
    enum slu_mds_type type;
    uint64_t n_id;

    uint64_t empty;         /* samples without ids */
    struct slu_count given; /* count of the documents that fetch has put into batches */
    _Atomic uint64_t n_byte;
};

/* Facts that open needs about a batch, after its ids: all ids are from one shard and of
 * one type. */
struct note {
    size_t folder, shard;
    uint64_t first; /* number of its first sample in the shard */
    enum slu_mds_type type;
};

static bool probe(const struct slu_tokens_cfg *cfg, const struct slu_tokens_look *at)
{
    (void)cfg;
    return slu_mds_index_is(at->path);
}

static const struct slu_mds_shard *shard_at(const struct mds *x, size_t folder,
                                            size_t shard)
{
    return &x->index[folder].shard[shard];
}

/* The existing file: streaming keeps the compressed file, the uncompressed one, or
 * both. */
static const char *path_of(const struct slu_mds_shard *s, bool *zstd)
{
    struct stat st;
    bool raw = s->raw_path && !stat(s->raw_path, &st);
    *zstd = !raw && s->zstd;
    return raw ? s->raw_path : s->path;
}

static int open_shard(struct mds *x, struct slu_err *err)
{
    const struct slu_mds_shard *s = shard_at(x, x->folder, x->shard);
    bool zstd;
    const char *path = path_of(s, &zstd);
    if (s->compression && path == s->path)
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "%s: is compressed with %s; only zstd and uncompressed shards "
                        "are read: write the set again, or decompress its shards",
                        path, s->compression);
    struct slu_mds_file_cfg cfg = {.path = path,
                                   .zstd = zstd,
                                   .columns = s->columns,
                                   .samples = s->samples,
                                   .raw_byte = s->raw_byte,
                                   .max_byte = 4 * x->cfg.max_seq_tok,
                                   .raw_hash = s->raw_hash,
                                   .raw_hex = s->raw_hex,
                                   .stored_hash = zstd ? s->stored_hash : NULL,
                                   .stored_hex = zstd ? s->stored_hex : NULL,
                                   .n_byte = &x->n_byte};
    int rc = slu_mds_file_open(&x->file, &cfg, err);
    return rc ? slu_err_at(err, "%s", path) : SLU_OK;
}

/* Puts the current shard before a message. */
static int at_shard(const struct mds *x, struct slu_err *err)
{
    bool zstd;
    return slu_err_at(err, "%s", path_of(shard_at(x, x->folder, x->shard), &zstd));
}

/* Finds the next sample that has ids; SLU_EOF after the last. */
static int look(struct mds *x, struct slu_err *err)
{
    while (!x->waits) {
        if (x->folder == x->cfg.n_path)
            return SLU_EOF;
        if (x->shard == x->index[x->folder].n_shard) {
            x->folder++;
            x->shard = 0;
            x->number = 0;
            continue;
        }
        int rc = x->file ? SLU_OK : open_shard(x, err);
        if (rc)
            return rc;
        rc = slu_mds_file_next(x->file, &x->type, &x->n_id, err);
        if (rc < 0)
            return at_shard(x, err);
        x->waits = !rc && x->n_id;
        if (!rc && !x->n_id) { /* counted, but left out */
            x->number++;
            x->empty++;
        }
        if (!rc)
            continue;
        slu_mds_file_free(x->file);
        x->file = NULL;
        x->shard++;
    }
    if (!x->cfg.max_seq_tok || x->n_id <= x->cfg.max_seq_tok)
        return SLU_OK;
    (void)slu_advise(err, SLU_ADVISE_MEMORY,
                     slu_fail(err, SLU_E_LIMIT,
                              "sample %llu has %llu ids, too many for this memory",
                              (unsigned long long)slu_mds_file_at(x->file) - 1,
                              (unsigned long long)x->n_id));
    return at_shard(x, err);
}

static int add_sample(struct mds *x, struct slu_batch *b, struct slu_err *err)
{
    int rc = slu_grow(&b->seq, &b->cap_seq, b->n_seq + 1, sizeof *b->seq, err);
    if (!rc)
        rc = slu_grow(&b->seg, &b->cap_seg, b->n_seg + 1, sizeof *b->seg, err);
    if (rc)
        return rc;
    if (slu_mds_file_ids(x->file, &b->own, err))
        return at_shard(x, err);
    b->seq[b->n_seq++] = (struct slu_seq){b->n_tok, x->n_id, b->n_seg, 1};
    b->seg[b->n_seg++] = (struct slu_seg){.source = x->folder,
                                          .document = x->number++,
                                          .len_tok = x->n_id,
                                          .domain = SLU_NO_DOMAIN};
    b->n_tok += x->n_id;
    x->waits = false;
    return SLU_OK;
}

static int fetch(void *input, struct slu_batch *b, struct slu_err *err)
{
    struct mds *x = input;
    int rc = look(x, err);
    if (rc)
        return rc;
    struct note note = {x->folder, x->shard, slu_mds_file_at(x->file) - 1, x->type};
    while (!rc && x->folder == note.folder && x->shard == note.shard &&
           x->type == note.type && b->n_seq < SLU_FRAME_SEQS &&
           slu_mds_file_at(x->file) - 1 == note.first + b->n_seq &&
           (!b->n_seq || b->n_tok + x->n_id <= SLU_FRAME_TOKENS)) {
        rc = add_sample(x, b, err);
        if (!rc)
            rc = look(x, err);
    }
    if (rc < 0)
        return rc;
    x->given.documents += b->n_seq;
    x->given.sequences += b->n_seq;
    x->given.tokens += b->n_tok;
    return slu_buf_append(&b->own, &note, sizeof note, err);
}

/* ---- from the column's type to the stream's ---- */

static bool is_signed(enum slu_mds_type t)
{
    return t & 1;
}

static int64_t value_at(const uint8_t *p, enum slu_mds_type t)
{
    uint64_t v = 0;
    unsigned width = slu_mds_width(t), shift = 64 - 8 * width;
    memcpy(&v, p, width); /* because only little-endian hosts are supported */
    return is_signed(t) ? (int64_t)(v << shift) >> shift : (int64_t)v;
}

/* Reports the first id that is out of range. */
static int name_bad(const struct mds *x, const struct slu_batch *b,
                    const struct note *note, struct slu_err *err)
{
    const struct slu_mds_shard *s = shard_at(x, note->folder, note->shard);
    unsigned width = slu_mds_width(note->type);
    bool zstd;
    for (size_t i = 0; i < b->n_seq; i++)
        for (uint64_t k = 0; k < b->seq[i].len_tok; k++) {
            int64_t v =
                value_at(b->own.data + (b->seq[i].tok_off + k) * width, note->type);
            if ((uint64_t)v >= x->vocab_size)
                return slu_fail(err, SLU_E_FORMAT,
                                "%s: sample %llu: %lld at position %llu is not an id "
                                "below the vocabulary size %llu",
                                path_of(s, &zstd), (unsigned long long)note->first + i,
                                (long long)v, (unsigned long long)k,
                                (unsigned long long)x->vocab_size);
        }
    return SLU_OK;
}

static int open_batch(const void *input, struct slu_batch *b, struct slu_err *err)
{
    const struct mds *x = input;
    struct note note;
    b->own.len -= sizeof note;
    memcpy(&note, b->own.data + b->own.len, sizeof note);
    unsigned width = slu_mds_width(note.type), to = x->want_width;
    /* Negative values are the upper half of the unsigned type of the same width. */
    uint64_t limit = x->vocab_size, half = UINT64_C(1) << (8 * width - 1);
    if (is_signed(note.type) && limit > half)
        limit = half;
    if (slu_ids_largest(b->own.data, b->n_tok, width) >= limit)
        return name_bad(x, b, &note, err);
    int rc =
        width < to ? slu_buf_reserve(&b->own, b->n_tok * (to - width), err) : SLU_OK;
    if (rc)
        return rc;
    slu_ids_convert(b->own.data, b->n_tok, width, to);
    b->own.len = b->n_tok * to;
    b->tok = b->own.data;
    return SLU_OK;
}

static int finish(void *input, const struct slu_sum *seen, struct slu_err *err)
{
    const struct mds *x = input;
    int rc = slu_tokens_all_seen(&x->given, seen, err);
    if (!rc && x->cfg.seen)
        x->cfg.seen->empty += x->empty;
    return rc;
}

static uint64_t bytes(const void *input)
{
    return ((const struct mds *)input)->n_byte;
}

static void free_input(void *input)
{
    struct mds *x = input;
    slu_mds_file_free(x->file);
    for (size_t i = 0; x->index && i < x->cfg.n_path; i++)
        slu_mds_index_release(&x->index[i]);
    free(x->index);
    free(x);
}

/* ---- opening ---- */

/* Checks all columns; *widest: their largest width, or 8 if a width is not yet
 * known. */
static int check_columns(const struct mds *x, unsigned *widest, struct slu_err *err)
{
    *widest = 0;
    for (size_t i = 0; i < x->cfg.n_path; i++)
        for (size_t k = 0; k < x->index[i].n_columns; k++) {
            const struct slu_mds_columns *c = x->index[i].columns[k];
            unsigned width = c->type ? slu_mds_width(c->type) : 8;
            *widest = width > *widest ? width : *widest;
            if (x->cfg.tok_bytes && c->type && x->cfg.tok_bytes != width)
                return slu_advise(
                    err, SLU_ADVISE_WIDTH_IN_HEADER,
                    slu_fail(err, SLU_E_USAGE,
                             "%s/index.json: column %s is of type %s, not ids of %u "
                             "bytes",
                             x->cfg.path[i], c->name, slu_mds_type_name(c->type),
                             x->cfg.tok_bytes));
        }
    return SLU_OK;
}

static int plan(struct mds *x, struct slu_err *err)
{
    unsigned widest;
    int rc = SLU_OK;
    for (size_t i = 0; !rc && i < x->cfg.n_path; i++)
        rc = slu_mds_index_load(&x->index[i], x->cfg.path[i], x->cfg.column,
                                x->cfg.tok_bytes, err);
    if (!rc)
        rc = check_columns(x, &widest, err);
    if (rc)
        return rc;
    x->vocab_size = x->cfg.vocab_size ? x->cfg.vocab_size
                    : widest <= 2     ? UINT64_C(1) << 16
                    : x->cfg.any_id   ? UINT64_C(1) << 32
                                      : 0;
    if (!x->vocab_size)
        return slu_advise(
            err, SLU_ADVISE_VOCAB_SIZE,
            slu_fail(
                err, SLU_E_USAGE,
                "%s: ids of more than two bytes; their vocabulary size is not known",
                x->cfg.path[0]));
    x->want_width = slu_tokens_width(x->vocab_size);
    return slu_tokens_check_eos(&x->cfg, x->vocab_size, err);
}

static int open_reader(struct slu_reader **r, const struct slu_tokens_cfg *cfg,
                       struct slu_err *err)
{
    static const struct slu_input_ops ops = {.fetch = fetch,
                                             .open = open_batch,
                                             .finish = finish,
                                             .bytes = bytes,
                                             .free = free_input};
    struct mds *x = calloc(1, sizeof *x);
    if (!x)
        return slu_fail_nomem(err, sizeof *x);
    x->cfg = *cfg;
    x->index = calloc(cfg->n_path, sizeof *x->index);
    int rc = x->index ? plan(x, err) : slu_fail_nomem(err, sizeof *x->index);
    if (rc) {
        free_input(x);
        return rc;
    }
    return slu_tokens_reader(r, cfg, &ops, x, x->vocab_size, err);
}

static int each_file(const struct slu_tokens_cfg *cfg, const char *folder,
                     int (*each)(void *arg, const char *path, struct slu_err *err),
                     void *arg, struct slu_err *err)
{
    struct slu_mds_index x = {0};
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/index.json", folder);
    int rc = each(arg, path, err);
    if (rc || slu_mds_index_load(&x, folder, cfg->column, cfg->tok_bytes, NULL)) {
        slu_mds_index_release(&x);
        return rc;
    }
    for (size_t i = 0; !rc && i < x.n_shard; i++) {
        rc = each(arg, x.shard[i].path, err);
        if (!rc && x.shard[i].raw_path)
            rc = each(arg, x.shard[i].raw_path, err);
    }
    slu_mds_index_release(&x);
    return rc;
}

const struct slu_tokens_format slu_tokens_mds = {.name = "mds",
                                                 .probe = probe,
                                                 .folders = true,
                                                 .each_file = each_file,
                                                 .columns = true,
                                                 .open = open_reader};
