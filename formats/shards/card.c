#include "card.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json_write.h"
#include "lib/stream/svg.h"

enum {
    ROWS = 50,       /* rows of a table for people */
    SOURCES = 1000,  /* names in report.json */
    SOURCE_ROWS = 20 /* sources in the card */
};

typedef unsigned long long ull; /* for printf */

/* ---- pieces ---- */

/* "1,234,567" */
const char *slu_card_grouped(uint64_t v, char out[32])
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%llu", (ull)v), k = 0;
    for (int i = 0; i < n; i++) {
        out[k++] = digits[i];
        if (i + 1 < n && (n - i - 1) % 3 == 0)
            out[k++] = ',';
    }
    out[k] = 0;
    return out;
}

/* Puts foreign text into a table cell: without Markdown, HTML or line ends; bytes that
 * are not UTF-8 become U+FFFD. */
int slu_card_text(struct slu_buf *out, const char *s, struct slu_err *err)
{
    static const char special[] = "\\`*_{}[]()#+!|<>&~$";
    const uint8_t *p = (const uint8_t *)s;
    size_t left = strlen(s);
    int rc = SLU_OK;
    while (left && !rc) {
        unsigned n = slu_utf8_valid_at(p, left);
        if (n == 0)
            rc = slu_buf_append(out, "\xef\xbf\xbd", 3, err);
        else if (*p < 0x20 || *p == 0x7f)
            rc = slu_buf_append(out, " ", 1, err);
        else if (n == 1 && strchr(special, *p))
            rc = slu_buf_printf(out, err,
                                *p == '<'   ? "&lt;"
                                : *p == '>' ? "&gt;"
                                : *p == '&' ? "&amp;"
                                            : "\\%c",
                                *p);
        else
            rc = slu_buf_append(out, p, n, err);
        p += n ? n : 1;
        left -= n ? n : 1;
    }
    return rc;
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* An SPDX identifier, or an expression of one word. */
static bool is_identifier(const char *s)
{
    size_t n = strlen(s);
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && !strchr(".-+", s[i]))
            return false;
    return n > 0 && n <= 64;
}

/* ---- front matter ---- */

static int put_license(const struct slu_card *c, struct slu_buf *out,
                       struct slu_err *err)
{
    const char *l = c->cfg->license;
    int rc;
    if (!l || !*l)
        return slu_buf_printf(out, err, "license: unknown\n");
    if (!is_identifier(l)) {
        rc = slu_buf_printf(out, err, "license: other\nlicense_name: ");
        if (!rc)
            /* YAML accepts JSON strings */
            rc = slu_json_put_string(out, l, strlen(l), err);
        return rc ? rc : slu_buf_printf(out, err, "\n");
    }
    rc = slu_buf_printf(out, err, "license: \"");
    for (; *l && !rc; l++) /* the hub's list is in lower case */
        rc = slu_buf_printf(out, err, "%c", tolower((unsigned char)*l));
    return rc ? rc : slu_buf_printf(out, err, "\"\n");
}

static const char *size_category(uint64_t n)
{
    static const char *const name[] = {
        "n<1K",       "1K<n<10K",  "10K<n<100K", "100K<n<1M",  "1M<n<10M",
        "10M<n<100M", "100M<n<1B", "1B<n<10B",   "10B<n<100B", "100B<n<1T"};
    uint64_t most = 1000;
    for (size_t i = 0; i < sizeof name / sizeof *name; i++, most *= 10)
        if (n < most)
            return name[i];
    return "n>1T";
}

static int put_front(const struct slu_card *c, struct slu_buf *out, struct slu_err *err)
{
    const char *format = c->cfg->format->name;
    int rc = slu_buf_printf(out, err, "---\n");
    if (!rc)
        rc = put_license(c, out, err);
    if (!rc)
        rc = slu_buf_printf(
            out, err,
            "size_categories:\n- %s\ntask_categories:\n- text-generation\ntags:\n"
            "- tokenized\n- %s\n- variable-sequence-length\n- %s\n- sluice\n",
            size_category(c->sum->n.sequences),
            c->header->masks ? "fine-tuning" : "pretraining",
            !strcmp(format, "wds")  ? "webdataset"
            : !strcmp(format, "ds") ? "datatrove"
                                    : format);
    if (!rc && !strcmp(format, "parquet"))
        rc = slu_buf_printf(out, err, "configs:\n");
    for (unsigned i = 0; i < c->n_bucket && !rc && !strcmp(format, "parquet"); i++)
        rc = slu_buf_printf(out, err,
                            "- config_name: %s\n  data_files: \"%s/*.parquet\"\n",
                            c->bucket[i].b->name, c->bucket[i].b->name);
    return rc ? rc : slu_buf_printf(out, err, "---\n\n");
}

/* ---- description ---- */

static int row_u64(struct slu_buf *out, const char *name, uint64_t v,
                   struct slu_err *err)
{
    char n[32];
    return slu_buf_printf(out, err, "| %s | %s |\n", name, slu_card_grouped(v, n));
}

static int put_head(const struct slu_card *c, struct slu_buf *out, struct slu_err *err)
{
    const struct slu_count *n = &c->sum->n;
    char a[32], b[32], d[32];
    int rc = slu_buf_printf(
        out, err,
        "# %s tokens in %s\n\n"
        "%s sequences of token ids for %s language models, made from %s documents",
        slu_card_grouped(n->tokens, a),
        c->cfg->documents ? "whole documents" : "sequences by length",
        slu_card_grouped(n->sequences, b),
        c->header->masks ? "fine-tuning" : "training",
        slu_card_grouped(n->documents, d));
    if (!rc && c->cfg->documents)
        rc = slu_buf_printf(out, err, ": each sequence is a whole document");
    else if (!rc && c->n_bucket)
        rc = slu_buf_printf(
            out, err,
            ", in %u folder%s: all sequences of a folder have the same length (%s%s%s)",
            c->n_bucket, slu_plural(c->n_bucket),
            slu_card_grouped(c->bucket[0].b->length, a), c->n_bucket == 1 ? "" : " to ",
            c->n_bucket == 1
                ? ""
                : slu_card_grouped(c->bucket[c->n_bucket - 1].b->length, b));
    if (!rc)
        rc = slu_buf_printf(out, err,
                            ".\nThe files are %s.\n\n"
                            "![Tokens and sequences by length](lengths.svg)\n\n",
                            slu_card_reader(c));
    return rc;
}

static int put_id(struct slu_buf *out, const char *name, uint64_t id,
                  struct slu_err *err)
{
    return id == SLU_NO_TOKEN
               ? slu_buf_printf(out, err, "| %s | none |\n", name)
               : slu_buf_printf(out, err, "| %s | %llu |\n", name, (ull)id);
}

static int put_tokenizer(const struct slu_header *h, struct slu_buf *out,
                         struct slu_err *err)
{
    size_t n;
    const char *known = slu_header_tokenizer(h, &n);
    char name[80];
    if (!known)
        return SLU_OK;
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1),
             known);
    int rc = slu_buf_printf(out, err, "| tokenizer | ");
    if (!rc)
        rc = slu_card_text(out, name, err);
    return rc ? rc : slu_buf_printf(out, err, " |\n");
}

static int put_facts(const struct slu_card *c, struct slu_buf *out, struct slu_err *err)
{
    const struct slu_header *h = c->header;
    char hex[33], n[32];
    int rc = slu_buf_printf(out, err,
                            "## What it is\n\n| | |\n|---|---|\n| format | "
                            "`%s` |\n| licence | ",
                            c->cfg->format->name);
    if (!rc)
        rc = slu_card_text(out, c->cfg->license ? c->cfg->license : "not specified",
                           err);
    if (!rc)
        rc = slu_buf_printf(out, err, " |\n");
    if (!rc)
        rc = row_u64(out, "tokens", c->sum->n.tokens, err);
    if (!rc)
        rc = slu_buf_printf(out, err, "| of which padding | %s (%.2f %%) |\n",
                            slu_card_grouped(c->sum->padding, n),
                            percent(c->sum->padding, c->sum->n.tokens));
    if (!rc && h->masks)
        rc = slu_buf_printf(out, err, "| of which trained on | %s (%.2f %%) |\n",
                            slu_card_grouped(c->sum->n.loss_tokens, n),
                            percent(c->sum->n.loss_tokens, c->sum->n.tokens));
    if (!rc)
        rc = row_u64(out, "sequences", c->sum->n.sequences, err);
    if (!rc)
        rc = row_u64(out, "of which hold several documents", c->n_packed, err);
    if (!rc)
        rc = row_u64(out, "documents", c->sum->n.documents, err);
    if (!rc)
        rc = slu_buf_printf(out, err, "| vocabulary | %s ids, %u bytes each |\n",
                            slu_card_grouped(h->vocab_size, n), slu_header_stored(h));
    if (!rc)
        rc = put_id(out, "end of document", h->eos, err);
    if (!rc)
        rc = put_id(out, "begin of document", h->bos, err);
    if (!rc)
        rc = put_id(out, "padding id", h->pad, err);
    if (!rc)
        rc = put_tokenizer(h, out, err);
    if (!rc)
        rc = slu_buf_printf(out, err, "| tokenizer's fingerprint | `");
    for (int i = 0; i < 16 && !rc; i++)
        rc = slu_buf_printf(out, err, "%02x", h->fingerprint[i]);
    slu_u128_hex(c->sum->checksum, hex);
    if (!rc)
        rc = slu_buf_printf(
            out, err, "` |\n| checksum of the sequences, in any order | `%s` |\n", hex);
    if (!rc && h->label_tokens)
        rc = slu_buf_printf(out, err,
                            "\nA sequence of length L has L + 1 ids: the last one is "
                            "the last label.\n");
    if (!rc && c->n_packed && c->cfg->format->boundaries) {
        rc = slu_buf_printf(out, err, "\nSequences that hold several documents: ");
        if (!rc)
            rc = slu_card_text(out, c->cfg->format->boundaries, err);
        if (!rc)
            rc = slu_buf_printf(out, err, ".\n");
    }
    return rc ? rc : slu_buf_printf(out, err, "\n");
}

static int put_use(const struct slu_card *c, struct slu_buf *out, struct slu_err *err)
{
    const char *package = slu_card_package(c);
    int rc = slu_buf_printf(out, err, "## How to read it\n\n");
    if (!rc && package)
        rc = slu_buf_printf(out, err, "With `pip install %s`, in this folder:\n\n",
                            package);
    if (!rc)
        rc = slu_buf_printf(out, err, "```python\n");
    if (!rc)
        rc = slu_card_python(c, out, err);
    if (!rc)
        rc = slu_buf_printf(out, err, "```\n\n");
    if (!rc && c->cfg->format->card)
        rc = c->cfg->format->card(c->state, out, err);
    if (!rc)
        rc = slu_buf_printf(
            out, err,
            "`segments/` says for every sequence which part of which document "
            "it "
            "has: `inspect --records` joins\nboth, and `inspect --jsonl` gives the "
            "text "
            "back, as the vocabulary is there too unless it was left out.\n");
    if (!rc && c->n_bucket)
        rc = slu_buf_printf(
            out, err,
            "Sluice's Python package joins both too%s:\n\n```python\nimport sluice\n\n"
            "q = sluice.open(\".\")[\"%s\"][0]\n"
            "q.ids, q.cu_seqlens  # its documents begin at cu_seqlens\n"
            "q.position_ids, q.loss_mask, q.documents\n```\n",
            c->cfg->documents ? "" : ", and takes batches in the order of a schedule",
            c->bucket[0].b->name);
    return rc ? rc : slu_buf_append(out, "\n", 1, err);
}

/* ---- tables ---- */

static int put_documents(const struct slu_card *c, struct slu_buf *out,
                         struct slu_err *err)
{
    const struct slu_shard_bucket *k = c->bucket[0].b;
    char a[32], b[32], more[64];

    snprintf(more, sizeof more, ", each with %llu bytes more",
             (unsigned long long)k->rule.per_seq);
    return slu_buf_printf(
        out, err,
        "## Files\n\nThe folder `documents` has %s shard%s; each has the documents "
        "that begin in %s %s%s.\n\n",
        slu_card_grouped(k->n_shard, a), slu_plural(k->n_shard),
        slu_card_grouped(k->rule.size, b),
        k->rule.per_tok ? "bytes of ids" : "documents",
        k->rule.per_tok && k->rule.per_seq ? more : "");
}

static int put_buckets(const struct slu_card *c, struct slu_buf *out,
                       struct slu_err *err)
{
    if (c->cfg->documents)
        return c->n_bucket ? put_documents(c, out, err) : SLU_OK;
    char a[32], b[32], d[32], e[32], f[32];
    int rc = slu_buf_printf(out, err,
                            "## Lengths\n\n| folder | length | sequences | tokens | "
                            "share | shards | sequences a shard |\n"
                            "|---|---:|---:|---:|---:|---:|---:|\n");
    for (unsigned i = 0; i < c->n_bucket && !rc; i++) {
        const struct slu_shard_bucket *k = c->bucket[i].b;
        uint64_t n_tok = k->n_seq * k->n_id;
        rc = slu_buf_printf(
            out, err, "| `%s` | %s | %s | %s | %.1f %% | %s | %s", k->name,
            slu_card_grouped(k->length, a), slu_card_grouped(k->n_seq, b),
            slu_card_grouped(n_tok, d), percent(n_tok, c->sum->n.tokens),
            slu_card_grouped(k->n_shard, e), slu_card_grouped(k->shard_sequences, f));
        if (!rc && c->bucket[i].n_short)
            rc = slu_buf_printf(out, err, ", the last %s",
                                slu_card_grouped(c->bucket[i].n_short, a));
        if (!rc)
            rc = slu_buf_printf(out, err, " |\n");
    }
    return rc ? rc : slu_buf_printf(out, err, "\n");
}

static int put_domains(const struct slu_card *c, struct slu_buf *out,
                       struct slu_err *err)
{
    size_t most = c->n_domain > ROWS ? ROWS : c->n_domain;
    struct slu_domain_row all = slu_domains_sum(c->domain, 0, c->n_domain);
    char a[32], b[32];
    int rc = slu_buf_printf(out, err, "## Domains\n\n");
    if (!rc && c->n_domain <= 1 && (!c->n_domain || !c->domain[0].name))
        return slu_buf_printf(out, err, "The documents have none.\n\n");
    if (!rc)
        rc = slu_buf_printf(
            out, err,
            "| domain | documents | tokens | share |\n|---|---:|---:|---:|\n");
    for (size_t i = 0; i < most && !rc; i++) {
        const struct slu_domain_row *r = &c->domain[i];
        rc = slu_buf_printf(out, err, "| ");
        if (!rc)
            rc = r->name ? slu_card_text(out, r->name, err)
                         : slu_buf_printf(out, err, "(none)");
        if (!rc)
            rc = slu_buf_printf(
                out, err, " | %s | %s | %.1f %% |\n", slu_card_grouped(r->documents, a),
                slu_card_grouped(r->tokens, b), percent(r->tokens, all.tokens));
    }
    if (!rc && c->n_domain > most) {
        struct slu_domain_row r = slu_domains_sum(c->domain, most, c->n_domain);
        rc = slu_buf_printf(out, err, "| (%zu others) | %s | %s | %.1f %% |\n",
                            c->n_domain - most, slu_card_grouped(r.documents, a),
                            slu_card_grouped(r.tokens, b),
                            percent(r.tokens, all.tokens));
    }
    return rc ? rc : slu_buf_printf(out, err, "\n");
}

static int put_more(const struct slu_card *c, struct slu_buf *out, struct slu_err *err)
{
    return slu_buf_append(out, c->sections->data, c->sections->len, err);
}

/* The names alone, of streams that do not have more. */
static int put_names(const char *const *name, uint64_t n, struct slu_buf *out,
                     struct slu_err *err)
{
    int rc = SLU_OK;
    for (uint64_t i = 0; i < n && i < SOURCE_ROWS && !rc; i++) {
        rc = slu_buf_printf(out, err, "- ");
        if (!rc)
            rc = slu_card_text(out, name[i], err);
        if (!rc)
            rc = slu_buf_printf(out, err, "\n");
    }
    return rc;
}

/* Sums the sources of the steps before tokenize, or those of the others. */
static int add_sources(const struct slu_step_list *s, bool aside,
                       struct slu_source_rows *rows, struct slu_err *err)
{
    int rc = SLU_OK;
    for (size_t i = 0; i < s->n && !rc; i++)
        if (slu_step_is_aside(&s->row[i]) == aside)
            rc = slu_source_rows_add(rows, &s->row[i].sources, err);
    return rc;
}

/* The files of the programs before tokenize, which gave it text. */
static int put_before(const struct slu_card *c, struct slu_buf *out,
                      struct slu_err *err)
{
    struct slu_source_rows rows = {0};
    char a[32];
    int rc = add_sources(c->steps, true, &rows, err);
    if (!rc && rows.n)
        rc = slu_buf_printf(out, err,
                            "Their text was made from %s file%s%s, of which tokenize "
                            "took:\n\n",
                            slu_card_grouped(rows.n, a), slu_plural(rows.n),
                            rows.n == SLU_SOURCE_ROWS ? " or more" : "");
    if (!rc && rows.n)
        rc = slu_card_source_rows(&rows, SOURCE_ROWS, out, err);
    if (!rc && rows.n > SOURCE_ROWS)
        rc = slu_buf_printf(out, err, "\nand %s more; `report.json` names them\n",
                            slu_card_grouped(rows.n - SOURCE_ROWS, a));
    if (!rc && rows.n)
        rc = slu_buf_printf(out, err, "\n");
    slu_source_rows_release(&rows);
    return rc;
}

static int put_sources(const struct slu_card *c, struct slu_buf *out,
                       struct slu_err *err)
{
    const char *name[SOURCE_ROWS];
    struct slu_source_rows rows = {0};
    uint64_t n;
    char a[32];
    int rc = slu_names_sources(c->cfg->names, name, SOURCE_ROWS, &n, err);
    if (!rc)
        rc = add_sources(c->steps, false, &rows, err);
    const bool known = rows.n >= n || rows.n >= SOURCE_ROWS;
    n = known && rows.n > n ? rows.n : n; /* of some the set has nothing */
    if (!rc)
        rc =
            slu_buf_printf(out, err, "## Sources\n\n%s file%s of text%s:\n\n",
                           slu_card_grouped(n, a), slu_plural(n),
                           known ? ", as tokenize read them; the checksum of a file is "
                                   "that of a stream of\nthis file alone"
                                 : "");
    if (!rc)
        rc = known ? slu_card_source_rows(&rows, SOURCE_ROWS, out, err)
                   : put_names(name, n, out, err);
    if (!rc && n > SOURCE_ROWS)
        rc = slu_buf_printf(out, err, "%sand %s more; `report.json` names up to %u\n",
                            known ? "\n" : "- ", slu_card_grouped(n - SOURCE_ROWS, a),
                            SOURCES);
    slu_source_rows_release(&rows);
    if (!rc)
        rc = slu_buf_printf(out, err, "\n");
    return rc ? rc : put_before(c, out, err);
}

/* Puts foreign text into a code block, in which only a line that ends the block is
 * special. */
static int put_code(struct slu_buf *out, const char *s, struct slu_err *err)
{
    size_t left = strlen(s);
    int rc = SLU_OK;
    while (left && !rc) {
        unsigned n = slu_utf8_valid_at((const uint8_t *)s, left);
        bool plain = n && (uint8_t)*s >= 0x20 && *s != 0x7f && *s != '`';
        rc = slu_buf_append(out, plain ? s : "?", plain ? n : 1, err);
        s += n ? n : 1;
        left -= n ? n : 1;
    }
    return rc;
}

/* The step number *i of the first stream, and before it those that made its text; NULL:
 * no more. */
static const struct slu_step *next_step(const struct slu_card *c, size_t *i,
                                        size_t n_aside)
{
    const struct slu_header *h = c->header;
    const size_t k = (*i)++;
    return k < n_aside               ? &c->steps->row[k].step
           : k - n_aside < h->n_step ? &h->step[k - n_aside]
                                     : NULL;
}

static int put_made(const struct slu_card *c, struct slu_buf *out, struct slu_err *err)
{
    const struct slu_step *t;
    size_t i = 0, n_aside = 0;
    int rc = slu_buf_printf(out, err, "## How it was made\n\n");
    while (n_aside < c->steps->n && slu_step_is_aside(&c->steps->row[n_aside]))
        n_aside++;
    const size_t n = n_aside + c->header->n_step;
    if (!rc && !n)
        return slu_buf_printf(out, err, "That was not recorded.\n\n");
    if (!rc)
        rc = slu_buf_printf(out, err,
                            "By these programs, with the options that affect the "
                            "result; names of files are left out:\n\n```sh\n%s",
                            n_aside > 1 ? "{ " : "");
    while (!rc && (t = next_step(c, &i, n_aside))) {
        rc = put_code(out, t->program, err);
        if (!rc && *t->arguments)
            rc = slu_buf_printf(out, err, " ");
        if (!rc)
            rc = put_code(out, t->arguments, err);
        if (!rc && t->seed)
            rc = slu_buf_printf(out, err, " --seed %llu", (ull)t->seed);
        if (!rc) /* steps aside are one after the other */
            rc = slu_buf_printf(out, err, "%s",
                                i < n_aside             ? ";\n  "
                                : i == n_aside && i > 1 ? "; } |\n    "
                                : i < n                 ? " |\n    "
                                                        : "");
    }
    if (!rc)
        rc = slu_buf_printf(out, err, "\n```\n\nVersions:");
    for (i = 0; !rc && (t = next_step(c, &i, n_aside));) {
        rc = slu_buf_printf(out, err, "%s ", i > 1 ? "," : "");
        if (!rc)
            rc = slu_card_text(out, t->program, err);
        if (!rc)
            rc = slu_buf_printf(out, err, " ");
        if (!rc)
            rc = slu_card_text(out, t->version, err);
    }
    if (!rc && c->steps->n > n)
        rc =
            slu_buf_printf(out, err,
                           ".\n\nThese are not all steps: others were not recorded, or "
                           "made streams that were joined later; the table above\nhas "
                           "what is known of them");
    return rc ? rc : slu_buf_printf(out, err, ".\n\n");
}

static int put_check(struct slu_buf *out, struct slu_err *err)
{
    return slu_buf_printf(
        out, err,
        "## How to check it\n\n"
        "`manifest.jsonl` has every file's bytes and XXH3-64 (`xxhsum -H3 FILE`), "
        "`report.json` the figures of this page\nfor programs. `inspect --verify .` "
        "reads all of it, and holds it against both.\n");
}

int slu_card_markdown(const struct slu_card *c, struct slu_buf *out,
                      struct slu_err *err)
{
    static int (*const part[])(const struct slu_card *, struct slu_buf *,
                               struct slu_err *) = {
        put_front,   put_head, put_facts,   put_use,        put_buckets,
        put_domains, put_more, put_sources, slu_card_steps, put_made};
    int rc = SLU_OK;
    for (size_t i = 0; i < sizeof part / sizeof *part && !rc; i++)
        rc = part[i](c, out, err);
    return rc ? rc : put_check(out, err);
}

int slu_card_svg(const struct slu_card *c, struct slu_buf *out, struct slu_err *err)
{
    const bool documents = c->cfg->documents;
    struct slu_length_count row[SLU_MAX_BUCKETS];
    for (unsigned i = 0; i < c->n_bucket; i++)
        row[i] = (struct slu_length_count){c->bucket[i].b->n_id, c->bucket[i].b->n_seq};
    struct slu_svg_lengths p = {.row = documents ? c->length : row,
                                .n_row = documents ? c->n_length : c->n_bucket,
                                .bucket = c->header->bucket,
                                .n_bucket = c->header->n_bucket,
                                .label_tokens = c->header->label_tokens,
                                .documents = c->sum->n.documents,
                                .padding_tok = c->sum->padding};
    return slu_svg_lengths(&p, out, err);
}

/* ---- report.json ---- */

static int json_id(struct slu_buf *out, const char *key, uint64_t id,
                   struct slu_err *err)
{
    return id == SLU_NO_TOKEN
               ? slu_buf_printf(out, err, ", \"%s\": null", key)
               : slu_buf_printf(out, err, ", \"%s\": %llu", key, (ull)id);
}

static int json_sources(const struct slu_card *c, struct slu_buf *out,
                        struct slu_err *err)
{
    const char *name[SOURCES];
    uint64_t n;
    int rc = slu_names_sources(c->cfg->names, name, SOURCES, &n, err);
    if (!rc)
        rc = slu_buf_printf(out, err, "  \"sources\": {\"count\": %llu, \"names\": [",
                            (ull)n);
    for (uint64_t i = 0; i < n && i < SOURCES && !rc; i++) {
        rc = slu_buf_printf(out, err, "%s", i ? ", " : "");
        if (!rc)
            rc = slu_json_put_string(out, name[i], strlen(name[i]), err);
    }
    return rc ? rc : slu_buf_printf(out, err, "]},\n");
}

int slu_card_json(const struct slu_card *c, struct slu_buf *out, struct slu_err *err)
{
    const struct slu_header *h = c->header;
    const char *l = c->cfg->license;
    int rc = slu_buf_printf(out, err, "  \"license\": ");
    if (!rc)
        rc = l ? slu_json_put_string(out, l, strlen(l), err)
               : slu_buf_printf(out, err, "null");
    size_t n_name = 0;
    const char *name = slu_header_tokenizer(h, &n_name);
    if (!rc)
        rc = slu_buf_printf(out, err, ",\n  \"tokenizer\": {\"name\": ");
    if (!rc)
        rc = name ? slu_json_put_string(out, name, n_name, err)
                  : slu_buf_printf(out, err, "null");
    if (!rc)
        rc = slu_buf_printf(out, err, ", \"fingerprint\": \"");
    for (int i = 0; i < 16 && !rc; i++)
        rc = slu_buf_printf(out, err, "%02x", h->fingerprint[i]);
    if (!rc)
        rc = slu_buf_printf(out, err, "\", \"vocab_size\": %llu, \"token_bytes\": %u",
                            (ull)h->vocab_size, slu_header_stored(h));
    if (!rc)
        rc = json_id(out, "eos_id", h->eos, err);
    if (!rc)
        rc = json_id(out, "bos_id", h->bos, err);
    if (!rc)
        rc = json_id(out, "pad_id", h->pad, err);
    if (!rc)
        rc = slu_buf_printf(out, err,
                            "},\n  \"packed_sequences\": %llu,\n"
                            "  \"domains\": ",
                            (ull)c->n_packed);
    if (!rc)
        rc = slu_domains_put_json(c->domain, c->n_domain, out, err);
    if (!rc)
        rc = slu_buf_printf(out, err, ",\n");
    return rc ? rc : json_sources(c, out, err);
}
