/* input_private.h - shared by input.c and the formats. */
#ifndef SLU_INPUT_PRIVATE_H
#define SLU_INPUT_PRIVATE_H

#include "formats/text/kinds.h"
#include "input.h"

/* The source being read. */
struct slu_input_source {
    struct slu_input *in;
    const struct slu_input_cfg *cfg;
    const struct slu_source *src;
    uint64_t ordinal;
    struct slu_bytes *bytes;
    uint64_t from, to; /* records that begin here; 0 and UINT64_MAX: all */
    const struct slu_input_format *format;
    void *state; /* the format's */
    /* The record at which fetch failed: its place in the source, and the start of its
     * bytes in b->raw. begin is b->raw.len before each fetch. */
    uint64_t document;
    size_t begin;
    uint64_t part_off; /* offset in that record of its first byte in b->raw */
    /* Of a member of an archive; then `src` is the archive's. NULL: a file. */
    const char *label;                    /* "ARCHIVE: MEMBER", for messages */
    const char *member;                   /* its path in the archive */
    uint64_t size_byte;                   /* stored bytes; UINT64_MAX: unknown */
    uint64_t base;                        /* the document of its first record or byte */
    uint64_t n_truncated;                 /* texts of WARC that the crawler cut short */
    uint64_t n_row; /* its rows so far */ /* its rows so far */
    /* why nothing of the source is a record, if it is for that that it is left */
    enum slu_reject reject;
    /* For formats that read the file themselves: bytes taken, raw and as stored. */
    uint64_t own_byte, own_stored_byte;
    uint64_t other_byte; /* bytes read from `from` on that belong to other shares */
};

/* Returns the source's name for messages. */
const char *slu_input_name(const struct slu_input_source *src);
/* Returns SLU_E_TRUNCATED for a source without any byte. */
int slu_input_empty(struct slu_input_source *src, struct slu_err *err);
/* Makes room for `more` bytes and the padding after b->raw.len, for a record that began
 * at raw offset `begin` and at `place` in the source. */
SLU_MUST_USE int slu_block_room(const struct slu_input_source *src, struct slu_block *b,
                                size_t more, size_t begin, uint64_t place,
                                struct slu_err *err);
/* Appends a record to the table. */
SLU_MUST_USE int slu_block_add(struct slu_block *b, struct slu_record_ref rec,
                               struct slu_err *err);
/* Appends a record with its fields, in a block of rows. */
SLU_MUST_USE int slu_block_add_row(struct slu_block *b, struct slu_record_ref rec,
                                   struct slu_row_fields fields, struct slu_err *err);

/* Whether p[0, n), the first bytes of a file, are lines of JSON objects: the first line
 * is one, as far as it is known, and the second begins as one. */
bool slu_jsonl_lines(const uint8_t *p, size_t n);

extern const struct slu_input_format slu_in_jsonl, slu_in_text, slu_in_tar, slu_in_zip,
    slu_in_wds, slu_in_warc, slu_in_parquet;

#endif
