/* metadata.h - values that documents carry through the stream: licence, url, quality.
 *
 * A header lists the fields (at most SLU_META_FIELDS), in the order of their names. A
 * segment has its values as bytes, right after the record's id in batch->str (seg.id_off
 * + seg.id_len, seg.meta_len bytes), and whatever carries the id carries these too. A
 * value is an entry:
 *
 *   u64 key of the field (XXH3-64 of its name), u32 number of bytes, the bytes
 *
 * in the order of the header's fields. A field without an entry is null, so padding and
 * segments of streams that do not know the field have no bytes. Numbers are
 * little-endian; names and texts are their bytes, without a NUL at the end. The entries
 * need no header to be read: batches, records of work files and checksums know nothing
 * of the fields.
 *
 * Thread safety: no state.
 */
#ifndef SLU_METADATA_H
#define SLU_METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "lib/base/value.h"

SLU_BEGIN_DECLS

#define SLU_META_FIELDS 16    /* most fields of a stream */
#define SLU_META_NAME   255   /* most bytes of a field's name */
#define SLU_META_VALUE  65536 /* most bytes of a value */
#define SLU_META_VALUES 65536 /* most names of all fields of type `name` */
/* Most bytes of these names. */
#define SLU_META_VALUES_BYTE (UINT64_C(16) << 20)

/* In the stream, see STREAM.md section 3. */
enum slu_meta_type {
    SLU_META_IS_NAME = 1, /* one of few strings: the stream numbers them */
    SLU_META_IS_TEXT,     /* any string */
    SLU_META_IS_U8,
    SLU_META_IS_U32,
    SLU_META_IS_U64,
    SLU_META_IS_F32,
    SLU_META_IS_I64,
    SLU_META_IS_F64,
    SLU_META_N_TYPE
};

struct slu_meta_field {
    char name[SLU_META_NAME + 1];
    enum slu_meta_type type;
    uint64_t key;
};

struct slu_meta_fields {
    unsigned n;
    struct slu_meta_field field[SLU_META_FIELDS]; /* by name, ascending */
};

/* Returns the type's name: "name", "text", "u8", …; static. */
const char *slu_meta_type_name(enum slu_meta_type type);
/* Finds the type of a name; also "float" (f64) and "int" (i64). 0: there is none. */
enum slu_meta_type slu_meta_type_of(const char *name, size_t len);
/* Returns the bytes of a value; 0: names and texts, which have any number. */
unsigned slu_meta_width(enum slu_meta_type type);

/* Adds a field. One of the name and type may be there already. SLU_E_MISMATCH: its type
 * is another; SLU_E_LIMIT: too many fields; SLU_E_FORMAT: no name, or one that is too
 * long or has control characters. */
SLU_MUST_USE int slu_meta_add(struct slu_meta_fields *t, const char *name, size_t len,
                              enum slu_meta_type type, struct slu_err *err);
/* Fails, as there are too many values of fields of type name; NULL: it is not known of
 * which. */
int slu_meta_too_many(const char *name, struct slu_err *err);
/* Removes field i. */
void slu_meta_remove(struct slu_meta_fields *t, unsigned i);
/* Returns the number of the field, or -1. */
int slu_meta_find(const struct slu_meta_fields *t, const char *name, size_t len);

struct slu_meta_value {
    uint64_t key;
    const uint8_t *p;
    uint32_t n;
};
/* Reads the entry at p[0, n) and returns its bytes; 0: p[0, n) has none, or it is cut
 * off. */
size_t slu_meta_next(const uint8_t *p, size_t n, struct slu_meta_value *v);
/* Finds the value of a field in the entries p[0, n); false: null. */
bool slu_meta_get(const uint8_t *p, size_t n, uint64_t key, struct slu_meta_value *v);
/* Appends an entry. */
SLU_MUST_USE int slu_meta_put(struct slu_buf *out, uint64_t key, const void *p,
                              size_t n, struct slu_err *err);

/* Appends the entry of a value that a record or a column has; none for null. A name or
 * text takes a string, or the text of a number or boolean; u8 takes a boolean too.
 * SLU_E_FORMAT: the value does not fit the type, "expected …, found …". */
SLU_MUST_USE int slu_meta_put_value(struct slu_buf *out, const struct slu_meta_field *f,
                                    const struct slu_value *v, struct slu_err *err);
/* Returns the value of an entry, for expressions: numbers are doubles. v NULL: null. */
struct slu_value slu_meta_to_value(enum slu_meta_type type,
                                   const struct slu_meta_value *v);

/* Appends the element of a value to a column of the stream; v NULL: null. For types with
 * a width; the writer makes the elements of names and texts. */
SLU_MUST_USE int slu_meta_put_element(struct slu_buf *column, enum slu_meta_type type,
                                      const struct slu_meta_value *v,
                                      struct slu_err *err);
/* Whether the element, of any type, is null. */
bool slu_meta_is_null(enum slu_meta_type type, const uint8_t *element);
/* Whether it is no NaN or infinity, which no value is. */
bool slu_meta_is_finite(enum slu_meta_type type, const uint8_t *element);
/* Appends the value as JSON. v NULL: null. */
SLU_MUST_USE int slu_meta_put_json(struct slu_buf *out, enum slu_meta_type type,
                                   const struct slu_meta_value *v, struct slu_err *err);

SLU_END_DECLS

#endif
