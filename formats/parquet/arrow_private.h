/* arrow_private.h - shared by arrow_*.cc: a memory pool with a limit, and the
 * conversion of Arrow's exceptions and statuses to struct slu_err. No exception leaves
 * arrow_*.cc. */
#ifndef SLU_ARROW_PRIVATE_H
#define SLU_ARROW_PRIVATE_H

#include <arrow/io/interfaces.h>
#include <arrow/memory_pool.h>
#include <arrow/status.h>
#include <arrow/util/io_util.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

extern "C" {
#include "formats/parquet/parquet.h"
}

/* Allocates with malloc, aligned to 64 bytes, and at most `limit` bytes at a time.
 * Arrow allocates by sizes in files here, so sizes that are too large are refused here.
 * Any thread. */
class slu_arrow_pool final : public arrow::MemoryPool
{
  public:
    using arrow::MemoryPool::Allocate;
    using arrow::MemoryPool::Free;
    using arrow::MemoryPool::Reallocate;

    explicit slu_arrow_pool(uint64_t limit_byte) : limit(limit_byte)
    {
    }

    arrow::Status Allocate(int64_t size, int64_t alignment, uint8_t **out) override
    {
        if (!take(size))
            return arrow::Status::OutOfMemory("limit");
        void *p = nullptr;
        size_t align = alignment < 64 ? 64 : static_cast<size_t>(alignment);
        if (posix_memalign(&p, align, size > 0 ? static_cast<size_t>(size) : 1) != 0) {
            now -= static_cast<uint64_t>(size);
            no_memory = true;
            return arrow::Status::OutOfMemory("malloc");
        }
        *out = static_cast<uint8_t *>(p);
        return arrow::Status::OK();
    }

    arrow::Status Reallocate(int64_t old_size, int64_t new_size, int64_t alignment,
                             uint8_t **ptr) override
    {
        uint8_t *p = nullptr;
        arrow::Status st = Allocate(new_size, alignment, &p);
        if (!st.ok())
            return st;
        int64_t n = old_size < new_size ? old_size : new_size;
        if (n > 0)
            memcpy(p, *ptr, static_cast<size_t>(n));
        Free(*ptr, old_size, alignment);
        *ptr = p;
        return st;
    }

    void Free(uint8_t *p, int64_t size, int64_t) override
    {
        free(p);
        now -= static_cast<uint64_t>(size);
    }

    int64_t bytes_allocated() const override
    {
        return static_cast<int64_t>(now.load());
    }
    int64_t total_bytes_allocated() const override
    {
        return bytes_allocated();
    }
    int64_t num_allocations() const override
    {
        return 0;
    }
    int64_t max_memory() const override
    {
        return -1;
    }
    std::string backend_name() const override
    {
        return "sluice";
    }

    /* If this pool has refused memory, fills err and returns its code; else SLU_OK. */
    int refusal(const char *where, struct slu_err *err) const
    {
        if (no_memory)
            return slu_fail_nomem(err, asked);
        if (asked == 0)
            return SLU_OK;
        return slu_advise(err, SLU_ADVISE_MEMORY,
                          slu_fail(err, SLU_E_LIMIT,
                                   "%s: needs %llu more bytes at once, beyond the "
                                   "limit of %llu",
                                   where, (unsigned long long)asked,
                                   (unsigned long long)limit));
    }

  private:
    bool take(int64_t size)
    {
        uint64_t n = static_cast<uint64_t>(size);
        if (size >= 0 && now.fetch_add(n) + n <= limit)
            return true;
        if (size >= 0)
            now -= n;
        asked = n > 0 ? n : 1;
        return false;
    }

    const uint64_t limit;
    std::atomic<uint64_t> now{0};
    uint64_t asked = 0; /* the refused size; only one thread uses a reader at a time */
    bool no_memory = false;
};

/* The column that has a field. */
struct slu_arrow_column {
    int index;       /* of the leaf column; -1: not wanted, or missing */
    int16_t max_def; /* definition level of a value that is not null */
    bool is_signed;  /* for integers */
    bool is_number;  /* for the score, and numbers of any type */
};

/* A column of the spans' numbers. */
struct slu_arrow_spans_column {
    int index; /* of the leaf column */
    bool is_signed;
};

struct slu_parquet_file {
    std::string name;
    uint64_t size_byte = 0;
    std::shared_ptr<arrow::io::RandomAccessFile> source;
    std::shared_ptr<parquet::FileMetaData> meta;
    /* Those of SLU_FIELDS, then those of any type. */
    std::vector<struct slu_arrow_column> column;
    std::vector<std::string> field;
    /* That of spans: one of lists of two, or begin and end. Empty: not wanted, or missing.
     */
    std::vector<struct slu_arrow_spans_column> spans;
    unsigned missing = 0;      /* bit 1 << f: column f is wanted, and does not exist */
    std::vector<uint64_t> row; /* first row of each row group; and the end */
    std::vector<uint64_t> place; /* of each row group (parquet.h) */
};

/* The functions of struct slu_parquet. */
int slu_arrow_open(struct slu_parquet_file **f, const char *path, const char *name,
                   const struct slu_parquet_columns *columns, uint64_t memory_byte,
                   struct slu_err *err);
void slu_arrow_close(struct slu_parquet_file *f);
uint64_t slu_arrow_size(const struct slu_parquet_file *f);
uint64_t slu_arrow_n_group(const struct slu_parquet_file *f);
uint64_t slu_arrow_row(const struct slu_parquet_file *f, uint64_t g);
uint64_t slu_arrow_place(const struct slu_parquet_file *f, uint64_t g);
int slu_arrow_rows_new(struct slu_parquet_rows **r, const struct slu_parquet_file *f,
                       uint64_t g, uint64_t skip, uint64_t memory_byte,
                       struct slu_err *err);
int slu_arrow_rows_read(struct slu_parquet_rows *r, struct slu_block *b,
                        size_t want_byte, struct slu_err *err);
void slu_arrow_rows_free(struct slu_parquet_rows *r);
int slu_arrow_write(const struct slu_parquet_table *t, int level, struct slu_buf *out,
                    struct slu_err *err);
int slu_arrow_lists_open(struct slu_parquet_lists **l, const char *path,
                         const char *const *column, unsigned n_column, uint64_t n_row,
                         uint64_t memory_byte, struct slu_err *err);
int slu_arrow_lists_next(struct slu_parquet_lists *l, uint64_t most,
                         struct slu_buf *out, struct slu_err *err);
void slu_arrow_lists_close(struct slu_parquet_lists *l);

/* The spans of a row: a list; null; not spans; more than are allowed. */
enum slu_arrow_spans_row {
    SLU_ARROW_SPANS,
    SLU_ARROW_NO_SPANS,
    SLU_ARROW_BAD_SPANS,
    SLU_ARROW_MANY_SPANS,
};
/* Finds the columns of the spans. */
int slu_arrow_find_spans(struct slu_parquet_file *f, const char *want, bool is_optional,
                         struct slu_err *err);
/* Reads them in a row group. */
struct slu_arrow_spans;
std::shared_ptr<struct slu_arrow_spans>
slu_arrow_spans_new(const struct slu_parquet_file *f, parquet::RowGroupReader *group);
/* Replaces out by those of the next row, pairs of u64. */
enum slu_arrow_spans_row slu_arrow_spans_take(struct slu_arrow_spans *s,
                                              uint64_t most_byte, struct slu_buf *out);
/* Whether there are no more. */
bool slu_arrow_spans_done(struct slu_arrow_spans *s);
bool slu_arrow_is_integer(const parquet::ColumnDescriptor *d, bool *is_signed);

/* Opens a file for libparquet, after a check of its beginning and end. */
int slu_arrow_source(std::shared_ptr<arrow::io::RandomAccessFile> *source,
                     uint64_t *size_byte, const char *path, const char *name,
                     uint64_t memory_byte, struct slu_err *err);
/* Files are read page by page, and checksums are verified. */
parquet::ReaderProperties slu_arrow_properties(arrow::MemoryPool *pool);

/* Reports "WHERE: damaged (WHY)", or the error of the operating system or the pool. */
inline int slu_arrow_fail(const char *where, const arrow::Status *st, const char *why,
                          const slu_arrow_pool *pool, struct slu_err *err)
{
    int rc = pool == nullptr ? SLU_OK : pool->refusal(where, err);
    if (rc)
        return rc;
    if (st != nullptr && st->IsIOError() && arrow::internal::ErrnoFromStatus(*st) != 0)
        return slu_fail(err, SLU_E_IO, "%s: %s", where, st->message().c_str());
    if (st != nullptr && st->IsNotImplemented())
        return slu_fail(err, SLU_E_UNSUPPORTED, "%s: %s", where, st->message().c_str());
    return slu_fail(err, SLU_E_FORMAT, "%s: damaged (%.300s)", where, why);
}

/* Runs f, which returns an int; converts exceptions to err. */
template <typename F>
int slu_arrow_guard(const char *where, const slu_arrow_pool *pool, struct slu_err *err,
                    F f) noexcept
{
    try {
        return f();
    } catch (const parquet::ParquetStatusException &e) {
        return slu_arrow_fail(where, &e.status(), e.status().message().c_str(), pool,
                              err);
    } catch (const std::bad_alloc &) {
        int rc = pool == nullptr ? SLU_OK : pool->refusal(where, err);
        return rc ? rc : slu_fail_nomem(err, 0);
    } catch (const std::exception &e) {
        return slu_arrow_fail(where, nullptr, e.what(), pool, err);
    } catch (...) {
        return slu_arrow_fail(where, nullptr, "no reason given", pool, err);
    }
}

#endif
