/* tokens_megatron.c - Megatron's .bin and .idx, as megatron-core's IndexedDataset reads
 * them (megatron/core/datasets/indexed_dataset.py).
 *
 *   PREFIX.bin  ids, one sequence after the other
 *   PREFIX.idx  "MMIDIDX\0\0", u64 version 1, u8 type, u64 n_seq, u64 n_entry; then
 *               i32 length[n_seq] in ids, i64 pointer[n_seq] in bytes,
 *               i64 document[n_entry], the first sequence of each document, and n_seq
 *               as the last entry; in multimodal sets also i8 mode[n_seq]
 *
 * A document is all sequences between two entries of the table, joined; its number is
 * the index of its entry. A pointer that skips or repeats bytes is refused: Megatron's
 * reader accepts such a pointer, but no writer makes one.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/ids/tokens_docs.h"
#include "lib/base/io.h"
#include "lib/base/le.h"

static const uint8_t magic[9] = "MMIDIDX\0";
enum { HEADER = 34 };

struct idx {
    char *name; /* of the .idx file */
    int fd;
    struct slu_column length, pointer, document, mode;
    bool modes;
    unsigned bytes;
    uint64_t n_seq, seq;  /* number of sequences, and number read */
    uint64_t at_tok;      /* number of ids in the sequences read */
    uint64_t n_byte_ids;  /* size of the .bin file */
    uint64_t n_doc, docs; /* number of documents, and number returned */
};

/* ---- names ---- */

/* Length of the path without .bin or .idx. */
static size_t prefix_of(const char *path)
{
    size_t n = strlen(path);
    bool suffix = slu_tokens_suffix(path, ".bin") || slu_tokens_suffix(path, ".idx");
    return suffix ? n - 4 : n;
}

/* Caller frees; NULL: no memory. */
static char *with_suffix(const char *path, const char *suffix)
{
    size_t n = prefix_of(path);
    char *s = malloc(n + 5);
    if (s) {
        memcpy(s, path, n);
        memcpy(s + n, suffix, 5);
    }
    return s;
}

/* The input is named by its .idx, its .bin, or the common beginning of both names. */
static bool probe(const struct slu_tokens_cfg *cfg, const struct slu_tokens_look *at)
{
    struct slu_tokens_look idx;
    struct stat st;
    (void)cfg;
    if (at->n >= sizeof magic && !memcmp(at->head, magic, sizeof magic))
        return true;
    if (!slu_tokens_suffix(at->path, ".bin") &&
        (!strcmp(at->path, "-") || !stat(at->path, &st)))
        return false;
    char *name = with_suffix(at->path, ".idx");
    if (!name)
        return false;
    slu_tokens_look_at(&idx, name);
    free(name);
    return idx.n >= sizeof magic && !memcmp(idx.head, magic, sizeof magic);
}

/* ---- the index ---- */

static int type_of(unsigned code, enum slu_id_type *type)
{
    static const int types[] = {-1, SLU_ID_U8, SLU_ID_I8, SLU_ID_I16, SLU_ID_I32,
                                /* 5: i64, 6: f64, 7: f32 */
                                SLU_ID_I64, -1, -1, SLU_ID_U16};
    if (code >= sizeof types / sizeof *types || types[code] < 0)
        return -1;
    *type = (enum slu_id_type)types[code];
    return 0;
}

static int read_header(struct slu_docs_file *f, struct idx *x, uint64_t n_byte,
                       struct slu_err *err)
{
    uint8_t h[HEADER];
    uint64_t n_seq, n_entry;
    if (n_byte < HEADER)
        return slu_fail(err, SLU_E_TRUNCATED,
                        "%s: ends within its header, at byte %llu", x->name,
                        (unsigned long long)n_byte);
    int rc = slu_pread_full(x->fd, h, HEADER, 0, err);
    if (rc)
        return slu_err_at(err, "%s", x->name);
    if (memcmp(h, magic, sizeof magic) != 0)
        return slu_fail(
            err, SLU_E_FORMAT,
            "%s: not an index of Megatron's: its first bytes are not MMIDIDX", x->name);
    if (slu_le64(h + 9) != 1)
        return slu_fail(err, SLU_E_UNSUPPORTED, "%s: version %llu; version 1 is read",
                        x->name, (unsigned long long)slu_le64(h + 9));
    if (type_of(h[17], &f->type))
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "%s: type %u%s; ids are integers (types 1 to 5 and 8)", x->name,
                        h[17], h[17] == 6 || h[17] == 7 ? " (floating point)" : "");
    n_seq = slu_le64(h + 18);
    n_entry = slu_le64(h + 26);
    /* Neither number may exceed the file's size, so the sums below do not overflow. */
    uint64_t want = n_seq > n_byte / 12 || n_entry > n_byte / 8
                        ? UINT64_MAX
                        : HEADER + 12 * n_seq + 8 * n_entry;
    if (want == UINT64_MAX || (n_byte != want && n_byte != want + n_seq))
        return slu_fail(
            err, SLU_E_TRUNCATED,
            "%s: has %llu bytes, which are not those of the %llu sequences and %llu "
            "document entries in its header: bytes were cut off or added",
            x->name, (unsigned long long)n_byte, (unsigned long long)n_seq,
            (unsigned long long)n_entry);
    if (n_entry == 0)
        return slu_fail(err, SLU_E_FORMAT,
                        "%s: its table of documents is empty; it should begin with 0",
                        x->name);
    x->n_seq = n_seq;
    x->modes = n_seq && n_byte != want;
    x->n_doc = n_entry - 1;
    x->bytes = slu_id_bytes(f->type);
    slu_column_init(&x->length, x->fd, x->name, HEADER, n_seq, 4);
    slu_column_init(&x->pointer, x->fd, x->name, HEADER + 4 * n_seq, n_seq, 8);
    slu_column_init(&x->document, x->fd, x->name, HEADER + 12 * n_seq, n_entry, 8);
    slu_column_init(&x->mode, x->fd, x->name, want, n_seq, 1);
    return SLU_OK;
}

/* Reads the first entry of the table, which ends no document. */
static int read_first(struct idx *x, struct slu_err *err)
{
    const uint8_t *p;
    int rc = slu_column_next(&x->document, &p, err);
    if (rc)
        return rc;
    if (slu_le64(p) != 0)
        return slu_fail(err, SLU_E_FORMAT,
                        "%s: its documents begin with sequence %lld; expected 0",
                        x->name, (long long)slu_le64(p));
    return SLU_OK;
}

static int check_ids(struct slu_docs_file *f, struct idx *x, struct slu_err *err)
{
    int fd, rc = slu_docs_open_file(&fd, &x->n_byte_ids, f->ids, err);
    if (rc)
        return rc;
    close(fd);
    if (x->n_byte_ids % x->bytes)
        return slu_fail(err, SLU_E_TRUNCATED,
                        "%s: %llu bytes are not a whole number of ids of %u bytes, the "
                        "width in %s: the file was cut, or belongs to another index",
                        f->ids, (unsigned long long)x->n_byte_ids, x->bytes, x->name);
    f->n_tok = x->n_byte_ids / x->bytes;
    f->n_doc = x->n_doc;
    if (x->n_doc == 0 && (x->n_seq || f->n_tok))
        return slu_fail(
            err, SLU_E_FORMAT,
            "%s: has %llu sequences and no document: its writer did not end one",
            x->name, (unsigned long long)x->n_seq);
    return SLU_OK;
}

static void idx_close(struct slu_docs_file *f)
{
    struct idx *x = f->state;
    if (x) {
        slu_column_release(&x->length);
        slu_column_release(&x->pointer);
        slu_column_release(&x->document);
        slu_column_release(&x->mode);
        if (x->fd >= 0)
            close(x->fd);
        free(x->name);
        free(x);
    }
    free(f->ids);
    *f = (struct slu_docs_file){0};
}

static int idx_open(struct slu_docs_file *f, const struct slu_tokens_cfg *cfg,
                    const char *path, struct slu_err *err)
{
    struct idx *x = calloc(1, sizeof *x);
    uint64_t n_byte;
    int rc = SLU_OK;
    *f = (struct slu_docs_file){.path = path, .state = x};
    if (!x)
        return slu_fail_nomem(err, sizeof *x);
    x->fd = -1;
    f->ids = with_suffix(path, ".bin");
    x->name = with_suffix(path, ".idx");
    if (!f->ids || !x->name)
        rc = slu_fail_nomem(err, strlen(path) + 5);
    if (!rc && !strcmp(path, "-"))
        rc = slu_fail(
            err, SLU_E_USAGE,
            "standard input cannot carry Megatron's pair of files; name one of them");
    if (!rc)
        rc = slu_docs_open_file(&x->fd, &n_byte, x->name, err);
    if (!rc)
        rc = read_header(f, x, n_byte, err);
    if (!rc)
        rc = slu_docs_check_width(cfg, x->name, x->bytes, err);
    if (!rc)
        rc = check_ids(f, x, err);
    if (!rc)
        rc = read_first(x, err);
    if (rc)
        idx_close(f);
    return rc;
}

/* Checks that the next sequence begins where the last one ended. */
static int take_sequence(struct idx *x, uint64_t n_tok, struct slu_err *err)
{
    const uint8_t *p;
    int rc = slu_column_next(&x->length, &p, err);
    if (rc)
        return rc;
    uint32_t len = slu_le32(p);
    rc = slu_column_next(&x->pointer, &p, err);
    if (rc)
        return rc;
    uint64_t at_byte = slu_le64(p);
    if (len > INT32_MAX)
        return slu_fail(err, SLU_E_FORMAT, "%s: sequence %llu has a length of %d",
                        x->name, (unsigned long long)x->seq, (int32_t)len);
    if (at_byte != x->at_tok * x->bytes)
        return slu_fail(err, SLU_E_FORMAT,
                        "%s: sequence %llu begins at byte %lld, and the one before "
                        "ends at byte %llu",
                        x->name, (unsigned long long)x->seq, (long long)at_byte,
                        (unsigned long long)(x->at_tok * x->bytes));
    if (len > n_tok - x->at_tok)
        return slu_fail(err, SLU_E_TRUNCATED,
                        "%s: sequence %llu ends at id %llu, and the .bin has %llu "
                        "ids: the .bin was cut, or belongs to another index",
                        x->name, (unsigned long long)x->seq,
                        (unsigned long long)(x->at_tok + len),
                        (unsigned long long)n_tok);
    if (x->modes) {
        rc = slu_column_next(&x->mode, &p, err);
        if (rc)
            return rc;
        if (*p)
            return slu_fail(err, SLU_E_UNSUPPORTED,
                            "%s: sequence %llu has mode %d, so it is not text; "
                            "multimodal sets are not read",
                            x->name, (unsigned long long)x->seq, (int8_t)*p);
    }
    x->at_tok += len;
    x->seq++;
    return SLU_OK;
}

static int idx_next(struct slu_docs_file *f, uint64_t *end, struct slu_err *err)
{
    struct idx *x = f->state;
    const uint8_t *p;
    int rc = slu_column_next(&x->document, &p, err);
    if (rc)
        return rc;
    uint64_t last = slu_le64(p);
    if (last < x->seq || last > x->n_seq)
        return slu_fail(err, SLU_E_FORMAT,
                        "%s: document %llu ends with sequence %lld; expected one after "
                        "%llu, of %llu",
                        x->name, (unsigned long long)x->docs, (long long)last,
                        (unsigned long long)x->seq, (unsigned long long)x->n_seq);
    while (x->seq < last) {
        rc = take_sequence(x, f->n_tok, err);
        if (rc)
            return rc;
    }
    if (++x->docs == x->n_doc && (x->seq != x->n_seq || x->at_tok != f->n_tok))
        return slu_fail(err, SLU_E_FORMAT,
                        "%s: its documents end with sequence %llu of %llu and id %llu, "
                        "and the .bin has %llu ids",
                        x->name, (unsigned long long)x->seq,
                        (unsigned long long)x->n_seq, (unsigned long long)x->at_tok,
                        (unsigned long long)f->n_tok);
    *end = x->at_tok;
    return SLU_OK;
}

const struct slu_docs_format slu_docs_megatron = {
    .name = "megatron", .open = idx_open, .next = idx_next, .close = idx_close};

static int open_reader(struct slu_reader **r, const struct slu_tokens_cfg *cfg,
                       struct slu_err *err)
{
    return slu_docs_open(r, cfg, &slu_docs_megatron, err);
}

static int lengths(const struct slu_tokens_cfg *cfg,
                   const struct slu_tokens_lengths_cfg *how,
                   struct slu_tokens_lengths *out, struct slu_err *err)
{
    return slu_docs_lengths(cfg, &slu_docs_megatron, how, out, err);
}

const struct slu_tokens_format slu_tokens_megatron = {.name = "megatron",
                                                      .probe = probe,
                                                      .open = open_reader,
                                                      .lengths = lengths,
                                                      .lengths_alone = true};
