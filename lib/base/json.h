/* json.h - JSON: configuration files (tokenizer.json) as a read-only tree, and JSONL
 * records of which a few fields matter.
 *
 * Two parsers with equal results: simdjson, and a scalar one (json_scan.h) that finds
 * the position of an error, accepts JSON that simdjson refuses (integers beyond 64
 * bits, numbers beyond a double, nesting beyond 1024 levels) and needs no memory
 * besides the unescaped strings. Input that simdjson refuses goes to the scalar parser,
 * which decides, so results do not depend on the host's SIMD level. With AVX2 or
 * AVX-512 a third one (json_flat.h) first tries records that are one flat object of
 * strings.
 *
 * JSON is RFC 8259: UTF-8, nothing but white space after the value; a byte order mark
 * is not white space. Strings may contain NUL (\u0000), so use lengths, never strlen.
 */
#ifndef SLU_JSON_H
#define SLU_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "lib/base/value.h"

SLU_BEGIN_DECLS

/* ---- a document as a tree ---- */

struct slu_json;

enum slu_json_type {
    SLU_JSON_NULL,
    SLU_JSON_BOOL,
    SLU_JSON_NUMBER,
    SLU_JSON_STRING,
    SLU_JSON_ARRAY,
    SLU_JSON_OBJECT,
};

/* A place in the tree: passed by value, valid as long as its document. SLU_JSON_NONE is
 * no place: it reads as null. */
struct slu_json_value {
    uint64_t opaque[2];
};
#define SLU_JSON_NONE                                                                  \
    {                                                                                  \
        {                                                                              \
            0, 0                                                                       \
        }                                                                              \
    }

/* Parses n bytes, which are not needed afterwards. Takes about 3 n bytes of memory
 * while it runs, and 1 to 2 n afterwards. At most 4 GiB and 1024 levels. SLU_E_FORMAT
 * with the byte's offset. Caller frees with slu_json_free. */
SLU_MUST_USE int slu_json_parse(struct slu_json **j, const void *p, size_t n,
                                struct slu_err *err);
/* As slu_json_parse, for a file; messages name it. */
SLU_MUST_USE int slu_json_load(struct slu_json **j, const char *path,
                               struct slu_err *err);
/* NULL is legal. */
void slu_json_free(struct slu_json *j);

/* Reading is safe from any thread. */
struct slu_json_value slu_json_root(const struct slu_json *j);
enum slu_json_type slu_json_type(struct slu_json_value v);
/* Read a value. False if v is not of that type, or not in the range of the C type; *out
 * is then unchanged. Strings are UTF-8, borrowed from the document, and end in a NUL.
 */
bool slu_json_bool(struct slu_json_value v, bool *out);
bool slu_json_u64(struct slu_json_value v, uint64_t *out);
bool slu_json_double(struct slu_json_value v, double *out);
bool slu_json_string(struct slu_json_value v, const char **p, size_t *len);
/* Whether v is the string s. */
bool slu_json_is(struct slu_json_value v, const char *s);
/* Finds a member of an object, the last of that name. False if there is none, or v is
 * not an object. */
bool slu_json_get(struct slu_json_value v, const char *key, struct slu_json_value *out);
/* As slu_json_get, but a member that is null counts as absent. */
bool slu_json_get_set(struct slu_json_value v, const char *key,
                      struct slu_json_value *out);
/* Returns a member of an object that is a string; `without` if there is none. */
const char *slu_json_get_string(struct slu_json_value v, const char *key,
                                const char *without);
/* Counts the elements of an array or the members of an object, in linear time; 0 for
 * other types. */
size_t slu_json_count(struct slu_json_value v);

/* for (slu_json_iter_init(&it, v); slu_json_next(&it);) … it.value, it.key
 * Goes over an array or an object in file order (nothing for other types). */
struct slu_json_iter {
    struct slu_json_value value;
    const char *key; /* objects only: borrowed from the document, ends in a NUL */
    size_t key_len;
    uint64_t opaque[5];
};
void slu_json_iter_init(struct slu_json_iter *it, struct slu_json_value v);
bool slu_json_next(struct slu_json_iter *it);

/* ---- records of a JSONL file ---- */

/* Readable bytes (of any content) that a record needs after its end. */
#define SLU_JSON_PADDING 64

/* Why a record is rejected: the first of these that applies, in this order and not that
 * of the record. */
enum slu_reject {
    SLU_REJECT_NONE,
    SLU_REJECT_INVALID_UTF8,
    SLU_REJECT_INVALID_JSON,   /* grammar, or nothing at all */
    SLU_REJECT_TOO_DEEP,       /* more than SLU_JSON_MAX_DEPTH levels */
    SLU_REJECT_LONE_SURROGATE, /* \ud800 … \udfff without its half, anywhere */
    SLU_REJECT_NOT_AN_OBJECT,
    SLU_REJECT_MISSING_FIELD,
    SLU_REJECT_NOT_A_STRING,
    SLU_REJECT_NOT_A_NUMBER, /* the score */
    SLU_REJECT_BAD_SPANS,    /* also for callers that know the text's length */
    SLU_REJECT_LONG_FIELD,   /* for callers whose ids or domains have a limit */
    SLU_REJECT_NUL_FIELD,    /* for callers whose domains are strings of C */
    SLU_REJECT_CHANGED_TEXT, /* for callers that place spans in a text's tokens */
    SLU_REJECT_TRIMMED_SPAN, /* the same */
    SLU_REJECT_UNFIT_FIELD,  /* for callers whose filters compare fields */
    /* For callers that read whole sources. The rejected bytes are those read of the
     * last record; none if the source is empty. */
    SLU_REJECT_TRUNCATED_SOURCE,
    SLU_REJECT_DAMAGED_SOURCE,
    SLU_REJECT_EMPTY_SOURCE,
    SLU_REJECT_OTHER_KIND, /* no text and no records: a picture, a table, … */
    /* Records that are good, and that a filter leaves out (slu_reject_is_filter). */
    SLU_REJECT_WHERE,
    SLU_REJECT_IDS_KEEP,
    SLU_REJECT_IDS_DROP,
    SLU_REJECT_URLS_DROP,
    SLU_REJECT_RULES, /* lib/filter/rules.h; the caller knows by which rule */
    SLU_REJECT_FASTTEXT,
    /* Records of WARC that have no text (slu_reject_is_unread). */
    SLU_REJECT_WARC_RECORD, /* request, metadata, … */
    SLU_REJECT_WARC_HTML,
    SLU_REJECT_WARC_NO_TEXT,
    SLU_REJECT_WARC_ENCODED, /* chunked, compressed, or not in UTF-8 */
    SLU_REJECT_N,
};
#define SLU_JSON_MAX_DEPTH 65536

/* Returns "invalid-utf8", …; static. */
const char *slu_reject_name(enum slu_reject r);
/* Whether the record is good, and a filter left it out. */
static inline bool slu_reject_is_filter(enum slu_reject r)
{
    return r >= SLU_REJECT_WHERE;
}
/* Whether there is no record that could be good: it is counted, and no filter saw it. */
static inline bool slu_reject_is_unread(enum slu_reject r)
{
    return r >= SLU_REJECT_WARC_RECORD;
}

/* The fields of a record that callers ask for. */
enum slu_field {
    SLU_FIELD_TEXT,   /* a string */
    SLU_FIELD_ID,     /* a string, a number or a boolean, as text */
    SLU_FIELD_DOMAIN, /* the same */
    SLU_FIELD_SCORE,  /* a number */
    SLU_FIELD_SPANS,  /* [[begin, end], …] in characters, begin <= end */
    SLU_FIELDS,
};

/* Most fields of any type. */
#define SLU_RECORD_ANY 68

struct slu_record_cfg {
    /* Names of fields, borrowed; NULL: not wanted. A name is a key of the record. If
     * the record has no such key, a dot leads into an object: a.b is the field b of the
     * object a, found by the same rule. */
    const char *name[SLU_FIELDS];
    unsigned optional;    /* bit 1 << f: field f may be absent or null */
    bool null_is_missing; /* a text that is null is a missing field, not a field that is
                           * no string */
    /* Names of n_any more fields, of any type, found in the same way; borrowed. */
    const char *const *any;
    size_t n_any; /* at most SLU_RECORD_ANY */
    /* Records longer than this go to the scalar parser, so that a parser's memory stays
     * below 16 times this plus the longest string; 0: 1 MiB. */
    size_t dom_byte;
    /* The SIMD level (simd.h) of the parser of json_flat.h; NULL: the best that the
     * processor has. */
    const char *simd;
};

struct slu_record {
    enum slu_reject reject;
    uint64_t off_byte;    /* position of the error in the record; UINT64_MAX: none */
    enum slu_field which; /* the field that is missing, not a string, … */
    unsigned lacks;       /* bit 1 << f: field f is wanted, and absent or null */
    /* Borrowed until the next call or until the record's bytes change; NULL if not
     * wanted, absent or rejected. An integer has its digits, another number is written
     * by slu_number_put, a boolean is true or false. */
    const char *text, *id, *domain;
    size_t text_len, id_len, domain_len; /* bytes */
    double score;                        /* NaN: none */
    uint64_t *span; /* n_span pairs begin <= end; borrowed as the strings are */
    size_t n_span;
    const struct slu_value *any; /* n_any values; borrowed as the strings are */
    size_t meta_len; /* 0; a caller may put bytes behind the id, and count them here */
};

/* A parser of records, for one thread. */
struct slu_record_parser;
SLU_MUST_USE int slu_record_parser_new(struct slu_record_parser **p,
                                       const struct slu_record_cfg *cfg,
                                       struct slu_err *err);
void slu_record_parser_free(struct slu_record_parser *p);

/* Validates the whole record of n bytes at rec (SLU_JSON_PADDING more must be readable)
 * and finds the fields; of equal keys the last wins. A bad record is SLU_OK with
 * out->reject set; the only error is SLU_E_NOMEM. */
SLU_MUST_USE int slu_record_parse(struct slu_record_parser *p, const uint8_t *rec,
                                  size_t n, struct slu_record *out,
                                  struct slu_err *err);

/* Returns the offset of the first byte that is not part of valid UTF-8, or n. */
size_t slu_utf8_valid_prefix(const uint8_t *p, size_t n);

SLU_END_DECLS

#endif
