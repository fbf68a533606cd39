/* tokens_private.h - shared by the formats of ids (tokens_*.c) and the registry. */
#ifndef SLU_TOKENS_PRIVATE_H
#define SLU_TOKENS_PRIVATE_H

#include "tokens.h"

/* An input before it is opened. */
struct slu_tokens_look {
    const char *path; /* "-": standard input */
    bool folder;
    uint8_t head[64]; /* the first n bytes of the file */
    size_t n;         /* 0 if the file cannot be read before its turn */
};
/* Looks at an input; leaves errors to the opening. */
void slu_tokens_look_at(struct slu_tokens_look *at, const char *path);

/* One format of ids. */
struct slu_tokens_format {
    const char *name;
    /* Whether the input has this format, by contents and name. Not called if the user
     * names the format. */
    bool (*probe)(const struct slu_tokens_cfg *cfg, const struct slu_tokens_look *at);
    /* Inputs are folders; false: files. */
    bool folders;
    bool columns; /* uses cfg.column and tok_bytes 8 */
    int (*open)(struct slu_reader **r, const struct slu_tokens_cfg *cfg,
                struct slu_err *err);
    /* slu_tokens_each_file for a folder; NULL if `folders` is false. */
    int (*each_file)(const struct slu_tokens_cfg *cfg, const char *folder,
                     int (*each)(void *arg, const char *path, struct slu_err *err),
                     void *arg, struct slu_err *err);
    /* As slu_tokens_lengths. NULL: the reader's batches are counted. */
    int (*lengths)(const struct slu_tokens_cfg *cfg,
                   const struct slu_tokens_lengths_cfg *how,
                   struct slu_tokens_lengths *out, struct slu_err *err);
    bool lengths_alone; /* `lengths` reads an index alone: no id is checked */
    /* Whether `lengths` accepts these inputs; NULL: all. */
    bool (*scans)(const struct slu_tokens_cfg *cfg);
};

extern const struct slu_tokens_format slu_tokens_npy, slu_tokens_mds,
    slu_tokens_megatron, slu_tokens_ds, slu_tokens_set;

/* Makes the reader over `input`, whose ids are below vocab_size, with its header and
 * its sources' names. Takes ownership of input, also on failure. */
SLU_MUST_USE int slu_tokens_reader(struct slu_reader **r,
                                   const struct slu_tokens_cfg *cfg,
                                   const struct slu_input_ops *ops, void *input,
                                   uint64_t vocab_size, struct slu_err *err);
/* SLU_E_USAGE unless the EOS id is below the vocabulary size, and that at most 2^32. */
SLU_MUST_USE int slu_tokens_check_eos(const struct slu_tokens_cfg *cfg,
                                      uint64_t vocab_size, struct slu_err *err);
/* Returns the bytes of a stream's ids (formats/STREAM.md). */
static inline unsigned slu_tokens_width(uint64_t vocab_size)
{
    return vocab_size <= 65536 ? 2 : 4;
}
/* SLU_E_CONSERVATION unless all documents given to the reader were seen. */
SLU_MUST_USE int slu_tokens_all_seen(const struct slu_count *given,
                                     const struct slu_sum *seen, struct slu_err *err);

/* Returns the largest of n unsigned integers of `width` bytes (1, 2, 4, 8) at p. */
uint64_t slu_ids_largest(const void *p, uint64_t n, unsigned width);
/* Converts n integers in place to width `to` (2 or 4); values and memory must fit. */
void slu_ids_convert(void *p, uint64_t n, unsigned from, unsigned to);

/* Returns the path's name for messages. */
const char *slu_tokens_name(const char *path);
bool slu_tokens_suffix(const char *path, const char *suffix);

/* Checks n ids of tok_bytes each against vocab_size. `first`: index in its file of the
 * first, for the message. */
SLU_MUST_USE int slu_tokens_check(const void *tok, size_t n, unsigned tok_bytes,
                                  uint64_t vocab_size, const char *path, uint64_t first,
                                  struct slu_err *err);

/* ---- npy: one file of ids ---- */

struct slu_npy_file {
    const char *path;
    int fd;             /* -1: not open */
    unsigned tok_bytes; /* 2 or 4 */
    bool regular;       /* a regular file: n_tok is known, and pread works */
    uint64_t n_tok;     /* UINT64_MAX: a pipe without a header */
    uint64_t off_byte;  /* of the first id */
    uint64_t at_tok;    /* index of the next id of slu_npy_read */
    uint8_t head[16];   /* ids that were read in search of a header */
    size_t n_head;
};

/* See struct slu_tokens_format. */
bool slu_npy_probe(const struct slu_tokens_cfg *cfg, const struct slu_tokens_look *at);

/* Opens a file and finds its ids. Caller closes. */
SLU_MUST_USE int slu_npy_open(struct slu_npy_file *f, const struct slu_tokens_cfg *cfg,
                              const char *path, struct slu_err *err);
/* Reads n more ids, fewer only at the end. Data in a pipe after the end that its header
 * states is an error. */
SLU_MUST_USE int slu_npy_read(struct slu_npy_file *f, void *buf, size_t n, size_t *got,
                              struct slu_err *err);
/* Reads n ids of a regular file from id `at` on. Any thread. */
SLU_MUST_USE int slu_npy_pread(const struct slu_npy_file *f, void *buf, size_t n,
                               uint64_t at, struct slu_err *err);
void slu_npy_close(struct slu_npy_file *f);

/* Checks the options against the files. *vocab_size: exclusive upper bound of ids.
 * width (may be NULL): by file, n_path elements. *n_tok (n_tok may be NULL): ids in all
 * files, UINT64_MAX if unknown. */
SLU_MUST_USE int slu_npy_plan(const struct slu_tokens_cfg *cfg, uint64_t *vocab_size,
                              uint8_t *width, uint64_t *n_tok, struct slu_err *err);
/* Counts the end of a file in cfg->seen. open_tok: ids after the last EOS. */
void slu_npy_account_end(const struct slu_tokens_cfg *cfg, const char *path,
                         uint64_t open_tok, bool any_eos);

/* Whether X.csv.gz, the rows of its documents, exists beside a regular file X.npy. */
bool slu_npy_has_rows(const char *path);

SLU_MUST_USE int slu_npy_lengths(const struct slu_tokens_cfg *cfg,
                                 const struct slu_tokens_lengths_cfg *how,
                                 struct slu_tokens_lengths *out, struct slu_err *err);

#endif
