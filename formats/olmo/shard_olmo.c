/* shard_olmo.c - files of ids as OLMo-core reads them (dolma's
 * tokenizer/memmap_writer.py and OLMo-core's data/numpy_dataset.py were read):
 *
 *   shard-%07d.npy      ids of two or four bytes, little-endian, one after the other,
 *                       without a header in spite of the name
 *   shard-%07d.csv.gz   a row `start,end,id,src,loc` for each segment: its ids in the
 *                       file, the record's own id, the source, the record's position in
 *                       the source. Padding has no row, because it is no document
 *   shard-%07d.label_mask  of a stream with masks: a byte for each id, 1 if it is trained
 *                       on, else 0, as OLMo-core's label_mask_paths have them. The name
 *                       is none that a pattern for *.npy finds
 *   olmo-cache/         the index of NumpyVSLDataset (formats/olmo/olmo_cache.h) for
 *                       the curriculum natural; schedule(1) makes it for others
 *
 * Of whole documents, each has one row, and there is no olmo-cache/, because OLMo-core
 * cuts documents by itself (NumpyFSLDataset, NumpyPackedFSLDataset). It does not read
 * the rows of local files: a document ends at EOS, and for NumpyPackedFSLDataset only
 * at an EOS before BOS if its tokenizer has a BOS. Documents that it would join or cut are refused, because it
 * truncates what it joined, and the rest of the file is lost.
 *
 * OLMo-core's index counts a file's ids in 32 bits and wraps around without an error,
 * so a file has fewer than 2^32 ids.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "formats/olmo/olmo_cache.h"
#include "formats/shards/shard.h"
#include "formats/shards/shard_ids.h"
#include "kernels/scan.h"
#include "olmo_rows.h"

enum { IDS, ROWS, MASK, N_FILE = MASK };

static const char folder[] = "olmo-cache";

struct olmo {
    struct slu_names *names;
    struct slu_olmo_set set; /* with the tokenizer's facts from the header */
    bool labels;
    bool documents;
    bool checked; /* whole documents are as OLMo-core finds them */
    uint64_t bos; /* with which each then begins; SLU_NO_TOKEN: no token */
    const struct slu_eos_kernel *kernel;
    char *path; /* owned */
    char note[1100];
};

static void olmo_release(void *state)
{
    struct olmo *o = state;
    if (!o)
        return;
    free(o->path);
    free(o);
}

static int olmo_init(void **state, const struct slu_shards_cfg *cfg,
                     struct slu_err *err)
{
    const struct slu_header *h = cfg->header;
    struct olmo *o = calloc(1, sizeof *o);
    int rc;
    *state = o;
    if (!o)
        return slu_fail_nomem(err, sizeof *o);
    o->names = cfg->names;
    o->labels = h->label_tokens;
    o->set.tok_bytes = slu_header_stored(h);
    o->set.vocab_size = h->vocab_size;
    o->set.eos = h->eos;
    /* Of several ids it is not known which one is the tokenizer's. */
    o->set.pad = h->pad != SLU_NO_TOKEN || h->inner_padding ? h->pad : h->eos;
    if (cfg->olmo_path) {
        size_t n = strlen(cfg->olmo_path);
        while (n > 1 && cfg->olmo_path[n - 1] == '/')
            n--;
        o->path = strndup(cfg->olmo_path, n);
        rc = o->path ? SLU_OK : slu_fail_nomem(err, n);
    } else
        rc = slu_olmo_prefix(&o->path, cfg->dir, err);
    o->set.prefix = o->path;
    if (!rc && cfg->olmo_tokenizer)
        rc = slu_olmo_tokenizer(&o->set, cfg->olmo_tokenizer, err);
    o->kernel = slu_eos_kernel(NULL);
    o->documents = cfg->documents;
    o->checked = o->documents && !cfg->accept_mismatch;
    o->bos = o->checked ? h->bos : SLU_NO_TOKEN;
    if (!rc && o->documents && h->inner_padding)
        rc = slu_fail(
            err, SLU_E_UNSUPPORTED,
            "format olmo: OLMo-core finds whole documents by EOS, and some are "
            "padding; leave them out with choose, before shuffle");
    if (!rc && o->checked && o->set.eos == SLU_NO_TOKEN)
        rc = slu_advise(err, SLU_ADVISE_OLMO_EOS,
                        slu_fail(err, SLU_E_MISMATCH,
                                 "format olmo: the stream has no EOS, by which "
                                 "OLMo-core finds documents"));
    return rc;
}

static void olmo_file_name(const void *state, uint64_t number, unsigned file, char *out,
                           size_t cap)
{
    static const char *const suffix[] = {"npy", "csv.gz", "label_mask"};
    (void)state;
    snprintf(out, cap, "shard-%07llu.%s", (unsigned long long)number, suffix[file]);
}

/* Whether the name is "shard-", digits and a suffix. */
static bool olmo_owns(const char *name)
{
    if (strncmp(name, "shard-", 6))
        return false;
    size_t n = strspn(name + 6, "0123456789");
    name += 6 + n;
    return n && (!strcmp(name, ".npy") || !strcmp(name, ".csv.gz") ||
                 !strcmp(name, ".label_mask"));
}

static bool olmo_owns_in_set(const char *name)
{
    size_t n = strlen(name);
    if (n > 5 && !strcmp(name + n - 5, ".json"))
        return !strncmp(name, "vsl-", 4);
    if (!strcmp(name, "manifest.jsonl"))
        return true;
    return n > 4 && !strcmp(name + n - 4, ".npy") &&
           (!strncmp(name, "bucket", 6) || !strcmp(name, "instance-lengths.npy") ||
            !strncmp(name, "instance_indices_", 17) ||
            !strncmp(name, "global_batch_indices_", 21));
}

static uint64_t largest(const struct slu_shard_bucket *b)
{
    return UINT32_MAX / b->n_id;
}

static uint64_t olmo_shard_sequences(const struct slu_shard_bucket *b)
{
    uint64_t n = slu_shard_ids_sequences(b);
    return n < largest(b) ? n : largest(b);
}

static int olmo_check(const struct slu_shard_bucket *b, struct slu_err *err)
{
    if (b->shard_sequences <= largest(b))
        return SLU_OK;
    return slu_shard_too_large(&slu_shard_olmo, b,
                               "the 2^32 tokens at which OLMo-core's indices end",
                               largest(b), err);
}

/* ---- sequences ---- */

static int put_row(const struct olmo *o, const struct slu_shard_seq *q,
                   const struct slu_seg *g, uint64_t at, uint64_t n_id,
                   struct slu_buf *out, struct slu_err *err)
{
    return slu_olmo_row_put(out, at, at + n_id, g->id_len ? q->str + g->id_off : NULL,
                            g->id_len, slu_names_source(o->names, g->source),
                            g->document, err);
}

static uint32_t id_at(const struct slu_shard_seq *q, const struct slu_shard_bucket *b,
                      uint64_t i)
{
    if (b->masks)
        return ((const uint32_t *)q->tok)[i] & ~SLU_TRAINED;
    return b->tok_bytes == 2 ? ((const uint16_t *)q->tok)[i]
                             : ((const uint32_t *)q->tok)[i];
}

/* Returns the index of the first EOS from `from` on; n_id: there is none. Files have
 * fewer than 2^32 ids. */
static uint64_t find_eos(const struct olmo *o, const struct slu_shard_seq *q,
                         const struct slu_shard_bucket *b, uint64_t from)
{
    const unsigned width = b->masks ? sizeof(uint32_t) : b->tok_bytes;
    const uint8_t *tok = (const uint8_t *)q->tok + from * width;
    const uint32_t eos = (uint32_t)o->set.eos;
    size_t n = (size_t)(q->n_id - from), seen;
    uint32_t at;
    if (slu_eos_find(o->kernel, tok, n, width, eos, &at, 1, &seen))
        n = at;
    /* A marked one before it; n is now its end. */
    if (b->masks &&
        slu_eos_find(o->kernel, tok, n, width, eos | SLU_TRAINED, &at, 1, &seen))
        n = at;
    return from + n;
}

/* Fails unless OLMo-core finds the document as it is: the last id is EOS and no other
 * is, and the first is BOS if the tokenizer has one. */
static int check_ends(const struct olmo *o, const struct slu_shard_seq *q,
                      const struct slu_shard_bucket *b, struct slu_err *err)
{
    const uint64_t eos = o->set.eos, last = q->n_id - 1;
    const uint64_t first_id = id_at(q, b, 0), last_id = id_at(q, b, last);
    const char *source = slu_names_source(o->names, q->seg->source);
    unsigned long long document = q->seg->document;

    if (last_id != eos)
        return slu_advise(
            err, SLU_ADVISE_OLMO_EOS,
            slu_fail(err, SLU_E_MISMATCH,
                     "format olmo: %s: document %llu: the last id is %llu, not the EOS "
                     "%llu, by which OLMo-core finds documents",
                     source, document, (unsigned long long)last_id,
                     (unsigned long long)eos));
    if (o->bos != SLU_NO_TOKEN && first_id != o->bos)
        return slu_advise(
            err, SLU_ADVISE_OLMO_BOS,
            slu_fail(err, SLU_E_MISMATCH,
                     "format olmo: %s: document %llu: the first id is %llu, not the "
                     "BOS %llu, with which OLMo-core finds documents of a tokenizer "
                     "that has one",
                     source, document, (unsigned long long)first_id,
                     (unsigned long long)o->bos));
    /* A first BOS that is EOS is none inside, but two ids are two documents then. */
    const uint64_t at = find_eos(o, q, b, o->bos == eos && last > 1);
    return at == last
               ? SLU_OK
               : slu_advise(
                     err, SLU_ADVISE_OLMO_ROWS,
                     slu_fail(err, SLU_E_MISMATCH,
                              "format olmo: %s: document %llu: id %llu of %llu is the "
                              "EOS %llu, at which OLMo-core ends a document; only the "
                              "last one may be",
                              source, document, (unsigned long long)(at + 1),
                              (unsigned long long)q->n_id, (unsigned long long)eos));
}

static int olmo_encode(const void *state, const struct slu_shard_bucket *b,
                       uint64_t index, const struct slu_shard_seq *q,
                       struct slu_buf *out, struct slu_err *err)
{
    const struct olmo *o = state;
    uint64_t at = q->at;
    int rc = o->checked ? check_ends(o, q, b, err) : SLU_OK;
    (void)index;
    if (!rc && at + q->n_id > UINT32_MAX)
        rc = slu_advise(err, SLU_ADVISE_SHARD_BYTES,
                        slu_fail(err, SLU_E_LIMIT,
                                 "format olmo: a file would have 2^32 tokens or more, "
                                 "and OLMo-core's indices end there"));
    if (!rc && !b->length)
        return put_row(o, q, q->seg, at, q->n_id, &out[ROWS], err);
    for (uint64_t i = 0; !rc && i < q->n_seg; i++) {
        const struct slu_seg *g = &q->seg[i];
        if (g->source != SLU_PADDING)
            rc = put_row(o, q, g, at, g->len_tok, &out[ROWS], err);
        at += g->len_tok;
    }
    return rc;
}

/* Makes a gzip member of the rows of a run; concatenated members are one file. */
static int olmo_flush(const void *state, unsigned file, const struct slu_buf *in,
                      struct slu_buf *out, struct slu_err *err)
{
    z_stream z = {0};
    (void)state;
    (void)file;
    if (deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return slu_fail_nomem(err, 1 << 18);
    uLong most = deflateBound(&z, in->len);
    int rc = in->len > UINT32_MAX || most > UINT32_MAX
                 ? slu_fail(err, SLU_E_LIMIT, "more than 4 GiB of rows in one run")
                 : slu_buf_reserve(out, most, err);
    if (!rc) {
        z.next_in = in->data;
        z.avail_in = (uInt)in->len;
        z.next_out = out->data + out->len;
        z.avail_out = (uInt)most;
        if (deflate(&z, Z_FINISH) != Z_STREAM_END)
            rc = slu_fail(err, SLU_E_LIMIT,
                          "internal error: zlib took more room than "
                          "it said; please report it");
        out->len += z.total_out;
    }
    deflateEnd(&z);
    return rc;
}

/* ---- the index ---- */

static int olmo_set(void *state, const struct slu_shard_set *set, struct slu_err *err)
{
    static const struct slu_olmo_curriculum natural = {SLU_OLMO_NATURAL, 1, false};
    struct slu_olmo_bucket bucket[SLU_MAX_BUCKETS];
    struct olmo *o = state;
    struct slu_buf work = SLU_BUF_INIT;
    struct slu_err why = SLU_ERR_INIT;
    if (set->n_bucket && !set->bucket[0]->length) /* whole documents */
        return SLU_OK;
    o->set.bucket = bucket;
    o->set.n_bucket = set->n_bucket;
    for (unsigned i = 0; i < set->n_bucket; i++)
        bucket[i] =
            (struct slu_olmo_bucket){set->bucket[i]->length, set->bucket[i]->n_seq,
                                     set->bucket[i]->shard_sequences};
    /* Other readers can still read a set without an index. */
    if (o->labels || slu_olmo_check(&o->set, &why)) {
        snprintf(o->note, sizeof o->note, "no %s is written: %s", folder,
                 o->labels ? "OLMo-core wants sequences without a label token"
                           : why.msg);
        return SLU_OK;
    }
    int rc = slu_buf_printf(&work, err, "%s/%s", set->dir, folder);
    if (!rc)
        rc = slu_olmo_write_index((const char *)work.data, &o->set, &natural, err);
    if (!rc) /* so that users notice that the index is missing */
        rc = slu_shards_report_add(set->engine, "set_folder", "\"olmo-cache\"", err);
    slu_buf_release(&work);
    return rc;
}

static const char *olmo_note(const void *state)
{
    const struct olmo *o = state;
    return *o->note ? o->note : NULL;
}

/* ---- the card ---- */

/* What OLMo-core must be told of the ids' width. */
static int put_width(const struct olmo *o, struct slu_buf *out, struct slu_err *err)
{
    return o->set.vocab_size > UINT8_MAX + 1
               ? SLU_OK
               : slu_buf_printf(out, err,
                                "Of so few ids OLMo-core reads one byte each, and here "
                                "they have two: give the data set\n"
                                "`dtype=NumpyDatasetDType.uint16` too.\n\n");
}

/* The configuration with which OLMo-core reads whole documents as they are, and how
 * each of its data sets takes the rows instead. */
static int olmo_card(const void *state, struct slu_buf *out, struct slu_err *err)
{
    const struct olmo *o = state;
    int rc = SLU_OK;

    if (!o->documents)
        return put_width(o, out, err);
    if (o->set.eos != SLU_NO_TOKEN)
        rc = slu_buf_printf(
            out, err,
            "OLMo-core does not read the `.csv.gz` of files on a disk. There a "
            "document "
            "ends at EOS, and for\n`NumpyPackedFSLDataset` at EOS before BOS if its "
            "tokenizer has a BOS. So give it this tokenizer, whatever the\nmodel's "
            "configuration says:\n\n"
            "```python\n"
            "TokenizerConfig(vocab_size=%llu, eos_token_id=%llu, pad_token_id=%llu, "
            "bos_token_id=",
            (unsigned long long)o->set.vocab_size, (unsigned long long)o->set.eos,
            (unsigned long long)o->set.pad);
    if (!rc && o->set.eos != SLU_NO_TOKEN)
        rc = o->bos == SLU_NO_TOKEN ? slu_buf_printf(out, err, "None)\n```\n\n")
                                    : slu_buf_printf(out, err, "%llu)\n```\n\n",
                                                     (unsigned long long)o->bos);
    if (!rc && o->set.eos != SLU_NO_TOKEN)
        rc = put_width(o, out, err);
    if (!rc && o->checked)
        rc = slu_buf_printf(
            out, err, "Each document was checked: it ends with EOS%s.\n",
            o->bos == SLU_NO_TOKEN ? " and has no other"
                                   : ", has no other, and begins with BOS");
    if (!rc && o->checked && o->bos != SLU_NO_TOKEN)
        rc = slu_buf_printf(out, err,
                            "`NumpyVSLDatasetConfig` refuses a BOS: there it is "
                            "`bos_token_id=None`.\n%s",
                            o->bos == o->set.eos
                                ? "BOS is EOS: all data sets but "
                                  "`NumpyPackedFSLDataset` read each BOS as a "
                                  "document of its own.\n"
                                : "");
    if (!rc && !o->checked)
        rc = slu_buf_printf(out, err,
                            "The documents were not checked (`--accept-mismatch`): "
                            "without their rows OLMo-core may join or cut them.\n");
    return rc ? rc
              : slu_buf_printf(
                    out, err,
                    "\n| data set | takes the rows of `.csv.gz` with |\n|---|---|\n"
                    "| `NumpyPackedFSLDatasetConfig` | `use_array_if_local=False` |\n"
                    "| `NumpyPaddedFSLDatasetConfig`, "
                    "`NumpyInterleavedFSLDatasetConfig`, mixtures | "
                    "`OLMO_DATA_PREP_USE_ARRAY_IF_LOCAL=false` in the environment |\n"
                    "| `NumpyVSLDatasetConfig`, `NumpyDocumentSource` | nothing: "
                    "always "
                    "by EOS |\n\n");
}

const struct slu_shard_format slu_shard_olmo = {
    .name = "olmo",
    .labels = SLU_LABELS_UNWANTED,
    .documents = true,
    .inner_padding = SLU_INNER_MASKS,
    .most_id = UINT32_MAX,
    .shard_byte = SLU_SHARD_IDS_BYTE,
    .options = SLU_SHARD_OLMO_PATH,
    .shard_sequences = olmo_shard_sequences,
    .check = olmo_check,
    .init = olmo_init,
    .release = olmo_release,
    .masks = true,
    .n_file = N_FILE,
    .n_mask_file = 1,
    .file_name = olmo_file_name,
    .owns = olmo_owns,
    .raw_ids = true,
    .encode = olmo_encode,
    .flush = olmo_flush,
    .flush_files = 1 << ROWS,
    .set = olmo_set,
    .set_note = olmo_note,
    .card = olmo_card,
    .set_folder = folder,
    .owns_in_set = olmo_owns_in_set,
};
