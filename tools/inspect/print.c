/* print.c - inspect prints one JSON object, a summary, a histogram or records. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/base/json_write.h"
#include "lib/base/number.h"
#include "lib/token/detok.h"
#include "tools/inspect/inspect.h"

typedef unsigned long long ull; /* for printf */

static int by_length(const void *a, const void *b)
{
    const struct inspect_row *x = a, *y = b;
    return x->len_tok < y->len_tok ? -1 : x->len_tok > y->len_tok;
}

int inspect_rows(const struct slu_map *lengths, struct inspect_row **row, size_t *n,
                 struct slu_err *err)
{
    *n = 0;
    *row = malloc((lengths->n + 1) * sizeof **row);
    if (!*row)
        return slu_fail_nomem(err, (lengths->n + 1) * sizeof **row);
    for (size_t i = 0; i < lengths->cap; i++)
        if (lengths->slot[i].used)
            (*row)[(*n)++] =
                (struct inspect_row){lengths->slot[i].key, lengths->slot[i].value};
    qsort(*row, *n, sizeof **row, by_length);
    return SLU_OK;
}

static int put_id(struct slu_buf *b, const char *key, uint64_t id, struct slu_err *err)
{
    if (id == SLU_NO_TOKEN)
        return slu_buf_printf(b, err, ", \"%s\": null", key);
    return slu_buf_printf(b, err, ", \"%s\": %llu", key, (ull)id);
}

/* All of it is one line. */
static int put_provenance(struct slu_buf *b, const struct slu_step_list *steps,
                          struct slu_err *err)
{
    int rc = slu_buf_printf(b, err, ", \"provenance\": ");
    const size_t from = b->len;
    if (!rc)
        rc = slu_steps_put_json(steps, b, err);
    for (size_t i = from; i < b->len; i++)
        if (b->data[i] == '\n')
            b->data[i] = ' ';
    return rc;
}

/* Appends the metadata's fields. */
static int put_fields(struct slu_buf *b, const struct slu_meta_fields *t,
                      struct slu_err *err)
{
    int rc = slu_buf_printf(b, err, ", \"metadata\": [");

    for (unsigned i = 0; i < t->n && !rc; i++) {
        rc = slu_buf_printf(b, err, "%s{\"name\": ", i ? ", " : "");
        if (!rc)
            rc =
                slu_json_put_string(b, t->field[i].name, strlen(t->field[i].name), err);
        if (!rc)
            rc = slu_buf_printf(b, err, ", \"type\": \"%s\"}",
                                slu_meta_type_name(t->field[i].type));
    }
    return rc ? rc : slu_buf_printf(b, err, "]");
}

static int put_lists(struct slu_buf *b, const struct inspect_seen *s,
                     struct slu_err *err)
{
    const struct slu_header *h = s->header;
    struct inspect_row *row;
    size_t n;
    int rc = inspect_rows(&s->lengths, &row, &n, err);
    if (!rc)
        rc = slu_buf_printf(b, err, ", \"lengths\": [");
    for (size_t i = 0; !rc && i < n; i++)
        rc = slu_buf_printf(b, err, "%s[%llu, %llu]", i ? ", " : "",
                            (ull)row[i].len_tok, (ull)row[i].n_seq);
    free(row);
    if (!rc)
        rc = slu_buf_printf(b, err, "], \"label_tokens\": %s",
                            h->label_tokens ? "true" : "false");
    for (unsigned k = 0; !rc && k < SLU_N_EXTRA; k++)
        if (h->has[k])
            rc = slu_buf_printf(b, err, ", \"%s\": true", slu_extra_kind[k].plural);
    if (!rc && h->meta.n)
        rc = put_fields(b, &h->meta, err);
    if (!rc && s->shards_json)
        return slu_buf_printf(b, err, ", \"buckets\": %s", s->shards_json);
    if (!rc)
        rc = slu_buf_printf(b, err, ", \"bucket_lengths\": [");
    for (unsigned i = 0; !rc && i < h->n_bucket; i++)
        rc = slu_buf_printf(b, err, "%s%llu", i ? ", " : "", (ull)h->bucket[i]);
    return rc ? rc : slu_buf_printf(b, err, "]");
}

static int print_json(const struct inspect_seen *s, struct slu_err *err)
{
    const struct slu_header *h = s->header;
    struct slu_buf b = SLU_BUF_INIT;
    char sum[33], trace[33], print[33];
    size_t n_name = 0;
    const char *name = slu_header_tokenizer(h, &n_name);
    slu_u128_hex(s->sum.checksum, sum);
    slu_u128_hex(s->sum.trace_checksum, trace);
    for (int i = 0; i < 16; i++)
        snprintf(print + 2 * i, 3, "%02x", h->fingerprint[i]);
    int rc = slu_buf_printf(&b, err, "{\"kind\": \"%s\"", s->kind);
    if (!rc && s->format)
        rc = slu_buf_printf(&b, err, ", \"format\": \"%s\"", s->format);
    if (!rc)
        rc = slu_buf_printf(
            &b, err,
            ", \"token_bytes\": %u, \"documents\": %llu, \"sequences\": %llu, "
            "\"segments\": "
            "%llu, \"tokens\": %llu, \"padding\": %llu, \"vocab_size\": %llu",
            slu_header_stored(h), (ull)s->sum.n.documents, (ull)s->sum.n.sequences,
            (ull)s->sum.segments, (ull)s->sum.n.tokens, (ull)s->sum.padding,
            (ull)h->vocab_size);
    if (!rc)
        rc = put_id(&b, "eos_id", h->eos, err);
    if (!rc)
        rc = put_id(&b, "bos_id", h->bos, err);
    if (!rc)
        rc = put_id(&b, "pad_id", h->pad, err);
    if (!rc)
        rc = slu_buf_printf(&b, err,
                            ", \"fingerprint\": \"%s\", \"checksum\": \"%s\", "
                            "\"trace_checksum\": \"%s\", \"tokenizer\": ",
                            print, sum, trace);
    if (!rc)
        rc = name ? slu_json_put_string(&b, name, n_name, err)
                  : slu_buf_printf(&b, err, "null");
    slu_u128_hex(s->sum.mask_checksum, sum);
    if (!rc && h->masks)
        rc = slu_buf_printf(&b, err,
                            ", \"loss_tokens\": %llu, \"mask_checksum\": \"%s\"",
                            (ull)s->sum.n.loss_tokens, sum);
    slu_u128_hex(s->sum.meta_checksum, sum);
    if (!rc && h->meta.n)
        rc = slu_buf_printf(&b, err, ", \"metadata_checksum\": \"%s\"", sum);
    if (!rc)
        rc = put_provenance(&b, &s->steps, err);
    if (!rc)
        rc = put_lists(&b, s, err);
    if (!rc)
        rc = inspect_put_domains(s, &b, err);
    if (!rc)
        printf("%.*s}\n", (int)b.len, (char *)b.data);
    slu_buf_release(&b);
    return rc;
}

/* The line of --verify. */
static void print_verdict(const struct slu_header *h, const struct slu_sum *t)
{
    const struct slu_count *n = &t->n;
    char sum[33];
    slu_u128_hex(t->checksum, sum);
    printf("ok: %llu sequence%s, %llu token%s, %llu document%s, checksum %s",
           (ull)n->sequences, slu_plural(n->sequences), (ull)n->tokens,
           slu_plural(n->tokens), (ull)n->documents, slu_plural(n->documents), sum);
    slu_u128_hex(t->mask_checksum, sum);
    if (h->masks)
        printf(", %llu token%s trained on, checksum of masks %s", (ull)n->loss_tokens,
               slu_plural(n->loss_tokens), sum);
    slu_u128_hex(t->meta_checksum, sum);
    if (h->meta.n)
        printf(", of metadata %s", sum);
    printf("\n");
}

int inspect_escape(struct slu_buf *b, const char *s, size_t n, struct slu_err *err)
{
    int rc = SLU_OK;

    for (uint32_t ch; n && !rc;) {
        unsigned bad = slu_unprintable(s, n, &ch);
        unsigned k = bad ? bad : slu_utf8_valid_at((const uint8_t *)s, n);
        rc = bad ? slu_buf_printf(b, err, "\\u%04x", (unsigned)ch)
                 : slu_buf_append(b, s, k, err);
        s += k;
        n -= k;
    }
    return rc;
}

/* Prints text of the data; see inspect_escape. */
static void print_text(const char *s, size_t n)
{
    struct slu_buf b = SLU_BUF_INIT;

    if (!inspect_escape(&b, s, n, NULL) && b.len)
        fwrite(b.data, 1, b.len, stdout);
    slu_buf_release(&b);
}

static void print_step(const struct slu_step_row *row, bool first)
{
    const struct slu_step *step = &row->step;
    struct slu_buf b = SLU_BUF_INIT;
    printf("  %-11s ", first ? "made by" : "");
    print_text(step->program, strlen(step->program));
    putchar(' ');
    print_text(step->version, strlen(step->version));
    if (*step->arguments)
        putchar(' ');
    print_text(step->arguments, strlen(step->arguments));
    printf(", seed %llu\n", (ull)step->seed);
    if (slu_step_is_aside(row)) {
        uint64_t n = 0;
        for (size_t i = 0; i < row->sources.n; i++)
            n += row->sources.row[i].documents;
        printf("  %-13s %llu document%s from %zu file%s\n", "", (ull)n, slu_plural(n),
               row->sources.n, slu_plural(row->sources.n));
    }
    if (row->counted && !cli_put_account(&b, &row->account)) {
        printf("  %-13s ", "");
        print_text((const char *)b.data, b.len - 1);
        putchar('\n');
    }
    if (row->counted && row->uncounted)
        printf("  %-13s and a stream without counts\n", "");
    slu_buf_release(&b);
}

/* Begins a line, if the tokenizer is known. */
static void print_tokenizer(const struct slu_header *h)
{
    static const uint8_t unknown[16];
    size_t n = 0;
    const char *name = slu_header_tokenizer(h, &n);
    const bool is_file = n > 5 && !memcmp(name, "file:", 5);
    if (!memcmp(h->fingerprint, unknown, 16))
        return;
    printf("\n  tokenizer   ");
    if (name) {
        printf("%s", is_file ? "family " : "");
        print_text(is_file ? name + 5 : name, is_file ? n - 5 : n);
        printf(is_file ? ", from a file, " : ", ");
    }
    printf("fingerprint ");
    for (int i = 0; i < 16; i++)
        printf("%02x", h->fingerprint[i]);
}

static int print_summary(const struct inspect_seen *s, struct slu_err *err)
{
    const struct slu_header *h = s->header;
    char sum[33];
    slu_u128_hex(s->sum.checksum, sum);
    printf("%s%s%s\n", s->kind, s->format ? ", format " : "",
           s->format ? s->format : "");
    const struct slu_count *n = &s->sum.n;
    printf("  tokens      %llu in %llu sequence%s, %llu segment%s, %llu document%s\n",
           (ull)n->tokens, (ull)n->sequences, slu_plural(n->sequences),
           (ull)s->sum.segments, slu_plural(s->sum.segments), (ull)n->documents,
           slu_plural(n->documents));
    if (s->sum.padding)
        printf("  padding     %llu token%s\n", (ull)s->sum.padding,
               slu_plural(s->sum.padding));
    if (h->masks)
        printf("  trained on  %llu token%s, %.1f %%\n", (ull)n->loss_tokens,
               slu_plural(n->loss_tokens),
               n->tokens ? 100.0 * (double)n->loss_tokens / (double)n->tokens : 0);
    if (h->vocab_size >> 32) /* files of ids do not have it */
        printf("  vocabulary  not known, ids of %u bytes", slu_header_stored(h));
    else
        printf("  vocabulary  %llu id%s, %u bytes each", (ull)h->vocab_size,
               slu_plural(h->vocab_size), slu_header_stored(h));
    if (h->eos != SLU_NO_TOKEN)
        printf(", eos %llu", (ull)h->eos);
    print_tokenizer(h);
    printf("\n  checksum    %s\n", sum);
    if (h->n_bucket) {
        printf("  buckets    ");
        for (unsigned i = 0; i < h->n_bucket; i++)
            printf(" %llu", (ull)h->bucket[i]);
        printf("%s\n", h->label_tokens ? " (+1, the last label)" : "");
    }
    for (unsigned i = 0; i < h->meta.n; i++) {
        const struct slu_meta_field *f = &h->meta.field[i];
        printf(i ? ", " : "  metadata    ");
        print_text(f->name, strlen(f->name));
        printf(" (%s)%s", slu_meta_type_name(f->type), i + 1 < h->meta.n ? "" : "\n");
    }
    for (size_t i = 0; i < s->steps.n; i++)
        print_step(&s->steps.row[i], i == 0);
    int rc = inspect_print_domains(s, err);
    printf("\n");
    return rc ? rc : inspect_print_histogram(s, err);
}

/* ---- histogram ---- */

/* Prints a bar in eighths of a character cell. */
static void bar(double share, int cells)
{
    static const char *const part[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    int eighths = (int)(share * cells * 8 + 0.5);
    for (int i = 0; i < eighths / 8; i++)
        fputs("█", stdout);
    fputs(part[eighths % 8], stdout);
}

struct bin {
    uint64_t low, high; /* lengths, both inclusive */
    uint64_t n_seq, n_tok;
    int bucket; /* -1: between buckets */
};

/* Bins are the powers of two, [2^k, 2^(k+1)); in addition each bucket's exact length
 * has its own bin. */
static size_t fill_bins(const struct slu_header *h, const struct inspect_row *row,
                        size_t n, struct bin *bin, size_t most)
{
    size_t n_bin = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t l = row[i].len_tok;
        int bucket = slu_header_bucket_of(h, l), k = l ? 63 - __builtin_clzll(l) : 0;
        struct bin *last = n_bin ? &bin[n_bin - 1] : NULL;
        if (!last || bucket >= 0 || last->bucket >= 0 || l > last->high) {
            if (n_bin == most)
                break;
            uint64_t low = UINT64_C(1) << k, high = low + (low - 1);
            if (bucket >= 0)
                low = high = l;
            bin[n_bin++] = (struct bin){low, high, 0, 0, bucket};
        }
        bin[n_bin - 1].n_seq += row[i].n_seq;
        bin[n_bin - 1].n_tok += row[i].n_seq * l;
    }
    return n_bin;
}

static int terminal_width(void)
{
    struct winsize w;
    int fd = fileno(stdout); /* -1 with -o */
    if (fd >= 0 && isatty(fd) && !ioctl(fd, TIOCGWINSZ, &w) && w.ws_col >= 60)
        return w.ws_col;
    return 80;
}

int inspect_print_histogram(const struct inspect_seen *s, struct slu_err *err)
{
    enum { MAX_BIN = 64 + 2 * SLU_MAX_BUCKETS };
    struct bin bin[MAX_BIN];
    struct inspect_row *row;
    size_t n;
    int rc = inspect_rows(&s->lengths, &row, &n, err);
    if (rc)
        return rc;
    size_t n_bin = fill_bins(s->header, row, n, bin, MAX_BIN);
    uint64_t most = 1, in_buckets = 0;
    for (size_t i = 0; i < n_bin; i++) {
        most = bin[i].n_tok > most ? bin[i].n_tok : most;
        in_buckets += bin[i].bucket >= 0 ? bin[i].n_tok : 0;
    }
    int cells = terminal_width() - 58;
    printf("%19s %14s %16s %6s\n", "length", "sequences", "tokens", "share");
    for (size_t i = 0; i < n_bin; i++) {
        char range[48];
        if (bin[i].low == bin[i].high)
            snprintf(range, sizeof range, "%s%llu", bin[i].bucket >= 0 ? "bucket " : "",
                     (ull)bin[i].low);
        else
            snprintf(range, sizeof range, "%llu-%llu", (ull)bin[i].low,
                     (ull)bin[i].high);
        printf("%19s %14llu %16llu %5.1f%% ", range, (ull)bin[i].n_seq,
               (ull)bin[i].n_tok,
               100.0 * (double)bin[i].n_tok / (double)s->sum.n.tokens);
        bar((double)bin[i].n_tok / (double)most, cells);
        printf("\n");
    }
    printf("%19s %14llu %16llu\n", "all", (ull)s->sum.n.sequences,
           (ull)s->sum.n.tokens);
    if (s->header->n_bucket)
        printf("%19s %14s %16llu %5.1f%%\n", "in buckets", "", (ull)in_buckets,
               s->sum.n.tokens ? 100.0 * (double)in_buckets / (double)s->sum.n.tokens
                               : 0.0);
    free(row);
    return SLU_OK;
}

int inspect_show(const struct inspect_seen *s, const struct inspect_opts *o,
                 struct slu_err *err)
{
    if (o->svg) {
        int rc = inspect_svg(s, o, err);
        if (rc || !(o->json || o->histogram || o->verify))
            return rc;
    }
    if (o->json)
        return print_json(s, err);
    if (o->histogram)
        return inspect_print_histogram(s, err);
    if (!o->verify)
        return print_summary(s, err);
    print_verdict(s->header, &s->sum);
    return SLU_OK;
}

/* ---- records ---- */

enum { FLUSH_BYTE = 64 << 10 };

static int put_field(struct slu_buf *line, const char *key, const void *p, size_t n,
                     struct slu_err *err)
{
    int rc = slu_buf_printf(line, err, ",\"%s\":", key);
    return rc ? rc : slu_json_put_string(line, p, n, err);
}

static int put_extra(struct slu_buf *line, const struct slu_extra_kind *kind,
                     uint64_t value, struct slu_err *err)
{
    uint64_t bits = value ^ kind->none;
    double number;
    char text[SLU_NUMBER_BYTE];
    memcpy(&number, &bits, sizeof number);
    if (!value)
        return SLU_OK;
    if (kind->is_double)
        slu_number_put(number, text);
    return kind->is_double
               ? slu_buf_printf(line, err, ",\"%s\":%s", kind->name, text)
               : slu_buf_printf(line, err, ",\"%s\":%llu", kind->name, (ull)bits);
}

/* Appends the values that are not null. */
static int put_metadata(struct slu_buf *line, const struct slu_batch *b,
                        const struct slu_seg *s, const struct slu_meta_fields *t,
                        struct slu_err *err)
{
    const char *before = ",\"metadata\":{";
    struct slu_meta_value v;
    int rc = SLU_OK;

    for (unsigned i = 0; s->meta_len && i < t->n && !rc; i++) {
        const struct slu_meta_field *f = &t->field[i];
        if (!slu_seg_meta(b, s, f->key, &v))
            continue;
        rc = slu_buf_printf(line, err, "%s", before);
        if (!rc)
            rc = slu_json_put_string(line, f->name, strlen(f->name), err);
        if (!rc)
            rc = slu_buf_printf(line, err, ":");
        if (!rc)
            rc = slu_meta_put_json(line, f->type, &v, err);
        before = ",";
    }
    return rc || !s->meta_len ? rc : slu_buf_printf(line, err, "}");
}

/* Appends {"source":…,"document":…,"offset":…,"length":…, with id and domain if the
 * segment has them, and without the closing brace. */
static int put_segment(struct slu_buf *line, const struct slu_batch *b,
                       const struct slu_seg *s, const struct inspect_names *in,
                       struct slu_err *err)
{
    struct slu_names *names = in->names;
    int rc;
    if (s->source == SLU_PADDING)
        return slu_buf_printf(line, err, "{\"padding\":true,\"length\":%llu",
                              (ull)s->len_tok);
    const char *source = slu_names_source(names, s->source);
    rc = slu_buf_printf(line, err, "{\"source\":");
    if (!rc)
        rc = slu_json_put_string(line, source ? source : "",
                                 source ? strlen(source) : 0, err);
    if (!rc)
        rc = slu_buf_printf(line, err,
                            ",\"source_number\":%llu,\"document\":%llu,\"offset\":%llu,"
                            "\"length\":%llu",
                            (ull)s->source, (ull)s->document, (ull)s->offset,
                            (ull)s->len_tok);
    if (!rc && s->id_len)
        rc = put_field(line, "id", b->str.data + s->id_off, s->id_len, err);
    const char *domain =
        s->domain == SLU_NO_DOMAIN ? NULL : slu_names_domain(names, s->domain);
    if (!rc && domain)
        rc = put_field(line, "domain", domain, strlen(domain), err);
    for (unsigned k = 0; !rc && k < SLU_N_EXTRA; k++)
        rc = put_extra(line, &slu_extra_kind[k], s->extra[k], err);
    return rc ? rc : put_metadata(line, b, s, in->meta, err);
}

static int print(struct slu_buf *line, struct slu_err *err)
{
    size_t n = line->len;
    slu_buf_clear(line);
    return fwrite(line->data, 1, n, stdout) == n
               ? SLU_OK
               : slu_fail_errno(err, "standard output: cannot be written");
}

/* Number of bytes at the end of p that may be the beginning of an incomplete
 * character. */
static size_t open_bytes(const uint8_t *p, size_t n)
{
    for (size_t k = 1; k <= 3 && k <= n; k++) {
        uint8_t c = p[n - k];
        if (c >= 0xC0)
            return (c < 0xE0 ? 2u : c < 0xF0 ? 3u : 4u) > k ? k : 0;
    }
    return 0;
}

/* Puts the text of tokens as a JSON string, with that of special tokens or without.
 * Decodes one window of tokens after the other, so that a line may be longer than memory.
 */
static int put_string(struct slu_buf *line, const struct slu_batch *b, uint64_t at,
                      uint64_t n, const struct slu_vocab_table *v, bool special,
                      struct slu_err *err)
{
    enum { WINDOW = 4096 };
    struct slu_buf text = SLU_BUF_INIT, plain = SLU_BUF_INIT;
    int rc = slu_buf_printf(line, err, "\"");
    for (uint64_t from = 0; !rc && from < n; from += WINDOW) {
        uint64_t k = n - from < WINDOW ? n - from : WINDOW;
        const void *ids;
        rc = slu_batch_ids(b, at + from, k, false, &plain, &ids, NULL, err);
        if (!rc)
            rc = slu_detok(v, ids, k, b->tok_bytes, special, &text, err);
        size_t open = from + k < n ? open_bytes(text.data, text.len) : 0;
        if (!rc)
            rc = slu_json_put_part(line, text.data, text.len - open, err);
        if (!rc)
            rc = print(line, err);
        if (open)
            memmove(text.data, text.data + text.len - open, open);
        text.len = open;
    }
    slu_buf_release(&text);
    slu_buf_release(&plain);
    return rc ? rc : slu_buf_printf(line, err, "\"");
}

/* Puts the text of tokens, and of each run of them that is trained on. */
static int put_text(struct slu_buf *line, const struct slu_batch *b, uint64_t at,
                    uint64_t n, const struct slu_vocab_table *v, bool special,
                    struct slu_err *err)
{
    int rc = slu_buf_printf(line, err, ",\"text\":");
    if (!rc)
        rc = put_string(line, b, at, n, v, special, err);
    if (rc || !b->masks)
        return rc;
    rc = slu_buf_printf(line, err, ",\"trained\":[");
    const char *comma = "";
    for (uint64_t i = at, end = at + n, to; !rc && i < end; i = to + 1) {
        for (to = i; to < end && slu_batch_trained(b, to);)
            to++;
        if (to == i)
            continue;
        rc = slu_buf_printf(line, err, "%s", comma);
        if (!rc)
            rc = put_string(line, b, i, to - i, v, special, err);
        comma = ",";
    }
    return rc ? rc : slu_buf_printf(line, err, "]");
}

static int put_tokens(struct slu_buf *line, const struct slu_batch *b, uint64_t at,
                      uint64_t n, struct slu_err *err)
{
    int rc = slu_buf_printf(line, err, ",\"tokens\":[");
    for (uint64_t i = 0; !rc && i < n; i++) {
        rc = slu_buf_printf(line, err, i ? ",%u" : "%u", slu_batch_id(b, at + i));
        if (!rc && line->len > FLUSH_BYTE)
            rc = print(line, err);
    }
    return rc ? rc : slu_buf_printf(line, err, "]");
}

static int put_mask(struct slu_buf *line, const struct slu_batch *b, uint64_t at,
                    uint64_t n, struct slu_err *err)
{
    int rc = slu_buf_printf(line, err, ",\"mask\":[");
    for (uint64_t i = 0; !rc && i < n; i++) {
        rc = slu_buf_printf(line, err, i ? ",%d" : "%d", slu_batch_trained(b, at + i));
        if (!rc && line->len > FLUSH_BYTE)
            rc = print(line, err);
    }
    return rc ? rc : slu_buf_printf(line, err, "]");
}

int inspect_print_record(struct slu_batch *b, const struct slu_seq *q,
                         const struct inspect_names *names, struct slu_buf *line,
                         struct slu_err *err)
{
    slu_buf_clear(line);
    int rc = slu_buf_printf(line, err, "{\"segments\":[");
    for (uint64_t i = 0; !rc && i < q->n_seg; i++) {
        if (i)
            rc = slu_buf_printf(line, err, ",");
        if (!rc)
            rc = put_segment(line, b, &b->seg[q->seg_off + i], names, err);
        if (!rc)
            rc = slu_buf_printf(line, err, "}");
    }
    if (!rc)
        rc = slu_buf_printf(line, err, "]");
    if (!rc && slu_batch_has_ids(b))
        rc = put_tokens(line, b, q->tok_off, q->len_tok, err);
    if (!rc && b->masks)
        rc = put_mask(line, b, q->tok_off, q->len_tok, err);
    const struct slu_seg *last = &b->seg[q->seg_off + q->n_seg - 1];
    const uint64_t n_pad = b->masks && last->source == SLU_PADDING ? last->len_tok : 0;
    if (!rc && names->text && slu_batch_has_ids(b))
        rc = put_text(line, b, q->tok_off, q->len_tok - n_pad, names->text, b->masks,
                      err);
    if (!rc)
        rc = slu_buf_printf(line, err, "}\n");
    return rc ? rc : print(line, err);
}

int inspect_print_text(struct slu_batch *b, const struct slu_seq *q,
                       const struct inspect_names *names, struct slu_buf *line,
                       struct slu_err *err)
{
    uint64_t at = q->tok_off;
    int rc = SLU_OK;
    for (uint64_t i = 0; !rc && i < q->n_seg; i++) {
        const struct slu_seg *s = &b->seg[q->seg_off + i];
        uint64_t n = s->len_tok;
        at += n;
        if (s->source == SLU_PADDING)
            continue;
        slu_buf_clear(line);
        rc = put_segment(line, b, s, names, err);
        if (!rc)
            rc = put_text(line, b, at - n, n, names->text, false, err);
        if (!rc)
            rc = slu_buf_printf(line, err, "}\n");
        if (!rc)
            rc = print(line, err);
    }
    return rc;
}
