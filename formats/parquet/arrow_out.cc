/* arrow_out.cc - writes tables of lists as Parquet files, and reads them back, through
 * the column writers and readers of libparquet. */
#include "arrow_private.h"

#include <arrow/util/key_value_metadata.h>
#include <parquet/column_reader.h>
#include <parquet/column_writer.h>
#include <parquet/file_reader.h>
#include <parquet/file_writer.h>
#include <parquet/metadata.h>
#include <parquet/schema.h>

#include <vector>

extern "C" {
#include "lib/base/le.h"
}

/* Levels of a nullable list with nullable elements: the layout that Arrow gives its own
 * lists, so that readers need no conversion. */
enum { DEF_VALUE = 3, REP_GOES_ON = 1 };

/* Values that are requested of a column at a time. */
#define BATCH 4096

namespace
{

/* A slu_buf as an output file. */
class buf_stream final : public arrow::io::OutputStream
{
  public:
    using arrow::io::OutputStream::Write;

    explicit buf_stream(struct slu_buf *b) : out(b), begin(b->len)
    {
    }
    ~buf_stream() override = default;

    arrow::Status Close() override
    {
        is_closed = true;
        return arrow::Status::OK();
    }
    bool closed() const override
    {
        return is_closed;
    }
    arrow::Result<int64_t> Tell() const override
    {
        return static_cast<int64_t>(out->len - begin);
    }
    arrow::Status Write(const void *p, int64_t n) override
    {
        if (slu_buf_append(out, p, static_cast<size_t>(n), nullptr) != SLU_OK)
            return arrow::Status::OutOfMemory("buffer");
        return arrow::Status::OK();
    }

  private:
    struct slu_buf *out;
    size_t begin;
    bool is_closed = false;
};

using parquet::LogicalType;
using parquet::Repetition;
using parquet::schema::GroupNode;
using parquet::schema::NodePtr;
using parquet::schema::PrimitiveNode;

NodePtr list_of(const char *name, NodePtr element)
{
    NodePtr list = GroupNode::Make("list", Repetition::REPEATED, {element});
    return GroupNode::Make(name, Repetition::OPTIONAL, {list}, LogicalType::List());
}

NodePtr value_of(const char *name, enum slu_meta_type type)
{
    std::shared_ptr<const LogicalType> is = LogicalType::None();
    parquet::Type::type stored = parquet::Type::BYTE_ARRAY;
    switch (type) {
    case SLU_META_IS_U8:
    case SLU_META_IS_U32:
        is = LogicalType::Int(type == SLU_META_IS_U8 ? 8 : 32, false);
        stored = parquet::Type::INT32;
        break;
    case SLU_META_IS_U64:
        is = LogicalType::Int(64, false);
        stored = parquet::Type::INT64;
        break;
    case SLU_META_IS_I64:
        stored = parquet::Type::INT64;
        break;
    case SLU_META_IS_F32:
        stored = parquet::Type::FLOAT;
        break;
    case SLU_META_IS_F64:
        stored = parquet::Type::DOUBLE;
        break;
    default:
        is = LogicalType::String();
    }
    return PrimitiveNode::Make(name, Repetition::OPTIONAL, is, stored);
}

std::shared_ptr<GroupNode> schema_of(const struct slu_parquet_table *t)
{
    std::vector<NodePtr> field;
    for (unsigned i = 0; i < t->n_column; i++) {
        NodePtr element = PrimitiveNode::Make(
            "element", Repetition::OPTIONAL,
            t->int8 >> i & 1 ? LogicalType::Int(8, true) : LogicalType::None(),
            parquet::Type::INT32);
        field.push_back(list_of(t->column[i], element));
    }
    for (unsigned i = 0; t->meta != nullptr && i < t->meta->n; i++) {
        const struct slu_meta_field *f = &t->meta->field[i];
        field.push_back(t->single ? value_of(f->name, f->type)
                                  : list_of(f->name, value_of("element", f->type)));
    }
    return std::static_pointer_cast<GroupNode>(
        GroupNode::Make("schema", Repetition::REQUIRED, field));
}

std::shared_ptr<parquet::WriterProperties>
writer_properties(const struct slu_parquet_table *t, int level)
{
    parquet::WriterProperties::Builder b;
    b.enable_page_checksum();
    b.disable_statistics(); /* statistics of ids are useless */
    b.disable_write_page_index();
    if (level > 0) {
        b.compression(parquet::Compression::ZSTD);
        b.compression_level(level);
    }
    for (unsigned i = 0; i < t->n_column; i++) {
        if (!(t->delta >> i & 1))
            continue;
        std::string path = std::string(t->column[i]) + ".list.element";
        b.disable_dictionary(path);
        b.encoding(path, parquet::Encoding::DELTA_BINARY_PACKED);
    }
    return b.build();
}

/* Writes rows from … to of a column of metadata. */
template <typename W, typename V, typename F>
void write_values(const struct slu_parquet_table *t, uint64_t key, uint64_t from,
                  uint64_t to, parquet::ColumnWriter *column, F convert)
{
    const int16_t has = t->single ? 1 : DEF_VALUE;
    auto w = static_cast<W *>(column);
    std::vector<struct slu_meta_value> entry(t->most_values);
    std::vector<V> value(t->most_values);
    std::vector<int16_t> def(t->most_values), rep(t->most_values, REP_GOES_ON);
    if (t->most_values > 0)
        rep[0] = 0;
    for (uint64_t r = from; r < to; r++) {
        const uint64_t n = t->metadata(t->ctx, key, r, entry.data());
        size_t n_value = 0;
        for (uint64_t i = 0; i < n; i++) {
            const bool is = entry[i].p != nullptr;
            def[i] = static_cast<int16_t>(is ? has : has - 1);
            if (is)
                value[n_value++] = convert(entry[i]);
        }
        w->WriteBatch(static_cast<int64_t>(n), def.data(),
                      t->single ? nullptr : rep.data(), value.data());
    }
    w->Close();
}

template <typename V> V number_of(const struct slu_meta_value &v)
{
    const uint64_t bits = sizeof(V) == 4 ? slu_le32(v.p) : slu_le64(v.p);
    const uint32_t half = static_cast<uint32_t>(bits);
    V x;
    memcpy(&x, sizeof x == 4 ? static_cast<const void *>(&half) : &bits, sizeof x);
    return x;
}

void write_field(const struct slu_parquet_table *t, const struct slu_meta_field *f,
                 uint64_t from, uint64_t to, parquet::ColumnWriter *w)
{
    switch (f->type) {
    case SLU_META_IS_U8:
        return write_values<parquet::Int32Writer, int32_t>(
            t, f->key, from, to, w,
            [](const struct slu_meta_value &v) { return int32_t{v.p[0]}; });
    case SLU_META_IS_U32:
        return write_values<parquet::Int32Writer, int32_t>(t, f->key, from, to, w,
                                                           number_of<int32_t>);
    case SLU_META_IS_U64:
    case SLU_META_IS_I64:
        return write_values<parquet::Int64Writer, int64_t>(t, f->key, from, to, w,
                                                           number_of<int64_t>);
    case SLU_META_IS_F32:
        return write_values<parquet::FloatWriter, float>(t, f->key, from, to, w,
                                                         number_of<float>);
    case SLU_META_IS_F64:
        return write_values<parquet::DoubleWriter, double>(t, f->key, from, to, w,
                                                           number_of<double>);
    default:
        return write_values<parquet::ByteArrayWriter, parquet::ByteArray>(
            t, f->key, from, to, w, [](const struct slu_meta_value &v) {
                return parquet::ByteArray(v.n, v.p);
            });
    }
}

/* Writes rows from … to of a column. */
void write_column(const struct slu_parquet_table *t, unsigned i, uint64_t from,
                  uint64_t to, parquet::Int32Writer *w, std::vector<int32_t> *value,
                  const std::vector<int16_t> &def, const std::vector<int16_t> &rep)
{
    for (uint64_t r = from; r < to; r++) {
        uint64_t n = t->list(t->ctx, i, r, value->data());
        w->WriteBatch(static_cast<int64_t>(n), def.data(), rep.data(), value->data());
    }
    w->Close();
}

} // namespace

int slu_arrow_write(const struct slu_parquet_table *t, int level, struct slu_buf *out,
                    struct slu_err *err)
{
    return slu_arrow_guard("Parquet", nullptr, err, [&]() -> int {
        std::vector<int32_t> value(t->most);
        std::vector<int16_t> def(t->most, DEF_VALUE), rep(t->most, REP_GOES_ON);
        if (t->most > 0)
            rep[0] = 0;
        auto sink = std::make_shared<buf_stream>(out);
        auto metadata = std::make_shared<arrow::KeyValueMetadata>();
        if (t->key != nullptr)
            metadata->Append(t->key, t->value);
        auto file = parquet::ParquetFileWriter::Open(
            sink, schema_of(t), writer_properties(t, level), metadata);
        for (uint64_t r = 0; r < t->n_row; r += t->group_rows) {
            uint64_t end = t->n_row - r < t->group_rows ? t->n_row : r + t->group_rows;
            parquet::RowGroupWriter *group = file->AppendRowGroup();
            for (unsigned i = 0; i < t->n_column; i++)
                write_column(t, i, r, end,
                             static_cast<parquet::Int32Writer *>(group->NextColumn()),
                             &value, def, rep);
            for (unsigned i = 0; t->meta != nullptr && i < t->meta->n; i++)
                write_field(t, &t->meta->field[i], r, end, group->NextColumn());
            group->Close();
        }
        file->Close();
        return SLU_OK;
    });
}

/* ---- reading back ---- */

namespace
{

/* Reads the lists of a column of a row group. */
class lists
{
  public:
    explicit lists(std::shared_ptr<parquet::ColumnReader> r)
        : reader(std::static_pointer_cast<parquet::Int32Reader>(r)), def(BATCH),
          rep(BATCH), value(BATCH)
    {
    }

    int next(uint64_t most, struct slu_buf *out, struct slu_err *err)
    {
        slu_buf_clear(out);
        if (at == n && !fill())
            throw parquet::ParquetException("a column ends before its rows do");
        if (rep[at] != 0)
            throw parquet::ParquetException("a row group begins within a row");
        for (bool first = true; (at < n || fill()) && (first || rep[at] != 0);
             first = false) {
            size_t end = at + 1;
            while (end < n && rep[end] != 0)
                end++;
            if (out->len / 4 + (end - at) > most)
                throw parquet::ParquetException("a list is longer than a sequence");
            int rc = slu_buf_append(out, &value[at], 4 * (end - at), err);
            if (rc)
                return rc;
            at = end;
        }
        return SLU_OK;
    }

    bool is_done()
    {
        return at == n && !reader->HasNext();
    }

  private:
    bool fill()
    {
        int64_t got = 0, values = 0;
        at = n = 0;
        for (int i = 0; got == 0 && i < 1000 && reader->HasNext(); i++)
            got =
                reader->ReadBatch(BATCH, def.data(), rep.data(), value.data(), &values);
        if (got != values)
            throw parquet::ParquetException("a null where there must be none");
        n = static_cast<size_t>(got);
        return n > 0;
    }

    std::shared_ptr<parquet::Int32Reader> reader;
    std::vector<int16_t> def, rep;
    std::vector<int32_t> value;
    size_t at = 0, n = 0;
};

} // namespace

struct slu_parquet_lists {
    explicit slu_parquet_lists(uint64_t memory_byte) : pool(memory_byte)
    {
    }

    slu_arrow_pool pool; /* must outlive its allocations */
    std::shared_ptr<arrow::io::RandomAccessFile> source;
    std::unique_ptr<parquet::ParquetFileReader> reader;
    std::shared_ptr<parquet::RowGroupReader> group;
    std::vector<int> index; /* of the columns */
    std::vector<std::unique_ptr<lists>> col;
    int n_group = 0, next_group = 0;
    uint64_t left = 0; /* rows left in the row group */
};

/* The column of the list of this name, which may have dots; -1: there is none. */
static int find_list(const parquet::SchemaDescriptor *schema, const char *name)
{
    for (int k = 0; k < schema->num_columns(); k++)
        if (schema->Column(k)->path()->ToDotVector() ==
            std::vector<std::string>{name, "list", "element"})
            return k;
    return -1;
}

static int find_lists(struct slu_parquet_lists *l, const char *const *column,
                      unsigned n_column, uint64_t n_row, struct slu_err *err)
{
    const parquet::FileMetaData *meta = l->reader->metadata().get();
    for (unsigned i = 0; i < n_column; i++) {
        int k = find_list(meta->schema(), column[i]);
        const parquet::ColumnDescriptor *d =
            k < 0 ? nullptr : meta->schema()->Column(k);
        if (d == nullptr || d->physical_type() != parquet::Type::INT32 ||
            d->max_repetition_level() != REP_GOES_ON ||
            d->max_definition_level() != DEF_VALUE)
            return slu_fail(err, SLU_E_FORMAT, "no column \"%s\" of lists of int32",
                            column[i]);
        l->index.push_back(k);
    }
    if (meta->num_rows() < 0 || static_cast<uint64_t>(meta->num_rows()) != n_row)
        return slu_fail(err, SLU_E_FORMAT, "has %lld rows, its manifest says %llu",
                        (long long)meta->num_rows(), (unsigned long long)n_row);
    l->n_group = meta->num_row_groups();
    return SLU_OK;
}

int slu_arrow_lists_open(struct slu_parquet_lists **out, const char *path,
                         const char *const *column, unsigned n_column, uint64_t n_row,
                         uint64_t memory_byte, struct slu_err *err)
{
    *out = nullptr;
    std::unique_ptr<struct slu_parquet_lists> l(
        new (std::nothrow) struct slu_parquet_lists(memory_byte));
    if (l == nullptr)
        return slu_fail_nomem(err, sizeof *l);
    int rc = slu_arrow_guard("footer", &l->pool, err, [&]() -> int {
        uint64_t size;
        int status = slu_arrow_source(&l->source, &size, path, path, memory_byte, err);
        if (status)
            return status;
        l->reader =
            parquet::ParquetFileReader::Open(l->source, slu_arrow_properties(&l->pool));
        return find_lists(l.get(), column, n_column, n_row, err);
    });
    if (!rc)
        *out = l.release();
    return rc;
}

static void open_group(struct slu_parquet_lists *l)
{
    for (auto &c : l->col)
        if (!c->is_done())
            throw parquet::ParquetException("a column has more values than rows");
    l->col.clear();
    l->group = l->reader->RowGroup(l->next_group++);
    int64_t n = l->group->metadata()->num_rows();
    if (n < 0)
        throw parquet::ParquetException("a row group of less than no rows");
    l->left = static_cast<uint64_t>(n);
    for (int i : l->index)
        l->col.push_back(std::make_unique<lists>(l->group->Column(i)));
}

int slu_arrow_lists_next(struct slu_parquet_lists *l, uint64_t most,
                         struct slu_buf *out, struct slu_err *err)
{
    std::string where;
    return slu_arrow_guard("row groups", &l->pool, err, [&]() -> int {
        while (l->left == 0) {
            if (l->next_group == l->n_group) {
                for (auto &c : l->col)
                    if (!c->is_done())
                        return slu_fail(err, SLU_E_FORMAT,
                                        "a column has more values than rows");
                return SLU_EOF;
            }
            open_group(l);
        }
        where = "row group " + std::to_string(l->next_group - 1);
        return slu_arrow_guard(where.c_str(), &l->pool, err, [&]() -> int {
            l->left--;
            for (size_t i = 0; i < l->col.size(); i++) {
                int rc = l->col[i]->next(most, &out[i], err);
                if (rc)
                    return rc;
            }
            return SLU_OK;
        });
    });
}

void slu_arrow_lists_close(struct slu_parquet_lists *l)
{
    delete l;
}
