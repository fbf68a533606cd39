/* stream_identity.c - digests that identify a stream: slu_reader_identity. */
#include <string.h>

#include "lib/base/le.h"
#include "stream_reader.h"

/* The data of a segment that the trace checksum does not cover. */
enum { SOURCE, DOMAIN, EXTRA, ID = EXTRA + SLU_N_EXTRA, WORDS };

static uint64_t name_hash(const char *name)
{
    return name ? slu_hash64(name, strlen(name)) : 0;
}

void slu_reader_track(struct slu_reader *r)
{
    r->tracked = true;
}

/* Hashes names, because a domain's number is this process's own. */
void slu_identity_open(struct slu_reader *r, struct slu_batch *b)
{
    uint64_t source = SLU_PADDING, v[WORDS] = {0};
    uint32_t domain = SLU_NO_DOMAIN;
    uint8_t bytes[sizeof v];

    b->order_read = b->order;
    b->names_read = (struct slu_u128){0, 0};
    if (!r->tracked)
        return;
    for (size_t i = 0; i < b->n_seg; i++) {
        const struct slu_seg *s = &b->seg[i];
        if (s->source != source)
            v[SOURCE] = s->source == SLU_PADDING
                            ? 0
                            : name_hash(slu_names_source(r->names, s->source));
        if (s->domain != domain)
            v[DOMAIN] = s->domain == SLU_NO_DOMAIN
                            ? 0
                            : name_hash(slu_names_domain(r->names, s->domain));
        source = s->source;
        domain = s->domain;
        v[ID] = s->id_len ? slu_hash64(b->str.data + s->id_off, s->id_len) : 0;
        memcpy(v + EXTRA, s->extra, sizeof s->extra);
        for (unsigned k = 0; k < WORDS; k++)
            slu_put_le64(bytes + 8 * k, v[k]);
        b->names_read =
            slu_order_add(b->names_read, 1, slu_hash128(bytes, sizeof bytes));
    }
}

void slu_identity_account(struct slu_reader *r, const struct slu_batch *b)
{
    if (!r->tracked)
        return;
    r->order_seen =
        slu_order_add(r->order_seen, b->sum_read.n.sequences, b->order_read);
    r->names_seen = slu_order_add(r->names_seen, b->sum_read.segments, b->names_read);
}

int slu_reader_identity(struct slu_reader *r, struct slu_u128 *identity,
                        struct slu_err *err)
{
    int rc = slu_names_read_vocab(r->names, err);
    const struct slu_vocab_table *v = slu_names_vocab(r->names);
    const struct slu_u128 seen[] = {r->order_seen, r->names_seen};
    struct slu_buf b = SLU_BUF_INIT;
    uint8_t bytes[sizeof seen + 8];

    if (!rc && v)
        rc = slu_vocab_encode(v, &b, err);
    slu_put_le64(bytes + sizeof seen, rc ? 0 : slu_hash64(b.data, b.len));
    slu_buf_clear(&b);
    if (!rc)
        rc = slu_header_encode(&r->header, &b, err);

    for (unsigned i = 0; i < 2; i++) {
        slu_put_le64(bytes + 16 * i, seen[i].lo);
        slu_put_le64(bytes + 16 * i + 8, seen[i].hi);
    }
    if (!rc)
        rc = slu_buf_append(&b, bytes, sizeof bytes, err);
    if (!rc)
        *identity = slu_hash128(b.data, b.len);
    slu_buf_release(&b);
    return rc;
}
