/* arrow_in.cc - reads texts from Parquet files, through the column readers of
 * libparquet.
 */
#include "arrow_private.h"

#include <arrow/io/file.h>
#include <parquet/column_reader.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>
#include <parquet/schema.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <vector>

extern "C" {
#include "formats/text/input_private.h"
#include "lib/base/le.h"
#include "lib/base/number.h"
}

/* Values that are requested of a column at a time. */
#define BATCH 512
/* Bytes of a column chunk that are read at a time. */
#define STREAM_BYTE (128 << 10)
/* Memory for each byte of a footer, at most, after it was parsed. */
#define FOOTER_WEIGHT 16

struct chosen {
    int index;       /* of the leaf column; -1: not wanted, or missing */
    int16_t max_def; /* definition level of a value that is not null */
    bool is_signed;  /* for integers */
    bool is_number;  /* for the score */
};

struct slu_parquet_file {
    std::string name;
    uint64_t size_byte = 0;
    std::shared_ptr<arrow::io::RandomAccessFile> source;
    std::shared_ptr<parquet::FileMetaData> meta;
    struct chosen column[SLU_FIELDS];
    std::string field[SLU_FIELDS];
    unsigned missing = 0;      /* bit 1 << f: column f is wanted, and does not exist */
    std::vector<uint64_t> row; /* first row of each row group; and the end */
    std::vector<uint64_t> place; /* of each row group (parquet.h) */
};

/* ---- opening ---- */

/* Checks the beginning and the end of the file, which gives better messages than a
 * failing parser. */
static int check_ends(const char *name, uint64_t size_byte, int fd,
                      uint64_t memory_byte, struct slu_err *err)
{
    uint8_t head[4], tail[8];
    if (size_byte < 12)
        return slu_fail(err, SLU_E_TRUNCATED,
                        "%s: %llu bytes are not a Parquet file; it was cut short, or "
                        "is something else",
                        name, (unsigned long long)size_byte);
    if (pread(fd, head, 4, 0) != 4 ||
        pread(fd, tail, 8, static_cast<off_t>(size_byte - 8)) != 8)
        return slu_fail_errno(err, "%s", name);
    if (memcmp(tail + 4, "PARE", 4) == 0)
        return slu_fail(err, SLU_E_UNSUPPORTED, "%s: is encrypted", name);
    if (memcmp(head, "PAR1", 4) != 0)
        return slu_fail_at(err, SLU_E_FORMAT, 0,
                           "%s: byte 0: does not begin as a Parquet file does", name);
    if (memcmp(tail + 4, "PAR1", 4) != 0)
        return slu_fail_at(err, SLU_E_TRUNCATED, size_byte,
                           "%s: byte %llu: does not end as a Parquet file does; it was "
                           "cut short",
                           name, (unsigned long long)size_byte);
    uint64_t footer = slu_le32(tail);
    if (footer > size_byte - 12)
        return slu_fail_at(err, SLU_E_FORMAT, size_byte - 8,
                           "%s: byte %llu: damaged footer (of %llu bytes)", name,
                           (unsigned long long)(size_byte - 8),
                           (unsigned long long)footer);
    if (footer > memory_byte / FOOTER_WEIGHT)
        return slu_advise(
            err, SLU_ADVISE_MEMORY,
            slu_fail(err, SLU_E_LIMIT,
                     "%s: a footer of %llu bytes, more than memory allows", name,
                     (unsigned long long)footer));
    return SLU_OK;
}

/* "a.b": the column of this name, or field b of the struct a. */
static int find_column(struct slu_parquet_file *f, int k, bool is_optional,
                       struct slu_err *err)
{
    const parquet::SchemaDescriptor *schema = f->meta->schema();
    const std::string &want = f->field[k];
    int flat = -1, nested = -1, n_flat = 0, n_nested = 0;
    bool group = false;
    for (int i = 0; i < schema->num_columns(); i++) {
        std::vector<std::string> path = schema->Column(i)->path()->ToDotVector();
        bool one = path.size() == 1;
        if (schema->Column(i)->path()->ToDotString() == want) {
            (one ? flat : nested) = i;
            (one ? n_flat : n_nested)++;
        }
        group |= !one && path[0] == want;
    }
    if (n_flat > 1 || (n_flat == 0 && n_nested > 1))
        return slu_fail(err, SLU_E_FORMAT, "%s: several columns \"%s\"",
                        f->name.c_str(), want.c_str());
    f->column[k].index = n_flat > 0 ? flat : nested;
    if (f->column[k].index < 0 && !group && is_optional) {
        f->missing |= 1U << k;
        return SLU_OK;
    }
    if (f->column[k].index < 0)
        return group ? slu_fail(err, SLU_E_FORMAT,
                                "%s: column \"%s\" is a struct or a list; name the "
                                "field in it, as in \"%s.text\"",
                                f->name.c_str(), want.c_str(), want.c_str())
                     : slu_advise(err, SLU_ADVISE_COLUMNS,
                                  slu_fail(err, SLU_E_FORMAT, "%s: no column \"%s\"",
                                           f->name.c_str(), want.c_str()));
    return SLU_OK;
}

static bool is_text(const parquet::ColumnDescriptor *d)
{
    if (d->physical_type() != parquet::Type::BYTE_ARRAY)
        return false;
    const auto &logical = d->logical_type();
    return logical == nullptr || logical->is_none() || logical->is_invalid() ||
           logical->is_string() || logical->is_JSON() || logical->is_enum();
}

static bool is_integer(const parquet::ColumnDescriptor *d, bool *is_signed)
{
    if (d->physical_type() != parquet::Type::INT32 &&
        d->physical_type() != parquet::Type::INT64)
        return false;
    const auto &logical = d->logical_type();
    *is_signed = true;
    if (logical == nullptr || logical->is_none() || logical->is_invalid())
        return true;
    if (!logical->is_int())
        return false;
    *is_signed = static_cast<const parquet::IntLogicalType &>(*logical).is_signed();
    return true;
}

static bool is_number(const parquet::ColumnDescriptor *d, bool *is_signed)
{
    *is_signed = true;
    if (d->physical_type() != parquet::Type::FLOAT &&
        d->physical_type() != parquet::Type::DOUBLE)
        return is_integer(d, is_signed);
    const auto &logical = d->logical_type();
    return logical == nullptr || logical->is_none() || logical->is_invalid();
}

/* Whether column k may have this type; the message states the expected types. */
static bool is_fit(int k, const parquet::ColumnDescriptor *d, bool *is_signed,
                   const char **what)
{
    *what = k == SLU_FIELD_SCORE  ? "numbers"
            : k == SLU_FIELD_TEXT ? "strings"
                                  : "strings, numbers or booleans";
    if (k == SLU_FIELD_SCORE)
        return is_number(d, is_signed);
    return is_text(d) ||
           (k != SLU_FIELD_TEXT &&
            (d->physical_type() == parquet::Type::BOOLEAN || is_number(d, is_signed)));
}

static int check_column(struct slu_parquet_file *f, int k, struct slu_err *err)
{
    struct chosen *c = &f->column[k];
    const parquet::ColumnDescriptor *d = f->meta->schema()->Column(c->index);
    c->max_def = d->max_definition_level();
    if (d->max_repetition_level() > 0)
        return slu_fail(err, SLU_E_FORMAT, "%s: column \"%s\" is a list, not one value",
                        f->name.c_str(), f->field[k].c_str());
    const char *what;
    if (is_fit(k, d, &c->is_signed, &what))
        return SLU_OK;
    std::string type = parquet::TypeToString(d->physical_type());
    if (d->logical_type() != nullptr && d->logical_type()->is_valid() &&
        !d->logical_type()->is_none())
        type += ", " + d->logical_type()->ToString();
    return slu_fail(err, SLU_E_FORMAT, "%s: column \"%s\" holds no %s (%.80s)",
                    f->name.c_str(), f->field[k].c_str(), what, type.c_str());
}

/* The file's own sum is optional; that of a column is not. */
static uint64_t stored_bytes(const parquet::RowGroupMetaData &group)
{
    uint64_t sum = 0;
    if (group.total_compressed_size() > 0)
        return static_cast<uint64_t>(group.total_compressed_size());
    for (int c = 0; c < group.num_columns(); c++)
        sum += static_cast<uint64_t>(
            std::max<int64_t>(group.ColumnChunk(c)->total_compressed_size(), 0));
    return sum;
}

static int count_rows(struct slu_parquet_file *f, struct slu_err *err)
{
    const uint64_t last = f->size_byte - 1;
    uint64_t row = 0, byte = 0;
    f->row.push_back(0);
    for (int g = 0; g < f->meta->num_row_groups(); g++) {
        const auto group = f->meta->RowGroup(g);
        int64_t n = group->num_rows();
        if (n < 0 || row + static_cast<uint64_t>(n) > INT64_MAX)
            return slu_fail(err, SLU_E_FORMAT,
                            "%s: row group %d: damaged footer (%lld rows)",
                            f->name.c_str(), g, (long long)n);
        f->row.push_back(row += static_cast<uint64_t>(n));
        /* No file has more bytes than it has, whatever its footer says. */
        const uint64_t here = std::min(stored_bytes(*group), last - byte);
        f->place.push_back(byte + here / 2);
        byte += here;
    }
    if (f->meta->num_rows() < 0 || static_cast<uint64_t>(f->meta->num_rows()) != row)
        return slu_fail(
            err, SLU_E_FORMAT, "%s: damaged footer (%lld rows, %llu in its row groups)",
            f->name.c_str(), (long long)f->meta->num_rows(), (unsigned long long)row);
    return SLU_OK;
}

parquet::ReaderProperties slu_arrow_properties(arrow::MemoryPool *pool)
{
    parquet::ReaderProperties p(pool);
    p.enable_buffered_stream(); /* otherwise a column chunk would be read at once */
    p.set_buffer_size(STREAM_BYTE);
    p.set_page_checksum_verification(true);
    return p;
}

int slu_arrow_source(std::shared_ptr<arrow::io::RandomAccessFile> *out,
                     uint64_t *size_byte, const char *path, const char *name,
                     uint64_t memory_byte, struct slu_err *err)
{
    struct stat st;
    bool in = strcmp(path, "-") == 0;
    int fd =
        in ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        int rc = slu_fail_errno(err, "%s", name);
        if (fd >= 0)
            close(fd);
        return rc;
    }
    *size_byte = static_cast<uint64_t>(st.st_size);
    int rc = S_ISREG(st.st_mode)
                 ? check_ends(name, *size_byte, fd, memory_byte, err)
                 : slu_fail(err, SLU_E_UNSUPPORTED,
                            "%s: a Parquet file is read from its end, which a pipe "
                            "does not allow; name the file",
                            name);
    if (rc) {
        close(fd);
        return rc;
    }
    auto source = arrow::io::ReadableFile::Open(fd);
    if (!source.ok()) {
        close(fd);
        return slu_arrow_fail(name, &source.status(), "", nullptr, err);
    }
    *out = *source;
    return SLU_OK;
}

int slu_arrow_open(struct slu_parquet_file **out, const char *path, const char *name,
                   const char *const field[SLU_FIELDS], unsigned optional,
                   uint64_t memory_byte, struct slu_err *err)
{
    *out = nullptr;
    slu_arrow_pool pool(memory_byte);
    int rc = slu_arrow_guard(name, &pool, err, [&]() -> int {
        auto f = std::make_unique<struct slu_parquet_file>();
        f->name = name;
        int status =
            slu_arrow_source(&f->source, &f->size_byte, path, name, memory_byte, err);
        if (status)
            return status;
        std::string where = f->name + ": footer";
        status = slu_arrow_guard(where.c_str(), &pool, err, [&]() -> int {
            auto reader = parquet::ParquetFileReader::Open(f->source,
                                                           slu_arrow_properties(&pool));
            f->meta = reader->metadata();
            return SLU_OK;
        });
        for (int k = 0; k < SLU_FIELDS && !status; k++) {
            f->column[k] = {-1, 0, false, k == SLU_FIELD_SCORE};
            if (field[k] == nullptr)
                continue;
            f->field[k] = field[k];
            status = find_column(f.get(), k, (optional >> k & 1) != 0, err);
            if (!status && f->column[k].index >= 0)
                status = check_column(f.get(), k, err);
        }
        if (!status)
            status = count_rows(f.get(), err);
        if (!status)
            *out = f.release();
        return status;
    });
    return rc;
}

void slu_arrow_close(struct slu_parquet_file *f)
{
    delete f;
}

uint64_t slu_arrow_size(const struct slu_parquet_file *f)
{
    return f->size_byte;
}

uint64_t slu_arrow_n_group(const struct slu_parquet_file *f)
{
    return f->row.size() - 1;
}

uint64_t slu_arrow_row(const struct slu_parquet_file *f, uint64_t g)
{
    return f->row[g];
}

uint64_t slu_arrow_place(const struct slu_parquet_file *f, uint64_t g)
{
    return f->place[g];
}

/* ---- reading ---- */

namespace
{

/* A value as bytes; nullptr: null. Borrowed until the next request to the column. */
struct value {
    const uint8_t *p;
    size_t len;
    double number; /* for a score, which has no bytes */
};

/* Reads a column of a row group, one value after the other. */
class column
{
  public:
    column(std::shared_ptr<parquet::ColumnReader> r, const struct chosen &c)
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
            *v = {nullptr, 0, 0};
            return true;
        }
        at += def.size() == 0;
        if (used >= n_value)
            throw parquet::ParquetException("fewer values than levels");
        *v = chosen_as.is_number ? take_number(used++) : take(used++);
        return true;
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
            return {bytes[i].len > 0 ? bytes[i].ptr : nothing, bytes[i].len, 0};
        }
        return {reinterpret_cast<const uint8_t *>(digits), put_digits(i), 0};
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
        const int64_t x = i32.size() > 0 ? i32[i] : i64[i];
        if (chosen_as.is_signed)
            return print("%lld", (long long)x);
        return print("%llu", i32.size() > 0
                                 ? (unsigned long long)static_cast<uint32_t>(x)
                                 : (unsigned long long)x);
    }

    template <typename T> size_t print(const char *how, T x)
    {
        return static_cast<size_t>(snprintf(digits, sizeof digits, how, x));
    }

    struct value take_number(size_t i)
    {
        static const uint8_t there[1] = {0};
        double x;
        if (f64.size() > 0)
            x = f64[i];
        else if (f32.size() > 0)
            x = static_cast<double>(f32[i]);
        else if (i32.size() > 0)
            x = chosen_as.is_signed
                    ? static_cast<double>(i32[i])
                    : static_cast<double>(static_cast<uint32_t>(i32[i]));
        else
            x = chosen_as.is_signed
                    ? static_cast<double>(i64[i])
                    : static_cast<double>(static_cast<uint64_t>(i64[i]));
        return {there, 0, x};
    }

    std::shared_ptr<parquet::ColumnReader> reader;
    const struct chosen chosen_as;
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
    explicit slu_parquet_rows(uint64_t memory_byte) : pool(memory_byte)
    {
    }

    slu_arrow_pool pool; /* must outlive its allocations */
    const struct slu_parquet_file *file = nullptr;
    std::string where;
    std::unique_ptr<parquet::ParquetFileReader> reader;
    std::shared_ptr<parquet::RowGroupReader> group;
    std::unique_ptr<column> col[SLU_FIELDS];
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
            for (int k = 0; k < SLU_FIELDS; k++)
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

/* Takes the values of one row, one after the other. */
static int take_row(struct slu_parquet_rows *r, struct slu_block *b,
                    struct slu_err *err)
{
    struct value v[SLU_FIELDS] = {};
    struct slu_row_fields fields = {};
    size_t n = 0;
    fields.null = r->file->missing;
    for (int k = 0; k < SLU_FIELDS; k++) {
        if (r->col[k] == nullptr)
            continue;
        if (!r->col[k]->next(&v[k]))
            return slu_fail(err, SLU_E_FORMAT,
                            "%s: damaged (column \"%s\" ends before row %llu)",
                            r->where.c_str(), r->file->field[k].c_str(),
                            (unsigned long long)r->row);
        if (v[k].p == nullptr)
            fields.null |= 1U << k;
        n += v[k].len;
    }
    if (r->row < r->skip_to)
        return SLU_OK;
    struct slu_record_ref rec = {};
    rec.document = r->row;
    rec.off = b->raw.len;
    rec.len = v[SLU_FIELD_TEXT].len;
    fields.id_len = v[SLU_FIELD_ID].len;
    fields.domain_len = v[SLU_FIELD_DOMAIN].len;
    fields.score = v[SLU_FIELD_SCORE].number;
    int rc = slu_buf_reserve(&b->raw, n, err);
    for (int k = 0; k < SLU_FIELDS && !rc; k++)
        if (v[k].len > 0)
            rc = slu_buf_append(&b->raw, v[k].p, v[k].len, err);
    return rc ? rc : slu_block_add_row(b, rec, fields, err);
}

static int check_end(struct slu_parquet_rows *r, struct slu_err *err)
{
    for (int k = 0; k < SLU_FIELDS; k++)
        if (r->col[k] != nullptr && !r->col[k]->is_done())
            return slu_fail(err, SLU_E_FORMAT,
                            "%s: damaged (column \"%s\" has more values than rows)",
                            r->where.c_str(), r->file->field[k].c_str());
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
