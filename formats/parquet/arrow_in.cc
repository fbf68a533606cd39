/* arrow_in.cc - reads texts from Parquet files, through the column readers of
 * libparquet.
 */
#include "arrow_private.h"

#include <parquet/column_reader.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>

#include <algorithm>
#include <memory>
#include <vector>

extern "C" {
#include "formats/text/input_private.h"
#include "lib/base/number.h"
}

/* Values that are requested of a column at a time. */
#define BATCH 512

namespace
{

/* A value as bytes; nullptr: null. Borrowed until the next request to the column. */
struct value {
    const uint8_t *p;
    size_t len;
    struct slu_value number; /* for a score and the like, which have no bytes */
};

/* Reads a column of a row group, one value after the other. */
class column
{
  public:
    column(std::shared_ptr<parquet::ColumnReader> r, const struct slu_arrow_column &c)
        : reader(std::move(r)), chosen_as(c), def(c.max_def > 0 ? BATCH : 0)
    {
        switch (reader->type()) {
        case parquet::Type::BYTE_ARRAY:
            bytes.resize(BATCH);
            break;
        case parquet::Type::INT32:
            i32.resize(BATCH);
            break;
        case parquet::Type::FLOAT:
            f32.resize(BATCH);
            break;
        case parquet::Type::DOUBLE:
            f64.resize(BATCH);
            break;
        case parquet::Type::BOOLEAN:
            has_flags = true;
            break;
        default:
            i64.resize(BATCH);
        }
    }

    /* false: the column has no more values. */
    bool next(struct value *v)
    {
        if (at == n && !fill())
            return false;
        if (def.size() > 0 && def[at++] < chosen_as.max_def) {
            *v = {nullptr, 0, {}};
            return true;
        }
        at += def.size() == 0;
        if (used >= n_value)
            throw parquet::ParquetException("fewer values than levels");
        *v = chosen_as.is_number ? take_number(used++) : take(used++);
        return true;
    }

    bool is_flag() const
    {
        return has_flags;
    }

    bool is_done()
    {
        return at == n && !reader->HasNext();
    }

  private:
    template <typename R, typename V> int64_t read(int16_t *d, V *to, int64_t *values)
    {
        return static_cast<R *>(reader.get())->ReadBatch(BATCH, d, nullptr, to, values);
    }

    bool fill()
    {
        int16_t *d = def.size() > 0 ? def.data() : nullptr;
        int64_t levels = 0, values = 0;
        at = n = used = n_value = 0;
        /* A page may be empty. */
        while (levels == 0 && reader->HasNext()) {
            if (bytes.size() > 0)
                levels = read<parquet::ByteArrayReader>(d, bytes.data(), &values);
            else if (f32.size() > 0)
                levels = read<parquet::FloatReader>(d, f32.data(), &values);
            else if (f64.size() > 0)
                levels = read<parquet::DoubleReader>(d, f64.data(), &values);
            else if (i32.size() > 0)
                levels = read<parquet::Int32Reader>(d, i32.data(), &values);
            else if (has_flags)
                levels = read<parquet::BoolReader>(d, flags, &values);
            else
                levels = read<parquet::Int64Reader>(d, i64.data(), &values);
            if (levels < 0 || levels > BATCH || values < 0 || values > BATCH)
                throw parquet::ParquetException("more values than were asked for");
            if (levels == 0 && ++empty > 1000)
                break;
        }
        n = static_cast<size_t>(d != nullptr ? levels : values);
        n_value = static_cast<size_t>(values);
        return n > 0;
    }

    struct value take(size_t i)
    {
        if (bytes.size() > 0) {
            static const uint8_t nothing[1] = {0};
            return {bytes[i].len > 0 ? bytes[i].ptr : nothing, bytes[i].len, {}};
        }
        return {reinterpret_cast<const uint8_t *>(digits), put_digits(i), {}};
    }

    /* Writes a number or a boolean to digits, as slu_record_parse does. */
    size_t put_digits(size_t i)
    {
        if (has_flags)
            return print("%s", flags[i] ? "true" : "false");
        if (f64.size() > 0)
            return slu_number_put(f64[i], digits);
        if (f32.size() > 0)
            return slu_number_put_float(f32[i], digits);
        return chosen_as.is_signed ? print("%lld", (long long)integer(i))
                                   : print("%llu", (unsigned long long)integer(i));
    }

    /* The integer, or the bits of an unsigned one. */
    int64_t integer(size_t i) const
    {
        return i32.size() == 0 ? i64[i]
               : chosen_as.is_signed
                   ? i32[i]
                   : static_cast<int64_t>(static_cast<uint32_t>(i32[i]));
    }

    template <typename T> size_t print(const char *how, T x)
    {
        return static_cast<size_t>(snprintf(digits, sizeof digits, how, x));
    }

    struct value take_number(size_t i)
    {
        static const uint8_t there[1] = {0};
        struct slu_value v = {};
        v.type = SLU_VALUE_NUMBER;
        if (f64.size() > 0) {
            v.number = f64[i];
        } else if (f32.size() > 0) {
            v.number = static_cast<double>(f32[i]);
        } else {
            const int64_t x = integer(i);
            const bool negative = chosen_as.is_signed && x < 0;
            const uint64_t bits = static_cast<uint64_t>(x);
            v = slu_value_of_integer(negative ? 0 - bits : bits, negative);
        }
        return {there, 0, v};
    }

    std::shared_ptr<parquet::ColumnReader> reader;
    const struct slu_arrow_column chosen_as;
    std::vector<int16_t> def;
    std::vector<parquet::ByteArray> bytes;
    std::vector<int32_t> i32;
    std::vector<int64_t> i64;
    std::vector<float> f32;
    std::vector<double> f64;
    bool flags[BATCH];
    bool has_flags = false;
    char digits[SLU_NUMBER_BYTE];
    size_t at = 0, n = 0;         /* in levels (or in values, if there are no levels) */
    size_t used = 0, n_value = 0; /* in values */
    unsigned empty = 0;
};

} // namespace

struct slu_parquet_rows {
    explicit slu_parquet_rows(uint64_t memory_byte_)
        : pool(memory_byte_), memory_byte(memory_byte_)
    {
    }
    ~slu_parquet_rows()
    {
        slu_buf_release(&span);
    }

    slu_arrow_pool pool; /* must outlive its allocations */
    const struct slu_parquet_file *file = nullptr;
    std::string where;
    std::unique_ptr<parquet::ParquetFileReader> reader;
    std::shared_ptr<parquet::RowGroupReader> group;
    std::vector<std::unique_ptr<column>> col; /* as file->column */
    std::vector<struct value> value;
    std::shared_ptr<struct slu_arrow_spans> spans; /* nullptr: none */
    struct slu_buf span = SLU_BUF_INIT;            /* of a row */
    uint64_t memory_byte;
    uint64_t row = 0, skip_to = 0, end = 0; /* numbers of rows in the file */
    int failed = SLU_OK;
    struct slu_err why = SLU_ERR_INIT;
};

int slu_arrow_rows_new(struct slu_parquet_rows **out, const struct slu_parquet_file *f,
                       uint64_t g, uint64_t skip, uint64_t memory_byte,
                       struct slu_err *err)
{
    *out = nullptr;
    std::unique_ptr<struct slu_parquet_rows> r(
        new (std::nothrow) struct slu_parquet_rows(memory_byte));
    if (r == nullptr)
        return slu_fail_nomem(err, sizeof *r);
    int rc = slu_arrow_guard(f->name.c_str(), &r->pool, err, [&]() -> int {
        r->file = f;
        r->row = f->row[g];
        r->skip_to = r->row + skip;
        r->end = f->row[g + 1];
        r->where = f->name + ": row group " + std::to_string(g);
        return slu_arrow_guard(r->where.c_str(), &r->pool, err, [&]() -> int {
            r->reader = parquet::ParquetFileReader::Open(
                f->source, slu_arrow_properties(&r->pool), f->meta);
            r->group = r->reader->RowGroup(static_cast<int>(g));
            if (!f->spans.empty())
                r->spans = slu_arrow_spans_new(f, r->group.get());
            r->col.resize(f->column.size());
            r->value.resize(f->column.size());
            for (size_t k = 0; k < f->column.size(); k++)
                if (f->column[k].index >= 0)
                    r->col[k] = std::make_unique<column>(
                        r->group->Column(f->column[k].index), f->column[k]);
            return SLU_OK;
        });
    });
    if (!rc)
        *out = r.release();
    return rc;
}

/* Appends the value of column k, which may be of any type. */
static int put_any(const struct slu_parquet_rows *r, size_t k, struct slu_block *b,
                   struct slu_err *err)
{
    const struct value &from = r->value[k];
    struct slu_value v = {};
    if (r->col[k] == nullptr || from.p == nullptr)
        return slu_row_put_any(&b->raw, &v, err);
    if (r->file->column[k].is_number) {
        v = from.number;
    } else if (r->col[k]->is_flag()) {
        v.type = SLU_VALUE_BOOL;
        v.boolean = from.p[0] == 't';
    } else {
        v.type = SLU_VALUE_STRING;
        v.string = reinterpret_cast<const char *>(from.p);
        v.len = from.len;
    }
    return slu_row_put_any(&b->raw, &v, err);
}

/* Takes the spans of one row. */
static int take_spans(struct slu_parquet_rows *r, struct slu_row_fields *fields,
                      struct slu_err *err)
{
    switch (slu_arrow_spans_take(r->spans.get(), r->memory_byte / 4, &r->span)) {
    case SLU_ARROW_NO_SPANS:
        fields->null |= 1U << SLU_FIELD_SPANS;
        break;
    case SLU_ARROW_BAD_SPANS:
        fields->bad_spans = true;
        break;
    case SLU_ARROW_MANY_SPANS:
        return slu_advise(err, SLU_ADVISE_MEMORY,
                          slu_fail(err, SLU_E_LIMIT,
                                   "%s: row %llu has more spans than fit into memory",
                                   r->where.c_str(), (unsigned long long)r->row));
    default:
        fields->span_len = r->span.len;
    }
    return SLU_OK;
}

/* Takes the values of one row, one after the other. */
static int take_row(struct slu_parquet_rows *r, struct slu_block *b,
                    struct slu_err *err)
{
    struct value *v = r->value.data();
    struct slu_row_fields fields = {};
    size_t n = 0;
    fields.null = r->file->missing;
    for (size_t k = 0; k < r->col.size(); k++) {
        if (r->col[k] == nullptr)
            continue;
        if (!r->col[k]->next(&v[k]))
            return slu_fail(err, SLU_E_FORMAT,
                            "%s: damaged (column \"%s\" ends before row %llu)",
                            r->where.c_str(), r->file->field[k].c_str(),
                            (unsigned long long)r->row);
        if (v[k].p == nullptr && k < SLU_FIELDS)
            fields.null |= 1U << k;
        n += v[k].len;
    }
    int rc = r->spans != nullptr ? take_spans(r, &fields, err) : SLU_OK;
    if (rc || r->row < r->skip_to)
        return rc;
    n += fields.span_len;
    struct slu_record_ref rec = {};
    rec.document = r->row;
    rec.off = b->raw.len;
    rec.len = v[SLU_FIELD_TEXT].len;
    fields.id_len = v[SLU_FIELD_ID].len;
    fields.domain_len = v[SLU_FIELD_DOMAIN].len;
    fields.score = v[SLU_FIELD_SCORE].number.number;
    rc = slu_buf_reserve(&b->raw, n, err);
    for (int k = 0; k < SLU_FIELDS && !rc; k++)
        if (v[k].len > 0)
            rc = slu_buf_append(&b->raw, v[k].p, v[k].len, err);
    if (fields.span_len > 0 && !rc)
        rc = slu_buf_append(&b->raw, r->span.data, fields.span_len, err);
    const size_t before = b->raw.len;
    for (size_t k = SLU_FIELDS; k < r->col.size() && !rc; k++)
        rc = put_any(r, k, b, err);
    fields.any_len = b->raw.len - before;
    return rc ? rc : slu_block_add_row(b, rec, fields, err);
}

static int check_end(struct slu_parquet_rows *r, struct slu_err *err)
{
    for (size_t k = 0; k < r->col.size(); k++)
        if (r->col[k] != nullptr && !r->col[k]->is_done())
            return slu_fail(err, SLU_E_FORMAT,
                            "%s: damaged (column \"%s\" has more values than rows)",
                            r->where.c_str(), r->file->field[k].c_str());
    if (r->spans != nullptr && !slu_arrow_spans_done(r->spans.get()))
        return slu_fail(err, SLU_E_FORMAT,
                        "%s: damaged (column \"%s\" has more values than rows)",
                        r->where.c_str(), r->file->field[SLU_FIELD_SPANS].c_str());
    return SLU_EOF;
}

int slu_arrow_rows_read(struct slu_parquet_rows *r, struct slu_block *b,
                        size_t want_byte, struct slu_err *err)
{
    int rc = r->failed;
    if (!rc)
        rc = slu_arrow_guard(r->where.c_str(), &r->pool, &r->why, [&]() -> int {
            while (slu_rows_weight(b) < want_byte) {
                if (r->row == r->end)
                    return check_end(r, &r->why);
                int status = take_row(r, b, &r->why);
                if (status)
                    return status;
                r->row++;
            }
            return SLU_OK;
        });
    if (rc < 0) {
        r->failed = rc;
        if (err != nullptr)
            *err = r->why;
    }
    return rc;
}

void slu_arrow_rows_free(struct slu_parquet_rows *r)
{
    delete r;
}
