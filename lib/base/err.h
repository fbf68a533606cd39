/* err.h - error codes and messages of libsluice.
 *
 * Functions return SLU_OK, SLU_EOF (where the header says so) or a negative code, and
 * take a `struct slu_err *` as their last parameter. It is filled once, where the error
 * is detected, and passed to the caller unchanged, or with a prefix (slu_err_at).
 * The library never prints: the programs turn a slu_err into one line on stderr.
 *
 * A message states the place, what was found and what was expected, without a final full
 * stop, the program's name or names of its options: "corpus.jsonl:17: byte 4211: not
 * valid UTF-8". What to do is an advice, which a program puts into words.
 *
 * Thread safety: a slu_err belongs to one thread at a time.
 */
#ifndef SLU_ERR_H
#define SLU_ERR_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* These enclose the declarations of a public header: C linkage, also in C++. */
#ifdef __cplusplus
#define SLU_BEGIN_DECLS extern "C" {
#define SLU_END_DECLS   }
#else
#define SLU_BEGIN_DECLS
#define SLU_END_DECLS
#endif

#define SLU_MUST_USE     __attribute__((warn_unused_result))
#define SLU_PRINTF(f, a) __attribute__((format(printf, f, a)))

SLU_BEGIN_DECLS

enum slu_code {
    SLU_OK = 0,
    SLU_EOF = 1,              /* a clean end, not an error */
    SLU_E_NOMEM = -1,         /* allocation failed, or a size overflowed */
    SLU_E_IO = -2,            /* a system call failed; sys_errno has the reason */
    SLU_E_FORMAT = -3,        /* bytes that violate their format */
    SLU_E_TRUNCATED = -4,     /* the input ended too early */
    SLU_E_CHECKSUM = -5,      /* stored and computed checksums differ */
    SLU_E_MISMATCH = -6,      /* valid inputs that cannot be used together */
    SLU_E_LIMIT = -7,         /* a limit was exceeded */
    SLU_E_USAGE = -8,         /* the caller's options are wrong (exit status 2) */
    SLU_E_UNSUPPORTED = -9,   /* valid, but not reproducible or not built in */
    SLU_E_DEVICE = -10,       /* the accelerator failed or is absent */
    SLU_E_CONSERVATION = -11, /* the counts do not balance: a bug of sluice */
};

/* What a caller can do about an error. Messages give reasons; a program appends what its
 * own options can do (tools/cli/report.c has the table). */
enum slu_advice {
    SLU_ADVISE_NOTHING,
    SLU_ADVISE_MEMORY,
    SLU_ADVISE_MEMORY_OR_MIX,
    SLU_ADVISE_MEMORY_OR_ORDER,
    SLU_ADVISE_MEMORY_OR_SEGMENTS,
    SLU_ADVISE_MEMORY_OR_SHARD_BYTES,
    SLU_ADVISE_MEMORY_OR_SHARDS,
    SLU_ADVISE_ACCEPT_MISMATCH,
    SLU_ADVISE_BALANCE,
    SLU_ADVISE_BATCH_TOKENS,
    SLU_ADVISE_BUCKETS,
    SLU_ADVISE_COLUMN,
    SLU_ADVISE_COLUMNS,
    SLU_ADVISE_DEVICE,
    SLU_ADVISE_DS_STDIN,
    SLU_ADVISE_EOS_ID,
    SLU_ADVISE_EXCLUDE,
    SLU_ADVISE_FIELD_DOMAIN,
    SLU_ADVISE_FIELD_ID,
    SLU_ADVISE_FIELD_SPANS,
    SLU_ADVISE_FIELD_TEXT,
    SLU_ADVISE_FORCE,
    SLU_ADVISE_FORMAT_TEXT,
    SLU_ADVISE_IDS,
    SLU_ADVISE_INCLUDE,
    SLU_ADVISE_INDEX,
    SLU_ADVISE_INPUT_FORMAT,
    SLU_ADVISE_LABEL_TOKEN,
    SLU_ADVISE_MAX_SEGMENTS,
    SLU_ADVISE_MAX_TOKENS,
    SLU_ADVISE_MEMBERS,
    SLU_ADVISE_MIX,
    SLU_ADVISE_NO_LABEL_TOKEN,
    SLU_ADVISE_NO_PATTERN,
    SLU_ADVISE_OLMO_BOS,
    SLU_ADVISE_OLMO_EOS,
    SLU_ADVISE_OLMO_ROWS,
    SLU_ADVISE_OLMO_TOKENIZER,
    SLU_ADVISE_ON_ERROR,
    SLU_ADVISE_ON_ERROR_REPLACE,
    SLU_ADVISE_ONE_PAD_ID,
    SLU_ADVISE_PAD_ID,
    SLU_ADVISE_PARAGRAPHS,
    SLU_ADVISE_PATTERN,
    SLU_ADVISE_REPLACE_SET,
    SLU_ADVISE_SHARD_SEQUENCES,
    SLU_ADVISE_SHARD_BYTES,
    SLU_ADVISE_DOCUMENTS,
    SLU_ADVISE_TERMINAL,
    SLU_ADVISE_TMPDIR,
    SLU_ADVISE_TOKEN_BYTES,
    SLU_ADVISE_VOCAB_SIZE,
    SLU_ADVISE_WIDTH_IN_HEADER,
    SLU_ADVISE_WORDS,
    SLU_ADVISE_DROP_FIELD,
    SLU_ADVISE_DROP_FIELDS,
    SLU_N_ADVICE
};

struct slu_err {
    int code;          /* enum slu_code */
    int sys_errno;     /* errno where code is SLU_E_IO, else 0 */
    uint64_t off_byte; /* position in the input; UINT64_MAX: none */
    int advice;        /* enum slu_advice */
    char msg[1024];    /* one line, no newline; see slu_printable */
};

#define SLU_ERR_INIT                                                                   \
    {                                                                                  \
        0, 0, UINT64_MAX, SLU_ADVISE_NOTHING,                                          \
        {                                                                              \
            0                                                                          \
        }                                                                              \
    }

/* Fills `err` (which may be NULL) and returns `code`, so that `return slu_fail(…)`
 * works. */
int slu_fail(struct slu_err *err, int code, const char *fmt, ...) SLU_PRINTF(3, 4);

/* As slu_fail, with a byte offset in the input. */
int slu_fail_at(struct slu_err *err, int code, uint64_t off_byte, const char *fmt, ...)
    SLU_PRINTF(4, 5);

/* Fails with SLU_E_IO from the current errno: the message is "<fmt…>: <strerror>". */
int slu_fail_errno(struct slu_err *err, const char *fmt, ...) SLU_PRINTF(2, 3);

/* Fails with SLU_E_NOMEM and the number of bytes that could not be allocated. */
int slu_fail_nomem(struct slu_err *err, uint64_t n_bytes);

/* Adds an advice to the error that a call here just filled, and returns its code:
 * `return slu_advise(err, SLU_ADVISE_MEMORY, slu_fail(err, …))`. */
int slu_advise(struct slu_err *err, enum slu_advice advice, int code);

/* How many bytes of text[0 … n) must not reach a terminal because they could control
 * it: those of a control character, mark of direction or line separator, whose code
 * point is *ch; or 1 byte, *ch, that is not UTF-8. 0: text begins with another
 * character. Each program that prints text of the data asks this function, or calls
 * slu_printable. n > 0. */
unsigned slu_unprintable(const char *text, size_t n, uint32_t *ch);

/* Replaces each unprintable character by '?', so that a message is one line even with
 * an odd file name. The functions here call it themselves. */
void slu_printable(char *s);

/* "" for 1, else "s": the end of a noun that is counted. */
const char *slu_plural(uint64_t n);

/* Puts "<fmt…>: " before the message; returns err's code. */
int slu_err_at(struct slu_err *err, const char *fmt, ...) SLU_PRINTF(2, 3);

SLU_END_DECLS

#endif
