/* in_text.c - a file that is one text, whatever its name; an empty one too, as in an
 * archive: it is dropped under a name, not overlooked. */
#include "input_private.h"

#include <string.h>

static bool name_matches(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && (strcasecmp(dot, ".txt") == 0 || strcasecmp(dot, ".text") == 0 ||
                   strcasecmp(dot, ".md") == 0);
}

static bool head_matches(const uint8_t *p, size_t n)
{
    (void)p;
    (void)n;
    return true;
}

static int text_fetch(struct slu_input_source *src, struct slu_block *b,
                      struct slu_err *err)
{
    size_t begin = b->raw.len, block = src->cfg->block_byte, step = block, got;
    if (src->src->regular && src->src->size_byte < block) /* small files side by side */
        step = (size_t)src->src->size_byte + 1;
    /* A large one at once: memory that grows is touched again and again. */
    if (slu_bytes_seekable(src->bytes) && src->src->size_byte >= block &&
        src->src->size_byte <= src->cfg->max_record_byte) {
        int rc =
            slu_block_room(src, b, (size_t)src->src->size_byte + block, begin, 0, err);
        if (rc)
            return rc;
    }
    for (;;) {
        int rc = slu_block_room(src, b, step, begin, 0, err);
        if (rc)
            return rc;
        rc = slu_bytes_read(src->bytes, b->raw.data + b->raw.len, step, &got, err);
        b->raw.len += got; /* with an error too */
        if (rc)
            return rc;
        if (got < step)
            break;
        step = block;
    }
    struct slu_record_ref rec = {
        .source = src->ordinal, .off = begin, .len = b->raw.len - begin};
    int rc = slu_block_add(b, rec, err);
    return rc ? rc : SLU_EOF;
}

const struct slu_input_format slu_in_text = {
    .name = "text",
    .name_matches = name_matches,
    .head_matches = head_matches,
    .fetch = text_fetch,
};
