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
    slu_buf_clear(&b->members);
    b->member = 0;
    b->json = b->lines = b->rows = b->at_byte = false;
    b->source = b->off_byte = b->line = 0;
    b->broken = (struct slu_record_ref){0};
}

void slu_block_release(struct slu_block *b)
{
    slu_buf_release(&b->raw);
    slu_buf_release(&b->members);
    free(b->rec);
    free(b->field);
    slu_block_init(b);
}

/* A row's value: its type, then a double and its rest, a byte, or a length and so many bytes. */
int slu_row_put_any(struct slu_buf *b, const struct slu_value *v, struct slu_err *err)
{
    const uint8_t head[2] = {(uint8_t)v->type, v->boolean};
    const uint64_t len = v->len;
    int rc = slu_buf_append(b, head, v->type == SLU_VALUE_BOOL ? 2 : 1, err);
    if (!rc && v->type == SLU_VALUE_NUMBER)
        rc = slu_buf_append(b, &v->number, sizeof v->number, err);
    if (!rc && v->type == SLU_VALUE_NUMBER)
        rc = slu_buf_append(b, &v->rest, sizeof v->rest, err);
    if (!rc && v->type == SLU_VALUE_STRING)
        rc = slu_buf_append(b, &len, sizeof len, err);
    if (!rc && v->type == SLU_VALUE_STRING && len)
        rc = slu_buf_append(b, v->string, v->len, err);
    return rc;
}

const uint8_t *slu_row_get_any(const uint8_t *p, struct slu_value *v)
{
    uint64_t len;
    *v = (struct slu_value){.type = (enum slu_value_type) * p++};
    if (v->type == SLU_VALUE_BOOL) {
        v->boolean = *p++;
    } else if (v->type == SLU_VALUE_NUMBER) {
        memcpy(&v->number, p, sizeof v->number);
        memcpy(&v->rest, p + sizeof v->number, sizeof v->rest);
        p += sizeof v->number + sizeof v->rest;
    } else if (v->type == SLU_VALUE_STRING) {
        memcpy(&len, p, sizeof len);
        v->string = (const char *)p + sizeof len;
        v->len = len;
        p += sizeof len + len;
    }
    return p;
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
