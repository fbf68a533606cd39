/* partition.c - choose --partition: a stream for each domain, in one folder.
 *
 * The sequences are sorted by domain, beyond memory in --tmpdir, and then written domain
 * after domain, so that one file is open at a time. domains.json, which is written last,
 * lists the files. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json_write.h"
#include "lib/flow/sorter.h"
#include "lib/stream/seqrec.h"
#include "tools/choose/choose.h"

enum { BATCH_TOK = 1 << 18, NAME_BYTE = 200 };

struct choose_partition {
    struct cli_ctx *ctx;
    const char *dir;
    struct slu_header header; /* of each stream */
    struct slu_names *names;
    struct slu_sorter *sorter;
    struct slu_seqrec rec;
    uint64_t ordinal; /* of the next sequence */
    /* While files are written: */
    struct slu_batch b;
    struct slu_writer *writer; /* NULL: no file is open */
    uint32_t domain;           /* of the open file */
    struct slu_buf file, list; /* name of the open file; domains.json */
    uint64_t n_file;
};

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
    const struct slu_sorter_cfg sorting = {.budget_byte = budget_byte,
                                           .tmpdir = ctx->common.tmpdir,
                                           .n_threads = (unsigned)ctx->common.threads};
    const char *dir = ((const struct choose_opts *)ctx->opts)->partition;
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
    int rc = is_empty(dir, err);
    if (!rc)
        rc = cli_stream_header(ctx, h, &p->header, err);
    if (!rc)
        rc = slu_mkdirs(dir, err);
    return rc ? rc : slu_sorter_new(&p->sorter, &sorting, err);
}

int choose_partition_put(struct choose_partition *p, const struct slu_batch *b,
                         struct slu_err *err)
{
    int rc = SLU_OK;

    for (size_t i = 0; i < b->n_seq && !rc; i++, p->ordinal++) {
        struct slu_u128 key = {p->ordinal, 0};
        uint32_t d;
        rc = slu_seq_domain(b, &b->seq[i], &d, err);
        if (!rc && d != SLU_NO_DOMAIN) {
            const char *name = slu_names_domain(p->names, d);
            key.hi = slu_hash64(name, strlen(name)) | 1; /* 0: no domain */
        }
        if (!rc)
            rc = slu_seqrec_pack(&p->rec, b, &b->seq[i], err);
        if (!rc)
            rc = slu_sorter_add(p->sorter, key, p->rec.piece, SLU_SEQREC_PIECES, err);
    }
    return rc;
}

/* ---- names of files ---- */

/* Letters, digits and .-_ stay, other bytes and a first . or _ become %XX, so that
 * different domains have different names. Of a long name a hash takes the end's place. A
 * document without a domain is in _.tks, one of the domain with the empty name in %.tks. */
static int put_file_name(struct slu_buf *b, const char *name, struct slu_err *err)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789.-_";
    const char *c = name;
    char hex[33];
    int rc = SLU_OK;

    slu_buf_clear(b);
    if (!name)
        return slu_buf_printf(b, err, "_.tks");
    if (!*name)
        return slu_buf_printf(b, err, "%%.tks");
    for (; *c && !rc && b->len < NAME_BYTE; c++)
        rc = strchr(plain, *c) && (c > name || (*c != '.' && *c != '_'))
                 ? slu_buf_append(b, c, 1, err)
                 : slu_buf_printf(b, err, "%%%02X", (unsigned char)*c);
    if (rc || (!*c && b->len <= NAME_BYTE))
        return rc ? rc : slu_buf_printf(b, err, ".tks");
    slu_u128_hex(slu_hash128(name, strlen(name)), hex);
    return slu_buf_printf(b, err, "%%%s.tks", hex);
}

/* ---- writing ---- */

static const char *name_of(const struct choose_partition *p)
{
    return p->domain == SLU_NO_DOMAIN ? NULL : slu_names_domain(p->names, p->domain);
}

static int begin_file(struct choose_partition *p, uint32_t domain, struct slu_err *err)
{
    const struct slu_writer_cfg cfg = {p->ctx->common.zstd_level, false, p->names,
                                       !p->ctx->common.no_provenance};
    struct slu_buf path = SLU_BUF_INIT;
    struct slu_out *out;

    p->domain = domain;
    int rc = put_file_name(&p->file, name_of(p), err);
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

static int put_entry(struct choose_partition *p, const struct slu_count *n,
                     struct slu_err *err)
{
    const char *name = name_of(p);
    int rc =
        slu_buf_printf(&p->list, err, "%s\n  {\"domain\": ", p->n_file++ ? "," : "");

    if (!rc)
        rc = name ? slu_json_put_string(&p->list, name, strlen(name), err)
                  : slu_buf_printf(&p->list, err, "null");
    return rc ? rc
              : slu_buf_printf(
                    &p->list, err,
                    ", \"file\": \"%s\", \"sequences\": %llu, "
                    "\"documents\": %llu, \"tokens\": %llu}",
                    (const char *)p->file.data, (unsigned long long)n->sequences,
                    (unsigned long long)n->documents, (unsigned long long)n->tokens);
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
    slu_account_drop(&one, "other-domains", others);
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
    return rc ? rc : put_entry(p, &n, err);
}

/* Adds the record to the batch; the files before a new domain are ended. */
static int take(struct choose_partition *p, bool other, const void *rec, size_t n,
                struct slu_err *err)
{
    int rc = other ? end_file(p, err) : SLU_OK;

    if (!rc)
        rc = slu_seqrec_add(&p->b, rec, n, err);
    if (!rc && !p->writer) {
        uint32_t d;
        rc = slu_seq_domain(&p->b, &p->b.seq[0], &d, err);
        if (!rc)
            rc = begin_file(p, d, err);
    }
    return rc || slu_batch_weight(&p->b) < BATCH_TOK ? rc : flush(p, err);
}

/* The account is checked before the list, which says that all is there, is written. */
static int write_list(struct choose_partition *p, struct slu_err *err)
{
    struct slu_buf path = SLU_BUF_INIT;
    int rc = slu_account_check(&p->ctx->account, err);

    if (!rc)
        rc = slu_buf_printf(&p->list, err, "\n]\n");
    if (!rc)
        rc = slu_buf_printf(&path, err, "%s/domains.json", p->dir);
    if (!rc)
        rc = slu_out_whole((const char *)path.data, p->list.data, p->list.len, err);
    slu_buf_release(&path);
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
        rc = slu_buf_printf(&p->list, err, "[");
    while (!rc) {
        rc = slu_sorter_next(p->sorter, &key, &rec, &n, err);
        if (!rc)
            rc = take(p, key.hi != group, rec, n, err);
        group = key.hi;
    }
    if (rc == SLU_EOF)
        rc = end_file(p, err);
    p->ctx->spill_bytes += slu_sorter_spilled(p->sorter);
    cli_stat_u64(p->ctx, "domains", p->n_file);
    return rc ? rc : write_list(p, err);
}

void choose_partition_free(struct choose_partition *p)
{
    if (!p)
        return;
    slu_writer_abort(p->writer);
    slu_sorter_free(p->sorter);
    slu_seqrec_release(&p->rec);
    slu_batch_release(&p->b);
    slu_header_release(&p->header);
    slu_buf_release(&p->file);
    slu_buf_release(&p->list);
    free(p);
}
