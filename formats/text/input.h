/* input.h - from sources to records: raw blocks of whole records, in order, cheap to
 * make one after another and to take apart in parallel.
 *
 * slu_input_fetch is the serial half: it reads, decompresses and cuts at record
 * borders. slu_block_split is the parallel half: it says where in the block the records
 * are. A record is JSON (block->json: one object of a JSONL file, without its newline),
 * a row (block->rows: text, id and domain of a Parquet file) or a text; a text that is
 * larger than a block comes in parts, one a block, if the caller says where it can be
 * cut.
 *
 * A format is one file in_NAME.c with one const vtable, and a line in the registry
 * (input.c). Where it meets a fault it names the source and, if there is one, the
 * place.
 *
 * A source that is empty, ends early or is damaged (SLU_E_TRUNCATED, SLU_E_FORMAT) ends
 * the run, or, where the caller takes notice of it (cfg->broken), only itself: its
 * whole records come as ever, then what was read of the next one, marked as such, then
 * the next source.
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
    uint64_t source;   /* ordinal */
    uint64_t document; /* (DESIGN.md) JSONL: byte offset in the decompressed source;
                        * tar: that of the member's first header; zip: the member's
                        * number, from 0 (libarchive does not say where a zip member
                        * begins); Parquet: the row, from 0; text: 0 */
    uint64_t line;     /* from 1; 0: unknown, or not a file of lines */
    size_t off, len;   /* bytes in block->raw */
    /* A text can come in parts: this one begins at part_off of the document, and if it
     * goes on, the next block begins with the next one. Only the block's first record
     * can have a part_off, and only its last can go on. */
    uint64_t part_off;
    bool goes_on;
    /* Not SLU_REJECT_NONE: no record, but what was read of one when its source broke
     * off, for this reason. */
    enum slu_reject reject;
};

/* A record of a format with columns: its text is rec.len bytes at rec.off, then come
 * its id and its domain. */
struct slu_row_fields {
    size_t id_len, domain_len;
    unsigned null; /* bits 0, 1, 2: text, id, domain are missing */
    bool scored;   /* score is one; any value */
    double score;
};

struct slu_block {
    struct slu_buf raw;         /* SLU_JSON_PADDING zero bytes behind len */
    struct slu_record_ref *rec; /* once split */
    size_t n_rec, cap_rec;
    bool json;
    bool rows; /* rec[i] has field[i] */
    struct slu_row_fields *field;
    size_t cap_field;
    struct slu_record_ref broken; /* if it has a reject: behind all others, to be added
                                     by slu_block_split */
    bool lines;                   /* rec is still to be made, by slu_block_split … */
    uint64_t source, off_byte, line; /* … where raw begins */
    uint64_t claimed_byte; /* granted by cfg->claim for growth past block_byte */
};

void slu_block_init(struct slu_block *b);
/* No records; keeps the memory. */
void slu_block_clear(struct slu_block *b);
void slu_block_release(struct slu_block *b);

struct slu_input_source; /* private to the formats */

struct slu_input_format {
    const char *name;
    bool json;  /* records are JSON */
    bool rows;  /* records have columns */
    bool lines; /* a block holds lines of one source */
    /* By the name without compression suffix (NULL: unknown), and by the first bytes.
     */
    bool (*name_matches)(const char *name);
    bool (*head_matches)(const uint8_t *p, size_t n);
    int (*open)(struct slu_input_source *src, struct slu_err *err); /* may be NULL */
    /* Appends records to b until it is full; SLU_EOF: nothing more (b may have grown).
     */
    int (*fetch)(struct slu_input_source *src, struct slu_block *b,
                 struct slu_err *err); /* with damage b keeps what came before it */
    void (*close)(struct slu_input_source *src); /* may be NULL */
};

struct slu_input_cfg {
    const struct slu_sources *sources; /* borrowed; the share first … end-1 is read */
    const struct slu_input_format *format; /* NULL: by name, then by content */
    size_t block_byte;        /* what a block usually holds, at least 4 KiB */
    uint64_t max_record_byte; /* a longer record, or part of one that cannot be cut, is
                                 SLU_E_LIMIT, once it does not fit a block */
    uint64_t window_byte;     /* for decompressors, see slu_bytes_open */
    const char *field[4];     /* of rows: text, id, domain, score; NULL: not wanted */
    unsigned n_threads;       /* that formats may start besides, less one */
    int quit_fd;              /* likewise; -1: none */
    void *ctx;
    /* Called before b grows by n bytes past block_byte; may wait; an error ends the
     * fetch. May be NULL. */
    int (*claim)(void *ctx, struct slu_block *b, uint64_t n, struct slu_err *err);
    /* Texts larger than a block come in parts: a place in p[0, n), more of which may
     * follow, at `from` or behind it; 0: there is none. NULL: they come whole. */
    size_t (*cut)(void *ctx, const uint8_t *p, size_t n, size_t from);
    /* A source is about to be read, and has been read. May be NULL. */
    int (*begin)(void *ctx, uint64_t ordinal, struct slu_err *err);
    /* n_byte are those of the share; empty says that the file has none at all. */
    void (*end)(void *ctx, uint64_t ordinal, uint64_t n_byte, bool empty);
    /* The source breaks off in the record at `document`; `why` is one line that names
     * file and place. NULL: that ends the run. */
    void (*broken)(void *ctx, uint64_t document, enum slu_reject reason,
                   const char *why);
};

struct slu_input;
/* Borrows what cfg points to. Caller frees with slu_input_free. */
SLU_MUST_USE int slu_input_new(struct slu_input **in, const struct slu_input_cfg *cfg,
                               struct slu_err *err);
/* Serial. The next block; SLU_EOF at the end of the share. */
SLU_MUST_USE int slu_input_fetch(struct slu_input *in, struct slu_block *b,
                                 struct slu_err *err);
/* Stored bytes taken so far (any thread). */
uint64_t slu_input_stored(const struct slu_input *in);
void slu_input_free(struct slu_input *in);

/* Any thread. Lines that hold white space only are no records. */
SLU_MUST_USE int slu_block_split(struct slu_block *b, struct slu_err *err);

/* "jsonl", "text", "tar", "zip", "parquet"; NULL if unknown. */
const struct slu_input_format *slu_input_format_named(const char *name);
/* For struct slu_sources_cfg: 2 for the names that data sets have (jsonl, ndjson,
 * parquet, pq, txt, text, tar, zip, compressed or not), 1 for json, which settings have
 * too, 0 for all others. */
unsigned slu_input_rank(const char *name);
/* Uncompressed files of that name can be cut at any record (see slu_sources_share): ctx
 * is the struct slu_input_format that was asked for, or NULL. */
bool slu_input_splittable(const char *name, void *ctx);

SLU_END_DECLS

#endif
