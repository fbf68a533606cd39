/* tokens_private.h - what the files of formats/ids/tokens_*.c share. */
#ifndef SLU_TOKENS_PRIVATE_H
#define SLU_TOKENS_PRIVATE_H

#include "tokens.h"

/* An input before it is opened. */
struct slu_tokens_look {
    const char *path; /* "-": standard input */
    bool folder;
    uint8_t head[64]; /* its first n bytes */
    size_t n;         /* 0 where it cannot be looked into before its turn */
};
/* Looks; faults are for the opening. */
void slu_tokens_look_at(struct slu_tokens_look *at, const char *path);

/* One format of ids. */
struct slu_tokens_format {
    const char *name;
    /* Whether the input is one, by contents and name. Not asked where the user says
     * what it is. */
    bool (*probe)(const struct slu_tokens_cfg *cfg, const struct slu_tokens_look *at);
    /* Its inputs are folders; false: files alone. */
    bool folders;
    bool columns; /* cfg.column and tok_bytes 8 mean something */
    int (*open)(struct slu_reader **r, const struct slu_tokens_cfg *cfg,
                struct slu_err *err);
    /* slu_tokens_each_file of a folder; NULL where `folders` is false. */
    int (*each_file)(const struct slu_tokens_cfg *cfg, const char *folder,
                     int (*each)(void *arg, const char *path, struct slu_err *err),
                     void *arg, struct slu_err *err);
    /* NULL: the reader's batches are counted. */
    int (*lengths)(const struct slu_tokens_cfg *cfg,
                   const struct slu_tokens_lengths_cfg *how,
                   struct slu_tokens_lengths *out, struct slu_err *err);
    bool lengths_alone; /* of an index: no id is seen, nor checked, on the way */
    /* Whether `lengths` takes these inputs; NULL: all. */
    bool (*scans)(const struct slu_tokens_cfg *cfg);
};

extern const struct slu_tokens_format slu_tokens_npy, slu_tokens_mds,
    slu_tokens_megatron, slu_tokens_ds;

/* The reader over `input`, whose ids are below vocab_size: its header, its sources'
 * names. Takes ownership of input, also when it fails. */
SLU_MUST_USE int slu_tokens_reader(struct slu_reader **r,
                                   const struct slu_tokens_cfg *cfg,
                                   const struct slu_input_ops *ops, void *input,
                                   uint64_t vocab_size, struct slu_err *err);
/* Bytes of its ids, as STREAM.md wants them. */
static inline unsigned slu_tokens_width(uint64_t vocab_size)
{
    return vocab_size <= 65536 ? 2 : 4;
}
/* What was given came through. */
SLU_MUST_USE int slu_tokens_all_seen(const struct slu_count *given,
                                     const struct slu_sum *seen, struct slu_err *err);

/* The largest of n unsigned integers of `width` bytes (1, 2, 4, 8) at p. */
uint64_t slu_ids_largest(const void *p, uint64_t n, unsigned width);
/* n of them to another width (2 or 4) in place; each fits, and so do all. */
void slu_ids_convert(void *p, uint64_t n, unsigned from, unsigned to);

/* For messages. */
const char *slu_tokens_name(const char *path);
bool slu_tokens_suffix(const char *path, const char *suffix);

/* Checks n ids of tok_bytes each against vocab_size; `first` is the index of the first
 * in its file, which the message names. */
SLU_MUST_USE int slu_tokens_check(const void *tok, size_t n, unsigned tok_bytes,
                                  uint64_t vocab_size, const char *path, uint64_t first,
                                  struct slu_err *err);

/* ---- npy: one file of ids ---- */

struct slu_npy_file {
    const char *path;
    int fd;             /* -1: not open */
    unsigned tok_bytes; /* 2 or 4 */
    bool regular;       /* n_tok is known, and pread works from off_byte on */
    uint64_t n_tok;     /* UINT64_MAX: a pipe without a header */
    uint64_t off_byte;  /* of the first id */
    uint64_t at_tok;    /* the next one that slu_npy_read gives */
    uint8_t head[16];   /* read to see whether there is a header, but ids */
    size_t n_head;
};

/* See struct slu_tokens_format. */
bool slu_npy_probe(const struct slu_tokens_cfg *cfg, const struct slu_tokens_look *at);

/* Opens it and finds where its ids are. Caller closes. */
SLU_MUST_USE int slu_npy_open(struct slu_npy_file *f, const struct slu_tokens_cfg *cfg,
                              const char *path, struct slu_err *err);
/* Up to n more ids, fewer only at the end. A pipe that goes on where its header says
 * that it ends is a fault. */
SLU_MUST_USE int slu_npy_read(struct slu_npy_file *f, void *buf, size_t n, size_t *got,
                              struct slu_err *err);
/* n ids from id `at` of a regular file on; any thread. */
SLU_MUST_USE int slu_npy_pread(const struct slu_npy_file *f, void *buf, size_t n,
                               uint64_t at, struct slu_err *err);
void slu_npy_close(struct slu_npy_file *f);

/* Checks the options against the files; *vocab_size is what ids are below, *most_bytes
 * the widest file's. width[i] (n_path of them; may be NULL) is that of file i. Where
 * *n_tok is not NULL: ids in all of them, UINT64_MAX where that is not known. */
SLU_MUST_USE int slu_npy_plan(const struct slu_tokens_cfg *cfg, uint64_t *vocab_size,
                              uint8_t *width, uint64_t *n_tok, struct slu_err *err);
/* A file ended, the last `open_tok` ids of it without an EOS. */
void slu_npy_book_end(const struct slu_tokens_cfg *cfg, const char *path,
                      uint64_t open_tok, bool any_eos);

/* A regular file X.npy has its documents' rows beside it, X.csv.gz. */
bool slu_npy_has_rows(const char *path);

SLU_MUST_USE int slu_npy_lengths(const struct slu_tokens_cfg *cfg,
                                 const struct slu_tokens_lengths_cfg *how,
                                 struct slu_tokens_lengths *out, struct slu_err *err);

#endif
