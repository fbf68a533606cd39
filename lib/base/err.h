/* err.h - error codes and messages of libsluice.
 *
 * Functions return SLU_OK, SLU_EOF (where the header says so) or a negative code, and
 * take a `struct slu_err *` as their last parameter. It is filled once, where the error
 * is detected, and passed to the caller unchanged, or with a prefix (slu_err_at).
 * The library never prints: the programs turn a slu_err into one line on stderr.
 *
 * A message states what is wrong and what to do, without a final full stop and without
 * the program's name: "corpus.jsonl:17: byte 4211: not valid UTF-8; use --on-error skip
 * to continue".
 *
 * Thread safety: a slu_err belongs to one thread at a time.
 */
#ifndef SLU_ERR_H
#define SLU_ERR_H

#include <stdarg.h>
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

struct slu_err {
    int code;          /* enum slu_code */
    int sys_errno;     /* errno where code is SLU_E_IO, else 0 */
    uint64_t off_byte; /* position in the input; UINT64_MAX: none */
    char msg[1024];    /* one line, no newline; control bytes are shown as '?' */
};

#define SLU_ERR_INIT                                                                   \
    {                                                                                  \
        0, 0, UINT64_MAX,                                                              \
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

/* Replaces control bytes by '?', so that a message is one line even with an odd file
 * name. The functions here call it themselves. */
void slu_one_line(char *s);

/* Puts "<fmt…>: " before the message; returns err's code. */
int slu_err_at(struct slu_err *err, const char *fmt, ...) SLU_PRINTF(2, 3);

SLU_END_DECLS

#endif
