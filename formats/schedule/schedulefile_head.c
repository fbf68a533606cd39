/* schedulefile_head.c - converts the header of a schedule's file to bytes and back. */
#include <stdlib.h>
#include <string.h>

#include "formats/schedule/schedulefile_private.h"
#include "lib/base/le.h"
#include "lib/schedule/epoch_order.h"

typedef unsigned __int128 u128;

/* The u64 fields of the fixed part, in order from byte 48. */
enum {
    FIELDS = 11,
    FIELDS_AT = 48,
    DIGEST_AT = 136,
    CHECKSUM_AT = 152,
    SEAL_AT = 168,
    ROW_FIELDS = 7,
    BLOCK_AT = 8 * (ROW_FIELDS + SLU_N_DROP) /* in a row */
};

uint64_t slu_schedulefile_bytes(size_t n_bucket, uint64_t n_steps)
{
    return SLU_SF_FIXED + SLU_SF_BUCKET * n_bucket + SLU_SF_RECORD * n_steps +
           8 * slu_sf_blocks(n_steps) + SLU_SF_FOOTER;
}

static void put_row(uint8_t *p, const struct slu_steps_bucket *b)
{
    const uint64_t v[ROW_FIELDS] = {b->length, b->sequences, b->per_step,  b->unit,
                                    b->odds,   b->runs,      b->used_steps};
    for (int i = 0; i < ROW_FIELDS; i++)
        slu_put_le64(p + 8 * i, v[i]);
    for (int i = 0; i < SLU_N_DROP; i++)
        slu_put_le64(p + 8 * (ROW_FIELDS + i), b->dropped[i]);
    slu_put_le64(p + BLOCK_AT, b->block);
}

int slu_sf_put_header(struct slu_buf *b, const struct slu_steps_info *info,
                      uint64_t first_step, uint64_t n_steps, struct slu_err *err)
{
    size_t n = SLU_SF_FIXED + SLU_SF_BUCKET * info->n_bucket;
    int rc = slu_buf_reserve(b, n, err);
    if (rc)
        return rc;
    uint8_t *p = b->data + b->len;
    memset(p, 0, n);
    b->len += n;
    memcpy(p, SLU_SF_MAGIC, 8);
    slu_put_le32(p + 8, info->version);
    slu_put_le32(p + 12, (uint32_t)n);
    slu_put_le32(p + 16, SLU_SF_RECORD);
    slu_put_le32(p + 20, (uint32_t)info->n_bucket);
    slu_put_le32(p + 24, info->method);
    slu_put_le32(p + 28, info->flags | (info->has_checksum ? SLU_SF_HAS_CHECKSUM : 0u));
    memcpy(p + 32, info->curriculum, sizeof info->curriculum);
    const uint64_t v[FIELDS] = {info->seed,       info->cycles,       info->epochs,
                                info->tokens,     info->batch_tokens, info->world,
                                info->pass_steps, info->total_steps,  first_step,
                                n_steps,          SLU_SF_BLOCK};
    for (int i = 0; i < FIELDS; i++)
        slu_put_le64(p + FIELDS_AT + 8 * i, v[i]);
    slu_put_le64(p + DIGEST_AT, info->shards_digest.lo);
    slu_put_le64(p + DIGEST_AT + 8, info->shards_digest.hi);
    if (info->has_checksum) {
        slu_put_le64(p + CHECKSUM_AT, info->checksum.lo);
        slu_put_le64(p + CHECKSUM_AT + 8, info->checksum.hi);
        slu_put_le64(p + SEAL_AT, info->seal);
    }
    for (size_t i = 0; i < info->n_bucket; i++)
        put_row(p + SLU_SF_FIXED + SLU_SF_BUCKET * i, &info->bucket[i]);
    /* Hashed with zeros in place of the hash. */
    slu_put_le64(p + SLU_SF_HASH_AT, slu_hash64(p, n));
    return SLU_OK;
}

/* ---- reading back ---- */

static bool zeros(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

static bool get_row(struct slu_steps_bucket *b, const uint8_t *p)
{
    uint64_t v[ROW_FIELDS];
    for (int i = 0; i < ROW_FIELDS; i++)
        v[i] = slu_le64(p + 8 * i);
    b->length = v[0];
    b->sequences = v[1];
    b->per_step = v[2];
    b->unit = v[3];
    b->odds = v[4];
    b->runs = v[5];
    b->used_steps = v[6];
    for (int i = 0; i < SLU_N_DROP; i++)
        b->dropped[i] = slu_le64(p + 8 * (ROW_FIELDS + i));
    b->block = slu_le64(p + BLOCK_AT);
    return zeros(p + BLOCK_AT + 8, SLU_SF_BUCKET - BLOCK_AT - 8);
}

/* Version 1: a pass has `runs` steps, and the sequences used in the first pass and those
 * dropped are all sequences of the bucket. */
static bool sound_uses(const struct slu_steps_info *info,
                       const struct slu_steps_bucket *b, u128 dropped)
{
    u128 used = (u128)b->runs * b->per_step;
    if (b->block || used > b->sequences || b->used_steps > (u128)b->runs * info->epochs)
        return false;
    if (info->total_steps < info->pass_steps) {
        if (b->used_steps > b->runs)
            return false;
        used = (u128)b->used_steps * b->per_step;
    } else if (b->dropped[SLU_DROP_TOKENS]) {
        return false;
    }
    return used + dropped == b->sequences;
}

/* Version 2: a bucket takes part with all sequences or with none, and those that were
 * not reached are dropped. */
static bool sound_passes(const struct slu_steps_info *info,
                         const struct slu_steps_bucket *b, u128 dropped)
{
    uint64_t n = b->runs ? b->sequences : 0;
    u128 used = (u128)b->used_steps * b->per_step, all = (u128)n * info->epochs;
    return info->method == SLU_STEPS_GENERIC && b->unit == 1 && b->block &&
           b->block <= SLU_EPOCH_MAX_BLOCK && all <= UINT64_MAX && used <= all &&
           b->runs == (b->dropped[SLU_DROP_ODDS] ? 0 : b->sequences / b->per_step) &&
           (used < b->sequences ? used : b->sequences) + dropped == b->sequences;
}

/* Checks a row's numbers against each other. */
static bool sound_row(const struct slu_steps_info *info,
                      const struct slu_steps_bucket *b)
{
    u128 dropped = 0;
    for (int i = 0; i < SLU_N_DROP; i++)
        dropped += b->dropped[i];
    return b->length && b->per_step && b->unit && b->per_step % b->unit == 0 &&
           b->per_step / b->unit % info->world == 0 &&
           (u128)b->per_step * b->length == info->batch_tokens &&
           (info->version == 1 ? sound_uses : sound_passes)(info, b, dropped);
}

/* Whether the name is that of a curriculum, or "odds", padded with zeros. */
static bool sound_name(const char name[16])
{
    static const char *const known[] = {"odds",      "natural",     "uniform",
                                        "grow-p2",   "grow-p100",   "grow-linear",
                                        "shrink-p2", "shrink-p100", "shrink-linear"};
    char padded[16];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        memset(padded, 0, sizeof padded);
        memcpy(padded, known[i], strlen(known[i]));
        if (!memcmp(name, padded, sizeof padded))
            return true;
    }
    return false;
}

static bool sound(const struct slu_steps_info *info, uint64_t first_step,
                  uint64_t n_steps)
{
    u128 used = 0, pass = 0;
    if ((info->method != SLU_STEPS_GENERIC && info->method != SLU_STEPS_OLMO) ||
        !info->cycles || !info->epochs || !info->world || !info->batch_tokens ||
        !sound_name(info->curriculum) || info->epochs > UINT32_MAX ||
        info->cycles > UINT32_MAX || (u128)info->epochs * info->cycles > UINT32_MAX ||
        info->cycles > info->pass_steps || !info->total_steps ||
        first_step > info->total_steps || n_steps > info->total_steps - first_step)
        return false;
    for (size_t i = 0; i < info->n_bucket; i++) {
        const struct slu_steps_bucket *b = &info->bucket[i];
        if (!sound_row(info, b) || (i && b->length <= b[-1].length))
            return false;
        used += b->used_steps;
        pass += b->runs;
    }
    return used == info->total_steps && pass == info->pass_steps;
}

int slu_sf_get_header(struct slu_steps_info *info, uint64_t *first_step,
                      uint64_t *n_steps, const uint8_t *p, size_t bytes,
                      struct slu_err *err)
{
    memset(info, 0, sizeof *info);
    struct slu_buf copy = SLU_BUF_INIT; /* hashed with zeros in place of the hash */
    int rc = slu_buf_append(&copy, p, bytes, err);
    if (rc)
        return rc;
    slu_put_le64(copy.data + SLU_SF_HASH_AT, 0);
    uint64_t hash = slu_hash64(copy.data, copy.len);
    slu_buf_release(&copy);
    if (hash != slu_le64(p + SLU_SF_HASH_AT))
        return slu_fail(err, SLU_E_CHECKSUM, "the header is damaged");
    uint32_t flags = slu_le32(p + 28), known = SLU_STEPS_NATURAL | SLU_STEPS_BALANCED |
                                               SLU_STEPS_REORDER | SLU_STEPS_BRICKS |
                                               SLU_SF_HAS_CHECKSUM;
    if (slu_le32(p + 8) == 2)
        known = SLU_STEPS_NATURAL | SLU_SF_HAS_CHECKSUM;
    uint64_t v[FIELDS];
    for (int i = 0; i < FIELDS; i++)
        v[i] = slu_le64(p + FIELDS_AT + 8 * i);
    size_t n = slu_le32(p + 20);
    if (slu_le32(p + 16) != SLU_SF_RECORD || v[10] != SLU_SF_BLOCK || flags & ~known ||
        bytes != SLU_SF_FIXED + SLU_SF_BUCKET * n || n == 0 ||
        (!(flags & SLU_SF_HAS_CHECKSUM) && !zeros(p + CHECKSUM_AT, 24)) ||
        !zeros(p + SEAL_AT + 8, SLU_SF_HASH_AT - SEAL_AT - 8))
        return slu_fail(err, SLU_E_FORMAT,
                        "the header has a field or flag that version %u does not have",
                        slu_le32(p + 8));
    info->bucket = calloc(n, sizeof *info->bucket);
    if (!info->bucket)
        return slu_fail_nomem(err, n * sizeof *info->bucket);
    info->n_bucket = n;
    info->version = slu_le32(p + 8);
    info->method = slu_le32(p + 24);
    info->flags = flags & ~(uint32_t)SLU_SF_HAS_CHECKSUM;
    info->has_checksum = flags & SLU_SF_HAS_CHECKSUM;
    memcpy(info->curriculum, p + 32, sizeof info->curriculum);
    info->seed = v[0];
    info->cycles = v[1];
    info->epochs = v[2];
    info->tokens = v[3];
    info->batch_tokens = v[4];
    info->world = v[5];
    info->pass_steps = v[6];
    info->total_steps = v[7];
    *first_step = v[8];
    *n_steps = v[9];
    info->shards_digest.lo = slu_le64(p + DIGEST_AT);
    info->shards_digest.hi = slu_le64(p + DIGEST_AT + 8);
    info->checksum.lo = slu_le64(p + CHECKSUM_AT);
    info->checksum.hi = slu_le64(p + CHECKSUM_AT + 8);
    info->seal = slu_le64(p + SEAL_AT);
    bool rows = true;
    for (size_t i = 0; i < n; i++)
        rows = get_row(&info->bucket[i], p + SLU_SF_FIXED + SLU_SF_BUCKET * i) && rows;
    if (!rows || !sound(info, *first_step, *n_steps))
        return slu_fail(err, SLU_E_FORMAT,
                        "the header's numbers contradict each other");
    return SLU_OK;
}
