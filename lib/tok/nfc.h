/* nfc.h - Unicode normal form C (UAX #15), by utf8proc, which only sees what might
 * change. */
#ifndef SLU_TOK_NFC_H
#define SLU_TOK_NFC_H

#include "lib/buf.h"

/* *out and *out_len become p's n bytes of valid UTF-8 in normal form: p itself where
 * that is so already, else in `buf`. */
SLU_MUST_USE int tok_nfc(const uint8_t *p, size_t n, struct slu_buf *buf,
                         const uint8_t **out, size_t *out_len, struct slu_err *err);

#endif
