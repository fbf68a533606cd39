/* The registry of formats of ids, and the choice of the inputs' format. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tokens_private.h"

/* In the order of probing: formats with a mark of their own first. */
static const struct slu_tokens_format *const formats[] = {
    &slu_tokens_megatron, /* named by their own suffixes */
    &slu_tokens_ds,       /* named by their own suffix */
    &slu_tokens_set,      /* a folder with a report.json */
    &slu_tokens_mds,      /* a folder with an index.json, as a set of format mds has */
    &slu_tokens_npy,      /* last: with --token-bytes it accepts any file */
};
enum { N_FORMAT = sizeof formats / sizeof *formats };

const char *const slu_tokens_format_names[] = {"auto", "stream", "npy", "megatron",
                                               "ds",   "mds",    "set", NULL};

static const char *const standard_input[] = {"-"};

const char *slu_tokens_name(const char *path)
{
    return strcmp(path, "-") ? path : "standard input";
}

bool slu_tokens_suffix(const char *path, const char *suffix)
{
    size_t n = strlen(path), m = strlen(suffix);
    return n > m && !strcmp(path + n - m, suffix);
}

void slu_tokens_look_at(struct slu_tokens_look *at, const char *path)
{
    struct stat st;
    *at = (struct slu_tokens_look){.path = path};
    if (!strcmp(path, "-") || stat(path, &st))
        return;
    at->folder = S_ISDIR(st.st_mode);
    int fd = S_ISREG(st.st_mode) ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY) : -1;
    if (fd < 0)
        return;
    ssize_t got = pread(fd, at->head, sizeof at->head, 0);
    close(fd);
    at->n = got < 0 ? 0 : (size_t)got;
}

bool slu_tokens_beside(const char *path, unsigned i, char *out, size_t cap)
{
    static const struct {
        const char *of, *is; /* `is` replaces the suffix `of` */
    } beside[] = {{".idx", ".bin"},   {".bin", ".idx"},     {"", ".idx"},
                  {"", ".bin"},       {".ds", ".ds.index"}, {".ds", ".ds.metadata"},
                  {".npy", ".csv.gz"}};
    for (size_t k = 0; k < sizeof beside / sizeof *beside; k++) {
        size_t n = strlen(path), m = strlen(beside[k].of);
        /* A path that is no file may be the common prefix of two names. */
        bool of = m ? slu_tokens_suffix(path, beside[k].of) : access(path, F_OK) != 0;
        if (!of || i--)
            continue;
        int len = snprintf(out, cap, "%.*s%s", (int)(n - m), path, beside[k].is);
        return len > 0 && (size_t)len < cap;
    }
    return false;
}

static bool is_stream(const struct slu_tokens_look *at)
{
    /* A stream's first frame (STREAM.md section 1), whatever its name. */
    static const uint8_t first[8] = {0xF5, 'T', 'K', 'S', 'H', 'E', 'A', 'D'};
    return at->n >= sizeof first && !memcmp(at->head, first, sizeof first);
}

/* Returns the format by contents and name; NULL: a stream, or unknown. */
static const struct slu_tokens_format *probe(const struct slu_tokens_cfg *cfg,
                                             const struct slu_tokens_look *at)
{
    if (is_stream(at))
        return NULL;
    for (size_t i = 0; i < N_FORMAT; i++)
        if (at->folder == formats[i]->folders && formats[i]->probe(cfg, at))
            return formats[i];
    return NULL;
}

bool slu_tokens_takes_folder(const char *path)
{
    const struct slu_tokens_cfg cfg = {.eos = SLU_NO_TOKEN};
    struct slu_tokens_look at;
    slu_tokens_look_at(&at, path);
    return at.folder && probe(&cfg, &at);
}

int slu_tokens_each_file(const struct slu_tokens_cfg *cfg, const char *folder,
                         int (*each)(void *arg, const char *path, struct slu_err *err),
                         void *arg, struct slu_err *err)
{
    struct slu_tokens_look at;
    slu_tokens_look_at(&at, folder);
    const struct slu_tokens_format *f = at.folder ? probe(cfg, &at) : NULL;
    return f ? f->each_file(cfg, folder, each, arg, err) : SLU_OK;
}

/* Finds the format that the user named; *f NULL: a stream. */
static int format_said(int format, const struct slu_tokens_format **f,
                       struct slu_err *err)
{
    const char *name = slu_tokens_format_names[format];
    *f = NULL;
    if (format == SLU_TOKENS_STREAM)
        return SLU_OK;
    for (size_t i = 0; i < N_FORMAT && !*f; i++)
        if (!strcmp(formats[i]->name, name))
            *f = formats[i];
    return *f ? SLU_OK
              : slu_fail(err, SLU_E_UNSUPPORTED,
                         "input format %s is not built into this version", name);
}

static int check_folder(const struct slu_tokens_cfg *cfg,
                        const struct slu_tokens_format *f,
                        const struct slu_tokens_look *at, struct slu_err *err)
{
    if (at->folder && !f && cfg->format == SLU_TOKENS_AUTO)
        return slu_fail(err, SLU_E_FORMAT,
                        "%s: a folder, and not one that holds tokens as mds does; name "
                        "the files in it",
                        at->path);
    if (at->folder && !(f && f->folders))
        return slu_fail(err, SLU_E_FORMAT, "%s: a folder; %s is read from files",
                        at->path, f ? f->name : "a stream");
    if (!at->folder && f && f->folders)
        return slu_fail(err, SLU_E_FORMAT, "%s: not a folder; %s is read from folders",
                        slu_tokens_name(at->path), f->name);
    return SLU_OK;
}

/* SLU_E_USAGE if options for files of ids were given for a stream. */
static int refuse_options(const struct slu_tokens_cfg *cfg,
                          const struct slu_tokens_look *at, struct slu_err *err)
{
    bool stream = is_stream(at) || cfg->format == SLU_TOKENS_STREAM;
    if (cfg->eos == SLU_NO_TOKEN && !cfg->tok_bytes && !cfg->vocab_size && !cfg->column)
        return SLU_OK;
    int rc =
        slu_fail(err, SLU_E_USAGE, "%s: %s, and options for files of ids were given",
                 slu_tokens_name(at->path),
                 cfg->tok_bytes || stream ? "is a token stream"
                                          : "is not a file of ids by its name");
    return slu_advise(err, SLU_ADVISE_IDS, rc);
}

/* SLU_E_USAGE if options for columns were given for another format. */
static int refuse_column(const struct slu_tokens_cfg *cfg,
                         const struct slu_tokens_format *f, struct slu_err *err)
{
    if (f->columns || (!cfg->column && cfg->tok_bytes != 8))
        return SLU_OK;
    return slu_fail(err, SLU_E_USAGE, "%s: this is not mds; only mds takes %s",
                    slu_tokens_name(cfg->n_path ? cfg->path[0] : "-"),
                    cfg->column ? "a column" : "ids of 8 bytes");
}

/* Fails, as input a has format f and b has g; NULL: it is a stream. */
static int differ(const struct slu_tokens_look *a, const struct slu_tokens_format *f,
                  const struct slu_tokens_look *b, const struct slu_tokens_format *g,
                  struct slu_err *err)
{
    const char *is[2] = {f           ? f->name
                         : a->folder ? "a set"
                                     : "a token stream",
                         g           ? g->name
                         : b->folder ? "a set"
                                     : "a token stream"};
    return slu_fail(err, SLU_E_MISMATCH,
                    "%s is read as %s, and %s as %s; give one kind at a time",
                    slu_tokens_name(a->path), is[0], slu_tokens_name(b->path), is[1]);
}

/* Finds the one format of all inputs; *f NULL: streams. */
static int format_of_all(const struct slu_tokens_cfg *cfg,
                         const struct slu_tokens_format **f, struct slu_err *err)
{
    const char *const *path = cfg->n_path ? cfg->path : standard_input;
    const bool said = cfg->format != SLU_TOKENS_AUTO;
    size_t n = cfg->n_path ? cfg->n_path : 1;
    struct slu_tokens_look at, first;
    slu_tokens_look_at(&first, path[0]);
    *f = NULL;
    int rc = said ? format_said(cfg->format, f, err) : SLU_OK;
    if (!said)
        *f = probe(cfg, &first);
    for (size_t i = 0; !rc && i < n; i++) {
        slu_tokens_look_at(&at, path[i]);
        if (!said && probe(cfg, &at) != *f)
            rc = differ(&first, *f, &at, probe(cfg, &at), err);
        else
            rc = check_folder(cfg, *f, &at, err);
    }
    if (rc)
        return rc;
    return *f ? refuse_column(cfg, *f, err) : refuse_options(cfg, &first, err);
}

int slu_tokens_are(const struct slu_tokens_cfg *cfg, const char **format, bool *scans,
                   struct slu_err *err)
{
    const struct slu_tokens_format *f;
    int rc = format_of_all(cfg, &f, err);
    *format = !rc && f ? f->name : NULL;
    *scans = !rc && f && f->lengths && (!f->scans || f->scans(cfg)) &&
             !(f->lengths_alone && cfg->vocab_size);
    return rc;
}

/* Returns cfg, with standard input as the path if there is none. */
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
        rc = slu_fail(err, SLU_E_FORMAT, "%s: not a file of ids",
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

int slu_tokens_reader(struct slu_reader **r, const struct slu_tokens_cfg *cfg,
                      const struct slu_input_ops *ops, void *input, uint64_t vocab_size,
                      struct slu_err *err)
{
    struct slu_header h;
    slu_header_init(&h);
    h.tok_bytes = slu_tokens_width(vocab_size);
    h.vocab_size = vocab_size;
    h.eos = h.pad = cfg->eos;
    int rc = slu_reader_over(r, ops, input, &h, err);
    for (size_t i = 0; !rc && i < cfg->n_path; i++)
        rc = slu_names_set_source(slu_reader_names(*r), i,
                                  slu_tokens_name(cfg->path[i]), err);
    if (rc) {
        slu_reader_free(*r);
        *r = NULL;
    }
    slu_header_release(&h);
    return rc;
}

int slu_tokens_all_seen(const struct slu_count *given, const struct slu_sum *seen,
                        struct slu_err *err)
{
    if (!memcmp(&seen->n, given, sizeof seen->n))
        return SLU_OK;
    return slu_fail(
        err, SLU_E_CONSERVATION,
        "%llu documents of %llu tokens were read, and %llu documents of %llu tokens "
        "were passed on",
        (unsigned long long)given->documents, (unsigned long long)given->tokens,
        (unsigned long long)seen->n.documents, (unsigned long long)seen->n.tokens);
}

int slu_tokens_check(const void *tok, size_t n, unsigned tok_bytes, uint64_t vocab_size,
                     const char *path, uint64_t first, struct slu_err *err)
{
    if (vocab_size >> (8 * tok_bytes) ||
        slu_ids_largest(tok, n, tok_bytes) < vocab_size)
        return SLU_OK;
    size_t i = 0;
    uint32_t id = 0;
    for (; i < n; i++) {
        id = tok_bytes == 2 ? ((const uint16_t *)tok)[i] : ((const uint32_t *)tok)[i];
        if (id >= vocab_size)
            break;
    }
    return i == n ? SLU_OK
                  : slu_advise(err, SLU_ADVISE_TOKEN_BYTES,
                               slu_fail(err, SLU_E_FORMAT,
                                        "%s: id %u at position %llu is not below the "
                                        "vocabulary size %llu: that size or the width "
                                        "is wrong",
                                        slu_tokens_name(path), id,
                                        (unsigned long long)(first + i),
                                        (unsigned long long)vocab_size));
}
