/* arrow_open.cc - opens Parquet files: the footer, the columns of the fields, and the
 * places of the row groups.
 */
#include "arrow_private.h"

#include <arrow/io/file.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>
#include <parquet/schema.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <vector>

extern "C" {
#include "formats/text/input_private.h"
#include "lib/base/le.h"
}

/* Bytes of a column chunk that are read at a time. */
#define STREAM_BYTE (128 << 10)
/* Memory for each byte of a footer, at most, after it was parsed. */
#define FOOTER_WEIGHT 16

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
        f->missing |= k < SLU_FIELDS ? 1U << k : 0;
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

bool slu_arrow_is_integer(const parquet::ColumnDescriptor *d, bool *is_signed)
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
        return slu_arrow_is_integer(d, is_signed);
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
    struct slu_arrow_column *c = &f->column[k];
    const parquet::ColumnDescriptor *d = f->meta->schema()->Column(c->index);
    c->max_def = d->max_definition_level();
    if (d->max_repetition_level() > 0)
        return slu_fail(err, SLU_E_FORMAT, "%s: column \"%s\" is a list, not one value",
                        f->name.c_str(), f->field[k].c_str());
    const char *what;
    if (is_fit(k, d, &c->is_signed, &what)) {
        c->is_number =
            k == SLU_FIELD_SCORE || (k >= SLU_FIELDS && is_number(d, &c->is_signed));
        return SLU_OK;
    }
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
        in ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
           : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not wait */
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
                   const struct slu_parquet_columns *columns, uint64_t memory_byte,
                   struct slu_err *err)
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
        const int n = SLU_FIELDS + static_cast<int>(columns->n_any);
        f->column.resize(static_cast<size_t>(n));
        f->field.resize(static_cast<size_t>(n));
        for (int k = 0; k < n && !status; k++) {
            const bool any = k >= SLU_FIELDS;
            const char *field = any ? columns->any[k - SLU_FIELDS] : columns->field[k];
            f->column[k] = {-1, 0, false, false};
            if (field == nullptr)
                continue;
            f->field[k] = field;
            if (k == SLU_FIELD_SPANS) {
                status = slu_arrow_find_spans(f.get(), field,
                                              (columns->optional >> k & 1) != 0, err);
                continue;
            }
            status =
                find_column(f.get(), k, any || (columns->optional >> k & 1) != 0, err);
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
