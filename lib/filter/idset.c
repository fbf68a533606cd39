#include "idset.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/io.h"

enum { READ_BYTE = 1 << 18, FIRST_BITS = 10, LONGEST_ID = 1 << 20 };

struct slu_idset {
    struct slu_u128 *slot, sum; /* 0, 0: an empty slot */
    uint64_t n, most_byte;
    /* while the file is read */
    slu_idset_form *form; /* NULL: an id is its line */
    struct slu_buf formed;
    uint64_t line;
    unsigned bits;
};

static struct slu_u128 hash_of(const void *id, size_t n_byte)
{
    struct slu_u128 h = slu_hash128(id, n_byte);

    h.lo |= !h.lo && !h.hi;
    return h;
}

/* The slot that has the hash, or the empty one where it belongs. */
static struct slu_u128 *find(const struct slu_idset *s, struct slu_u128 h)
{
    const uint64_t mask = (UINT64_C(1) << s->bits) - 1;
    uint64_t i = h.hi & mask;

    while ((s->slot[i].lo || s->slot[i].hi) && slu_u128_cmp(s->slot[i], h))
        i = (i + 1) & mask;
    return &s->slot[i];
}

static int grow(struct slu_idset *s, struct slu_err *err)
{
    struct slu_idset wide = *s;
    const uint64_t n = s->slot ? UINT64_C(1) << s->bits : 0;

    wide.bits = s->slot ? s->bits + 1 : FIRST_BITS;
    const uint64_t n_byte = sizeof *s->slot << wide.bits;
    if (n_byte + n * sizeof *s->slot > s->most_byte)
        return slu_advise(err, SLU_ADVISE_MEMORY,
                          slu_fail(err, SLU_E_LIMIT,
                                   "more than %llu ids do not fit in memory",
                                   (unsigned long long)s->n));
    wide.slot = calloc((size_t)1 << wide.bits, sizeof *wide.slot);
    if (!wide.slot)
        return slu_fail_nomem(err, n_byte);
    for (uint64_t i = 0; i < n; i++)
        if (s->slot[i].lo || s->slot[i].hi)
            *find(&wide, s->slot[i]) = s->slot[i];
    free(s->slot);
    *s = wide;
    return SLU_OK;
}

static int add(struct slu_idset *s, const uint8_t *id, size_t n, struct slu_err *err)
{
    static const uint8_t mark[] = {0xef, 0xbb, 0xbf};

    if (s->line++ == 0 && n >= sizeof mark && !memcmp(id, mark, sizeof mark)) {
        id += sizeof mark;
        n -= sizeof mark;
    }
    n -= n && id[n - 1] == '\r';
    if (s->form && n) {
        slu_buf_clear(&s->formed);
        int rc = s->form(id, n, &s->formed, err);
        if (rc)
            return slu_err_at(err, "line %llu", (unsigned long long)s->line);
        id = s->formed.data;
        n = s->formed.len;
    }
    if (!n)
        return SLU_OK;
    const struct slu_u128 h = hash_of(id, n);
    int rc = s->n / 2 >= (UINT64_C(1) << s->bits) / 3 ? grow(s, err) : SLU_OK;
    struct slu_u128 *slot = rc ? NULL : find(s, h);
    if (rc || slot->lo || slot->hi)
        return rc;
    *slot = h;
    s->n++;
    s->sum = slu_u128_add(s->sum, h);
    return SLU_OK;
}

/* Adds the whole lines of the buffer, and leaves the beginning of the next one. */
static int take_lines(struct slu_idset *s, struct slu_buf *b, struct slu_err *err)
{
    const uint8_t *p = b->data, *end = p + b->len, *nl;
    int rc = SLU_OK;

    while (p < end && !rc && (nl = memchr(p, '\n', (size_t)(end - p)))) {
        rc = add(s, p, (size_t)(nl - p), err);
        p = nl + 1;
    }
    b->len = (size_t)(end - p);
    if (b->len)
        memmove(b->data, p, b->len);
    return rc || b->len <= LONGEST_ID
               ? rc
               : slu_fail(err, SLU_E_FORMAT,
                          "a line has more than %d bytes; expected "
                          "one id a line",
                          LONGEST_ID);
}

static int read_fd(struct slu_idset *s, int fd, struct slu_err *err)
{
    struct slu_buf b = SLU_BUF_INIT;
    size_t got = 1;
    int rc = grow(s, err);

    while (!rc && got) {
        rc = slu_buf_reserve(&b, READ_BYTE, err);
        if (!rc)
            rc = slu_read_full(fd, b.data + b.len, READ_BYTE, &got, err);
        if (rc)
            break;
        b.len += got;
        rc = take_lines(s, &b, err);
    }
    if (!rc)
        rc = add(s, b.data, b.len, err);
    slu_buf_release(&b);
    return rc;
}

int slu_idset_read(struct slu_idset **out, const char *path, uint64_t most_byte,
                   struct slu_err *err)
{
    return slu_idset_read_as(out, path, most_byte, NULL, err);
}

int slu_idset_read_as(struct slu_idset **out, const char *path, uint64_t most_byte,
                      slu_idset_form *form, struct slu_err *err)
{
    struct slu_idset *s = calloc(1, sizeof *s);

    *out = s;
    if (!s)
        return slu_fail_nomem(err, sizeof *s);
    s->most_byte = most_byte;
    s->form = form;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int rc = fd < 0 ? slu_fail_errno(err, "%s", path) : read_fd(s, fd, err);
    if (rc && fd >= 0)
        rc = slu_err_at(err, "%s", path);
    if (fd >= 0)
        close(fd);
    slu_buf_release(&s->formed);
    if (rc) {
        slu_idset_free(s);
        *out = NULL;
    }
    return rc;
}

bool slu_idset_has(const struct slu_idset *s, const void *id, size_t n_byte)
{
    const struct slu_u128 *slot = find(s, hash_of(id, n_byte));

    return slot->lo || slot->hi;
}

uint64_t slu_idset_byte(const struct slu_idset *s)
{
    return sizeof *s->slot << s->bits;
}

uint64_t slu_idset_count(const struct slu_idset *s)
{
    return s->n;
}

struct slu_u128 slu_idset_sum(const struct slu_idset *s)
{
    return s->sum;
}

void slu_idset_free(struct slu_idset *s)
{
    if (!s)
        return;
    free(s->slot);
    free(s);
}
