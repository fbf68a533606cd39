/* partition.c - choose --partition: a stream for each domain, or for each value of the
 * property of --per, in one folder.
 *
 * The sequences are sorted by the value's hash, beyond memory in --tmpdir, and then
 * written value after value, so that one file is open at a time. domains.json, or
 * values.json, which gets its name last, lists the files. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/map.h"
#include "lib/flow/sorter.h"
#include "lib/stream/seqrec.h"
#include "tools/choose/choose.h"

enum { BATCH_TOK = 1 << 18, NAME_BYTE = 200 };
/* Most values that are no domains, and memory to count them. */
enum { VALUES = 65536, VALUES_BYTE = 4 << 20 };

struct choose_partition {
    struct cli_ctx *ctx;
    const char *dir;
    struct slu_header header; /* of each stream */
    struct slu_names *names;
    struct slu_property per;
    struct slu_property_memo memo;
    struct slu_map
        values; /* hashes; without domains, whose names are in memory anyhow */
    struct slu_sorter *sorter;
    struct slu_seqrec rec;
    uint64_t ordinal; /* of the next sequence */
    /* While files are written: */
    struct slu_batch b;
    struct slu_writer *writer; /* NULL: no file is open */
    struct slu_buf value, file,
        line; /* of the open file: JSON, its name; of the list */
    struct slu_out *list;
    uint64_t n_file;
};

static bool by_domain(const struct choose_partition *p)
{
    return p->per.at == SLU_PROPERTY_DOMAIN;
}

/* SLU_E_USAGE if the folder has files. */
static int is_empty(const char *path, struct slu_err *err)
{
    DIR *d = opendir(path);
    const struct dirent *e;
    bool any = false;

    if (!d)
        return errno == ENOENT ? SLU_OK : slu_fail_errno(err, "%s", path);
    while (!any && (e = readdir(d)))
        any = strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    closedir(d);
    return any ? slu_fail(
                     err, SLU_E_USAGE,
                     "--partition %s: is not empty; name another folder, or remove "
                     "what is in it",
                     path)
               : SLU_OK;
}

int choose_partition_open(struct choose_partition **out, struct cli_ctx *ctx,
                          const struct slu_header *h, struct slu_names *names,
                          uint64_t budget_byte, struct slu_err *err)
{
    struct slu_sorter_cfg sorting = {.budget_byte = budget_byte,
                                     .tmpdir = ctx->common.tmpdir,
                                     .n_threads = (unsigned)ctx->common.threads};
    const struct choose_opts *o = ctx->opts;
    const char *dir = o->partition;
    struct choose_partition *p = calloc(1, sizeof *p);

    *out = p;
    if (!p)
        return slu_fail_nomem(err, sizeof *p);
    p->ctx = ctx;
    p->dir = dir;
    p->names = names;
    slu_header_init(&p->header);
    slu_seqrec_init(&p->rec);
    slu_batch_init(&p->b, h->tok_bytes);
    p->b.masks = ctx->account.masks = h->masks;
    int rc = slu_property_find(&p->per, o->per ? o->per : "domain", h, err);
    if (rc)
        return slu_err_at(err, "--per");
    sorting.budget_byte -= by_domain(p) ? 0 : VALUES_BYTE;
    rc = is_empty(dir, err);
    if (!rc)
        rc = cli_stream_header(ctx, h, &p->header, err);
    if (!rc)
        rc = slu_mkdirs(dir, err);
    return rc ? rc : slu_sorter_new(&p->sorter, &sorting, err);
}

/* Counts the value, unless it is known. */
static int count_value(struct choose_partition *p, uint64_t hash, struct slu_err *err)
{
    uint64_t is;

    if (by_domain(p) || slu_map_get(&p->values, hash, &is))
        return SLU_OK;
    if (p->values.n == VALUES)
        return slu_fail(
            err, SLU_E_LIMIT,
            "--partition: '%s' has more than %d values, each of which would "
            "get a file; choose some of them by --where, or divide by a "
            "field that has fewer",
            p->per.name, VALUES);
    return slu_map_set(&p->values, hash, 1, err);
}

int choose_partition_put(struct choose_partition *p, const struct slu_batch *b,
                         struct slu_err *err)
{
    int rc = SLU_OK;

    for (size_t i = 0; i < b->n_seq && !rc; i++, p->ordinal++) {
        struct slu_u128 key = {p->ordinal, 0};
        rc =
            slu_property_hash(&p->per, p->names, b, &b->seq[i], &p->memo, &key.hi, err);
        if (!rc)
            rc = count_value(p, key.hi, err);
        if (!rc)
            rc = slu_seqrec_pack(&p->rec, b, &b->seq[i], err);
        if (!rc)
            rc = slu_sorter_add(p->sorter, key, p->rec.piece, SLU_SEQREC_PIECES, err);
    }
    return rc;
}

/* ---- names of files ---- */

/* Letters, digits and .-_ stay, other bytes and a first . or _ become %XX, so that
 * different values have different names. Of a long one a hash takes the end's place. A
 * document without a value is in _.tks, one of an empty value in %.tks. */
static int put_file_name(struct slu_buf *b, const char *name, size_t n,
                         struct slu_err *err)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789.-_";
    char hex[33];
    size_t i = 0;
    int rc = SLU_OK;

    slu_buf_clear(b);
    if (!name)
        return slu_buf_printf(b, err, "_.tks");
    if (!n)
        return slu_buf_printf(b, err, "%%.tks");
    for (; i < n && !rc && b->len < NAME_BYTE; i++)
        rc = name[i] && strchr(plain, name[i]) && (i || (*name != '.' && *name != '_'))
                 ? slu_buf_append(b, &name[i], 1, err)
                 : slu_buf_printf(b, err, "%%%02X", (unsigned char)name[i]);
    if (rc || (i == n && b->len <= NAME_BYTE))
        return rc ? rc : slu_buf_printf(b, err, ".tks");
    slu_u128_hex(slu_hash128(name, n), hex);
    return slu_buf_printf(b, err, "%%%s.tks", hex);
}

/* ---- writing ---- */

/* Takes the value of the batch's first sequence, and names its file. */
static int name_file(struct choose_partition *p, struct slu_err *err)
{
    const struct slu_seq *q = &p->b.seq[0];
    const struct slu_seg *s = slu_seq_first(&p->b, q);
    struct slu_meta_value v;
    uint8_t number[8];
    const bool has = s && slu_property_get(&p->per, p->names, &p->b, q, s, number, &v);

    slu_buf_clear(&p->value);
    int rc = slu_meta_put_json(&p->value, p->per.type, has ? &v : NULL, err);
    if (rc || !has)
        return rc ? rc : put_file_name(&p->file, NULL, 0, err);
    return slu_meta_width(p->per.type)
               ? put_file_name(&p->file, (char *)p->value.data, p->value.len, err)
               : put_file_name(&p->file, v.n ? (const char *)v.p : "", v.n, err);
}

static int begin_file(struct choose_partition *p, struct slu_err *err)
{
    const struct slu_writer_cfg cfg = {p->ctx->common.zstd_level, false, p->names,
                                       !p->ctx->common.no_provenance};
    struct slu_buf path = SLU_BUF_INIT;
    struct slu_out *out;

    int rc = name_file(p, err);
    if (!rc)
        rc = slu_buf_printf(&path, err, "%s/%s", p->dir, (const char *)p->file.data);
    if (!rc)
        rc = slu_out_open(&out, (const char *)path.data, err);
    if (!rc) {
        slu_out_leave_folder(out);
        rc = slu_writer_open(&p->writer, out, &p->header, &cfg, err);
    }
    slu_buf_release(&path);
    return rc;
}

static int flush(struct choose_partition *p, struct slu_err *err)
{
    int rc = p->b.n_seq ? slu_writer_put(p->writer, &p->b, err) : SLU_OK;

    slu_batch_trim(&p->b);
    return rc;
}

static int put_line(struct choose_partition *p, const struct slu_count *n,
                    struct slu_err *err)
{
    slu_buf_clear(&p->line);
    int rc = slu_buf_printf(&p->line, err, "%s\n  {\"%s\": ", p->n_file++ ? "," : "[",
                            by_domain(p) ? "domain" : "value");

    if (!rc)
        rc = slu_buf_append(&p->line, p->value.data, p->value.len, err);
    if (!rc)
        rc = slu_buf_printf(
            &p->line, err,
            ", \"file\": \"%s\", \"sequences\": %llu, "
            "\"documents\": %llu, \"tokens\": %llu}",
            (const char *)p->file.data, (unsigned long long)n->sequences,
            (unsigned long long)n->documents, (unsigned long long)n->tokens);
    return rc ? rc : slu_out_write(p->list, p->line.data, p->line.len, err);
}

/* The account of one file: what is in other files is left out of it. */
static struct slu_account account_of(const struct choose_partition *p,
                                     struct slu_count n)
{
    struct slu_account one = p->ctx->account;
    struct slu_count others = one.in;

    for (unsigned i = 0; i < one.n_dropped; i++)
        slu_count_sub(&others, one.dropped[i].n);
    slu_count_sub(&others, n);
    slu_account_drop(&one, by_domain(p) ? "other-domains" : "other-values", others);
    one.out = n;
    return one;
}

static int end_file(struct choose_partition *p, struct slu_err *err)
{
    int rc = p->writer ? flush(p, err) : SLU_OK;
    struct slu_writer *w = p->writer;

    if (rc || !w)
        return rc;
    const struct slu_count n = slu_writer_sum(w)->n;
    p->writer = NULL;
    slu_count_add(&p->ctx->account.out, n);
    const struct slu_account one = account_of(p, n);
    rc = cli_end_writer(p->ctx, w, &one, err);
    return rc ? rc : put_line(p, &n, err);
}

/* Adds the record to the batch; the file before that of another value is ended. */
static int take(struct choose_partition *p, bool other, const void *rec, size_t n,
                struct slu_err *err)
{
    int rc = other ? end_file(p, err) : SLU_OK;

    if (!rc)
        rc = slu_seqrec_add(&p->b, rec, n, err);
    if (!rc && !p->writer)
        rc = begin_file(p, err);
    return rc || slu_batch_weight(&p->b) < BATCH_TOK ? rc : flush(p, err);
}

static int begin_list(struct choose_partition *p, struct slu_err *err)
{
    struct slu_buf path = SLU_BUF_INIT;
    int rc = slu_buf_printf(&path, err, "%s/%s.json", p->dir,
                            by_domain(p) ? "domains" : "values");

    if (!rc)
        rc = slu_out_open(&p->list, (const char *)path.data, err);
    slu_buf_release(&path);
    return rc;
}

/* The account is checked before the list, which says that all is there, gets its name. */
static int end_list(struct choose_partition *p, struct slu_err *err)
{
    const char *end = p->n_file ? "\n]\n" : "[\n]\n";
    int rc = slu_account_check(&p->ctx->account, err);

    if (!rc)
        rc = slu_out_write(p->list, end, strlen(end), err);
    if (rc)
        return rc;
    struct slu_out *list = p->list;
    p->list = NULL;
    rc = slu_out_close(list, err);
    return rc ? rc : slu_sync_dir(p->dir, err);
}

int choose_partition_close(struct choose_partition *p, struct slu_err *err)
{
    struct slu_u128 key;
    uint64_t group = 0;
    const void *rec;
    size_t n;
    int rc = slu_sorter_seal(p->sorter, err);

    if (!rc)
        rc = begin_list(p, err);
    while (!rc) {
        rc = slu_sorter_next(p->sorter, &key, &rec, &n, err);
        if (!rc)
            rc = take(p, key.hi != group, rec, n, err);
        group = key.hi;
    }
    if (rc == SLU_EOF)
        rc = end_file(p, err);
    p->ctx->spill_bytes += slu_sorter_spilled(p->sorter);
    cli_stat_u64(p->ctx, by_domain(p) ? "domains" : "values", p->n_file);
    return rc ? rc : end_list(p, err);
}

void choose_partition_free(struct choose_partition *p)
{
    if (!p)
        return;
    slu_writer_abort(p->writer);
    slu_out_abort(p->list);
    slu_map_release(&p->values);
    slu_sorter_free(p->sorter);
    slu_seqrec_release(&p->rec);
    slu_batch_release(&p->b);
    slu_header_release(&p->header);
    slu_buf_release(&p->value);
    slu_buf_release(&p->file);
    slu_buf_release(&p->line);
    free(p);
}
