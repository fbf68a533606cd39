/* block.c - blocks and their tables of records. Separate, because the reader of Parquet
 * has its own copy (parquet.h). */
#include "input_private.h"

#include <stdlib.h>
#include <string.h>

void slu_block_init(struct slu_block *b)
{
    memset(b, 0, sizeof *b);
}

void slu_block_clear(struct slu_block *b)
{
    slu_buf_clear(&b->raw);
    b->n_rec = 0;
    b->json = b->lines = b->rows = false;
    b->source = b->off_byte = b->line = 0;
    b->broken = (struct slu_record_ref){0};
}

void slu_block_release(struct slu_block *b)
{
    slu_buf_release(&b->raw);
    free(b->rec);
    free(b->field);
    slu_block_init(b);
}

int slu_block_add(struct slu_block *b, struct slu_record_ref rec, struct slu_err *err)
{
    int rc = slu_grow(&b->rec, &b->cap_rec, b->n_rec + 1, sizeof *b->rec, err);
    if (!rc)
        b->rec[b->n_rec++] = rec;
    return rc;
}

int slu_block_add_row(struct slu_block *b, struct slu_record_ref rec,
                      struct slu_row_fields fields, struct slu_err *err)
{
    int rc = slu_grow(&b->field, &b->cap_field, b->n_rec + 1, sizeof *b->field, err);
    if (rc)
        return rc;
    b->field[b->n_rec] = fields;
    return slu_block_add(b, rec, err);
}
