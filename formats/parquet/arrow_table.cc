/* arrow_table.cc - the table of functions that libsluice-parquet.so exports, its only
 * exported name. */
#include "arrow_private.h"

extern "C" {
__attribute__((visibility("default"))) extern const struct slu_parquet slu_parquet;
const struct slu_parquet slu_parquet = {
    SLU_PARQUET_ABI,      slu_arrow_open,        slu_arrow_close, slu_arrow_size,
    slu_arrow_n_group,    slu_arrow_row,         slu_arrow_place, slu_arrow_rows_new,
    slu_arrow_rows_read,  slu_arrow_rows_free,   slu_arrow_write, slu_arrow_lists_open,
    slu_arrow_lists_next, slu_arrow_lists_close,
};
}
