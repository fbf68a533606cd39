/* sha256.h - SHA-256 (FIPS 180-4), for names that other programs make with it.
 *
 * Checksums of our own are XXH3 (hash.h). This is plain C of some 200 MB/s: enough for
 * names, not meant for data. Thread safety: one thread at a time on a state.
 */
#ifndef SLU_SHA256_H
#define SLU_SHA256_H

#include <stddef.h>
#include <stdint.h>

struct slu_sha256 {
    uint32_t h[8];
    uint64_t n_byte;
    uint8_t block[64];
};

void slu_sha256_init(struct slu_sha256 *s);
void slu_sha256_update(struct slu_sha256 *s, const void *p, size_t n_byte);
/* Writes 64 hexadecimal digits and a NUL. The state cannot be used again. */
void slu_sha256_hex(struct slu_sha256 *s, char out[65]);

#endif
