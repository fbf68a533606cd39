/* wds_read.c - reads back the WebDataset shards that sluice writes: ustar members of
 * "[1, 2, …]", plain, or each in its own gzip member, and with masks members of bits. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "formats/shards/shardset.h"
#include "lib/base/io.h"
#include "lib/stream/mask.h"

enum { BLOCK = 512 };

struct wds {
    int fd;
    uint64_t at, n_byte; /* position in the file, and its size */
    uint64_t n;          /* members read */
    uint64_t most;       /* largest text of a member */
    bool masks;          /* each member of ids is followed by one of its mask */
    const char *suffix;  /* suffix of all members; NULL: no member was read */
    struct slu_buf text, zipped, mask;
};

static void wds_close(void *state)
{
    struct wds *w = state;
    if (!w)
        return;
    if (w->fd >= 0)
        close(w->fd);
    slu_buf_release(&w->text);
    slu_buf_release(&w->zipped);
    slu_buf_release(&w->mask);
    free(w);
}

static int wds_open(void **state, const char *const *path,
                    const struct slu_shard_bucket *b, uint64_t n_seq,
                    struct slu_err *err)
{
    struct wds *w = calloc(1, sizeof *w);
    (void)n_seq;
    *state = NULL;
    if (!w)
        return slu_fail_nomem(err, sizeof *w);
    int rc = slu_open_regular(&w->fd, *path, &w->n_byte, err);
    if (rc) {
        wds_close(w);
        return rc;
    }
    w->most = b->n_id * 12 + 2;
    w->masks = b->masks;
    *state = w;
    return SLU_OK;
}

static int read_exactly(struct wds *w, void *p, size_t n, struct slu_err *err)
{
    size_t got;
    int rc = slu_read_full(w->fd, p, n, &got, err);
    if (!rc && got < n)
        rc = slu_fail_at(err, SLU_E_TRUNCATED, w->at + got, "ends early, at byte %llu",
                         (unsigned long long)(w->at + got));
    w->at += got;
    return rc;
}

static int octal(const uint8_t *p, size_t n, uint64_t *out)
{
    uint64_t v = 0;
    size_t i = 0;
    for (; i < n && p[i] >= '0' && p[i] <= '7'; i++)
        v = v * 8 + (uint64_t)(p[i] - '0');
    *out = v;
    return i > 0 && (i == n || p[i] == 0 || p[i] == ' ') ? 0 : -1;
}

static bool header_sum_ok(const uint8_t *h)
{
    uint64_t want, sum = 8 * ' ';
    for (int i = 0; i < BLOCK; i++)
        sum += i < 148 || i >= 156 ? h[i] : 0;
    return !octal(h + 148, 8, &want) && want == sum;
}

/* Converts "[1, 2, 3]" to ids, which have room for half as many as there are bytes. NULL:
 * the text is not such a list; else the end of the ids. */
static uint32_t *convert(const uint8_t *p, const uint8_t *end, uint32_t *out)
{
    if (p == end || *p++ != '[')
        return NULL;
    while (p < end && *p != ']') {
        uint64_t v = 0;
        const uint8_t *digits = p;
        while (p < end && *p >= '0' && *p <= '9' && v <= UINT32_MAX)
            v = v * 10 + (uint64_t)(*p++ - '0');
        if (p == digits || v > UINT32_MAX)
            return NULL;
        *out++ = (uint32_t)v;
        if (p + 1 < end && p[0] == ',' && p[1] == ' ')
            p += 2;
        else if (p < end && *p != ']')
            return NULL;
    }
    return p + 1 == end ? out : NULL;
}

static int parse_ids(const struct wds *w, struct slu_buf *ids, struct slu_err *err)
{
    static const uint8_t nothing[1];
    const uint8_t *p = w->text.len ? w->text.data : nothing;
    slu_buf_clear(ids);
    int rc = slu_buf_reserve(ids, (w->text.len / 2 + 1) * 4, err);
    if (rc)
        return rc;
    const uint32_t *end = convert(p, p + w->text.len, (uint32_t *)(void *)ids->data);
    if (!end)
        return slu_fail_at(err, SLU_E_FORMAT, w->at, "member %llu is not a list of ids",
                           (unsigned long long)w->n);
    ids->len = (size_t)((const uint8_t *)end - ids->data);
    return SLU_OK;
}

/* Whether the name is that of member n, of ids or of their mask ("loss_mask."). The suffix
 * must be that of the first member. */
static bool name_ok(struct wds *w, const char *name, const char *what)
{
    static const char *const suffix[] = {"txt", "json", "json.gz"};
    char want[48];
    for (unsigned i = 0; i < 3; i++) {
        snprintf(want, sizeof want, "%012llu.%s%s", (unsigned long long)w->n, what,
                 suffix[i]);
        if (strncmp(name, want, 100) || (w->suffix && w->suffix != suffix[i]))
            continue;
        w->suffix = suffix[i];
        return true;
    }
    return false;
}

/* Decompresses the member in w->zipped to its text. */
static int unzip(struct wds *w, struct slu_err *err)
{
    z_stream z = {.next_in = w->zipped.data, .avail_in = (uInt)w->zipped.len};
    slu_buf_clear(&w->text);
    int rc = slu_buf_reserve(&w->text, w->most + 1, err);
    if (rc)
        return rc;
    z.next_out = w->text.data;
    z.avail_out = (uInt)(w->most + 1);
    if (inflateInit2(&z, 15 + 16) != Z_OK)
        return slu_fail_nomem(err, 1 << 16);
    int done = inflate(&z, Z_FINISH);
    w->text.len = z.total_out;
    unsigned left = z.avail_in;
    inflateEnd(&z);
    return done == Z_STREAM_END && !left && w->text.len <= w->most
               ? SLU_OK
               : slu_fail_at(err, SLU_E_FORMAT, w->at,
                             "member %llu is not a gzip member with a list of ids",
                             (unsigned long long)w->n);
}

/* Reads the second of the two blocks of zeros with which an archive ends. */
static int read_end(struct wds *w, struct slu_err *err)
{
    static const uint8_t zero[BLOCK];
    uint8_t h[BLOCK];
    int rc = read_exactly(w, h, BLOCK, err);
    if (!rc && memcmp(h, zero, BLOCK))
        rc = slu_fail_at(err, SLU_E_FORMAT, w->at,
                         "the archive ends with one block of zeros; expected two");
    return rc ? rc : SLU_EOF;
}

/* Reads the numbers of the next member; SLU_EOF at the end of the archive, which only a
 * member of ids (what "") may meet. */
static int next_member(struct wds *w, const char *what, struct slu_buf *ids,
                       struct slu_err *err)
{
    static const uint8_t zero[BLOCK];
    uint8_t h[BLOCK], pad[BLOCK];
    uint64_t size;
    int rc = read_exactly(w, h, BLOCK, err);
    if (rc)
        return rc;
    if (!*what && !memcmp(h, zero, BLOCK))
        return read_end(w, err);
    if (!header_sum_ok(h) || octal(h + 124, 12, &size) || !name_ok(w, (char *)h, what))
        return slu_fail_at(err, SLU_E_FORMAT, w->at - BLOCK,
                           "tar header at byte %llu is damaged, or of another member "
                           "(expected %012llu.%s%s)",
                           (unsigned long long)(w->at - BLOCK),
                           (unsigned long long)w->n, what,
                           w->suffix ? w->suffix : "txt");
    if (size > w->n_byte - w->at) /* checked before memory is allocated */
        return slu_fail_at(err, SLU_E_TRUNCATED, w->n_byte, "ends early, at byte %llu",
                           (unsigned long long)w->n_byte);
    bool gzip = !strcmp(w->suffix, "json.gz");
    struct slu_buf *to = gzip ? &w->zipped : &w->text;
    if (size > UINT32_MAX)
        return slu_fail_at(err, SLU_E_LIMIT, w->at, "member %llu is larger than 4 GiB",
                           (unsigned long long)w->n);
    slu_buf_clear(to);
    rc = slu_buf_reserve(to, size, err);
    if (!rc)
        rc = read_exactly(w, to->data, size, err);
    to->len = size;
    size_t n_pad = (BLOCK - size % BLOCK) % BLOCK;
    if (!rc)
        rc = read_exactly(w, pad, n_pad, err);
    if (!rc && memcmp(pad, zero, n_pad))
        rc = slu_fail_at(err, SLU_E_FORMAT, w->at,
                         "padding before byte %llu is not zero",
                         (unsigned long long)w->at);
    if (!rc && gzip)
        rc = unzip(w, err);
    return rc ? rc : parse_ids(w, ids, err);
}

/* Marks the ids that the next member says are trained on. */
static int read_mask(struct wds *w, struct slu_buf *ids, struct slu_err *err)
{
    int rc = next_member(w, "loss_mask.", &w->mask, err);
    if (!rc && w->mask.len != ids->len)
        rc = slu_fail_at(err, SLU_E_FORMAT, w->at,
                         "member %llu has %zu ids, and its mask has %zu bits",
                         (unsigned long long)w->n, ids->len / 4, w->mask.len / 4);
    uint32_t *id = (uint32_t *)(void *)ids->data;
    const uint32_t *bit = (const uint32_t *)(const void *)w->mask.data;
    if (!rc)
        rc = slu_mask_check_plain(id, ids->len / 4, err);
    for (size_t i = 0; !rc && i < ids->len / 4; i++) {
        if (bit[i] > 1)
            return slu_fail_at(err, SLU_E_FORMAT, w->at,
                               "member %llu: its mask has a %u; expected 0 or 1",
                               (unsigned long long)w->n, bit[i]);
        id[i] = slu_mask_mark(id[i], bit[i]);
    }
    return rc;
}

static int wds_next(void *state, uint64_t n_id, struct slu_buf *ids,
                    struct slu_err *err)
{
    (void)n_id;
    struct wds *w = state;
    int rc = next_member(w, "", ids, err);
    if (!rc && w->masks)
        rc = read_mask(w, ids, err);
    w->n++;
    return rc;
}

const struct slu_shard_layout slu_shard_layout_wds = {
    .format = "wds",
    .masks = true,
    .open = wds_open,
    .next = wds_next,
    .close = wds_close,
};
