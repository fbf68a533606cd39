#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "joint.h"
#include "lib/base/le.h"
#include "stream_reader.h"

/* ---- files ---- */

static const char *path_of(const struct slu_reader *r, size_t i)
{
    return strcmp(r->path[i], "-") ? r->path[i] : "standard input";
}

static int open_path(struct slu_reader *r, struct slu_err *err)
{
    const char *path = r->path[r->at_path];
    r->members_in_path = 0;
    r->passes = r->joint && !strcmp(path, "-");
    r->name = r->passes ? "the program before" : path_of(r, r->at_path);
    if (r->passes)
        return SLU_OK;
    r->fd = STDIN_FILENO;
    if (strcmp(path, "-"))
        r->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (r->fd < 0)
        return slu_fail_errno(err, "%s: cannot be opened", path);
    posix_fadvise(r->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return SLU_OK;
}

static void close_path(struct slu_reader *r)
{
    if (r->fd > STDIN_FILENO)
        close(r->fd);
    r->fd = -1;
}

/* ---- one frame ---- */

static int truncated(const struct slu_reader *r, struct slu_err *err)
{
    return slu_fail_at(
        err, SLU_E_TRUNCATED, r->off_byte,
        "ends early, in frame %llu (byte %llu of its stream): the file was cut, "
        "or the program that wrote it failed",
        (unsigned long long)r->number, (unsigned long long)r->off_byte);
}

/* Gives f the header of another frame; f keeps its buffers. */
static void take_header(struct slu_frame *f, const struct slu_frame *from)
{
    f->type = from->type;
    f->flags = from->flags;
    f->number = from->number;
    f->raw_byte = from->raw_byte;
    f->stored_byte = from->stored_byte;
    f->aux = from->aux;
    f->payload_hash = from->payload_hash;
}

/* next_header of a joint. */
static int next_passed(struct slu_reader *r, struct slu_frame *f, struct slu_err *err)
{
    if (slu_joint_take(r->joint, &r->passed)) {
        take_header(f, &r->passed);
        return SLU_OK;
    }
    if (r->state == BETWEEN && r->members_in_path)
        return SLU_EOF;
    if (r->state == BETWEEN)
        return slu_fail(err, SLU_E_TRUNCATED, "it wrote no stream");
    return truncated(r, err);
}

/* Reads the next frame's header into *f; SLU_EOF at the end of a file that ends with a
 * member. */
static int next_header(struct slu_reader *r, struct slu_frame *f, struct slu_err *err)
{
    uint8_t h[SLU_FRAME_HEADER];
    size_t got;
    if (r->peeked) {
        r->peeked = false;
        take_header(f, &r->peek);
        return SLU_OK;
    }
    if (r->passes)
        return next_passed(r, f, err);
    int rc = slu_read_full(r->fd, h, sizeof h, &got, err);
    if (rc)
        return rc;
    if (got == 0 && r->state == BETWEEN && r->members_in_path)
        return SLU_EOF;
    if (got == 0 && r->state == BETWEEN)
        return slu_fail(err, SLU_E_TRUNCATED,
                        "is empty, which a token stream never is: the program that "
                        "should have written it failed");
    if (r->state == BETWEEN)
        rc = slu_frame_begins(h, got, err);
    if (rc && r->members_in_path)
        rc = slu_fail(err, SLU_E_FORMAT,
                      "has bytes after its end that are not another stream; take them "
                      "away");
    if (rc)
        return rc;
    if (got < sizeof h)
        return truncated(r, err);
    return slu_frame_parse(f, h, r->number, err);
}

static void count_frame(struct slu_reader *r, const struct slu_frame *f)
{
    r->n_byte += slu_frame_span(f);
    r->off_byte += slu_frame_span(f);
    r->number++;
}

/* Reads the stored payload of f. one: it is a data frame with whole sequences. */
static int read_stored(struct slu_reader *r, struct slu_frame *f, bool one,
                       struct slu_err *err)
{
    size_t n = slu_frame_span(f) - SLU_FRAME_HEADER, got;
    f->passed = r->passes;
    if (f->passed) {
        slu_buf_swap(&f->stored, &r->passed.stored);
        slu_buf_swap(&f->early, &r->passed.early);
        slu_buf_swap(&f->tok, &r->passed.tok);
        count_frame(r, f);
        return SLU_OK;
    }
    slu_buf_clear(&f->stored);
    slu_buf_clear(&f->early);
    f->hashed = false;
    int rc = slu_buf_reserve(&f->stored, n, err);
    if (!rc && r->alone)
        rc = slu_early_read(r, f, n, one, &got, err);
    else if (!rc)
        rc = slu_read_full(r->fd, f->stored.data, n, &got, err);
    if (rc)
        return rc;
    if (got < n)
        return truncated(r, err);
    f->stored.len = n;
    count_frame(r, f);
    return SLU_OK;
}

/* ---- frames ---- */

static int vocab_frame(struct slu_reader *r, struct slu_frame *f, struct slu_err *err)
{
    if (f->number != 1)
        return slu_fail(err, SLU_E_FORMAT,
                        "frame %llu: a vocabulary frame must be the first frame "
                        "after the header",
                        (unsigned long long)f->number);
    if (slu_names_keep_vocab(r->names, f, r->header.vocab_size))
        r->vocab_member = r->n_member - 1;
    return SLU_OK;
}

/* Reads and handles a frame that is not DATA, whose header is in r->meta. */
static int meta_frame(struct slu_reader *r, struct slu_err *err)
{
    struct slu_frame *f = &r->meta;
    const uint8_t *p;
    size_t n;
    bool skippable = (f->type & 0xff) >= 'a' && (f->type & 0xff) <= 'z';
    enum slu_reader_state s = r->state;
    bool in_place = f->type == SLU_HEAD   ? s == BETWEEN
                    : f->type == SLU_INDX ? s == ENDED || s == INDEXED
                    : f->type == SLU_FOOT ? s == INDEXED
                    : f->type == SLU_ENDS ? s == BODY && !r->continues
                                          : s == BODY;
    if (!in_place)
        return slu_fail(err, SLU_E_FORMAT, "frame %llu of type %.4s cannot stand here",
                        (unsigned long long)f->number, (const char *)&f->type);
    int rc = read_stored(r, f, false, err);
    if (!rc)
        rc = slu_frame_check(f, err);
    if (rc)
        return rc;
    if (skippable)
        return f->type == SLU_VOCB   ? vocab_frame(r, f, err)
               : f->type == SLU_ACCT ? slu_meta_steps(r, f, err)
                                     : SLU_OK;
    rc = slu_frame_payload(f, &p, &n, err);
    if (rc)
        return rc;
    return slu_meta_take(r, f, p, n, err);
}

/* Reads until a DATA frame's header is in r->meta. SLU_EOF after the last stream. */
static int to_data(struct slu_reader *r, struct slu_err *err)
{
    for (;;) {
        int rc = next_header(r, &r->meta, err);
        if (rc == SLU_EOF) {
            close_path(r);
            if (++r->at_path >= r->n_path)
                return SLU_EOF;
            rc = open_path(r, err);
            if (rc)
                return rc;
            continue;
        }
        if (!rc && r->meta.type == SLU_DATA && r->state == BODY)
            return SLU_OK;
        if (!rc)
            rc = meta_frame(r, err);
        if (rc)
            return slu_err_at(err, "%s", r->name);
    }
}

/* ---- opening ---- */

/* Compares the header of a further file, to find a mismatch before any work. All
 * streams get the masks that one has. */
static int peek_header(struct slu_reader *r, size_t i, struct slu_err *err)
{
    struct slu_reader t = {.path = &r->path[i], .n_path = 1, .fd = -1};
    struct slu_frame f = {0};
    struct slu_header h;
    struct stat st;
    const uint8_t *p;
    size_t n;
    /* Other files are read in their turn: to open and close a FIFO would end its
     * writer. */
    if (!stat(r->path[i], &st) && !S_ISREG(st.st_mode))
        return SLU_OK;
    int rc = open_path(&t, err);
    if (rc)
        return rc;
    rc = next_header(&t, &f, err);
    if (!rc && f.type != SLU_HEAD)
        rc = slu_fail(err, SLU_E_FORMAT, "does not begin with a header");
    if (!rc)
        rc = read_stored(&t, &f, false, err);
    if (!rc)
        rc = slu_frame_check(&f, err);
    if (!rc)
        rc = slu_frame_payload(&f, &p, &n, err);
    if (!rc)
        rc = slu_header_decode(&h, p, n, err);
    if (!rc) {
        rc = slu_meta_check(r, &h, err);
        if (!rc)
            rc = slu_header_compatible(&r->header, &h, err);
        if (!rc)
            rc = slu_meta_join(r, &h, true, err);
        if (!rc)
            slu_header_join(&r->header, &h);
        slu_header_release(&h);
    }
    if (rc)
        slu_err_at(err, "%s", t.name);
    slu_frame_release(&f);
    close_path(&t);
    return rc;
}

int slu_reader_open(struct slu_reader **out, const struct slu_reader_cfg *cfg,
                    struct slu_err *err)
{
    struct slu_reader *r = calloc(1, sizeof *r);
    *out = NULL;
    if (!r)
        return slu_fail_nomem(err, sizeof *r);
    r->fd = -1;
    r->joint = cfg->joint;
    r->max_seq_tok = cfg->max_seq_tok;
    r->masks = cfg->masks;
    r->inner_padding = cfg->inner_padding;
    r->drop = cfg->drop;
    slu_header_init(&r->header);
    pthread_mutex_init(&r->mu, NULL);
    r->n_path = cfg->n_path ? cfg->n_path : 1;
    r->path = calloc(r->n_path, sizeof *r->path);
    int rc =
        r->path ? slu_names_new(&r->names, err) : slu_fail_nomem(err, r->n_path * 8);
    for (size_t i = 0; !rc && i < r->n_path; i++) {
        r->path[i] = strdup(cfg->n_path ? cfg->path[i] : "-");
        if (!r->path[i])
            rc = slu_fail_nomem(err, 1);
    }
    if (!rc)
        rc = open_path(r, err);
    /* HEAD, and the vocabulary if it follows: a writer needs both at once. */
    for (int i = 0; !rc && i < 2; i++) {
        rc = next_header(r, &r->meta, err);
        if (!rc && i == 1 && r->meta.type != SLU_VOCB) {
            take_header(&r->peek, &r->meta);
            r->peeked = true;
        } else if (!rc && i == 0 && r->meta.type != SLU_HEAD) {
            rc = slu_fail(err, SLU_E_FORMAT, "does not begin with a header");
        } else if (!rc) {
            rc = meta_frame(r, err);
        }
        if (rc)
            slu_err_at(err, "%s", r->name);
    }
    for (size_t i = 1; !rc && i < r->n_path; i++)
        if (strcmp(r->path[i], "-"))
            rc = peek_header(r, i, err);
    if (rc)
        slu_reader_free(r);
    else
        *out = r;
    return rc;
}

const struct slu_header *slu_reader_header(const struct slu_reader *r)
{
    return &r->header;
}

void slu_reader_expect(struct slu_reader *r, uint64_t tok_byte, uint64_t room_byte)
{
    r->tok_byte = tok_byte;
    r->room_byte = room_byte;
}

void slu_reader_take(struct slu_reader *r, uint64_t n_tok)
{
    uint64_t tok_byte = r->tok_byte ? r->tok_byte : r->header.tok_bytes;
    if (r->pipe)
        slu_pipe_take(r->pipe, n_tok * tok_byte, r->room_byte);
}

void slu_reader_alone(struct slu_reader *r, bool alone)
{
    r->alone = alone;
}

void slu_reader_use_pipe(struct slu_reader *r, struct slu_pipe *p)
{
    r->pipe = p;
}

struct slu_names *slu_reader_names(struct slu_reader *r)
{
    return r->names;
}

uint64_t slu_reader_bytes(const struct slu_reader *r)
{
    return r->ops ? r->ops->bytes(r->input) : r->n_byte;
}

/* ---- data ---- */

static int add_frame(struct slu_reader *r, struct slu_batch *b, struct slu_err *err)
{
    struct slu_frames *fs = b->raw;
    size_t had = fs->cap;
    int rc = slu_grow(&fs->f, &fs->cap, fs->n + 1, sizeof *fs->f, err);
    if (rc)
        return rc;
    memset(fs->f + had, 0, (fs->cap - had) * sizeof *fs->f);
    struct slu_frame *f = &fs->f[fs->n++];
    const bool first = b->raw->n == 1 && !r->continues;
    take_header(f, &r->meta);

    uint8_t row[24];
    slu_put_le64(row, r->off_byte);
    slu_put_le64(row + 8, r->n_seq_begun);
    slu_put_le64(row + 16, f->aux);
    slu_xxh3_64_update(&r->index_want, row, sizeof row);
    r->n_seq_begun += f->aux;
    r->continues = f->flags & SLU_FLAG_SEQ_CONTINUES;
    r->member[r->n_member - 1].n_frame++;
    return read_stored(r, f, first && !r->continues, err);
}

/* Fails, as the frames of the sequence in b are longer than max_seq_tok; the message names
 * it. Beside its end its last frame has other sequences. */
static int too_long(struct slu_reader *r, struct slu_batch *b, struct slu_err *err)
{
    b->raw->n = 1;
    b->raw->f[0].flags &= ~(SLU_FLAG_SEQ_CONTINUES | SLU_FLAG_SEG_CONTINUES);
    int rc = slu_batch_open(r, b, err);
    if (rc)
        return rc;
    const struct slu_seg *s = &b->seg[b->seq[b->n_seq - 1].seg_off];
    const char *name = slu_names_source(r->names, s->source);
    return slu_advise(
        err, SLU_ADVISE_MEMORY,
        slu_fail(err, SLU_E_LIMIT,
                 "%s: the sequence that begins with document %llu of source %llu (%s) "
                 "and the frames that it lies in have more than %llu tokens, too many "
                 "for this "
                 "memory",
                 r->name, (unsigned long long)s->document,
                 (unsigned long long)s->source, name ? name : "?",
                 (unsigned long long)r->max_seq_tok));
}

int slu_reader_fetch(struct slu_reader *r, struct slu_batch *b, struct slu_err *err)
{
    if (r->ops)
        return slu_over_fetch(r, b, err);
    slu_batch_clear(b);
    if (!b->raw && !(b->raw = calloc(1, sizeof *b->raw)))
        return slu_fail_nomem(err, sizeof *b->raw);
    b->raw->n = 0;
    b->tok_bytes = r->header.tok_bytes;
    b->masks = r->header.masks;
    b->marks_only = b->masks && r->header.no_tokens;
    b->number = r->n_batch;
    const unsigned stored = slu_header_stored(&r->header);
    uint64_t raw_byte = 0;
    do {
        int rc = to_data(r, err);
        if (rc)
            return rc;
        raw_byte += r->meta.raw_byte;
        if (b->raw->n || r->meta.aux <= SLU_LONG_SEQS)
            slu_reader_take(r, raw_byte / stored);
        rc = add_frame(r, b, err);
        if (rc)
            return slu_err_at(err, "%s", r->name);
        b->member = (uint32_t)r->n_member - 1;
        b->input = (uint32_t)r->at_path;
        if (r->max_seq_tok && b->raw->n > 1 && raw_byte / stored > r->max_seq_tok)
            return too_long(r, b, err);
    } while (r->continues);
    r->n_batch++;
    return SLU_OK;
}

void slu_reader_find_duplicates(struct slu_reader *r,
                                struct slu_reader_duplicates *duplicates)
{
    *duplicates = (struct slu_reader_duplicates){0};
    r->duplicates = duplicates;
}

/* Searches for an earlier member with the same first batch. Finds none if memory is
 * short. */
static void find_duplicate(struct slu_reader *r, const struct slu_batch *b)
{
    const struct slu_member *m = &r->member[b->member];
    const struct slu_seg *s = b->n_seg ? &b->seg[0] : NULL;
    struct slu_reader_duplicates *t = r->duplicates;
    uint64_t other;

    if (!s || m->seen.n.sequences || s->source == SLU_PADDING || t->one)
        return;
    const uint64_t at[] = {s->source, s->document, s->offset};
    const uint64_t key = slu_hash64(at, sizeof at);
    if (!slu_map_get(&r->begun, key, &other)) {
        if (slu_map_set(&r->begun, key, b->member, NULL))
            r->duplicates = NULL;
        return;
    }
    const char *source = slu_names_source(r->names, s->source);
    t->one = strdup(r->member[other].name);
    t->other = strdup(m->name);
    t->source = strdup(source ? source : "");
}

void slu_reader_defer(struct slu_reader *r)
{
    r->defers = true;
}

/* A source that has another number here is hashed under its number in the stream. */
bool slu_reader_may_wait(struct slu_reader *r, const struct slu_batch *b)
{
    bool may = r->defers && !r->tracked && !b->masks && !r->header.meta.n;
    if (!may || r->ops)
        return may;
    pthread_mutex_lock(&r->mu);
    may = r->member[b->member].source.n == 0 && !r->member[b->member].meta;
    pthread_mutex_unlock(&r->mu);
    return may;
}

void slu_reader_late(struct slu_reader *r, const struct slu_seg *seg,
                     struct slu_u128 hash)
{
    r->n_late--;
    if (r->ops) {
        slu_sum_late(&r->over_seen, seg, hash);
        return;
    }
    pthread_mutex_lock(&r->mu);
    while (!r->member[r->late_member].n_late)
        r->late_member++;
    struct slu_member *m = &r->member[r->late_member];
    m->n_late--;
    slu_sum_late(&m->seen, seg, hash);
    pthread_mutex_unlock(&r->mu);
}

void slu_reader_account(struct slu_reader *r, struct slu_batch *b)
{
    slu_identity_account(r, b);
    if (r->n_dropped)
        *r->n_dropped += b->n_drop;
    r->n_late += b->n_late;
    if (r->ops) {
        slu_sum_add(&r->over_seen, &b->sum_read);
        return;
    }
    pthread_mutex_lock(&r->mu);
    struct slu_member *m = &r->member[b->member];
    if (r->duplicates)
        find_duplicate(r, b);
    slu_sum_add(&m->seen, &b->sum_read);
    m->n_late += b->n_late;
    for (size_t i = 0; i < b->raw->n; i++)
        m->tok_rows = slu_add_row(m->tok_rows, b->raw->f[i].n_tok);
    pthread_mutex_unlock(&r->mu);
}

int slu_reader_next(struct slu_reader *r, struct slu_batch *b, struct slu_err *err)
{
    int rc = slu_reader_fetch(r, b, err);
    if (!rc)
        rc = slu_batch_open(r, b, err);
    if (!rc)
        slu_reader_account(r, b);
    return rc;
}

static int vocab_error(const struct slu_reader *r, int rc, struct slu_err *err)
{
    return rc ? slu_err_at(err, "%s", r->member[r->vocab_member].name) : SLU_OK;
}

int slu_reader_read_vocab(struct slu_reader *r, struct slu_err *err)
{
    return vocab_error(r, slu_names_read_vocab(r->names, err), err);
}

int slu_reader_finish(struct slu_reader *r, struct slu_sum *total, struct slu_err *err)
{
    struct slu_sum t = {0};
    if (r->ops) {
        if (total)
            *total = r->over_seen;
        if (r->finished)
            return SLU_OK;
        r->finished = true;
        return r->ops->finish(r->input, &r->over_seen, err);
    }
    int rc = vocab_error(r, slu_names_check_vocab(r->names, err), err);
    if (rc)
        return rc;
    for (size_t i = 0; i < r->n_member; i++) {
        const struct slu_member *m = &r->member[i];
        struct slu_sum seen = m->seen;
        if (!m->masks) { /* those of the end frame are 0 */
            seen.n.loss_tokens = 0;
            seen.mask_checksum = (struct slu_u128){0, 0};
        }
        if (!m->ended)
            return slu_fail(err, SLU_E_TRUNCATED, "%s: ends without its end frame",
                            m->name);
        if (m->n_frame != m->declared_frames ||
            memcmp(&seen.n, &m->declared.n, sizeof seen.n) ||
            seen.segments != m->declared.segments ||
            seen.padding != m->declared.padding)
            return slu_fail(
                err, SLU_E_CHECKSUM,
                "%s: read %llu sequence%s of %llu token%s, and its end frame says "
                "%llu of %llu (or other counts differ); the stream is damaged",
                m->name, (unsigned long long)m->seen.n.sequences,
                slu_plural(m->seen.n.sequences), (unsigned long long)m->seen.n.tokens,
                slu_plural(m->seen.n.tokens),
                (unsigned long long)m->declared.n.sequences,
                (unsigned long long)m->declared.n.tokens);
        if (!r->n_late &&
            (slu_u128_cmp(seen.checksum, m->declared.checksum) ||
             slu_u128_cmp(seen.trace_checksum, m->declared.trace_checksum) ||
             slu_u128_cmp(seen.mask_checksum, m->declared.mask_checksum) ||
             slu_u128_cmp(seen.meta_checksum, m->declared.meta_checksum)))
            return slu_fail(err, SLU_E_CHECKSUM,
                            "%s: a checksum of its sequences differs from the one in "
                            "its end frame; the stream is damaged",
                            m->name);
        if (m->tok_rows != m->declared_tok_rows)
            return slu_fail(err, SLU_E_FORMAT,
                            "%s: the index does not match the frames", m->name);
        slu_sum_add(&t, &m->seen);
    }
    if (total)
        *total = t;
    return SLU_OK;
}

void slu_reader_free(struct slu_reader *r)
{
    if (!r)
        return;
    if (r->ops)
        r->ops->free(r->input);
    close_path(r);
    if (r->joint)
        slu_joint_close(r->joint);
    slu_frame_release(&r->passed);
    slu_frame_release(&r->meta);
    slu_header_release(&r->header);
    slu_steps_release(&r->steps);
    slu_steps_release(&r->uncounted);
    slu_names_free(r->names);
    slu_names_free(r->values);
    for (size_t i = 0; r->path && i < r->n_path; i++)
        free(r->path[i]);
    free(r->path);
    for (size_t i = 0; i < r->n_member; i++) {
        free(r->member[i].domain.is);
        free(r->member[i].value.is);
        free(r->member[i].meta);
        slu_map_release(&r->member[i].source);
    }
    free(r->member);
    for (size_t i = 0; i < r->n_moved; i++)
        free(r->moved[i].name);
    free(r->moved);
    slu_map_release(&r->moved_at);
    slu_map_release(&r->begun);
    pthread_mutex_destroy(&r->mu);
    free(r);
}
