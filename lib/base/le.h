/* le.h - little-endian loads and stores at any alignment, the same on every host. */
#ifndef SLU_LE_H
#define SLU_LE_H

#include <stdint.h>
#include <string.h>

static inline uint16_t slu_le16(const void *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? v : __builtin_bswap16(v);
}
static inline uint32_t slu_le32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? v : __builtin_bswap32(v);
}
static inline uint64_t slu_le64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? v : __builtin_bswap64(v);
}
static inline void slu_put_le16(void *p, uint16_t v)
{
    v = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? v : __builtin_bswap16(v);
    memcpy(p, &v, sizeof v);
}
static inline void slu_put_le32(void *p, uint32_t v)
{
    v = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? v : __builtin_bswap32(v);
    memcpy(p, &v, sizeof v);
}
static inline void slu_put_le64(void *p, uint64_t v)
{
    v = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? v : __builtin_bswap64(v);
    memcpy(p, &v, sizeof v);
}

#endif
