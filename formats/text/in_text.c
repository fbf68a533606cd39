/* in_text.c - a file that is one text, whatever its name. An empty file is one too, as
 * in an archive: it is dropped under a name, not overlooked. A text larger than a block
 * comes in parts if the caller can cut it. */
#include "input_private.h"

#include <stdlib.h>
#include <string.h>

static bool name_matches(const char *name)
{
    const char *dot = strrchr(name, '.');
    return slu_suffix_is(dot, ".txt") || slu_suffix_is(dot, ".text") ||
           slu_suffix_is(dot, ".md");
}

static bool head_matches(const uint8_t *p, size_t n)
{
    (void)p;
    (void)n;
    return true;
}

struct text {
    struct slu_buf carry; /* bytes of the next part, read with the previous one */
    uint64_t off;         /* offset of the next part in the source */
};

static int text_open(struct slu_input_source *src, struct slu_err *err)
{
    src->state = calloc(1, sizeof(struct text));
    return src->state ? SLU_OK : slu_fail_nomem(err, sizeof(struct text));
}

/* Returns how much to read first: small files share a block, large ones fill one. A
 * text that already has parts is large, whatever its compressed size is. */
static size_t first_step(const struct slu_input_source *src, const struct slu_block *b,
                         uint64_t part_off)
{
    size_t block = src->cfg->block_byte;
    if (src->size_byte < block && !part_off)
        return (size_t)src->size_byte + 1;
    return b->raw.len < block - block / 4 ? block - b->raw.len : block;
}

/* Makes room at once for a large text that must come whole, because growing memory is
 * copied again and again. */
static int room_for_whole(struct slu_input_source *src, struct slu_block *b,
                          struct slu_err *err)
{
    size_t block = src->cfg->block_byte;
    if (src->cfg->cut || !slu_bytes_seekable(src->bytes) || src->size_byte < block ||
        src->size_byte > src->cfg->max_record_byte)
        return SLU_OK;
    return slu_block_room(src, b, (size_t)src->size_byte + block, src->begin, 0, err);
}

/* Ends the block with a part if the text can be cut at or after `from`. */
static int cut_off(struct slu_input_source *src, struct slu_block *b, size_t from,
                   bool *done, struct slu_err *err)
{
    struct text *t = src->state;
    const struct slu_input_cfg *cfg = src->cfg;
    uint8_t *p = b->raw.data + src->begin;
    size_t n = b->raw.len - src->begin;
    size_t at = cfg->cut ? cfg->cut(cfg->ctx, p, n, from) : 0;
    *done = at > 0;
    if (!at)
        return SLU_OK;
    struct slu_record_ref rec = {.source = src->ordinal,
                                 .document = src->base,
                                 .off = src->begin,
                                 .len = at,
                                 .part_off = t->off,
                                 .goes_on = true};
    int rc = slu_buf_append(&t->carry, p + at, n - at, err);
    b->raw.len = src->begin + at;
    t->off += at;
    return rc ? rc : slu_block_add(b, rec, err);
}

static int text_fetch(struct slu_input_source *src, struct slu_block *b,
                      struct slu_err *err)
{
    struct text *t = src->state;
    size_t got, searched = 0;
    src->part_off = t->off;
    src->document = src->base;
    int rc = slu_block_room(src, b, t->carry.len, src->begin, t->off, err);
    if (!rc && t->carry.len)
        rc = slu_buf_append(&b->raw, t->carry.data, t->carry.len, err);
    slu_buf_clear(&t->carry);
    if (!rc)
        rc = room_for_whole(src, b, err);
    for (size_t step = first_step(src, b, t->off); !rc; step = src->cfg->block_byte) {
        bool done;
        rc = slu_block_room(src, b, step, src->begin, t->off, err);
        if (rc)
            break;
        rc = slu_bytes_read(src->bytes, b->raw.data + b->raw.len, step, &got, err);
        b->raw.len += got; /* also with an error */
        if (rc)
            break;
        if (got < step) {
            struct slu_record_ref rec = {.source = src->ordinal,
                                         .document = src->base,
                                         .off = src->begin,
                                         .len = b->raw.len - src->begin,
                                         .part_off = t->off};
            rc = slu_block_add(b, rec, err);
            return rc ? rc : SLU_EOF;
        }
        rc = cut_off(src, b, searched, &done, err);
        if (rc || done)
            break;
        /* Search the last bytes again: the character after them was not complete. */
        searched = b->raw.len - src->begin > 3 ? b->raw.len - src->begin - 3 : 0;
    }
    return rc;
}

static void text_close(struct slu_input_source *src)
{
    struct text *t = src->state;
    if (t)
        slu_buf_release(&t->carry);
    free(t);
}

const struct slu_input_format slu_in_text = {
    .name = "text",
    .name_matches = name_matches,
    .head_matches = head_matches,
    .open = text_open,
    .fetch = text_fetch,
    .close = text_close,
};
