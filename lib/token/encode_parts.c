#include "encode_parts.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"

struct parts {
    const struct slu_encode_workers *workers;
    const char *text;
    size_t *end;          /* of each part, in the text */
    struct slu_ids *slot; /* ids of part i until it is joined: slot[i % n_slot] */
    unsigned n_slot;
    struct slu_ids *all;
};

static int encode_part(void *arg, unsigned worker, size_t i, struct slu_err *err)
{
    struct parts *p = arg;
    size_t from = i ? p->end[i - 1] : 0;
    struct slu_ids *ids = &p->slot[i % p->n_slot];
    ids->n = 0;
    return slu_encode_valid(p->workers->encoder[worker], p->text + from,
                            p->end[i] - from, ids, err);
}

static int join_part(void *arg, size_t i, struct slu_err *err)
{
    struct parts *p = arg;
    const struct slu_ids *ids = &p->slot[i % p->n_slot];
    struct slu_ids *all = p->all;
    int rc = slu_grow(&all->id, &all->cap, all->n + ids->n, sizeof *all->id, err);
    if (rc)
        return rc;
    if (ids->n)
        memcpy(all->id + all->n, ids->id, ids->n * sizeof *ids->id);
    all->n += ids->n;
    return SLU_OK;
}

/* Finds the ends of parts of at least part_byte. Returns how many, at most n /
 * part_byte. */
static size_t cut_text(const struct slu_encode_workers *workers, const char *text,
                       size_t n, size_t *end)
{
    size_t at = 0, n_part = 0;
    while (n - at >= 2 * workers->part_byte) {
        at = slu_tokenizer_cut(workers->tokenizer, text, n, at + workers->part_byte,
                               n - workers->part_byte + 1);
        if (at == SIZE_MAX)
            break;
        end[n_part++] = at;
    }
    end[n_part++] = n;
    return n_part;
}

int slu_encode_parts(const struct slu_encode_workers *workers, unsigned worker,
                     const char *utf8, size_t n_byte, struct slu_ids *ids,
                     struct slu_err *err)
{
    if (workers->n_worker == 1 || n_byte / 2 < workers->part_byte)
        return slu_encode_valid(workers->encoder[worker], utf8, n_byte, ids, err);
    struct parts p = {.workers = workers,
                      .text = utf8,
                      .n_slot = workers->n_worker + workers->n_worker / 2 + 1,
                      .all = ids};
    size_t before = ids->n, most = n_byte / workers->part_byte + 1;
    int rc;
    p.end = malloc(most * sizeof *p.end);
    p.slot = calloc(p.n_slot, sizeof *p.slot);
    if (!p.end || !p.slot) {
        rc = slu_fail_nomem(err, most * sizeof *p.end);
    } else {
        struct slu_pipe_parts todo = {cut_text(workers, utf8, n_byte, p.end), p.n_slot,
                                      &p, encode_part, join_part};
        rc = slu_pipe_share(workers->pipe, worker, &todo, err);
    }
    if (rc)
        ids->n = before;
    for (unsigned i = 0; p.slot && i < p.n_slot; i++)
        slu_ids_release(&p.slot[i]);
    free(p.slot);
    free(p.end);
    return rc;
}

bool slu_encode_cuts(const struct slu_tokenizer *t)
{
    static const char example[] = "a b\nc";
    return slu_tokenizer_cut(t, example, 5, 1, 5) != SIZE_MAX;
}

size_t slu_encode_cut(const struct slu_tokenizer *t, const void *text, size_t n,
                      size_t from)
{
    const uint8_t *p = text;
    size_t most = 256; /* bytes searched at a time; doubled if nothing is found */
    if (from == 0)
        from = 1;
    /* A whole character after the place must be known. */
    for (size_t to = n > 3 ? n - 3 : 0; to > from; most *= 2) {
        size_t begin = to - from > most ? to - most : from;
        size_t at = slu_tokenizer_cut(t, text, n, begin, to);
        if (at != SIZE_MAX) {
            /* Some tokenizers can be cut inside a character. */
            for (int k = 0; k < 3 && (p[at] & 0xC0) == 0x80; k++)
                at++;
            return at;
        }
        to = begin;
    }
    return 0;
}
