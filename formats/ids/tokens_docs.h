/* tokens_docs.h - shared by formats with a table of document ends beside the ids
 * (formats/megatron/tokens_megatron.c, formats/ds/tokens_ds.c).
 *
 * A format opens the table and gives the ends one after another. All else is here:
 * batches, the reading and checking of ids by several threads, the histogram that needs
 * only the tables, and the refusals. Documents follow one another in the file of ids,
 * from its first byte to its last. No memory is allocated by a count that a file
 * states: tables are read in blocks as the documents are given.
 */
#ifndef SLU_TOKENS_DOCS_H
#define SLU_TOKENS_DOCS_H

#include "tokens_private.h"

/* The type of a file's ids, little-endian. */
enum slu_id_type {
    SLU_ID_U8,
    SLU_ID_I8,
    SLU_ID_U16,
    SLU_ID_I16,
    SLU_ID_U32,
    SLU_ID_I32,
    SLU_ID_I64,
};
unsigned slu_id_bytes(enum slu_id_type type);
/* Returns the exclusive upper bound of ids of this type. */
uint64_t slu_id_below(enum slu_id_type type);

/* Checks n ids at buf and converts them, in place, to want_bytes (2 or 4) each in
 * native order; buf has room for these. SLU_E_FORMAT unless every id is below
 * vocab_size; the message has the id's index in its file, of which `first` is that of
 * buf's first id. */
SLU_MUST_USE int slu_ids_take(void *buf, size_t n, enum slu_id_type type,
                              unsigned want_bytes, uint64_t vocab_size,
                              const char *path, uint64_t first, struct slu_err *err);

/* Elements of one size, read from a file in blocks. */
struct slu_column {
    int fd;           /* borrowed */
    const char *name; /* of the file, for messages; borrowed */
    uint64_t off_byte;
    uint64_t n; /* elements left, the block's included */
    unsigned bytes;
    uint8_t *block; /* owned */
    size_t at, end; /* next byte and end, in the block */
};

/* Begins to read n elements from off_byte on. */
void slu_column_init(struct slu_column *c, int fd, const char *name, uint64_t off_byte,
                     uint64_t n, unsigned bytes);
void slu_column_release(struct slu_column *c);
/* Gives the next element, valid until the next call. c->n must not be 0. */
SLU_MUST_USE int slu_column_next(struct slu_column *c, const uint8_t **p,
                                 struct slu_err *err);

/* One input while its table is read. */
struct slu_docs_file {
    const char *path; /* as the user named it */
    char *ids;        /* the file of the ids; owned */
    enum slu_id_type type;
    uint64_t n_tok; /* ids in the file; checked against its size */
    uint64_t n_doc; /* documents in the table */
    void *state;    /* the format's */
};

struct slu_docs_format {
    const char *name;
    /* Opens the table, checks it against the file of ids, and fills *f. */
    int (*open)(struct slu_docs_file *f, const struct slu_tokens_cfg *cfg,
                const char *path, struct slu_err *err);
    /* Gives the index just after the last id of the next document: not below the
     * previous one, and n_tok the last time. Called n_doc times. */
    int (*next)(struct slu_docs_file *f, uint64_t *end, struct slu_err *err);
    /* Frees what open has made; *f may be zero. */
    void (*close)(struct slu_docs_file *f);
};

/* path: .bin, .idx or their prefix */
extern const struct slu_docs_format slu_docs_megatron;
extern const struct slu_docs_format slu_docs_ds; /* path: .ds */

/* See struct slu_tokens_format. */
SLU_MUST_USE int slu_docs_open(struct slu_reader **r, const struct slu_tokens_cfg *cfg,
                               const struct slu_docs_format *format,
                               struct slu_err *err);
SLU_MUST_USE int slu_docs_lengths(const struct slu_tokens_cfg *cfg,
                                  const struct slu_docs_format *format,
                                  const struct slu_tokens_lengths_cfg *how,
                                  struct slu_tokens_lengths *out, struct slu_err *err);

/* Opens a regular file for reading, and gives its size. Caller closes. */
SLU_MUST_USE int slu_docs_open_file(int *fd, uint64_t *n_byte, const char *path,
                                    struct slu_err *err);
/* SLU_E_USAGE if --token-bytes differs from the file's own width. */
SLU_MUST_USE int slu_docs_check_width(const struct slu_tokens_cfg *cfg,
                                      const char *path, unsigned bytes,
                                      struct slu_err *err);

#endif
