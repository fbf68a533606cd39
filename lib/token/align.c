#include "lib/token/align.h"

#include <stdlib.h>
#include <string.h>

#include "lib/token/encode_private.h"
#include "lib/token/unicode.h"

void align_release(struct norm_align *a)
{
    slu_buf_release(&a->map.code);
    slu_buf_release(&a->next.code);
    free(a->taken);
    memset(a, 0, sizeof *a);
}

static void trim(struct norm_align *a)
{
    slu_buf_trim(&a->map.code, SLU_KEEP_BYTE);
    slu_buf_trim(&a->next.code, SLU_KEEP_BYTE);
}

static size_t char_len(const uint8_t *p)
{
    unsigned len;
    (void)uni_decode(p, &len);
    return len;
}

/* The beginning of the character that has byte i. */
static size_t char_at(const uint8_t *p, size_t i)
{
    while ((p[i] & 0xC0) == 0x80)
        i--;
    return i;
}

/* ---- maps ----
 *
 * A map is read and written in order. A run is coded as its number of bytes, times two,
 * and 1 if it is `same`; the distance of its part from that of the run before, with its
 * sign in the last bit; and the bytes of its part unless it is `same`. Numbers have seven
 * bits a byte, the lowest first. */

static uint8_t *put_number(uint8_t *q, uint64_t x)
{
    for (; x >= 0x80; x >>= 7)
        *q++ = (uint8_t)(x | 0x80);
    *q++ = (uint8_t)x;
    return q;
}

static uint64_t get_number(const uint8_t **p)
{
    uint64_t x = 0;
    for (unsigned shift = 0;; shift += 7) {
        const uint8_t b = *(*p)++;
        x |= (uint64_t)(b & 0x7F) << shift;
        if (b < 0x80)
            return x;
    }
}

static void begin_map(struct align_map *m)
{
    slu_buf_clear(&m->code);
    m->before = 0;
    m->open = (struct align_run){0, 0, 0, true};
}

/* Codes the open run. */
static int end_run(struct align_map *m, struct slu_err *err)
{
    const struct align_run *r = &m->open;
    if (!r->n)
        return SLU_OK;
    int rc = slu_buf_reserve(&m->code, 30, err);
    if (rc)
        return rc;
    const int64_t far = (int64_t)(r->from - m->before);
    uint8_t *q = m->code.data + m->code.len;
    q = put_number(q, 2 * (uint64_t)r->n + r->same);
    q = put_number(q, (uint64_t)far << 1 ^ (far < 0 ? UINT64_MAX : 0));
    if (!r->same)
        q = put_number(q, r->to - r->from);
    m->code.len = (size_t)(q - m->code.data);
    m->before = r->same ? r->from + r->n : r->to;
    return SLU_OK;
}

static int put_run(struct align_map *m, struct align_run run, struct slu_err *err)
{
    struct align_run *was = &m->open;
    if (was->n && was->same == run.same &&
        (run.same ? was->from + was->n == run.from
                  : was->from == run.from && was->to == run.to)) {
        was->n += run.n;
        return SLU_OK;
    }
    int rc = end_run(m, err);
    *was = run;
    return rc;
}

static void next_run(struct align_reader *r)
{
    if (r->p == r->end) {
        r->run.n = 0;
        return;
    }
    const uint64_t n = get_number(&r->p), far = get_number(&r->p);
    struct align_run *run = &r->run;
    run->same = n & 1;
    run->n = n / 2;
    run->from = r->before + (far >> 1 ^ -(far & 1));
    run->to = run->from + (run->same ? run->n : get_number(&r->p));
    r->before = run->to;
}

static void begin_read(struct align_reader *r, const struct align_map *m)
{
    *r = (struct align_reader){.p = m->code.data, .end = m->code.data + m->code.len};
    next_run(r);
}

/* Goes on by n bytes; writes their runs to `to`, unless that is NULL. */
static int pass(struct align_reader *r, size_t n, struct align_map *to,
                struct slu_err *err)
{
    int rc = SLU_OK;
    while (n && r->run.n && !rc) {
        struct align_run part = r->run;
        part.n = part.n < n ? part.n : n;
        rc = to ? put_run(to, part, err) : SLU_OK;
        n -= part.n;
        r->at += part.n;
        r->run.n -= part.n;
        r->run.from += r->run.same ? part.n : 0;
        if (!r->run.n)
            next_run(r);
    }
    return rc;
}

/* The part of the character of n bytes that is next. */
static struct align_run place(const struct align_reader *r, size_t n)
{
    struct align_run part = r->run;
    part.to = part.same ? part.from + n : part.to;
    part.same = false;
    return part;
}

/* ---- what a step changes ---- */

/* n_old bytes at `at`, of which the first and last characters have n_first and n_last
 * bytes, became n_new, which belong to the first or last of these; if n_old is 0, to the
 * character before, which has n_last bytes. */
static int edit(struct norm_align *a, size_t at, size_t n_old, size_t n_first,
                size_t n_last, bool to_first, size_t n_new, struct slu_err *err)
{
    struct align_reader *r = &a->reader;
    struct align_map *next = &a->next;
    const size_t gap = at - r->at;
    int rc = pass(r, gap && !n_old ? gap - n_last : gap, next, err);
    struct align_run own = a->last;

    if (n_old) {
        own = place(r, n_first);
        if (!rc)
            rc = pass(r, n_old - n_last, NULL, err);
        a->last = place(r, n_last);
        own = to_first ? own : a->last;
        if (!rc)
            rc = pass(r, n_last, NULL, err);
    } else if (gap) {
        own = a->last = place(r, n_last);
        if (!rc)
            rc = pass(r, n_last, next, err);
    }
    own.n = n_new;
    a->edited = true;
    return rc || !n_new ? rc : put_run(next, own, err);
}

int align_replace(struct norm_align *a, const uint8_t *p, size_t at, size_t n_old,
                  size_t n_new, struct slu_err *err)
{
    if (!n_old) {
        a->lost |= n_new > 0;
        return SLU_OK;
    }
    const size_t last = at + n_old - char_at(p, at + n_old - 1);
    return edit(a, at, n_old, last, last, false, n_new, err);
}

int align_prepend(struct norm_align *a, const uint8_t *p, size_t n_new,
                  struct slu_err *err)
{
    const size_t n = char_len(p);
    return edit(a, a->reader.at, n, n, n, true, n_new + n, err);
}

int align_taken(struct norm_align *a, size_t n, uint32_t **taken, struct slu_err *err)
{
    int rc = slu_grow(&a->taken, &a->cap_taken, n + 1, sizeof *a->taken, err);
    *taken = a->taken;
    return rc;
}

int align_chars(struct norm_align *a, const uint8_t *p, size_t *at, uint32_t taken,
                size_t n_new, struct slu_err *err)
{
    const size_t from = *at;
    size_t last = from;
    for (; taken; taken--) {
        last = *at;
        *at += char_len(p + last);
    }
    if (*at == from)
        return edit(a, from, 0, 0, from ? from - char_at(p, from - 1) : 0, false, n_new,
                    err);
    return edit(a, from, *at - from, char_len(p + from), *at - last, true, n_new, err);
}

/* Begins a step, which changes what is behind `read` in a's map. */
static void begin_step(struct norm_align *a, struct align_reader read)
{
    a->reader = read;
    a->last = (struct align_run){0};
    a->edited = false;
    begin_map(&a->next);
}

/* Ends it where the map ends, or at byte `end`. */
static int end_step(struct norm_align *a, size_t end, struct slu_err *err)
{
    int rc = pass(&a->reader, end - a->reader.at, &a->next, err);
    return rc ? rc : end_run(&a->next, err);
}

int align_step(struct norm_align *a, const uint8_t *p, size_t n_p, const uint8_t *q,
               size_t n_q, struct slu_err *err)
{
    int rc = SLU_OK;
    if (a->edited) {
        rc = end_step(a, n_p, err);
        const struct align_map map = a->map;
        a->map = a->next;
        a->next = map;
    } else {
        a->lost |= n_p != n_q || memcmp(p, q, n_p) != 0;
    }
    struct align_reader read;
    begin_read(&read, &a->map);
    begin_step(a, read);
    return rc;
}

/* ---- tokens ---- */

struct parts {
    struct slu_encoder *e;
    const uint8_t *text;
    const uint32_t *id;
    size_t n_id, n; /* n: tokens that are found */
    size_t done;    /* bytes of the text that have been given */
    tok_part_fn *each;
    void *ctx;
    struct slu_err *err;
};

/* Gives token i the bytes [from, to) of the text, without what was given before. */
static void give(struct parts *w, size_t i, size_t from, size_t to)
{
    if (from > w->done)
        w->each(w->ctx, SIZE_MAX, w->done, from);
    from = from > w->done ? from : w->done;
    to = to > from ? to : from;
    w->each(w->ctx, i, from, to);
    w->done = to;
}

/* Gives the next token its part: it is the next n bytes of the changed text that r reads
 * of, which was made from byte `begin` of the text on. */
static void give_changed(struct parts *w, struct align_reader *r, size_t begin,
                         size_t n)
{
    size_t from = begin + r->run.from, to;
    if (r->run.same)
        from = char_at(w->text, from);
    (void)pass(r, n - 1, NULL, NULL);
    to = begin + r->run.to;
    if (r->run.same) {
        to = char_at(w->text, begin + r->run.from);
        to += char_len(w->text + to);
    }
    (void)pass(r, 1, NULL, NULL);
    give(w, w->n++, from, to);
}

/* Finds the tokens of the n bytes at p, which r reads of. */
static bool take_tokens(struct parts *w, struct align_reader *r, size_t begin,
                        const uint8_t *p, size_t n)
{
    const struct slu_vocab_table *v = &w->e->t->table;

    for (size_t from = 0, len; from < n; from += len) {
        if (w->n == w->n_id || w->id[w->n] >= v->n)
            return false;
        const uint32_t id = w->id[w->n];
        len = v->off[id + 1] - v->off[id];
        if (!len || len > n - from || memcmp(p + from, v->bytes + v->off[id], len) != 0)
            return false;
        give_changed(w, r, begin, len);
    }
    return true;
}

/* Makes part->next tell of the next n bytes at p that *r reads of, as sp_prepare changes
 * them to n_q bytes. */
static int prepare_part(struct norm_align *part, struct align_reader *r,
                        const struct tok_sp *sp, const uint8_t *p, size_t n, size_t n_q,
                        struct slu_err *err)
{
    const size_t at = r->at;
    const uint8_t *end = p + n, *s = p;
    size_t folded = 0;
    int rc = SLU_OK;

    begin_step(part, *r);
    while (sp->cfg.fold && (s = memmem(s, (size_t)(end - s), SP_SPACE, 3))) {
        folded++;
        s += 3;
    }
    if (n_q + 2 * folded > n)
        rc = align_prepend(part, p, 1, err);
    for (s = p; !rc && folded; folded--, s += 3) {
        s = memmem(s, (size_t)(end - s), SP_SPACE, 3);
        rc = edit(part, at + (size_t)(s - p), 3, 3, 3, false, 1, err);
    }
    if (!rc)
        rc = end_step(part, at + n, err);
    *r = part->reader;
    return rc;
}

/* Finds the tokens of the n bytes at p, a section's text without added tokens that r
 * reads of. first: as in sp_prepare. */
static int take_text(struct parts *w, struct align_reader *r, size_t begin,
                     const uint8_t *p, size_t n, bool first, bool *same)
{
    struct slu_encoder *e = w->e;
    struct align_reader changed;
    const uint8_t *q = p;
    size_t n_q = n;
    int rc = SLU_OK;

    if (e->t->sp)
        rc = sp_prepare(e->t->sp, &e->folded, first, &q, &n_q, w->err);
    if (rc || q == p) {
        *same = !rc && take_tokens(w, r, begin, q, n);
        return rc;
    }
    rc = prepare_part(&e->align[1], r, e->t->sp, p, n, n_q, w->err);
    if (rc)
        return rc;
    begin_read(&changed, &e->align[1].next);
    *same = take_tokens(w, &changed, begin, q, n_q);
    return SLU_OK;
}

/* Finds the tokens of n bytes of the text without raw added tokens, as encode_part makes
 * them. */
static int take_section(struct parts *w, size_t begin, size_t n, bool *same)
{
    struct slu_encoder *e = w->e;
    const struct slu_tokenizer *t = e->t;
    struct norm_align *a = &e->align[0];
    struct align_reader r;
    struct added_iter it;
    struct added_part part;
    const uint8_t *p;
    size_t n_p;

    begin_map(&a->map);
    int rc = put_run(&a->map, (struct align_run){n, 0, n, true}, w->err);
    if (!rc)
        rc = end_run(&a->map, w->err);
    if (rc)
        return rc;
    begin_read(&r, &a->map);
    begin_step(a, r);
    a->lost = false;
    e->norm.align = a;
    rc = norm_run(t->norm, &e->norm, w->text + begin, n, &p, &n_p, w->err);
    e->norm.align = NULL;
    if (rc || a->lost) {
        *same = false;
        return rc;
    }
    begin_read(&r, &a->map);
    added_iter_init(&it, t->added, true, t->special_parse, p, n_p);
    while (!rc && *same && added_next(&it, &part)) {
        (void)pass(&r, part.off - r.at, NULL, NULL);
        if (part.id == TOK_NONE)
            rc = take_text(w, &r, begin, p + part.off, part.len,
                           begin == 0 && part.off == 0, same);
        else if ((*same = w->n < w->n_id && w->id[w->n] == part.id))
            give_changed(w, &r, begin, part.len);
    }
    return rc;
}

/* Whether trim_offsets, if there is any, finds the spaces of the text. */
static bool keeps_space(const struct slu_tokenizer *t)
{
    if (!(t->trims & TOK_TRIMS))
        return true;
    for (size_t i = 0; t->norm && i < t->norm->n; i++)
        if (t->norm->step[i].kind > NORM_NFD)
            return false;
    return !t->sp;
}

int align_each_part(struct slu_encoder *e, const char *text, size_t n_byte,
                    const uint32_t *id, size_t n_id, tok_part_fn *each, void *ctx,
                    bool *same, struct slu_err *err)
{
    const struct slu_tokenizer *t = e->t;
    struct parts w = {e, (const uint8_t *)text, id, n_id, 0, 0, each, ctx, err};
    struct added_iter it;
    struct added_part part;
    int rc = SLU_OK;

    *same = (t->norm || t->sp) && keeps_space(t);
    if (*same)
        added_iter_init(&it, t->added, false, t->special_parse, w.text, n_byte);
    while (!rc && *same && added_next(&it, &part)) {
        if (part.id == TOK_NONE)
            rc = take_section(&w, part.off, part.len, same);
        else if ((*same = w.n < n_id && id[w.n] == part.id))
            give(&w, w.n++, part.off, part.off + part.len);
    }
    *same = !rc && *same && w.n == n_id;
    if (*same && w.done < n_byte)
        each(ctx, SIZE_MAX, w.done, n_byte);
    trim(&e->align[0]);
    trim(&e->align[1]);
    return rc;
}
