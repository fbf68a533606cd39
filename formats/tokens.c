/* The registry of formats of ids, and which of them the inputs are. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tokens_private.h"

static const struct slu_tokens_format *const formats[] = {
    &slu_tokens_npy,
};
enum { N_FORMAT = sizeof formats / sizeof *formats };

static const char *const standard_input[] = {"-"};

const char *slu_tokens_name(const char *path)
{
    return strcmp(path, "-") ? path : "standard input";
}

/* The first bytes of a regular file; 0 of what is none. Faults are for the opening. */
static size_t peek(const char *path, uint8_t *head, size_t n)
{
    struct stat st;
    ssize_t got = 0;
    if (!strcmp(path, "-") || stat(path, &st) || !S_ISREG(st.st_mode))
        return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return 0;
    got = pread(fd, head, n, 0);
    close(fd);
    return got < 0 ? 0 : (size_t)got;
}

/* *stream: it is one for certain. */
static const struct slu_tokens_format *format_of(const struct slu_tokens_cfg *cfg,
                                                 const char *path, bool *stream)
{
    /* A stream's first frame (STREAM.md section 1), whatever its name. */
    static const uint8_t first[8] = {0xF5, 'T', 'K', 'S', 'H', 'E', 'A', 'D'};
    uint8_t head[64];
    size_t n = peek(path, head, sizeof head);
    *stream = n >= sizeof first && !memcmp(head, first, sizeof first);
    if (*stream)
        return NULL;
    for (size_t i = 0; i < N_FORMAT; i++)
        if (formats[i]->probe(cfg, path, head, n))
            return formats[i];
    return NULL;
}

/* *f: the one format of all inputs, NULL: they are streams. */
static int format_of_all(const struct slu_tokens_cfg *cfg,
                         const struct slu_tokens_format **f, struct slu_err *err)
{
    const char *const *path = cfg->n_path ? cfg->path : standard_input;
    size_t n = cfg->n_path ? cfg->n_path : 1;
    bool stream, other;
    *f = format_of(cfg, path[0], &stream);
    for (size_t i = 1; i < n; i++)
        if (format_of(cfg, path[i], &other) != *f)
            return slu_fail(
                err, SLU_E_MISMATCH,
                "%s and %s are not of one kind (token streams, files of ids); one "
                "kind at a time",
                slu_tokens_name(path[0]), slu_tokens_name(path[i]));
    if (!*f && (cfg->eos != SLU_NO_TOKEN || cfg->tok_bytes || cfg->vocab_size))
        return slu_fail(
            err, SLU_E_USAGE,
            "--eos-id, --token-bytes and --vocab-size say how to read "
            "files of ids, which %s is not%s",
            slu_tokens_name(path[0]),
            cfg->tok_bytes || stream ? "" : " by its name (--token-bytes N says so)");
    return SLU_OK;
}

int slu_tokens_are(const struct slu_tokens_cfg *cfg, bool *are, bool *scans,
                   struct slu_err *err)
{
    const struct slu_tokens_format *f;
    int rc = format_of_all(cfg, &f, err);
    *are = !rc && f;
    *scans = !rc && f && f->lengths;
    return rc;
}

/* cfg with standard input named. */
static struct slu_tokens_cfg with_paths(const struct slu_tokens_cfg *cfg)
{
    struct slu_tokens_cfg c = *cfg;
    if (!c.n_path) {
        c.path = standard_input;
        c.n_path = 1;
    }
    return c;
}

int slu_tokens_open(struct slu_reader **r, const struct slu_tokens_cfg *cfg,
                    struct slu_err *err)
{
    const struct slu_tokens_format *f;
    struct slu_tokens_cfg c = with_paths(cfg);
    *r = NULL;
    int rc = format_of_all(&c, &f, err);
    if (!rc && !f)
        rc = slu_fail(err, SLU_E_FORMAT, "%s: no file of ids",
                      slu_tokens_name(c.path[0]));
    return rc ? rc : f->open(r, &c, err);
}

int slu_tokens_lengths(const struct slu_tokens_cfg *cfg,
                       const struct slu_tokens_lengths_cfg *how,
                       struct slu_tokens_lengths *out, struct slu_err *err)
{
    const struct slu_tokens_format *f;
    struct slu_tokens_cfg c = with_paths(cfg);
    memset(out, 0, sizeof *out);
    int rc = format_of_all(&c, &f, err);
    if (!rc && (!f || !f->lengths))
        rc = slu_fail(err, SLU_E_UNSUPPORTED, "%s: not of a kind that can be scanned",
                      slu_tokens_name(c.path[0]));
    return rc ? rc : f->lengths(&c, how, out, err);
}

static uint32_t largest_16(const uint16_t *t, size_t n)
{
    uint16_t m = 0;
    for (size_t i = 0; i < n; i++)
        m = t[i] > m ? t[i] : m;
    return m;
}

static uint32_t largest_32(const uint32_t *t, size_t n)
{
    uint32_t m = 0;
    for (size_t i = 0; i < n; i++)
        m = t[i] > m ? t[i] : m;
    return m;
}

int slu_tokens_check(const void *tok, size_t n, unsigned tok_bytes, uint64_t vocab_size,
                     const char *path, uint64_t first, struct slu_err *err)
{
    if (vocab_size >> (8 * tok_bytes) ||
        (tok_bytes == 2 ? largest_16(tok, n) : largest_32(tok, n)) < vocab_size)
        return SLU_OK;
    size_t i = 0;
    uint32_t id = 0;
    for (; i < n; i++) {
        id = tok_bytes == 2 ? ((const uint16_t *)tok)[i] : ((const uint32_t *)tok)[i];
        if (id >= vocab_size)
            break;
    }
    return i == n ? SLU_OK
                  : slu_fail(err, SLU_E_FORMAT,
                             "%s: id %u at position %llu is not below the vocabulary "
                             "size %llu; is --token-bytes %u right?",
                             slu_tokens_name(path), id, (unsigned long long)(first + i),
                             (unsigned long long)vocab_size, tok_bytes);
}
