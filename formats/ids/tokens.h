/* tokens.h - reads files of ids that another tokenizer wrote, as documents, with the
 * interface of slu_reader.
 *
 * Each format is one file tokens_NAME.c with one table (tokens_private.h), one line in
 * the registry in tokens.c and a name in slu_tokens_format_names. The format is chosen
 * by option, or recognised by contents and name, for folders too:
 *
 *   npy       ids of two or four bytes, little-endian: OLMo-core's .npy, without a
 *             header, or NumPy's with one (a one-dimensional array). The id `eos` ends
 *             a document and belongs to it; ids after the last `eos` are one more
 *             document (`open_ended`). If X.csv.gz exists beside X.npy, its rows give
 *             the documents and their own ids instead (formats/olmo/olmo_rows.h).
 *   megatron  a .bin and its .idx, named by either or by their common prefix
 *   ds        datatrove's .ds and its .ds.index; without the index as npy
 *   mds       folders of MosaicML's MDS shards with index.json: each sample is a
 *             document, numbered in the folder. The ids are one column, an ndarray of
 *             integers, or bytes with `tok_bytes`; `eos` is not needed.
 *   set       folders that shuffle wrote, of any format, with all that their segments
 *             have (formats/shards/tokens_set.c)
 *
 * A document's source is the ordinal of its file in the list. Its number is the index
 * of its first id in the file, or of its entry in the file's index (DESIGN.md, Identity
 * and order), so it leads back to the ids. Facts that a file does not contain are
 * required as options, never guessed. Files of all widths can be read together: the
 * reader gives ids in the width for vocab_size.
 */
#ifndef SLU_TOKENS_H
#define SLU_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/device.h"
#include "lib/base/err.h"
#include "lib/stream/lengths.h"
#include "lib/stream/stream.h"

SLU_BEGIN_DECLS

/* "auto", "stream", and the names of formats; ends with NULL. */
extern const char *const slu_tokens_format_names[];
enum { SLU_TOKENS_AUTO, SLU_TOKENS_STREAM }; /* the first two */

/* Facts to report to the user, counted as the files are read. */
struct slu_tokens_seen {
    uint64_t open_ended;         /* files whose last document has no EOS */
    const char *open_ended_name; /* the first of these; borrowed from the paths */
    uint64_t without;            /* among these: files without any EOS */
    const char *without_name;
    uint64_t no_eos; /* documents ended by an index whose last id is not EOS */
    uint64_t empty;  /* documents without ids, left out */
    uint64_t masks;  /* files with a loss mask beside them, which is not read */
    const char *masks_name;
    uint64_t gap_tok; /* ids outside the rows beside their file: padding, left out */
    const char *gap_name;
};

struct slu_tokens_cfg {
    const char *const *path; /* borrowed for the reader's life; "-": standard input */
    size_t n_path;           /* 0: standard input alone */
    int format;              /* index in slu_tokens_format_names */
    uint64_t eos;            /* SLU_NO_TOKEN: not given */
    unsigned tok_bytes;      /* 2 or 4, mds also 8; 0: not given */
    uint64_t vocab_size;     /* 0: not given; with two bytes per id: 65536 */
    const char *column;   /* mds: name of the ids' column; NULL: tokens, or input_ids */
    bool any_id;          /* no vocab_size, ids of four bytes: 2^32, not an error */
    uint64_t max_seq_tok; /* longer documents are SLU_E_LIMIT; 0: no limit */
    bool inner_padding;   /* the caller keeps padding between segments, of sets */
    struct slu_tokens_seen *seen; /* borrowed */
};

/* Finds the inputs' format: *format is its name, NULL for streams; *scans: whether
 * slu_tokens_lengths accepts the inputs. SLU_E_MISMATCH if they have several formats;
 * SLU_E_USAGE if they are streams and options are for ids. */
SLU_MUST_USE int slu_tokens_are(const struct slu_tokens_cfg *cfg, const char **format,
                                bool *scans, struct slu_err *err);
/* Writes to out the name of the i-th file that would be read with `path` if `path` were
 * a file of ids (an index, the ids of an index), whether the file exists or not. False
 * after the last. */
bool slu_tokens_beside(const char *path, unsigned i, char *out, size_t cap);
/* Whether a folder is one input of some format, by its contents. */
bool slu_tokens_takes_folder(const char *path);

/* Calls `each` for every file that a run reads from a folder that is one input. Calls
 * nothing if these files cannot be found out, because the folder cannot be read then
 * either. cfg: column, tok_bytes. The first result of `each` other than SLU_OK ends the
 * calls and is returned. */
SLU_MUST_USE int
slu_tokens_each_file(const struct slu_tokens_cfg *cfg, const char *folder,
                     int (*each)(void *arg, const char *path, struct slu_err *err),
                     void *arg, struct slu_err *err);

/* Opens a reader of inputs that are files of ids. Its header has the ids' width,
 * vocab_size, eos, and eos as pad; no fingerprint, no vocabulary. */
SLU_MUST_USE int slu_tokens_open(struct slu_reader **r,
                                 const struct slu_tokens_cfg *cfg, struct slu_err *err);

/* ---- lengths alone: no rows, no checksums, at the speed of reading ---- */

struct slu_tokens_lengths_cfg {
    unsigned n_threads;
    uint64_t memory;           /* bytes that blocks and tables may take */
    struct slu_device *device; /* borrowed; NULL: the CPU */
    void (*progress)(void *arg, uint64_t n_byte, uint64_t n_tok); /* NULL: none */
    void *progress_arg;
};

struct slu_tokens_lengths {
    struct slu_length_count *row; /* ascending; malloc'd, free() */
    size_t n_row;
    uint64_t documents, tokens;
    const char *level; /* SIMD level, device's name, or "index": static, or device's */
};

/* Computes the histogram of the documents' lengths, equal to that of slu_tokens_open's
 * documents. Compares ids with vocab_size only if that is given. Ignores max_seq_tok,
 * because no document is held. */
SLU_MUST_USE int slu_tokens_lengths(const struct slu_tokens_cfg *cfg,
                                    const struct slu_tokens_lengths_cfg *how,
                                    struct slu_tokens_lengths *out,
                                    struct slu_err *err);

SLU_END_DECLS

#endif
