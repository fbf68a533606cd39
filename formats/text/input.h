/* input.h - from sources to records: blocks of whole records, cut in order by one
 * thread and split in parallel.
 *
 * slu_input_fetch is the serial half: it reads, decompresses and cuts at the ends of
 * records. slu_block_split is the parallel half: it finds the records in a block. A
 * record is JSON (block->json: one object of a JSONL file, without its newline), a row
 * (block->rows: text, id and domain of a Parquet file) or a text. A text larger than a
 * block comes in parts, one per block, if the caller says where it can be cut.
 *
 * A format is one file in_NAME.c with one const table of functions, a declaration in
 * input_private.h, and a line in the registry (input.c). Its error messages name the
 * source and, if possible, the place.
 *
 * A source that is empty, of a kind that is no text (kinds.h), ends early or is damaged
 * (SLU_E_TRUNCATED, SLU_E_FORMAT) ends the run. If cfg->broken is set, it ends only
 * itself: its whole records come as usual, then the bytes read of the next record,
 * marked as broken, then the next source.
 */
#ifndef SLU_INPUT_H
#define SLU_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/text/bytes.h"
#include "formats/text/sources.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/json.h"

SLU_BEGIN_DECLS

/* One record in a block. */
struct slu_record_ref {
    uint64_t source; /* ordinal */
    /* The position (DESIGN.md, Identity and order). JSONL: byte offset in the
     * decompressed source; Parquet: the row, from 0; text: 0. In an archive this counts
     * from the place of the member: in tar the byte offset of its first header; in zip
     * its number, from 0 (libarchive does not tell where a zip member begins). Where
     * members before it have more records or bytes of records than that leaves room
     * for, as in zip, the place is what follows their last. */
    uint64_t document;
    uint64_t line;   /* from 1; 0: unknown, or no file of lines */
    size_t off, len; /* bytes in block->raw */
    /* For a text in parts: this part begins at part_off of the document; if goes_on,
     * the next block begins with the next part. Only a block's first record can have a
     * part_off, and only its last can have goes_on. */
    uint64_t part_off;
    bool goes_on;
    size_t member; /* of an archive: 1 + offset of its path in block->members; or 0 */
    /* Not SLU_REJECT_NONE: the bytes read of a record when its source ended early or
     * was damaged, for this reason. */
    enum slu_reject reject;
};

/* A record of a format with columns. Its text is rec.len bytes at rec.off; its id, its
 * domain, its spans, and the values of cfg->any follow. */
struct slu_row_fields {
    size_t id_len, domain_len, any_len; /* any_len: slu_row_put_any */
    size_t span_len;                    /* of pairs of u64, not aligned */
    bool bad_spans;                     /* its spans are none; then span_len is 0 */
    unsigned null; /* bit 1 << f: field f is wanted, and the row has none */
    double score;  /* any value */
};

struct slu_block {
    struct slu_buf raw;         /* SLU_JSON_PADDING zero bytes after len */
    struct slu_record_ref *rec; /* complete after slu_block_split */
    size_t n_rec, cap_rec;
    bool json;
    bool rows;    /* rec[i] has field[i] */
    bool at_byte; /* of rows: documents are byte offsets, not numbers of rows */
    struct slu_row_fields *field;
    size_t cap_field;
    /* if its reject is set: slu_block_split adds it after all others */
    struct slu_record_ref broken;
    bool lines;                      /* slu_block_split finds the records */
    uint64_t source, off_byte, line; /* of raw's first byte */
    struct slu_buf members;          /* paths, each with a NUL */
    size_t member;                   /* of raw's first byte, as in slu_record_ref */
    uint64_t claimed_byte; /* granted by cfg->claim for growth beyond block_byte */
};

void slu_block_init(struct slu_block *b);
/* Removes all records; keeps the memory. */
void slu_block_clear(struct slu_block *b);
void slu_block_release(struct slu_block *b);

struct slu_input_source; /* private to the formats */
struct slu_members;      /* members.h */

struct slu_input_format {
    const char *name;
    bool json;  /* records are JSON */
    bool rows;  /* records have columns */
    bool lines; /* blocks hold lines of one source */
    /* Recognise the format by the name without compression suffix (NULL: unknown), and
     * by the first bytes. */
    bool (*name_matches)(const char *name);
    bool (*head_matches)(const uint8_t *p, size_t n);
    int (*open)(struct slu_input_source *src, struct slu_err *err); /* may be NULL */
    /* Appends records to b until it is full. SLU_EOF: no more records (b may have
     * grown). After damage b keeps the records before it. */
    int (*fetch)(struct slu_input_source *src, struct slu_block *b,
                 struct slu_err *err);
    /* Of archives, which have no fetch: goes to the next member, whose src, ordinal, cfg,
     * … are set, and sets its bytes, label, member, size_byte and base. SLU_EOF: there
     * is none. An error after the member is known belongs to the member. May be NULL. */
    int (*next)(struct slu_input_source *archive, struct slu_input_source *member,
                struct slu_err *err);
    /* The member's format is known; it is read unless *leave is set. */
    int (*accept)(struct slu_input_source *archive, struct slu_input_source *member,
                  bool *leave, struct slu_err *err);
    /* The member has been read; its records took n places from its base on. */
    void (*done)(struct slu_input_source *archive, struct slu_input_source *member,
                 uint64_t n);
    /* After damage: goes to what does not depend on the damaged bytes, in this share.
     * False: nothing is known to be there. May be NULL: false. */
    bool (*resume)(struct slu_input_source *src);
    void (*close)(struct slu_input_source *src); /* may be NULL */
};

struct slu_input_cfg {
    const struct slu_sources *sources; /* borrowed; reads the share first … end-1 */
    const struct slu_input_format *format; /* NULL: by name, then by contents */
    size_t block_byte;                     /* usual size of a block, at least 4 KiB */
    /* a record, or part of one, that fits neither a block nor this is SLU_E_LIMIT */
    uint64_t max_record_byte;
    uint64_t window_byte;        /* for decompressors, see slu_bytes_open */
    const char *tmpdir;          /* for members of archives that must lie in a file */
    struct slu_members *members; /* which members of archives are read */
    const char *member;          /* of wds: the extension of the member with the text */
    const char *field[SLU_FIELDS]; /* columns of rows; NULL: not read */
    unsigned optional;             /* as in struct slu_record_cfg */
    const char *const *any;        /* n_any more columns of rows, of any type */
    size_t n_any;
    unsigned n_threads; /* formats may start n_threads - 1 threads */
    int quit_fd;        /* see slu_bytes_open; -1: none */
    void *ctx;
    /* Called before b grows by n bytes beyond block_byte; may wait. An error ends the
     * fetch. May be NULL. */
    int (*claim)(void *ctx, struct slu_block *b, uint64_t n, struct slu_err *err);
    /* Returns a place in p[0, n), at or after `from`, where a text larger than a block
     * can be cut; 0: nowhere. More text may follow. NULL: texts come whole. */
    size_t (*cut)(void *ctx, const uint8_t *p, size_t n, size_t from);
    /* begin and end are called before and after a source is read. May be NULL. */
    int (*begin)(void *ctx, uint64_t ordinal, struct slu_err *err);
    /* n_byte: bytes of the share; empty: the file has no bytes at all. */
    void (*end)(void *ctx, uint64_t ordinal, uint64_t n_byte, bool empty);
    /* Called when the source ends early or is damaged, in the record at `document`;
     * `why` is one line that names file and place. NULL: this ends the run. */
    void (*broken)(void *ctx, uint64_t document, enum slu_reject reason,
                   const char *why);
};

struct slu_input;
/* Borrows what cfg points to. Caller frees with slu_input_free. */
SLU_MUST_USE int slu_input_new(struct slu_input **in, const struct slu_input_cfg *cfg,
                               struct slu_err *err);
/* Gives the next block; SLU_EOF at the end of the share. Serial. */
SLU_MUST_USE int slu_input_fetch(struct slu_input *in, struct slu_block *b,
                                 struct slu_err *err);
/* Returns the stored bytes taken so far. Any thread. */
uint64_t slu_input_stored(const struct slu_input *in);
/* Returns how many texts of WARC records were cut short by the crawler. At the end. */
uint64_t slu_input_truncated(const struct slu_input *in);
void slu_input_free(struct slu_input *in);

/* Fills b->rec. Lines of white space only are no records. Any thread. */
SLU_MUST_USE int slu_block_split(struct slu_block *b, struct slu_err *err);

/* Appends the value of a column of any type to the bytes of a row, and reads one back:
 * returns the place behind it; a string is borrowed. */
SLU_MUST_USE int slu_row_put_any(struct slu_buf *b, const struct slu_value *v,
                                 struct slu_err *err);
const uint8_t *slu_row_get_any(const uint8_t *p, struct slu_value *v);

/* Returns the format "jsonl", "text", "tar", "zip", "wds", "warc" or "parquet"; NULL if
 * unknown. */
const struct slu_input_format *slu_input_format_named(const char *name);
/* Returns a rank for struct slu_sources_cfg: 3 for names of data sets (jsonl, ndjson,
 * parquet, pq, warc, wet, txt, text, tar, zip, compressed or not), 2 for json, which
 * settings have too, 0 for names of kinds that are no text (kinds.h), 1 for all others. */
unsigned slu_input_rank(const char *name);
/* Whether files of that name are archives, whose members are read. */
bool slu_input_is_archive(const char *name);
/* Whether uncompressed files of that name can be cut at any record, or row group (see
 * slu_sources_share). ctx: the struct slu_input_format that was chosen, or NULL. */
bool slu_input_splittable(const char *name, void *ctx);

SLU_END_DECLS

#endif
