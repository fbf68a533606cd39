#include "input_private.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/text/members.h"
#include "lib/base/json.h"

/* The registry, in the order of probing; the last accepts anything. */
static const struct slu_input_format *const formats[] = {
    &slu_in_jsonl, &slu_in_tar,  &slu_in_zip,  &slu_in_parquet,
    &slu_in_wds,   &slu_in_warc, &slu_in_text,
};
#define N_FORMAT (sizeof formats / sizeof *formats)

struct slu_input {
    struct slu_input_cfg cfg;
    size_t next; /* ordinal of the next source */
    bool is_open;
    struct slu_input_source cur;
    struct slu_members all; /* if cfg has none */
    bool in_member;         /* cur is an archive, of which a member is read */
    struct slu_input_source member;
    uint64_t n_truncated;         /* see slu_input_truncated */
    uint64_t stored_before;       /* stored bytes of finished sources */
    _Atomic uint64_t stored_byte; /* for progress */
};

/* ---- blocks ---- */

int slu_block_room(const struct slu_input_source *src, struct slu_block *b, size_t more,
                   size_t begin, uint64_t place, struct slu_err *err)
{
    const struct slu_input_cfg *cfg = src->cfg;
    size_t need;

    if (b->raw.len - begin > cfg->max_record_byte ||
        slu_add_overflow(b->raw.len, more, &need) ||
        slu_add_overflow(need, SLU_JSON_PADDING, &need))
        return slu_advise(err, SLU_ADVISE_MEMORY,
                          slu_fail_at(err, SLU_E_LIMIT, place,
                                      "%s: byte %llu: the record is larger than %llu "
                                      "bytes, the most that memory allows",
                                      slu_input_name(src), (unsigned long long)place,
                                      (unsigned long long)cfg->max_record_byte));
    if (need <= b->raw.cap)
        return SLU_OK;
    size_t usual = cfg->block_byte + SLU_JSON_PADDING;
    size_t cap = need <= usual ? usual : need + need / 4;
    if (cap > usual && cap - usual > b->claimed_byte && cfg->claim) {
        int rc = cfg->claim(cfg->ctx, b, cap - usual - b->claimed_byte, err);
        if (rc)
            return rc;
        b->claimed_byte = cap - usual;
    }
    return slu_buf_reserve(&b->raw, cap - b->raw.len, err);
}

static bool blank(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != ' ' && p[i] != '\t' && p[i] != '\r')
            return false;
    return true;
}

static int split_lines(struct slu_block *b, size_t end, struct slu_err *err)
{
    const uint8_t *base = b->raw.data;
    uint64_t line = b->line;
    for (size_t off = 0; off < end;) {
        const uint8_t *nl = memchr(base + off, '\n', end - off);
        size_t len = (nl ? (size_t)(nl - base) : end) - off;
        if (!blank(base + off, len)) {
            struct slu_record_ref rec = {.source = b->source,
                                         .document = b->off_byte + off,
                                         .line = line,
                                         .off = off,
                                         .len = len,
                                         .member = b->member};
            int rc = slu_block_add(b, rec, err);
            if (rc)
                return rc;
        }
        off += len + 1;
        line += line > 0;
    }
    return SLU_OK;
}

int slu_block_split(struct slu_block *b, struct slu_err *err)
{
    bool broken = b->broken.reject != SLU_REJECT_NONE;
    int rc = SLU_OK;
    if (b->lines)
        rc = split_lines(b, broken ? b->broken.off : b->raw.len, err);
    b->lines = false;
    if (!rc && broken)
        rc = slu_block_add(b, b->broken, err);
    b->broken.reject = SLU_REJECT_NONE;
    return rc;
}

/* ---- formats ---- */

const struct slu_input_format *slu_input_format_named(const char *name)
{
    for (size_t i = 0; i < N_FORMAT; i++)
        if (strcmp(formats[i]->name, name) == 0)
            return formats[i];
    return NULL;
}

unsigned slu_input_rank(const char *path)
{
    char name[NAME_MAX + 1];
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t n = strlen(base) - slu_bytes_suffix(base);
    if (n >= sizeof name)
        return 1;
    memcpy(name, base, n);
    name[n] = 0;
    const char *dot = strrchr(name, '.');
    if (!dot || slu_suffix_is(dot, ".md"))
        return 1;
    if (slu_suffix_is(dot, ".json"))
        return 2;
    for (size_t i = 0; i < N_FORMAT; i++)
        if (formats[i]->name_matches(name))
            return 3;
    return slu_kind_named(name) ? 0 : 1;
}

bool slu_input_is_archive(const char *path)
{
    char name[NAME_MAX + 1];
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    snprintf(name, sizeof name, "%.*s", (int)(strlen(base) - slu_bytes_suffix(base)),
             base);
    return slu_in_tar.name_matches(name) || slu_in_zip.name_matches(name);
}

bool slu_input_splittable(const char *name, void *ctx)
{
    const struct slu_input_format *asked = ctx;
    if (slu_bytes_promised(name))
        return false;
    return asked ? asked == &slu_in_jsonl || asked == &slu_in_parquet
                 : slu_in_jsonl.name_matches(name) || slu_in_parquet.name_matches(name);
}

/* Fails, as the source is of a kind that is no text. */
static int refuse(struct slu_input_source *src, const struct slu_kind *kind,
                  struct slu_err *err)
{
    src->reject = SLU_REJECT_OTHER_KIND;
    return slu_fail(err, SLU_E_FORMAT, "%s: is %s; %s", slu_input_name(src), kind->name,
                    kind->way);
}

/* Chooses the format by the name, which has no compression suffix, and by the first
 * bytes. What a name says of a text is not trusted: its lines may be records. */
static int choose_by(struct slu_input_source *src, const char *name,
                     const uint8_t *head, size_t n, struct slu_err *err)
{
    const struct slu_kind *kind = NULL;
    const bool file = src->member || src->src->regular;
    size_t i;

    for (i = 0; i < N_FORMAT && !src->format; i++)
        if (formats[i]->name_matches(name))
            src->format = formats[i];
    if (!src->format)
        kind = slu_kind_named(name);
    if (!kind)
        kind = slu_kind_headed(head, n);
    if (src->format == &slu_in_text && slu_jsonl_lines(head, n))
        src->format = &slu_in_jsonl;
    if (src->format == &slu_in_text && slu_in_warc.head_matches(head, n))
        src->format = &slu_in_warc;
    if (!kind && !src->format && n == 0 && !file)
        src->format = &slu_in_jsonl; /* an empty pipe is not a text */
    for (i = 0; i < N_FORMAT && !kind && !src->format; i++)
        if (formats[i]->head_matches(head, n))
            src->format = formats[i];
    if (!kind && src->format == &slu_in_text)
        kind = slu_kind_binary(head, n);
    if (!kind)
        return SLU_OK;
    const int rc = refuse(src, kind, err);
    const bool is_text = slu_utf8_valid_prefix(head, n) + 3 >= n;
    return is_text ? slu_advise(err, SLU_ADVISE_FORMAT_TEXT, rc) : rc;
}

static int choose_format(struct slu_input_source *src, struct slu_err *err)
{
    const uint8_t *head;
    size_t n;
    char *name = strdup(src->member ? src->member : src->src->name);
    if (!name)
        return slu_fail_nomem(err, 1);
    name[strlen(name) - slu_bytes_suffix(name)] = 0;
    int rc = slu_bytes_peek(src->bytes, &head, &n, err);
    if (!rc)
        rc = choose_by(src, name, head, n, err);
    free(name);
    return rc;
}

/* ---- sources ---- */

const char *slu_input_name(const struct slu_input_source *src)
{
    if (src->label)
        return src->label;
    return strcmp(src->src->path, "-") == 0 ? "standard input" : src->src->path;
}

int slu_input_empty(struct slu_input_source *src, struct slu_err *err)
{
    src->reject = SLU_REJECT_EMPTY_SOURCE;
    int rc = slu_fail_at(err, SLU_E_TRUNCATED, 0, "%s: is empty", slu_input_name(src));
    return src->cfg->broken ? rc : slu_advise(err, SLU_ADVISE_ON_ERROR, rc);
}

/* What is read: the source, or a member of it. */
static struct slu_input_source *reading(struct slu_input *in)
{
    return in->in_member ? &in->member : &in->cur;
}

/* Closes the member; its bytes and names belong to the archive. */
static void close_member(struct slu_input *in, uint64_t n_place)
{
    struct slu_input_source *m = &in->member;
    if (!in->in_member)
        return;
    in->n_truncated += m->n_truncated;
    if (m->format && m->format->close)
        m->format->close(m);
    in->cur.format->done(&in->cur, m, n_place);
    in->in_member = false;
}

/* How many documents from its base on a member takes. */
static uint64_t places(const struct slu_input_source *m)
{
    if (!m->format || !m->bytes || m->format == &slu_in_text)
        return 1;
    return m->format == &slu_in_parquet ? m->n_row : slu_bytes_tell(m->bytes);
}

static void close_source(struct slu_input *in)
{
    struct slu_input_source *src = &in->cur;
    close_member(in, 0);
    in->n_truncated += src->n_truncated;
    if (src->format && src->format->close)
        src->format->close(src);
    slu_bytes_close(src->bytes);
    memset(src, 0, sizeof *src);
    in->is_open = false;
}

/* A stream is no text, and its first byte is in no text (formats/STREAM.md). */
static int refuse_stream(struct slu_input_source *src, struct slu_err *err)
{
    const uint8_t *head;
    size_t n;
    if (src->from)
        return SLU_OK;
    int rc = slu_bytes_peek(src->bytes, &head, &n, err);
    const struct slu_kind *kind = rc ? NULL : slu_kind_stream(head, n);
    return kind ? refuse(src, kind, err) : rc;
}

/* Opens the file, or takes the pipe that is open. */
static int open_bytes(const struct slu_input *in, struct slu_input_source *src,
                      struct slu_err *err)
{
    const struct slu_sources *s = in->cfg.sources;
    struct slu_source *item = &s->item[src->ordinal - s->base];
    if (!item->opened)
        return slu_bytes_open(&src->bytes, item->path, in->cfg.window_byte,
                              in->cfg.quit_fd, err);
    src->bytes = item->opened;
    item->opened = NULL;
    slu_bytes_quit(src->bytes, in->cfg.quit_fd);
    return SLU_OK;
}

/* Opens the next source. A file that should be cut but is compressed belongs to the
 * part with its first byte. */
static int open_source(struct slu_input *in, struct slu_err *err)
{
    struct slu_input_source *src = &in->cur;
    int rc;

    *src = (struct slu_input_source){
        .in = in,
        .cfg = &in->cfg,
        .ordinal = in->next,
        .src = slu_source_at(in->cfg.sources, in->next),
    };
    src->size_byte = src->src->regular ? src->src->size_byte : UINT64_MAX;
    in->next++;
    in->is_open = true;
    src->from = src->src->from;
    src->to = src->src->to;
    if (in->cfg.begin) {
        rc = in->cfg.begin(in->cfg.ctx, src->ordinal, err);
        if (rc)
            return rc;
    }
    rc = open_bytes(in, src, err);
    if (rc)
        return rc;
    if (!slu_bytes_seekable(src->bytes)) {
        if (src->from > 0)
            src->to = src->from; /* nothing */
        else
            src->to = UINT64_MAX;
    }
    rc = refuse_stream(src, err);
    if (rc)
        return rc;
    src->format = in->cfg.format;
    if (!src->format) {
        rc = choose_format(src, err);
        if (rc)
            return rc;
    }
    return src->format->open ? src->format->open(src, err) : SLU_OK;
}

int slu_input_new(struct slu_input **out, const struct slu_input_cfg *cfg,
                  struct slu_err *err)
{
    struct slu_input *in = calloc(1, sizeof *in);
    if (!in)
        return slu_fail_nomem(err, sizeof *in);
    in->cfg = *cfg;
    if (!cfg->members)
        in->cfg.members = &in->all;
    in->next = cfg->sources->first;
    *out = in;
    return SLU_OK;
}

static uint64_t stored(const struct slu_input *in)
{
    if (in->cur.own_stored_byte)
        return in->cur.own_stored_byte;
    uint64_t at = in->cur.bytes ? slu_bytes_stored(in->cur.bytes) : 0;
    return at > in->cur.from ? at - in->cur.from : 0;
}

/* Reports the end of the source, and closes it. */
static void end_source(struct slu_input *in)
{
    uint64_t n_byte =
        in->cur.own_byte + (in->cur.bytes ? slu_bytes_tell(in->cur.bytes) : 0);
    bool empty = !n_byte && !in->cur.from;
    uint64_t others = in->cur.from + in->cur.other_byte;
    n_byte -= n_byte > others ? others : n_byte;
    in->stored_before += stored(in);
    if (in->cfg.end)
        in->cfg.end(in->cfg.ctx, in->cur.ordinal, n_byte, empty);
    close_source(in);
}

/* Goes to the archive's next member, and chooses its format. SLU_EOF: there is none.
 * in_member: the error is the member's. */
static int open_member(struct slu_input *in, struct slu_err *err)
{
    struct slu_input_source *arc = &in->cur, *m = &in->member;
    bool leave = true;
    int rc = SLU_OK;
    while (leave && !rc) {
        *m = (struct slu_input_source){.in = in,
                                       .cfg = &in->cfg,
                                       .ordinal = arc->ordinal,
                                       .src = arc->src,
                                       .to = UINT64_MAX,
                                       .size_byte = UINT64_MAX};
        rc = arc->format->next(arc, m, err);
        in->in_member = m->member != NULL;
        if (!rc)
            rc = choose_format(m, err);
        if (!rc)
            rc = arc->format->accept(arc, m, &leave, err);
        if (!rc && leave)
            close_member(in, 0);
    }
    return !rc && m->format->open ? m->format->open(m, err) : rc;
}

/* After the error `why`: goes on in the source, or ends it. Whether to go on. */
static bool go_on(struct slu_input *in)
{
    struct slu_input_source *src = reading(in);
    bool resumed = src->format && !src->format->next && src->format->resume &&
                   src->format->resume(src);
    if (!resumed && in->in_member) {
        close_member(in, places(src));
        resumed = in->cur.format->resume(&in->cur);
    }
    return resumed;
}

/* Ends the source, or the member of an archive, because of the error `why`. If the run
 * continues, the bytes read of a record become the block's last record. */
static int break_off(struct slu_input *in, struct slu_block *b,
                     const struct slu_err *why, size_t member, struct slu_err *err)
{
    struct slu_input_source *src = reading(in);
    if (!in->cfg.broken ||
        (why->code != SLU_E_TRUNCATED && why->code != SLU_E_FORMAT)) {
        if (err)
            *err = *why;
        return why->code;
    }
    struct slu_record_ref rec = {
        .source = src->ordinal,
        .document = src->document,
        .off = src->begin,
        .len = b->raw.len - src->begin,
        .part_off = src->part_off,
        .member = member,
        .reject = src->reject                    ? src->reject
                  : why->code == SLU_E_TRUNCATED ? SLU_REJECT_TRUNCATED_SOURCE
                                                 : SLU_REJECT_DAMAGED_SOURCE,
    };
    const uint64_t from = src->from;
    const bool resumed = go_on(in);
    /* otherwise it is compressed or has no footer, and the first share reports it */
    if (from == 0 || resumed) {
        b->broken = rec;
        in->cfg.broken(in->cfg.ctx, rec.document, rec.reject, why->msg);
    }
    if (!resumed)
        end_source(in);
    return SLU_OK;
}

/* Adds the member's path to the block, for messages; *at is as in slu_record_ref. */
static int name_member(struct slu_input *in, struct slu_block *b, size_t *at,
                       struct slu_err *err)
{
    const char *path = in->in_member ? in->member.member : NULL;
    *at = path ? b->members.len + 1 : 0;
    return path ? slu_buf_append(&b->members, path, strlen(path) + 1, err) : SLU_OK;
}

/* Opens the next source, or the next member of an archive. *wait: its records do not
 * belong into this block. */
static int open_next(struct slu_input *in, struct slu_block *b, bool *wait,
                     struct slu_err *err)
{
    int rc = SLU_OK;
    if (!in->is_open)
        rc = open_source(in, err);
    if (!rc && in->cur.format->next && !in->in_member)
        rc = open_member(in, err);
    struct slu_input_source *src = reading(in);
    src->begin = b->raw.len;
    if (in->in_member)
        src->document = src->base;
    /* it gets its own block instead of making this one grow */
    *wait = in->in_member && b->n_rec && src->size_byte != UINT64_MAX &&
            b->raw.len + src->size_byte > in->cfg.block_byte;
    return rc;
}

static int fetch(struct slu_input *in, struct slu_block *b, struct slu_err *err)
{
    struct slu_err why = SLU_ERR_INIT;
    while (b->raw.len < in->cfg.block_byte) {
        size_t member = 0;
        if (!in->is_open) {
            if (in->next >= in->cfg.sources->end)
                return b->n_rec ? SLU_OK : SLU_EOF;
            if (b->n_rec &&
                b->raw.len + slu_source_at(in->cfg.sources, in->next)->size_byte >
                    in->cfg.block_byte)
                /* the next source gets its own block instead of making this one grow */
                return SLU_OK;
        }
        if (!in->is_open || (in->cur.format->next && !in->in_member)) {
            bool wait;
            int rc = open_next(in, b, &wait, &why);
            if (rc == SLU_EOF) {
                end_source(in);
                continue;
            }
            if (rc && name_member(in, b, &member, err))
                return SLU_E_NOMEM;
            if (rc)
                return break_off(in, b, &why, member, err);
            if (wait)
                return SLU_OK;
        }
        struct slu_input_source *src = reading(in);
        const struct slu_input_format *f = src->format;
        if (b->n_rec && (f->lines || f->json != b->json || f->rows != b->rows))
            return SLU_OK;
        b->json = f->json;
        b->rows = f->rows;
        b->source = in->cur.ordinal;
        src->begin = b->raw.len;
        const size_t n_rec = b->n_rec;
        int rc = name_member(in, b, &member, err);
        if (rc)
            return rc;
        b->member = member;
        rc = f->fetch(src, b, &why);
        for (size_t i = n_rec; i < b->n_rec && member; i++)
            b->rec[i].member = member;
        if (rc < 0)
            return break_off(in, b, &why, member, err);
        in->stored_byte = in->stored_before + stored(in);
        if (rc == SLU_EOF && in->in_member)
            close_member(in, places(src));
        else if (rc == SLU_EOF)
            end_source(in);
        else if (f->rows)
            return SLU_OK; /* full, perhaps of empty rows */
        if ((b->lines && b->raw.len) || (b->n_rec && b->rec[b->n_rec - 1].goes_on))
            return SLU_OK;
    }
    return SLU_OK;
}

int slu_input_fetch(struct slu_input *in, struct slu_block *b, struct slu_err *err)
{
    slu_block_clear(b);
    int rc = fetch(in, b, err);
    if (!rc) { /* the formats left room for the padding */
        rc = slu_buf_reserve(&b->raw, SLU_JSON_PADDING, err);
        if (!rc)
            memset(b->raw.data + b->raw.len, 0, SLU_JSON_PADDING);
    }
    return rc;
}

uint64_t slu_input_truncated(const struct slu_input *in)
{
    return in->n_truncated;
}

uint64_t slu_input_stored(const struct slu_input *in)
{
    return in->stored_byte;
}

void slu_input_free(struct slu_input *in)
{
    if (!in)
        return;
    if (in->is_open)
        close_source(in);
    free(in);
}
