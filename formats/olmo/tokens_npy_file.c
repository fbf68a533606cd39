/* tokens_npy_file.c - files of ids, with NumPy's header (format 1.0 to 3.0 of
 * numpy/lib/format.py) or without: finds the position, width and number of the ids. */
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/ids/tokens_private.h"
#include "lib/base/io.h"
#include "lib/base/le.h"

static const uint8_t magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
enum { MAX_HEADER = 65536, SHOWN = 100 /* characters of a header in a message */ };

/* Raw ids have no mark; they are recognised by the file's name, or by --token-bytes. */
bool slu_npy_probe(const struct slu_tokens_cfg *cfg, const struct slu_tokens_look *at)
{
    if (at->n >= sizeof magic && !memcmp(at->head, magic, sizeof magic))
        return true;
    return cfg->tok_bytes || slu_tokens_suffix(at->path, ".npy");
}

/* ---- NumPy's header: a Python dictionary of three entries ---- */

/* The text after "'key':" and spaces; NULL if it is missing. */
static const char *value_of(const char *dict, const char *key)
{
    size_t n = strlen(key);
    for (const char *p = dict; (p = strchr(p, '\'')); p++)
        if (!strncmp(p + 1, key, n) && p[n + 1] == '\'') {
            p += n + 2;
            while (*p == ' ' || *p == ':')
                p++;
            return p;
        }
    return NULL;
}

static int parse_dict(struct slu_npy_file *f, const char *dict, struct slu_err *err)
{
    const char *name = slu_tokens_name(f->path);
    const char *type = value_of(dict, "descr"), *shape = value_of(dict, "shape");
    uint64_t n = 0;
    if (!type || !shape || *shape++ != '(')
        return slu_fail(err, SLU_E_FORMAT,
                        "%s: its NumPy header has no descr or no shape", name);
    int shown = (int)strcspn(shape, ")}");
    shown = shown < SHOWN ? shown : SHOWN;
    f->tok_bytes = !strncmp(type, "'<u2'", 5) ? 2 : !strncmp(type, "'<u4'", 5) ? 4 : 0;
    if (!f->tok_bytes)
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "%s: a NumPy array of %.*s; ids are read as '<u2' or '<u4'",
                        name, (int)strcspn(type, ",}"), type);
    const char *digits = shape;
    for (; *shape >= '0' && *shape <= '9'; shape++)
        if (__builtin_mul_overflow(n, (uint64_t)10, &n) ||
            __builtin_add_overflow(n, (uint64_t)(*shape - '0'), &n))
            return slu_fail(err, SLU_E_FORMAT,
                            "%s: its NumPy header has a shape of more than 2^64 ids",
                            name);
    if (shape == digits || *shape++ != ',' || *(shape += strspn(shape, " ")) != ')')
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "%s: a NumPy array of shape (%.*s); ids are read from one "
                        "dimension",
                        name, shown, digits);
    /* No file is that long; UINT64_MAX means a pipe without a stated number. */
    if (n > INT64_MAX / f->tok_bytes)
        return slu_fail(
            err, SLU_E_FORMAT,
            "%s: its NumPy header has a shape of more ids than a file can hold", name);
    f->n_tok = n;
    return SLU_OK;
}

/* Reads the header after the magic number. */
static int read_header(struct slu_npy_file *f, struct slu_err *err)
{
    const char *name = slu_tokens_name(f->path);
    char dict[MAX_HEADER + 1];
    uint8_t len[4];
    size_t n_len = f->head[6] == 1 ? 2 : 4, got, n;
    if (f->head[6] < 1 || f->head[6] > 3)
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "%s: NumPy format version %u; versions 1 to 3 are read", name,
                        f->head[6]);
    int rc = slu_read_full(f->fd, len, n_len, &got, err);
    if (rc)
        return slu_err_at(err, "%s", name);
    if (got < n_len)
        return slu_fail(err, SLU_E_TRUNCATED, "%s: ends within its NumPy header", name);
    n = n_len == 2 ? slu_le16(len) : slu_le32(len);
    if (n > MAX_HEADER)
        return slu_fail(err, SLU_E_FORMAT,
                        "%s: a NumPy header of %zu bytes; expected at most %d", name, n,
                        MAX_HEADER);
    rc = slu_read_full(f->fd, dict, n, &got, err);
    if (rc)
        return slu_err_at(err, "%s", name);
    if (got < n)
        return slu_fail(err, SLU_E_TRUNCATED, "%s: ends within its NumPy header", name);
    dict[n] = 0;
    f->off_byte = 8 + n_len + n;
    f->n_head = 0;
    return parse_dict(f, dict, err);
}

/* ---- one file ---- */

/* Compares the file's size with the header and the options. */
static int check_size(struct slu_npy_file *f, bool header, uint64_t n_byte,
                      struct slu_err *err)
{
    const char *name = slu_tokens_name(f->path);
    uint64_t n = n_byte - f->off_byte;
    if (!header && n_byte == 0)
        return slu_fail(err, SLU_E_TRUNCATED,
                        "%s: is empty and holds no ids: the program that should have "
                        "written it failed",
                        name);
    if (n % f->tok_bytes)
        return slu_advise(err, SLU_ADVISE_TOKEN_BYTES,
                          slu_fail(err, SLU_E_TRUNCATED,
                                   "%s: %llu bytes are not a whole number of ids of %u "
                                   "bytes: the file was cut, or the width is wrong",
                                   name, (unsigned long long)n, f->tok_bytes));
    if (header && n / f->tok_bytes != f->n_tok)
        return slu_fail(err, SLU_E_TRUNCATED,
                        "%s: has %llu ids, and its NumPy header says %llu: bytes were "
                        "cut off or added",
                        name, (unsigned long long)(n / f->tok_bytes),
                        (unsigned long long)f->n_tok);
    f->n_tok = n / f->tok_bytes;
    return SLU_OK;
}

int slu_npy_open(struct slu_npy_file *f, const struct slu_tokens_cfg *cfg,
                 const char *path, struct slu_err *err)
{
    const char *name = slu_tokens_name(path);
    struct stat st;
    *f = (struct slu_npy_file){.path = path, .fd = STDIN_FILENO};
    if (strcmp(path, "-"))
        f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (f->fd < 0 || fstat(f->fd, &st)) {
        int rc = slu_fail_errno(err, "%s: cannot be opened", name);
        slu_npy_close(f);
        return rc;
    }
    /* Standard input may already have been read in part, so it is handled like a
     * pipe. */
    f->regular = S_ISREG(st.st_mode) && strcmp(path, "-");
    posix_fadvise(f->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    int rc = slu_read_full(f->fd, f->head, 8, &f->n_head, err);
    if (rc)
        slu_err_at(err, "%s", name);
    bool header = !rc && f->n_head == 8 && !memcmp(f->head, magic, sizeof magic);
    if (header)
        rc = read_header(f, err);
    if (!rc && !header && !cfg->tok_bytes)
        rc = slu_advise(err, SLU_ADVISE_TOKEN_BYTES,
                        slu_fail(err, SLU_E_USAGE,
                                 "%s: ids without a header; their width is not known",
                                 name));
    if (!rc && !header)
        f->tok_bytes = cfg->tok_bytes;
    /* slu_npy_plan has read the headers of files; a pipe's header is read only now. */
    if (!rc && !f->regular && cfg->tok_bytes && f->tok_bytes != cfg->tok_bytes)
        rc = slu_advise(err, SLU_ADVISE_WIDTH_IN_HEADER,
                        slu_fail(err, SLU_E_MISMATCH,
                                 "%s: its header says ids of %u bytes", name,
                                 f->tok_bytes));
    if (!rc && f->regular)
        rc = check_size(f, header, (uint64_t)st.st_size, err);
    else if (!rc && !header)
        f->n_tok = UINT64_MAX;
    if (rc)
        slu_npy_close(f);
    return rc;
}

void slu_npy_close(struct slu_npy_file *f)
{
    if (f->fd > STDIN_FILENO)
        close(f->fd);
    f->fd = -1;
}

static int cut_short(const struct slu_npy_file *f, struct slu_err *err)
{
    return slu_fail(
        err, SLU_E_TRUNCATED,
        "%s: ends early: the file was cut while it was read, or within an id",
        slu_tokens_name(f->path));
}

/* If a pipe's header states the number of ids, the pipe must end after them. */
static int check_end(const struct slu_npy_file *f, struct slu_err *err)
{
    uint8_t more;
    size_t got;
    int rc = slu_read_full(f->fd, &more, 1, &got, err);
    if (rc)
        return slu_err_at(err, "%s", slu_tokens_name(f->path));
    return got ? slu_fail(err, SLU_E_FORMAT,
                          "%s: has bytes after the %llu ids of its NumPy header; a "
                          "pipe takes one file, and the whole of it",
                          slu_tokens_name(f->path), (unsigned long long)f->n_tok)
               : SLU_OK;
}

int slu_npy_read(struct slu_npy_file *f, void *buf, size_t n, size_t *got_tok,
                 struct slu_err *err)
{
    uint64_t left = f->n_tok == UINT64_MAX ? n : f->n_tok - f->at_tok;
    n = n < left ? n : (size_t)left;
    size_t want = n * f->tok_bytes, had = f->n_head < want ? f->n_head : want, got = 0;
    memcpy(buf, f->head, had);
    memmove(f->head, f->head + had, f->n_head - had);
    f->n_head -= had;
    int rc = slu_read_full(f->fd, (uint8_t *)buf + had, want - had, &got, err);
    if (rc)
        return slu_err_at(err, "%s", slu_tokens_name(f->path));
    got += had;
    if (got % f->tok_bytes || (f->n_tok != UINT64_MAX && got < want))
        return cut_short(f, err);
    if (f->n_tok == UINT64_MAX && f->at_tok == 0 && n && !got)
        return slu_fail(err, SLU_E_TRUNCATED, "%s: is empty and holds no ids",
                        slu_tokens_name(f->path));
    *got_tok = got / f->tok_bytes;
    f->at_tok += *got_tok;
    return !f->regular && f->at_tok == f->n_tok ? check_end(f, err) : SLU_OK;
}

int slu_npy_pread(const struct slu_npy_file *f, void *buf, size_t n, uint64_t at,
                  struct slu_err *err)
{
    int rc = slu_pread_full(f->fd, buf, n * f->tok_bytes,
                            f->off_byte + at * f->tok_bytes, err);
    return rc ? slu_err_at(err, "%s", slu_tokens_name(f->path)) : SLU_OK;
}

/* ---- all files ---- */

int slu_npy_plan(const struct slu_tokens_cfg *cfg, uint64_t *vocab_size, uint8_t *width,
                 uint64_t *n_tok, struct slu_err *err)
{
    const char *widest_name = NULL;
    unsigned widest = 0;
    uint64_t total = 0;
    const char *no_ends = NULL; /* a file without the ends of documents */
    for (size_t i = 0; i < cfg->n_path; i++) {
        struct slu_npy_file f = {.tok_bytes = cfg->tok_bytes, .n_tok = UINT64_MAX};
        struct stat st;
        /* A pipe can be opened only once, so its header must not change what was
         * planned. */
        bool later = !strcmp(cfg->path[i], "-") ||
                     (!stat(cfg->path[i], &st) && !S_ISREG(st.st_mode));
        if (later && !cfg->tok_bytes)
            return slu_advise(err, SLU_ADVISE_TOKEN_BYTES,
                              slu_fail(err, SLU_E_USAGE,
                                       "%s: the width of the ids is not known",
                                       slu_tokens_name(cfg->path[i])));
        int rc = later ? SLU_OK : slu_npy_open(&f, cfg, cfg->path[i], err);
        if (rc)
            return rc;
        if (!later)
            slu_npy_close(&f);
        if (width)
            width[i] = (uint8_t)f.tok_bytes;
        if (!no_ends && !slu_npy_has_rows(cfg->path[i]))
            no_ends = slu_tokens_name(cfg->path[i]);
        total = later || total == UINT64_MAX ? UINT64_MAX : total + f.n_tok;
        if (f.tok_bytes > widest) {
            widest = f.tok_bytes;
            widest_name = slu_tokens_name(cfg->path[i]);
        }
    }
    *vocab_size = cfg->vocab_size ? cfg->vocab_size
                  : widest == 2   ? UINT64_C(1) << 16
                  : cfg->any_id   ? UINT64_C(1) << 32
                                  : 0;
    if (n_tok)
        *n_tok = total;
    if (cfg->eos == SLU_NO_TOKEN && no_ends)
        return slu_advise(err, SLU_ADVISE_EOS_ID,
                          slu_fail(err, SLU_E_USAGE,
                                   "%s: ids alone do not say where documents end",
                                   no_ends));
    if (!*vocab_size)
        return slu_advise(
            err, SLU_ADVISE_VOCAB_SIZE,
            slu_fail(err, SLU_E_USAGE,
                     "%s: ids of four bytes; their vocabulary size is not known",
                     widest_name));
    return slu_tokens_check_eos(cfg, *vocab_size, err);
}

void slu_npy_account_end(const struct slu_tokens_cfg *cfg, const char *path,
                         uint64_t open_tok, bool any_eos)
{
    struct slu_tokens_seen *s = cfg->seen;
    if (!s || !open_tok)
        return;
    if (!s->open_ended++)
        s->open_ended_name = slu_tokens_name(path);
    if (!any_eos && !s->without++)
        s->without_name = slu_tokens_name(path);
}
