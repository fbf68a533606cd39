#include "lib/pack/planfile.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/hash.h"
#include "lib/base/le.h"

/* Sizes in bytes (formats/PLAN.md). */
enum { HEAD = 64, BIN = 8, DOMAIN = 40, GROUP = 24, SUM = 8, MAX_NAME = 65536 };

static const uint8_t magic[8] = {'S', 'L', 'U', 'P', 'L', 'A', 'N', '\n'};
#define VERSION  1
#define MIXED    1u         /* flag: domains share bins */
#define NO_NAME  UINT32_MAX /* for a name's length */
#define FROM_NEW UINT32_MAX /* for a parent */

struct domain {
    char *name; /* owned; NULL: none */
    size_t off; /* of the domain's first group in the file */
    uint32_t n_group;
};

struct slu_planfile {
    struct slu_plan_head head;
    struct slu_buf file;
    struct domain *domain;
    size_t n_domain, cap_domain;
    uint64_t n_group;
    bool whole; /* header and checksum are in the file */
};

void slu_planfile_free(struct slu_planfile *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->n_domain; i++)
        free(f->domain[i].name);
    free(f->domain);
    slu_buf_release(&f->file);
    free(f);
}

struct slu_plan_head slu_planfile_head(const struct slu_planfile *f)
{
    return f->head;
}

size_t slu_planfile_domains(const struct slu_planfile *f)
{
    return f->n_domain;
}

const char *slu_planfile_name(const struct slu_planfile *f, size_t i)
{
    return f->domain[i].name;
}

static int add_domain(struct slu_planfile *f, const char *name, size_t len, size_t off,
                      uint32_t n_group, struct slu_err *err)
{
    int rc =
        slu_grow(&f->domain, &f->cap_domain, f->n_domain + 1, sizeof *f->domain, err);
    char *copy = rc || !name ? NULL : strndup(name, len);
    if (!rc && name && !copy)
        rc = slu_fail_nomem(err, len);
    if (!rc)
        f->domain[f->n_domain++] = (struct domain){copy, off, n_group};
    return rc;
}

/* ---- writing ---- */

int slu_planfile_new(struct slu_planfile **out, const struct slu_plan_head *head,
                     struct slu_err *err)
{
    struct slu_planfile *f = calloc(1, sizeof *f);
    uint8_t h[HEAD + SLU_MAX_BUCKETS * BIN] = {0};
    *out = f;
    if (!f)
        return slu_fail_nomem(err, sizeof *f);
    f->head = *head;
    for (size_t b = 0; b < head->n_bin; b++) {
        slu_put_le32(h + HEAD + b * BIN, (uint32_t)head->bin[b].tok);
        slu_put_le32(h + HEAD + b * BIN + 4, (uint32_t)head->bin[b].lack_tok);
    }
    int rc = slu_buf_append(&f->file, h, HEAD + head->n_bin * BIN, err);
    if (rc) {
        slu_planfile_free(f);
        *out = NULL;
    }
    return rc;
}

int slu_planfile_add(struct slu_planfile *f, const char *name,
                     const struct slu_pack_plan *plan, struct slu_err *err)
{
    uint8_t row[DOMAIN] = {0};
    size_t len = name ? strlen(name) : 0;
    slu_put_le32(row, name ? (uint32_t)len : NO_NAME);
    slu_put_le32(row + 4, (uint32_t)plan->n_group);
    slu_put_le64(row + 8, plan->n_bin);
    slu_put_le64(row + 16, plan->n_item);
    slu_put_le64(row + 24, plan->n_tok);
    slu_put_le64(row + 32, plan->n_length);
    int rc = slu_buf_append(&f->file, row, sizeof row, err);
    if (!rc && len)
        rc = slu_buf_append(&f->file, name, len, err);
    if (!rc)
        rc = slu_buf_align(&f->file, 8, err);
    if (!rc)
        rc = add_domain(f, name, len, f->file.len, (uint32_t)plan->n_group, err);
    if (!rc)
        rc = slu_buf_reserve(&f->file, plan->n_group * GROUP, err);
    for (size_t i = 0; i < plan->n_group && !rc; i++) {
        const struct slu_pack_group *g = &plan->group[i];
        uint8_t *p = f->file.data + f->file.len;
        slu_put_le64(p, g->count);
        slu_put_le32(p + 8, (uint32_t)g->len_tok);
        slu_put_le32(p + 12, (uint32_t)g->repeat);
        slu_put_le32(p + 16, g->parent == SLU_PACK_OPENED ? FROM_NEW : g->parent);
        slu_put_le32(p + 20, (uint32_t)g->capacity);
        f->file.len += GROUP;
    }
    f->n_group += plan->n_group;
    return rc;
}

static int finish(struct slu_planfile *f, struct slu_err *err)
{
    uint8_t *h = f->file.data, sum[SUM];
    memcpy(h, magic, sizeof magic);
    slu_put_le32(h + 8, VERSION);
    slu_put_le32(h + 12, f->head.mix_domains ? MIXED : 0);
    slu_put_le32(h + 16, (uint32_t)f->head.method);
    slu_put_le32(h + 20, (uint32_t)f->head.n_bin);
    slu_put_le64(h + 24, f->head.capacity);
    slu_put_le64(h + 32, f->head.max_items);
    slu_put_le64(h + 40, f->n_domain);
    slu_put_le64(h + 48, f->n_group);
    slu_put_le64(h + 56, f->file.len + SUM);
    slu_put_le64(sum, slu_hash64(f->file.data, f->file.len));
    int rc = slu_buf_append(&f->file, sum, sizeof sum, err);
    f->whole = !rc;
    return rc;
}

int slu_planfile_bytes(struct slu_planfile *f, const void **p, size_t *n,
                       struct slu_err *err)
{
    int rc = f->whole ? SLU_OK : finish(f, err);
    *p = f->file.data;
    *n = f->file.len;
    return rc;
}

int slu_planfile_write(struct slu_planfile *f, struct slu_out *out, struct slu_err *err)
{
    const void *p;
    size_t n;
    int rc = slu_planfile_bytes(f, &p, &n, err);
    return rc ? rc : slu_out_write(out, p, n, err);
}

/* ---- reading ---- */

static int bad(struct slu_err *err, const char *what)
{
    return slu_fail(err, SLU_E_FORMAT, "not a plan of pack: %s", what);
}

/* Whether the plan may have bins of `tok` ids. */
static bool has_bin(const struct slu_plan_head *head, uint64_t tok)
{
    for (size_t b = 0; b < head->n_bin; b++)
        if (head->bin[b].tok == tok)
            return true;
    return !head->n_bin && tok == head->capacity;
}

/* Adds the plan's next group from its row. Returns NULL, or what is wrong. */
static const char *put_group(struct slu_pack_plan *plan, const uint8_t *row,
                             const struct slu_plan_head *head)
{
    size_t i = plan->n_group;
    struct slu_pack_group *g = &plan->group[i], *p = NULL;
    uint32_t parent = slu_le32(row + 16);
    uint64_t items, tok, held = 0;
    *g = (struct slu_pack_group){.count = slu_le64(row),
                                 .len_tok = slu_le32(row + 8),
                                 .repeat = slu_le32(row + 12),
                                 .capacity = slu_le32(row + 20),
                                 .parent = SLU_PACK_OPENED};
    if (!g->count || !g->repeat || !g->len_tok)
        return "group has no bins";
    if (i && g->len_tok > plan->group[i - 1].len_tok)
        return "its lengths are not in descending order";
    if (parent != FROM_NEW) {
        if (parent >= i)
            return "a group comes before the group that it comes from";
        g->parent = parent;
        p = &plan->group[parent];
        if (g->count > p->count - p->taken)
            return "a group takes more bins than there are";
        if (g->capacity != p->capacity)
            return "the length of a bin changes";
        held = p->slot + p->repeat;
    }
    if (!has_bin(head, g->capacity))
        return "a bin has another length than it says";
    uint64_t room = p ? p->room : g->capacity;
    if (g->repeat > room / g->len_tok)
        return "a bin holds more than it can";
    if (head->max_items && held + g->repeat > head->max_items)
        return "a bin holds more pieces than it says";
    g->slot = held;
    g->room = room - g->repeat * g->len_tok;
    g->first_bin = p ? p->first_bin + p->taken : plan->n_bin;
    if (__builtin_mul_overflow(g->count, g->repeat, &items) ||
        __builtin_mul_overflow(items, g->len_tok, &tok) ||
        __builtin_add_overflow(plan->n_item, items, &plan->n_item) ||
        __builtin_add_overflow(plan->n_tok, tok, &plan->n_tok) ||
        (!p && __builtin_add_overflow(plan->n_bin, g->count, &plan->n_bin)) ||
        plan->n_bin > UINT64_MAX / head->capacity)
        return "its numbers are too large";
    if (p)
        p->taken += g->count;
    if (!i || g->len_tok != plan->group[i - 1].len_tok)
        plan->length[plan->n_length++] = (struct slu_pack_length){g->len_tok, i};
    else
        g->first_rank = g[-1].first_rank + g[-1].count * g[-1].repeat;
    plan->n_group++;
    return NULL;
}

int slu_planfile_plan(const struct slu_planfile *f, size_t i,
                      struct slu_pack_plan **out, struct slu_err *err)
{
    const struct domain *d = &f->domain[i];
    const uint8_t *row = f->file.data + d->off;
    size_t n = d->n_group ? d->n_group : 1;
    struct slu_pack_plan *plan = calloc(1, sizeof *plan);
    const char *wrong = NULL;
    *out = NULL;
    if (plan) {
        plan->capacity = f->head.capacity;
        plan->group = calloc(n, sizeof *plan->group);
        plan->length = calloc(n, sizeof *plan->length);
        plan->cap_group = n;
    }
    if (!plan || !plan->group || !plan->length) {
        slu_pack_plan_free(plan);
        return slu_fail_nomem(err, n * sizeof *plan->group);
    }
    for (size_t k = 0; k < d->n_group && !wrong; k++)
        wrong = put_group(plan, row + k * GROUP, &f->head);
    if (wrong) {
        slu_pack_plan_free(plan);
        return bad(err, wrong);
    }
    *out = plan;
    return SLU_OK;
}

/* Reads the list of bins after the header; n bytes of the file are left. */
static int read_bins(struct slu_planfile *f, size_t n, struct slu_err *err)
{
    struct slu_plan_head *head = &f->head;
    const uint8_t *p = f->file.data + HEAD;
    uint32_t n_bin = slu_le32(f->file.data + 20);
    if ((n_bin != 0) != slu_pack_kind[head->method].several ||
        n_bin > SLU_MAX_BUCKETS || n_bin > n / BIN)
        return bad(err, "its list of bins is damaged");
    head->n_bin = n_bin;
    for (size_t b = 0; b < n_bin; b++, p += BIN) {
        head->bin[b] = (struct slu_plan_bin){slu_le32(p), slu_le32(p + 4)};
        if (head->bin[b].tok <= (b ? head->bin[b - 1].tok : 0) ||
            head->bin[b].lack_tok > head->bin[b].tok)
            return bad(err, "its list of bins is damaged");
    }
    return n_bin && head->bin[n_bin - 1].tok != head->capacity
               ? bad(err, "its list of bins is damaged")
               : SLU_OK;
}

static int read_head(struct slu_planfile *f, uint64_t *n_domain, struct slu_err *err)
{
    const uint8_t *h = f->file.data;
    size_t n = f->file.len;
    if (n < HEAD + SUM || memcmp(h, magic, sizeof magic))
        return bad(err, "its first bytes are not a plan's");
    if (slu_le32(h + 8) != VERSION)
        return slu_fail(err, SLU_E_FORMAT,
                        "its version is %u; this program reads version %d",
                        slu_le32(h + 8), VERSION);
    if (slu_le64(h + 56) != n)
        return slu_fail(err, SLU_E_TRUNCATED,
                        "it has %zu bytes, and its header says %llu", n,
                        (unsigned long long)slu_le64(h + 56));
    if (slu_le64(h + n - SUM) != slu_hash64(h, n - SUM))
        return bad(err, "its checksum does not match");
    f->head.mix_domains = slu_le32(h + 12) & MIXED;
    f->head.method = (enum slu_pack_method)slu_le32(h + 16);
    f->head.capacity = slu_le64(h + 24);
    f->head.max_items = slu_le64(h + 32);
    *n_domain = slu_le64(h + 40);
    f->n_group = slu_le64(h + 48);
    if (slu_le32(h + 12) & ~MIXED || slu_le32(h + 16) >= SLU_PACK_METHODS ||
        slu_pack_cuts(f->head.method) || !f->head.capacity ||
        f->head.capacity > SLU_MAX_CAPACITY)
        return bad(err, "its header is damaged");
    return read_bins(f, n - HEAD - SUM, err);
}

/* Reads a domain's section at *at and checks its plan; advances *at. */
static int read_domain(struct slu_planfile *f, size_t *at, struct slu_err *err)
{
    const uint8_t *p = f->file.data + *at;
    size_t left = f->file.len - SUM - *at;
    if (left < DOMAIN)
        return bad(err, "it ends early");
    uint32_t len = slu_le32(p), n_group = slu_le32(p + 4);
    size_t n_name = len == NO_NAME ? 0 : len, padded = (n_name + 7) & ~(size_t)7;
    static const uint8_t zero[8];
    if (n_name > MAX_NAME || padded > left - DOMAIN ||
        n_group > (left - DOMAIN - padded) / GROUP)
        return bad(err, "it ends early");
    const char *name = (const char *)p + DOMAIN;
    if (memchr(name, 0, n_name) || memcmp(name + n_name, zero, padded - n_name))
        return bad(err, "a domain's name is empty or not UTF-8");
    int rc = add_domain(f, len == NO_NAME ? NULL : name, n_name, *at + DOMAIN + padded,
                        n_group, err);
    struct slu_pack_plan *plan = NULL;
    if (!rc)
        rc = slu_planfile_plan(f, f->n_domain - 1, &plan, err);
    if (!rc && (plan->n_bin != slu_le64(p + 8) || plan->n_item != slu_le64(p + 16) ||
                plan->n_tok != slu_le64(p + 24) || plan->n_length != slu_le64(p + 32)))
        rc = bad(err, "its totals differ from the sums of its groups");
    slu_pack_plan_free(plan);
    *at += DOMAIN + padded + (size_t)n_group * GROUP;
    return rc;
}

/* Reads the plan in f->file. */
static int parse(struct slu_planfile *f, struct slu_err *err)
{
    uint64_t n_domain = 0, n_group = 0;
    int rc = read_head(f, &n_domain, err);
    size_t at = HEAD + f->head.n_bin * BIN;
    for (uint64_t i = 0; i < n_domain && !rc; i++) {
        rc = read_domain(f, &at, err);
        if (!rc)
            n_group += f->domain[i].n_group;
    }
    if (!rc && (at != f->file.len - SUM || n_group != f->n_group ||
                (f->head.mix_domains && n_domain > 1)))
        rc = bad(err, "its domains differ from its totals");
    return rc;
}

int slu_planfile_parse(struct slu_planfile **out, const void *p, size_t n,
                       struct slu_err *err)
{
    struct slu_planfile *f = calloc(1, sizeof *f);
    *out = NULL;
    if (!f)
        return slu_fail_nomem(err, sizeof *f);
    int rc = slu_buf_append(&f->file, p, n, err);
    if (!rc)
        rc = parse(f, err);
    if (rc)
        slu_planfile_free(f);
    else
        *out = f;
    return rc;
}

int slu_planfile_open(struct slu_planfile **out, const char *path, uint64_t max_byte,
                      struct slu_err *err)
{
    struct slu_planfile *f = calloc(1, sizeof *f);
    *out = NULL;
    if (!f)
        return slu_fail_nomem(err, sizeof *f);
    int rc = slu_read_whole(&f->file, path, max_byte, err);
    if (!rc) {
        rc = parse(f, err);
        if (rc)
            rc = slu_err_at(err, "%s", path);
    }
    if (rc)
        slu_planfile_free(f);
    else
        *out = f;
    return rc;
}

/* ---- comparing a plan with a histogram ---- */

static uint64_t items_of(const struct slu_pack_plan *plan, size_t i)
{
    size_t end =
        i + 1 < plan->n_length ? plan->length[i + 1].first_group : plan->n_group;
    const struct slu_pack_group *last = &plan->group[end - 1];
    return last->first_rank + last->count * last->repeat;
}

int slu_plan_check(const struct slu_pack_plan *plan, const struct slu_length_count *row,
                   size_t n, const char *what, struct slu_err *err)
{
    for (size_t i = 0, k = plan->n_length; i < n || k > 0;) { /* both ascend */
        uint64_t here = i < n ? row[i].len_tok : UINT64_MAX, count = 0, want = 0;
        uint64_t there = k > 0 ? plan->length[k - 1].len_tok : UINT64_MAX;
        uint64_t len_tok = here < there ? here : there;
        if (here == len_tok)
            count = row[i++].count;
        if (there == len_tok)
            want = items_of(plan, --k);
        if (count != want)
            return slu_fail(err, SLU_E_MISMATCH,
                            "the plan was made for other data: %s: %llu pieces of %llu "
                            "tokens, and the plan has %llu of them",
                            what, (unsigned long long)count,
                            (unsigned long long)len_tok, (unsigned long long)want);
    }
    return SLU_OK;
}
