/* arrow_spans.cc - reads the spans of a text: lists of [begin, end], or of structs of
 * begin and end.
 */
#include "arrow_private.h"

#include <parquet/column_reader.h>
#include <parquet/file_reader.h>
#include <parquet/schema.h>

#include <vector>

/* Levels that are requested of a column at a time. */
#define BATCH 512

namespace
{

/* A column of integers in lists, one row after the other. */
class leaf
{
  public:
    leaf(std::shared_ptr<parquet::ColumnReader> r, bool is_signed_)
        : reader(std::move(r)), is_signed(is_signed_), def(BATCH), rep(BATCH)
    {
        const parquet::ColumnDescriptor *d = reader->descr();
        depth = d->max_repetition_level();
        max_def = d->max_definition_level();
        int16_t level = 0;
        for (const parquet::schema::Node *node : path_of(d))
            if (!node->is_required() && (level++, node->is_repeated()) && list_def == 0)
                list_def = level;
        if (reader->type() == parquet::Type::INT32)
            i32.resize(BATCH);
        else
            i64.resize(BATCH);
    }

    /* Replaces out by the row's values; with lists in the list, each must have two. */
    enum slu_arrow_spans_row take(uint64_t most_byte, struct slu_buf *out)
    {
        enum slu_arrow_spans_row is = SLU_ARROW_SPANS;
        size_t inner = 2; /* values of the last list in the list */
        slu_buf_clear(out);
        if (!has() || rep[at] != 0)
            throw parquet::ParquetException("a column ends before its rows do");
        do {
            if (def[at] < list_def - 1) {
                is = SLU_ARROW_NO_SPANS;
            } else if (def[at] >= list_def) { /* else the list is empty */
                const bool goes_on = depth == 2 && rep[at] == 2;
                if (def[at] < max_def || (depth == 2 && !goes_on && inner != 2))
                    is = SLU_ARROW_BAD_SPANS;
                inner = goes_on ? inner + 1 : 1;
                if (def[at] == max_def && !put(out))
                    is = SLU_ARROW_BAD_SPANS;
            }
            if (out->len > most_byte)
                return SLU_ARROW_MANY_SPANS;
            at++;
        } while (has() && rep[at] != 0);
        return depth == 2 && inner != 2 && out->len > 0 ? SLU_ARROW_BAD_SPANS : is;
    }

    bool is_done()
    {
        return !has();
    }

    int depth; /* of lists */

  private:
    static std::vector<const parquet::schema::Node *>
    path_of(const parquet::ColumnDescriptor *d)
    {
        std::vector<const parquet::schema::Node *> path;
        for (const parquet::schema::Node *n = d->schema_node().get();
             n->parent() != nullptr; n = n->parent())
            path.insert(path.begin(), n);
        return path;
    }

    /* Whether there is a level at `at`. */
    bool has()
    {
        int64_t values = 0, levels = 0;
        if (at < n)
            return true;
        at = used = 0;
        for (int i = 0; levels == 0 && i < 1000 && reader->HasNext(); i++)
            levels = i32.size() > 0 ? read<parquet::Int32Reader>(i32.data(), &values)
                                    : read<parquet::Int64Reader>(i64.data(), &values);
        if (levels < 0 || levels > BATCH || values < 0 || values > levels)
            throw parquet::ParquetException("more values than were asked for");
        n = static_cast<size_t>(levels);
        n_value = static_cast<size_t>(values);
        return n > 0;
    }

    template <typename R, typename V> int64_t read(V *to, int64_t *values)
    {
        return static_cast<R *>(reader.get())
            ->ReadBatch(BATCH, def.data(), rep.data(), to, values);
    }

    /* Appends the next value; false: it is negative. */
    bool put(struct slu_buf *out)
    {
        if (used >= n_value)
            throw parquet::ParquetException("fewer values than levels");
        int64_t v = i32.size() > 0 ? i32[used] : i64[used];
        if (i32.size() > 0 && !is_signed)
            v = static_cast<uint32_t>(v);
        used++;
        if (slu_buf_append(out, &v, sizeof v, nullptr))
            throw std::bad_alloc();
        return v >= 0 || (!is_signed && i64.size() > 0);
    }

    std::shared_ptr<parquet::ColumnReader> reader;
    bool is_signed;
    int16_t max_def, list_def = 0; /* of a value; of an item of the outer list */
    std::vector<int16_t> def, rep;
    std::vector<int32_t> i32;
    std::vector<int64_t> i64;
    size_t at = 0, n = 0, used = 0, n_value = 0; /* in levels; in values */
};

} // namespace

struct slu_arrow_spans {
    std::vector<leaf> column;
    struct slu_buf value[2] = {SLU_BUF_INIT, SLU_BUF_INIT};

    ~slu_arrow_spans()
    {
        slu_buf_release(&value[0]);
        slu_buf_release(&value[1]);
    }
};

int slu_arrow_find_spans(struct slu_parquet_file *f, const char *want, bool is_optional,
                         struct slu_err *err)
{
    const parquet::SchemaDescriptor *schema = f->meta->schema();
    const std::string prefix = std::string(want) + ".";
    bool good = true, flat = false;
    for (int i = 0; i < schema->num_columns(); i++) {
        const parquet::ColumnDescriptor *d = schema->Column(i);
        const std::string path = d->path()->ToDotString();
        flat |= path == want;
        if (path.compare(0, prefix.size(), prefix) != 0)
            continue;
        struct slu_arrow_spans_column c = {i, false};
        good = good && slu_arrow_is_integer(d, &c.is_signed);
        f->spans.push_back(c);
    }
    if (f->spans.empty() && !flat && is_optional) {
        f->missing |= 1U << SLU_FIELD_SPANS;
        return SLU_OK;
    }
    if (f->spans.empty() && !flat)
        return slu_advise(
            err, SLU_ADVISE_COLUMNS,
            slu_fail(err, SLU_E_FORMAT, "%s: no column \"%s\"", f->name.c_str(), want));
    const size_t n = f->spans.size();
    if (n == 1 && good)
        good = schema->Column(f->spans[0].index)->max_repetition_level() == 2;
    for (size_t i = 0; n == 2 && i < n && good; i++) {
        const parquet::ColumnDescriptor *d = schema->Column(f->spans[i].index);
        good = d->name() == (i ? "end" : "begin") && d->max_repetition_level() == 1;
        if (!good && i == 0 && d->name() == "end") { /* in the other order */
            std::swap(f->spans[0], f->spans[1]);
            good = schema->Column(f->spans[0].index)->name() == "begin" &&
                   d->max_repetition_level() == 1;
        }
    }
    if (good && (n == 1 || n == 2))
        return SLU_OK;
    return slu_fail(err, SLU_E_FORMAT,
                    "%s: column \"%s\" is neither lists of [begin, end] nor of structs "
                    "of begin and end, of integers",
                    f->name.c_str(), want);
}

std::shared_ptr<struct slu_arrow_spans>
slu_arrow_spans_new(const struct slu_parquet_file *f, parquet::RowGroupReader *group)
{
    auto s = std::make_shared<struct slu_arrow_spans>();
    for (const struct slu_arrow_spans_column &c : f->spans)
        s->column.emplace_back(group->Column(c.index), c.is_signed);
    return s;
}

enum slu_arrow_spans_row slu_arrow_spans_take(struct slu_arrow_spans *s,
                                              uint64_t most_byte, struct slu_buf *out)
{
    const size_t n_column = s->column.size();
    enum slu_arrow_spans_row is = SLU_ARROW_SPANS;
    for (size_t i = 0; i < n_column; i++) {
        enum slu_arrow_spans_row one = s->column[i].take(most_byte, &s->value[i]);
        is = one > is ? one : is;
    }
    if (n_column == 2 && is < SLU_ARROW_BAD_SPANS && s->value[0].len != s->value[1].len)
        throw parquet::ParquetException("a span has no begin or no end");
    slu_buf_clear(out);
    if (is != SLU_ARROW_SPANS)
        return is;
    const size_t n = (s->value[0].len + (n_column == 2 ? s->value[1].len : 0)) / 16;
    for (size_t i = 0; i < n; i++) {
        uint64_t pair[2];
        for (size_t k = 0; k < 2; k++)
            memcpy(&pair[k],
                   s->value[n_column == 2 ? k : 0].data +
                       8 * (n_column == 2 ? i : 2 * i + k),
                   8);
        if (pair[0] > pair[1])
            return SLU_ARROW_BAD_SPANS;
        if (slu_buf_append(out, pair, sizeof pair, nullptr))
            throw std::bad_alloc();
    }
    return SLU_ARROW_SPANS;
}

bool slu_arrow_spans_done(struct slu_arrow_spans *s)
{
    for (leaf &c : s->column)
        if (!c.is_done())
            return false;
    return true;
}
