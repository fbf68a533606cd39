/* merge.c - inspect --merge-stats: sums the reports of the parts of a job.
 *
 * Reports of --stats and manifests are read alike. They are grouped by program and mode
 * (dedup may occur more than once in a pipe), in the order of their first occurrence,
 * and within a group by stage. The checks: each part of each stage has exactly one
 * report; each report balances; the stages of a program read from their work folder as
 * much as they wrote there; each program reads as much as the program before wrote.
 */
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json_write.h"
#include "lib/stream/account_json.h"
#include "tools/inspect/inspect.h"

typedef unsigned long long ull; /* for printf */
typedef struct slu_json_value value;

struct stage {
    char *name;  /* "": the program has no stages */
    uint64_t n;  /* parts; 0: one run, without --part */
    char **part; /* n (at least 1) names of files; NULL: no report of this part yet */
    char *first; /* the first file that stated n */
    uint64_t n_seen;
};

struct group {
    char *program;
    char *mode; /* "": the program has one mode */
    char *name; /* for messages: "dedup --near" */
    struct stage *stage;
    size_t n_stage, cap_stage;
    struct slu_account sum; /* owns its reasons */
    uint64_t n_report, peak_rss;
    double cpu_seconds;
    struct field {
        char *option, *name, *wanted;
        uint64_t have, of; /* documents that have it, and that could */
    } * field;             /* that tokenize looks at */
    size_t n_field, cap_field;
    uint64_t n_rejected, n_filtered, n_unread; /* of tokenize */
};

struct merge {
    struct group *group;
    size_t n, cap;
};

/* ---- reading ---- */

static char *copy(const char *s, struct slu_err *err)
{
    char *c = strdup(s);
    if (!c)
        (void)slu_fail_nomem(err, strlen(s));
    return c;
}

/* [I, N]; both 0 if the key is missing. */
static bool part_of(value root, uint64_t *i, uint64_t *n)
{
    struct slu_json_iter it;
    value v;
    *i = *n = 0;
    if (!slu_json_get(root, "part", &v))
        return true;
    slu_json_iter_init(&it, v);
    return slu_json_count(v) == 2 && slu_json_next(&it) && slu_json_u64(it.value, i) &&
           slu_json_next(&it) && slu_json_u64(it.value, n) && *i < *n && *n <= 1 << 20;
}

static int find_group(struct merge *m, const char *program, const char *mode,
                      struct group **g, struct slu_err *err)
{
    for (size_t i = 0; i < m->n; i++)
        if (!strcmp(m->group[i].program, program) && !strcmp(m->group[i].mode, mode)) {
            *g = &m->group[i];
            return SLU_OK;
        }
    int rc = slu_grow(&m->group, &m->cap, m->n + 1, sizeof **g, err);
    if (rc)
        return rc;
    *g = &m->group[m->n];
    **g = (struct group){.program = copy(program, err), .mode = copy(mode, err)};
    m->n++;
    if (!(*g)->program || !(*g)->mode)
        return err->code;
    struct slu_buf b = SLU_BUF_INIT;
    rc = slu_buf_printf(&b, err, "%s%s%s", program, *mode ? " --" : "", mode);
    (*g)->name = rc ? NULL : copy((char *)b.data, err);
    slu_buf_release(&b);
    return (*g)->name ? SLU_OK : err->code;
}

static int find_stage(struct group *g, const char *name, uint64_t n, const char *path,
                      struct stage **p, struct slu_err *err)
{
    for (size_t i = 0; i < g->n_stage; i++)
        if (!strcmp(g->stage[i].name, name)) {
            *p = &g->stage[i];
            if ((*p)->n == n)
                return SLU_OK;
            return slu_fail(
                err, SLU_E_MISMATCH,
                "%s%s%s: %s is of %llu parts, and %s of %llu (0: run without "
                "--part); name the reports of one job",
                g->name, *name ? " --stage " : "", name, (*p)->first, (ull)(*p)->n,
                path, (ull)n);
        }
    int rc = slu_grow(&g->stage, &g->cap_stage, g->n_stage + 1, sizeof **p, err);
    if (rc)
        return rc;
    struct stage made = {.n = n,
                         .name = copy(name, err),
                         .first = copy(path, err),
                         .part = calloc(n ? n : 1, sizeof *made.part)};
    if (!made.part)
        (void)slu_fail_nomem(err, n);
    *p = &g->stage[g->n_stage++];
    **p = made;
    return made.part && made.name && made.first ? SLU_OK : SLU_E_NOMEM;
}

/* Adds an account; copies the reasons, because `sum` outlives the report. */
static int add_account(struct slu_account *sum, const struct slu_account *l,
                       struct slu_err *err)
{
    sum->masks |= l->masks;
    slu_count_add(&sum->in, l->in);
    slu_count_add(&sum->from_work, l->from_work);
    slu_count_add(&sum->created, l->created);
    slu_count_add(&sum->repeated, l->repeated);
    slu_count_add(&sum->out, l->out);
    slu_count_add(&sum->to_work, l->to_work);
    sum->padding += l->padding;
    slu_replaced_add(&sum->replaced, l->replaced);
    for (unsigned i = 0; i < l->n_dropped; i++) {
        unsigned before = sum->n_dropped;
        slu_account_drop(sum, l->dropped[i].reason, l->dropped[i].n);
        if (sum->n_dropped == before)
            continue;
        sum->dropped[before].reason = copy(l->dropped[i].reason, err);
        if (!sum->dropped[before].reason) {
            sum->n_dropped = before;
            return err->code;
        }
    }
    return SLU_OK;
}

static void add_costs(struct group *g, value root)
{
    value v;
    double cpu = 0;
    uint64_t rss = 0;
    if (slu_json_get(root, "cpu_seconds", &v))
        (void)slu_json_double(v, &cpu);
    if (slu_json_get(root, "peak_rss_bytes", &v))
        (void)slu_json_u64(v, &rss);
    g->cpu_seconds += cpu;
    g->peak_rss = rss > g->peak_rss ? rss : g->peak_rss;
    g->n_report++;
}

/* Adds what tokenize left out, and the fields that it looks at. */
static int add_fields(struct group *g, value root, struct slu_err *err)
{
    value all, v;
    struct slu_json_iter it;
    uint64_t n;
    int rc = SLU_OK;
    if (slu_json_get(root, "rejected", &v) && slu_json_u64(v, &n))
        g->n_rejected += n;
    if (slu_json_get(root, "filtered", &v) && slu_json_u64(v, &n))
        g->n_filtered += n;
    if (slu_json_get(root, "unread", &v) && slu_json_u64(v, &n))
        g->n_unread += n;
    if (!slu_json_get(root, "fields", &all))
        return SLU_OK;
    slu_json_iter_init(&it, all);
    while (!rc && slu_json_next(&it)) {
        const char *option = slu_json_get_string(it.value, "option", ""),
                   *name = slu_json_get_string(it.value, "field", ""),
                   *wanted = slu_json_get_string(it.value, "wanted", "");
        size_t i = 0;
        while (i < g->n_field && (strcmp(g->field[i].option, option) != 0 ||
                                  strcmp(g->field[i].name, name) != 0))
            i++;
        if (i == g->n_field) {
            rc = slu_grow(&g->field, &g->cap_field, i + 1, sizeof *g->field, err);
            if (rc)
                break;
            struct field *f = &g->field[g->n_field++];
            *f = (struct field){.option = copy(option, err),
                                .name = copy(name, err),
                                .wanted = copy(wanted, err)};
            if (!f->option || !f->name || !f->wanted)
                return err->code;
        }
        if (slu_json_get(it.value, "have", &v) && slu_json_u64(v, &n))
            g->field[i].have += n;
        if (slu_json_get(it.value, "of", &v) && slu_json_u64(v, &n))
            g->field[i].of += n;
    }
    return rc;
}

static int add_report(struct merge *m, const char *path, value root,
                      struct slu_err *err)
{
    struct slu_account l;
    struct group *g;
    struct stage *p;
    uint64_t i, n;
    const char *program = slu_json_get_string(root, "program", NULL);
    const char *stage = slu_json_get_string(root, "stage", "");
    if (!program || !part_of(root, &i, &n))
        return slu_fail(err, SLU_E_FORMAT,
                        "%s: is neither a report of --stats nor a manifest", path);
    int rc = slu_account_get_json(&l, root, err);
    if (!rc)
        rc = slu_account_check(&l, err);
    if (rc)
        return slu_err_at(err, "%s", path);
    rc = find_group(m, program, slu_json_get_string(root, "mode", ""), &g, err);
    if (!rc)
        rc = find_stage(g, stage, n, path, &p, err);
    if (rc)
        return rc;
    if (p->part[i])
        return slu_fail(err, SLU_E_MISMATCH,
                        "%s%s%s: %s and %s are of the same part; name one of them",
                        g->name, *stage ? " --stage " : "", stage, p->part[i], path);
    p->part[i] = copy(path, err);
    if (!p->part[i])
        return err->code;
    p->n_seen++;
    add_costs(g, root);
    rc = add_fields(g, root, err);
    return rc ? rc : add_account(&g->sum, &l, err);
}

static int add_file(struct cli_ctx *ctx, struct merge *m, const char *path,
                    struct slu_err *err)
{
    struct slu_json *j;
    int rc = cli_spare(ctx, path, err);
    if (rc)
        return rc;
    rc = slu_json_load(&j, path, err);
    if (rc)
        return rc == SLU_E_FORMAT
                   ? slu_fail(err, rc,
                              "%s: is not JSON; name reports, which --stats writes, or "
                              "manifests",
                              path)
                   : rc;
    value root = slu_json_root(j), programs;
    struct slu_json_iter it;
    if (slu_json_get(root, "programs", &programs) && slu_json_count(programs)) {
        slu_json_iter_init(&it, programs); /* --merge-stats wrote it */
        while (!rc && slu_json_next(&it))
            rc = add_report(m, path, it.value, err);
    } else {
        rc = add_report(m, path, root, err);
    }
    slu_json_free(j);
    return rc;
}

/* Reads names from standard input, one a line, for more names than fit a command
 * line. */
static int add_list(struct cli_ctx *ctx, struct merge *m, struct slu_err *err)
{
    char *line = NULL;
    size_t cap = 0;
    int rc = SLU_OK;
    while (!rc) {
        errno = 0;
        ssize_t n = getline(&line, &cap, stdin);
        if (n < 0) {
            if (ferror(stdin))
                rc = slu_fail_errno(err, "standard input: cannot be read");
            break;
        }
        line[strcspn(line, "\n")] = 0;
        if (*line)
            rc = add_file(ctx, m, line, err);
    }
    free(line);
    return rc;
}

/* ---- checking ---- */

static int check_parts(const struct group *g, struct slu_err *err)
{
    for (size_t i = 0; i < g->n_stage; i++) {
        const struct stage *p = &g->stage[i];
        uint64_t k = 0, missing = p->n - p->n_seen;
        if (!p->n || !missing)
            continue;
        while (p->part[k])
            k++;
        return slu_fail(err, SLU_E_MISMATCH, "%s%s%s: part %llu of %llu is missing%s",
                        g->name, *p->name ? " --stage " : "", p->name, (ull)k,
                        (ull)p->n, missing > 1 ? ", and others" : "");
    }
    return SLU_OK;
}

/* What none of the parts has is mistyped; if none of the records is good, they are of
 * another kind. */
static int check_fields(const struct group *g, struct slu_err *err)
{
    for (size_t i = 0; i < g->n_field; i++)
        if (g->field[i].of && !g->field[i].have)
            return slu_fail(err, SLU_E_MISMATCH,
                            "%s: %s %s: none of %llu document%s has %s there", g->name,
                            g->field[i].option, g->field[i].name, (ull)g->field[i].of,
                            slu_plural(g->field[i].of), g->field[i].wanted);
    const uint64_t lost = g->n_rejected + g->n_unread;
    if (g->n_filtered && lost + g->n_filtered == g->sum.in.documents)
        return slu_fail(err, SLU_E_MISMATCH,
                        "%s: the filters left all %llu document%s out", g->name,
                        (ull)g->n_filtered, slu_plural(g->n_filtered));
    if (lost && lost == g->sum.in.documents)
        return slu_fail(
            err, SLU_E_MISMATCH,
            "%s: none of %llu record%s could be taken; --rejects keeps them "
            "with the reasons",
            g->name, (ull)lost, slu_plural(lost));
    return SLU_OK;
}

struct side {
    const struct slu_count *n;
    const char *did, *program;
};

static int check_equal(struct side a, struct side b, struct slu_err *err)
{
    static const char *const what[] = {"tokens", "sequences", "documents"};
    const ull x[3] = {a.n->tokens, a.n->sequences, a.n->documents},
              y[3] = {b.n->tokens, b.n->sequences, b.n->documents};
    for (int i = 0; i < 3; i++)
        if (x[i] != y[i])
            return slu_fail(err, SLU_E_CONSERVATION, "%llu %s %s %s, and %llu %s %s",
                            x[i], what[i], a.did, a.program, y[i], b.did, b.program);
    return SLU_OK;
}

static int check(const struct merge *m, struct slu_err *err)
{
    int rc = SLU_OK;
    for (size_t i = 0; i < m->n && !rc; i++) {
        const struct group *g = &m->group[i], *last = i ? g - 1 : NULL;
        rc = check_parts(g, err);
        if (!rc)
            rc = slu_account_check(&g->sum, err);
        if (!rc)
            rc = check_fields(g, err);
        struct side to = {&g->sum.to_work, "went into the work folder of", g->name},
                    from = {&g->sum.from_work, "came out of it for", g->name},
                    in = {&g->sum.in, "went into", g->name};
        if (!rc)
            rc = check_equal(to, from, err);
        if (!rc && last)
            rc = check_equal((struct side){&last->sum.out, "came out of", last->name},
                             in, err);
    }
    return rc;
}

/* ---- printing ---- */

static int put_group(const struct group *g, bool first, struct slu_buf *b,
                     struct slu_err *err)
{
    int rc = slu_buf_printf(b, err, "%s{\n  \"program\": ", first ? "" : ",\n ");
    if (!rc)
        rc = slu_json_put_string(b, g->program, strlen(g->program), err);
    if (!rc && *g->mode)
        rc = slu_buf_printf(b, err, ",\n  \"mode\": ");
    if (!rc && *g->mode)
        rc = slu_json_put_string(b, g->mode, strlen(g->mode), err);
    if (!rc)
        rc = slu_buf_printf(b, err, ",\n  \"reports\": %llu,\n  \"stages\": [",
                            (ull)g->n_report);
    for (size_t i = 0; i < g->n_stage && !rc; i++) {
        const struct stage *p = &g->stage[i];
        rc = slu_buf_printf(b, err, "%s{\"stage\": ", i ? ", " : "");
        if (!rc)
            rc = *p->name ? slu_json_put_string(b, p->name, strlen(p->name), err)
                          : slu_buf_append(b, "null", 4, err);
        if (!rc)
            rc = slu_buf_printf(b, err, ", \"parts\": %llu}", (ull)(p->n ? p->n : 1));
    }
    if (!rc)
        rc = slu_buf_append(b, "]", 1, err);
    if (!rc)
        rc = slu_account_put_json(b, &g->sum, err);
    if (!rc && g->peak_rss)
        rc = slu_buf_printf(b, err,
                            ",\n  \"cpu_seconds\": %.6f,\n  \"peak_rss_bytes\": %llu",
                            g->cpu_seconds, (ull)g->peak_rss);
    return rc ? rc : slu_buf_append(b, "}", 1, err);
}

/* Appends a line for what the account counts, with the reasons of dropping. `at` is the
 * position of the count in a slu_count. */
static int put_row(const struct slu_account *l, const char *name, const char *what,
                   size_t at, uint64_t padding, struct slu_buf *b, struct slu_err *err)
{
#define COUNT(c) ((ull) * (const uint64_t *)(const void *)((const char *)&(c) + at))
    ull dropped = 0;
    for (unsigned i = 0; i < l->n_dropped; i++)
        dropped += COUNT(l->dropped[i].n);
    int rc =
        slu_buf_printf(b, err, "%-18s %-10s %14llu %12llu %12llu %12llu %14llu %14llu",
                       name, what, COUNT(l->in), COUNT(l->created), COUNT(l->repeated),
                       (ull)padding, COUNT(l->out), dropped);
    bool any = false;
    for (unsigned i = 0; i < l->n_dropped && !rc; i++)
        if (COUNT(l->dropped[i].n)) {
            rc = slu_buf_printf(b, err, "%s %s %llu", any ? "," : " ",
                                l->dropped[i].reason, COUNT(l->dropped[i].n));
            any = true;
        }
    return rc ? rc : slu_buf_append(b, "\n", 1, err);
#undef COUNT
}

/* --table: the same counts, for people. */
static int put_table(const struct merge *m, struct slu_buf *b, struct slu_err *err)
{
    int rc = slu_buf_printf(b, err, "%-18s %-10s %14s %12s %12s %12s %14s %14s  %s\n",
                            "program", "what", "in", "created", "repeated", "padding",
                            "out", "dropped", "reasons");
    for (size_t i = 0; i < m->n && !rc; i++) {
        const struct group *g = &m->group[i];
        const struct slu_account *l = &g->sum;
        rc = put_row(l, g->name, "documents", offsetof(struct slu_count, documents), 0,
                     b, err);
        if (!rc)
            rc = put_row(l, "", "sequences", offsetof(struct slu_count, sequences), 0,
                         b, err);
        if (!rc)
            rc = put_row(l, "", "tokens", offsetof(struct slu_count, tokens),
                         l->padding, b, err);
        if (!rc && l->masks)
            rc = put_row(l, "", "trained on", offsetof(struct slu_count, loss_tokens),
                         0, b, err);
    }
    return rc ? rc
              : slu_buf_printf(b, err,
                               "in + created + repeated + padding = out + dropped in "
                               "each line, and each program took in what the one "
                               "before put out\n");
}

static int print(const struct merge *m, bool table, struct slu_err *err)
{
    struct slu_buf b = SLU_BUF_INIT;
    if (table) {
        int rc = put_table(m, &b, err);
        if (!rc && fwrite(b.data, 1, b.len, stdout) != b.len)
            rc = slu_fail_errno(err, "standard output: cannot be written");
        slu_buf_release(&b);
        return rc;
    }
    int rc = slu_buf_printf(&b, err, "{\"programs\": [");
    for (size_t i = 0; i < m->n && !rc; i++)
        rc = put_group(&m->group[i], !i, &b, err);
    if (!rc)
        rc = slu_buf_printf(&b, err, "],\n\"conserved\": true}\n");
    if (!rc && fwrite(b.data, 1, b.len, stdout) != b.len)
        rc = slu_fail_errno(err, "standard output: cannot be written");
    slu_buf_release(&b);
    return rc;
}

static void release(struct merge *m)
{
    for (size_t i = 0; i < m->n; i++) {
        struct group *g = &m->group[i];
        for (size_t k = 0; k < g->n_stage; k++) {
            struct stage *p = &g->stage[k];
            for (uint64_t j = 0; p->part && j < (p->n ? p->n : 1); j++)
                free(p->part[j]);
            free(p->part);
            free(p->name);
            free(p->first);
        }
        for (unsigned k = 0; k < g->sum.n_dropped; k++)
            free((char *)(uintptr_t)g->sum.dropped[k].reason);
        for (size_t k = 0; k < g->n_field; k++) {
            free(g->field[k].option);
            free(g->field[k].name);
            free(g->field[k].wanted);
        }
        free(g->field);
        free(g->stage);
        free(g->program);
        free(g->mode);
        free(g->name);
    }
    free(m->group);
}

int inspect_merge(struct cli_ctx *ctx, struct slu_err *err)
{
    struct merge m = {0};
    int rc = SLU_OK;
    if (!ctx->n_input)
        return slu_fail(err, SLU_E_USAGE,
                        "--merge-stats: name reports or manifests, or - for a list of "
                        "them on standard input");
    for (size_t i = 0; i < ctx->n_input && !rc; i++)
        rc = strcmp(ctx->input[i], "-") ? add_file(ctx, &m, ctx->input[i], err)
                                        : add_list(ctx, &m, err);
    if (!rc && !m.n)
        rc = slu_fail(err, SLU_E_FORMAT, "standard input: names no reports");
    if (!rc)
        rc = check(&m, err);
    if (!rc)
        rc = print(&m, ((const struct inspect_opts *)ctx->opts)->table, err);
    release(&m);
    return rc;
}
