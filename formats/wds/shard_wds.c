/* shard_wds.c - WebDataset shards as OpenLM's data loader reads them: shard-%07d.tar, a
 * POSIX ustar archive of members %012d.txt that hold "[1, 2, …]" (or .json with the
 * same bytes, or .json.gz, each a gzip member of its own), numbered from 0 in each
 * shard; and manifest.jsonl with a line for each shard. Of a stream with masks, a
 * member %012d.loss_mask.txt (.json, .json.gz) follows each of these, with "[1, 0, …]":
 * 1 for a token that is trained on, else 0. WebDataset joins both to one sample.
 *
 * The headers are written here, not by libarchive. They differ in only three fields, so
 * a template and a sum of digits suffice; this is an order of magnitude less work for
 * each member than building a header through the library's entries. Several threads
 * encode members, and their bytes do not depend on the library's version.
 *
 * Writing the text is the hot loop of the whole pipeline: 7.8 bytes for each token. Two
 * tables that stay in the nearest cache have the texts of an id's thousands and of the
 * rest, so that an id is two loads and one store.
 */
#include "formats/shards/shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "lib/base/le.h"

enum {
    BLOCK = 512,
    NAME_DIGITS = 12,
    SIZE_AT = 124,
    SIZE_DIGITS = 11,
    SUM_AT = 148,
    MAX_TEXT = 12,    /* of an id: ten digits, a comma, a space */
    N_TEXT = 1000000, /* ids of up to six digits, whose texts take up to eight bytes */
    N_PART = 1000,    /* numbers of three digits */
    SIZE_SHIFT = 56,  /* of a text's size, above the text */
    PIECE = 1 << 11,  /* ids of a piece of a long sequence */
};

/* A member's header of size 0 and number 000000000000, without its checksum. */
struct header {
    uint8_t byte[BLOCK];
    uint32_t sum; /* of its bytes, with spaces in the field of the checksum */
};

struct wds {
    /* A text as a little-endian number, and its size: in bytes, of thousands ("12"; of 0
     * none) and of the rest ("007, "; after these N_PART the same without zeros,
     * for ids that have no thousands). */
    uint64_t thousands[N_PART], rest[2 * N_PART];
    struct header ids, mask;
    bool gzip;
};

static uint64_t text_of(const char *form, uint32_t v)
{
    char c[8] = {0};
    int n = snprintf(c, sizeof c, form, v);

    return slu_le64(c) | (uint64_t)n << SIZE_SHIFT;
}

static void init_texts(struct wds *w)
{
    for (uint32_t i = 0; i < N_PART; i++) {
        w->rest[i] = text_of("%03u, ", i);
        w->rest[N_PART + i] = text_of("%u, ", i);
        w->thousands[i] = i ? text_of("%u", i) : 0;
    }
}

/* ext: the name after its digits. */
static void init_header(struct header *head, const char *ext)
{
    char *h = (char *)head->byte;
    snprintf(h, 100, "%012d.%s", 0, ext);
    memcpy(h + 100, "0000644", 7);
    memcpy(h + 108, "0000000", 7);          /* uid */
    memcpy(h + 116, "0000000", 7);          /* gid */
    memcpy(h + SIZE_AT, "00000000000", 11); /* size */
    memcpy(h + 136, "00000000000", 11);     /* mtime */
    memcpy(h + SUM_AT, "        ", 8);      /* checksum */
    h[156] = '0';                           /* a regular file */
    memcpy(h + 257,
           "ustar\0"
           "00",
           8);                     /* magic and version */
    memcpy(h + 329, "0000000", 7); /* device numbers */
    memcpy(h + 337, "0000000", 7);
    for (unsigned i = 0; i < BLOCK; i++)
        head->sum += head->byte[i];
}

static int wds_init(void **state, const struct slu_shards_cfg *cfg, struct slu_err *err)
{
    static const char *const suffix[] = {"txt", "json", "json.gz"};
    struct wds *w = calloc(1, sizeof *w);
    char text[32];

    *state = w;
    if (!w)
        return slu_fail_nomem(err, sizeof *w);
    init_texts(w);
    init_header(&w->ids, suffix[cfg->member]);
    snprintf(text, sizeof text, "loss_mask.%s", suffix[cfg->member]);
    init_header(&w->mask, text);
    w->gzip = cfg->member == SLU_MEMBER_JSON_GZ;
    return SLU_OK;
}

static void wds_release(void *state)
{
    free(state);
}

static void wds_file_name(const void *state, uint64_t number, unsigned file, char *out,
                          size_t cap)
{
    (void)state;
    (void)file;
    snprintf(out, cap, "shard-%07llu.tar", (unsigned long long)number);
}

/* Largest size of a gzip member of n bytes. */
static uint64_t gzip_bound(uint64_t n)
{
    return compressBound(n) + 32;
}

/* A member's size has eleven octal digits. */
static int wds_check(const struct slu_shard_bucket *b, struct slu_err *err)
{
    uint64_t most = UINT32_MAX - (1 << 20); /* because zlib counts in 32 bits */

    return gzip_bound(b->n_id * MAX_TEXT) <= most
               ? SLU_OK
               : slu_shard_too_large(&slu_shard_wds, b, "4 GiB of a member", 0, err);
}

static bool wds_owns(const char *name)
{
    return !strcmp(name, "manifest.jsonl") || slu_shard_name_is(name, "shard-", ".tar");
}

/* OpenLM's defaults: shards of 2^20 tokens, and at most 65536 members. */
static uint64_t wds_shard_sequences(const struct slu_shard_bucket *b)
{
    uint64_t n = (UINT64_C(1) << 20) / b->length;

    return n < 1 ? 1 : n > 65536 ? 65536 : n;
}

/* Writes v in n digits of this base at p; returns the sum of the digits' characters. */
static uint32_t put_digits(uint8_t *p, unsigned n, uint64_t v, unsigned base)
{
    uint32_t sum = 0;

    while (n-- > 0) {
        p[n] = (uint8_t)('0' + v % base);
        sum += (uint32_t)(v % base);
        v /= base;
    }
    return sum;
}

static void put_header(const struct header *head, uint64_t index, uint64_t size,
                       uint8_t *h)
{
    uint32_t sum = head->sum;

    memcpy(h, head->byte, BLOCK);
    sum += put_digits(h, NAME_DIGITS, index, 10);
    sum += put_digits(h + SIZE_AT, SIZE_DIGITS, size, 8);
    put_digits(h + SUM_AT, 6, sum, 8);
    h[SUM_AT + 6] = 0;
}

/* Writes "id, ", and up to eight arbitrary bytes after it. */
static inline uint8_t *put_id(const struct wds *w, uint8_t *p, uint32_t id)
{
    if (__builtin_expect(id >= N_TEXT, 0))
        return p + snprintf((char *)p, MAX_TEXT + 1, "%u, ", id);
    const uint32_t t = id / N_PART;
    const uint64_t before = w->thousands[t],
                   rest = w->rest[id - t * N_PART + (t ? 0 : N_PART)];
    const unsigned n = (unsigned)(before >> SIZE_SHIFT);
    slu_put_le64(p, (before & ~(UINT64_MAX << SIZE_SHIFT)) | rest << 8 * n);
    return p + n + (rest >> SIZE_SHIFT);
}

/* The texts of n ids. */
static uint8_t *put_ids(const struct wds *w, const struct slu_shard_bucket *b,
                        uint8_t *p, const void *tok, uint64_t n)
{
    const uint32_t plain = b->masks ? ~SLU_TRAINED : UINT32_MAX;

    if (b->tok_bytes == 2 && !b->masks)
        for (uint64_t i = 0; i < n; i++)
            p = put_id(w, p, ((const uint16_t *)tok)[i]);
    else
        for (uint64_t i = 0; i < n; i++)
            p = put_id(w, p, ((const uint32_t *)tok)[i] & plain);
    return p;
}

static uint8_t *put_marks(uint8_t *p, const uint32_t *marked, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++, p += 3) {
        p[0] = '0' + (uint8_t)(marked[i] >> 31);
        p[1] = ',';
        p[2] = ' ';
    }
    return p;
}

/* Begins a gzip member without name or time. */
static int begin_text(z_stream *z)
{
    return deflateInit2(z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
}

/* Compresses n bytes at `from` to a gzip member of at most cap bytes, at `to`; *size:
 * its size. */
static int compress_text(const uint8_t *from, uint64_t n, uint8_t *to, uint64_t cap,
                         uint64_t *size, struct slu_err *err)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)from,
                  .avail_in = (uInt)n,
                  .next_out = to,
                  .avail_out = (uInt)cap};

    if (begin_text(&z) != Z_OK)
        return slu_fail_nomem(err, 1 << 18);
    int done = deflate(&z, Z_FINISH);
    *size = z.total_out;
    deflateEnd(&z);
    return done == Z_STREAM_END
               ? SLU_OK
               : slu_fail(err, SLU_E_LIMIT, "internal error: a member does not fit");
}

/* The most bytes of a member's text, and of a member while it is made. */
static uint64_t text_most(const struct slu_shard_bucket *b)
{
    return b->n_id * MAX_TEXT + 2;
}
static uint64_t member_room(const struct wds *w, const struct slu_shard_bucket *b)
{
    return text_most(b) + (w->gzip ? gzip_bound(text_most(b)) : 0) + 3 * BLOCK;
}

/* Appends a member: the sequence's ids, or its mask. */
static int put_member(const struct wds *w, bool mask, const struct slu_shard_bucket *b,
                      uint64_t index, const void *tok, struct slu_buf *out,
                      struct slu_err *err)
{
    /* With gzip, the text is after the room for its compressed bytes. */
    uint64_t room = w->gzip ? gzip_bound(text_most(b)) : 0;
    int rc = slu_buf_reserve(out, member_room(w, b), err);

    if (rc)
        return rc;
    uint8_t *header = out->data + out->len, *text = header + BLOCK + room, *p = text;
    *p++ = '[';
    p = mask ? put_marks(p, tok, b->n_id) : put_ids(w, b, p, tok, b->n_id);
    if (b->n_id)
        p -= 2;
    *p++ = ']';
    uint64_t size = (uint64_t)(p - text);
    if (w->gzip)
        rc = compress_text(text, size, header + BLOCK, room, &size, err);
    if (rc)
        return rc;
    uint64_t pad = -size & (BLOCK - 1);
    memset(header + BLOCK + size, 0, pad);
    put_header(mask ? &w->mask : &w->ids, index, size, header);
    out->len += BLOCK + size + pad;
    return SLU_OK;
}

static int wds_encode(const void *state, const struct slu_shard_bucket *b,
                      uint64_t index, const struct slu_shard_seq *q,
                      struct slu_buf *out, struct slu_err *err)
{
    const struct wds *w = state;
    /* Room for both, because a buffer that grows is copied. */
    int rc = b->masks ? slu_buf_reserve(out, 2 * member_room(w, b), err) : SLU_OK;

    if (!rc)
        rc = put_member(w, false, b, index, q->tok, out, err);
    return rc || !b->masks ? rc : put_member(w, true, b, index, q->tok, out, err);
}

/* Writes the member's text in pieces to out, unless that is NULL; with z, compressed.
 * *size: its bytes. */
static int write_text(const struct wds *w, bool mask, const struct slu_shard_bucket *b,
                      const void *tok, z_stream *z, struct slu_out *out, uint64_t *size,
                      struct slu_err *err)
{
    const unsigned tok_bytes = b->masks ? sizeof(uint32_t) : b->tok_bytes;
    uint8_t text[PIECE * MAX_TEXT + 16], packed[1 << 14];
    int rc = SLU_OK;

    *size = 0;
    for (uint64_t at = 0, n; at < b->n_id && !rc; at += n) {
        const uint8_t *from = (const uint8_t *)tok + at * tok_bytes;
        uint8_t *p = text;
        n = b->n_id - at < PIECE ? b->n_id - at : PIECE;
        const bool last = at + n == b->n_id;
        if (!at)
            *p++ = '[';
        p = mask ? put_marks(p, (const void *)from, n) : put_ids(w, b, p, from, n);
        if (last)
            p[-2] = ']';
        size_t k = (size_t)(p - text) - last;
        if (!z) {
            *size += k;
            rc = out ? slu_out_write(out, text, k, err) : SLU_OK;
            continue;
        }
        z->next_in = text;
        z->avail_in = (uInt)k;
        do {
            z->next_out = packed;
            z->avail_out = sizeof packed;
            (void)deflate(z, last ? Z_FINISH : Z_NO_FLUSH);
            k = sizeof packed - z->avail_out;
            *size += k;
            rc = out ? slu_out_write(out, packed, k, err) : SLU_OK;
        } while (!rc && !z->avail_out);
    }
    return rc;
}

/* Writes a member as put_member makes it: once to count, because its size comes first. */
static int write_member(const struct wds *w, bool mask,
                        const struct slu_shard_bucket *b, uint64_t index,
                        const void *tok, struct slu_out *out, struct slu_err *err)
{
    static const uint8_t zero[BLOCK];
    z_stream z = {0};
    uint8_t header[BLOCK];
    uint64_t size;

    if (w->gzip && begin_text(&z) != Z_OK)
        return slu_fail_nomem(err, 1 << 18);
    int rc = write_text(w, mask, b, tok, w->gzip ? &z : NULL, NULL, &size, err);
    put_header(mask ? &w->mask : &w->ids, index, size, header);
    if (!rc)
        rc = slu_out_write(out, header, BLOCK, err);
    if (w->gzip)
        (void)deflateReset(&z);
    if (!rc)
        rc = write_text(w, mask, b, tok, w->gzip ? &z : NULL, out, &size, err);
    if (w->gzip)
        deflateEnd(&z);
    return rc ? rc : slu_out_write(out, zero, -size & (BLOCK - 1), err);
}

static int wds_write(const void *state, const struct slu_shard_bucket *b,
                     uint64_t index, const struct slu_shard_seq *q, struct slu_out *out,
                     struct slu_err *err)
{
    int rc = write_member(state, false, b, index, q->tok, out, err);

    return rc || !b->masks ? rc : write_member(state, true, b, index, q->tok, out, err);
}

static int wds_end(void *state, const struct slu_shard *s, unsigned file,
                   struct slu_out *out, struct slu_err *err)
{
    static const uint8_t zero[2 * BLOCK];

    (void)state;
    (void)s;
    (void)file;
    return slu_out_write(out, zero, sizeof zero, err);
}

static int wds_manifest(void *state, const struct slu_shard_bucket *b,
                        const struct slu_shard_facts *shard, struct slu_out *out,
                        struct slu_err *err)
{
    int rc = SLU_OK;

    (void)state;
    for (uint64_t i = 0; i < b->n_shard && !rc; i++) {
        char line[96];
        int k = snprintf(line, sizeof line,
                         "{\"shard\":\"shard-%07llu\",\"num_sequences\":%llu}\n",
                         (unsigned long long)i, (unsigned long long)shard[i].n_seq);
        rc = slu_out_write(out, line, (size_t)k, err);
    }
    return rc;
}

const struct slu_shard_format slu_shard_wds = {
    .name = "wds",
    .labels = SLU_LABELS_WANTED,
    .powers_of_two = true,
    .masks = true,
    .inner_padding = SLU_INNER_PAD,
    .ignore_id = "--target-mask-individual",
    .shard_sequences = wds_shard_sequences,
    .check = wds_check,
    .options = SLU_SHARD_MEMBER,
    .init = wds_init,
    .release = wds_release,
    .n_file = 1,
    .file_name = wds_file_name,
    .owns = wds_owns,
    .boundaries = "in WebDataset a reader sees by EOS alone where the next one begins "
                  "(ds, olmo, mds and parquet say it)",
    .encode = wds_encode,
    .write = wds_write,
    .end = wds_end,
    .bucket_file = "manifest.jsonl",
    .bucket = wds_manifest,
    .short_shard_note = "OpenLM's trainer skips shards with fewer sequences than the "
                        "bucket's largest",
};
