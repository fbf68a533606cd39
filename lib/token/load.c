/* load.c - from a name to a tokenizer. */
#include "lib/token/tok.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/hash.h"
#include "lib/base/io.h"
#include "lib/base/xxh3.h"
#include "lib/stream/stream_private.h"
#include "lib/token/added.h"
#include "lib/token/bpe.h"
#include "lib/token/compiled.h"
#include "lib/token/cut.h"
#include "lib/token/norm.h"
#include "lib/token/pre.h"
#include "lib/token/unicode.h"

#define PIECE (64 << 10) /* bytes of a file at a time, if it is only hashed */

static int load_bytes(struct slu_tokenizer *t, struct slu_err *err)
{
    int rc = SLU_OK;

    t->is_bytes = true;
    for (unsigned i = 0; i < 256 && !rc; i++) {
        uint8_t b = (uint8_t)i;
        rc = tok_vocab_set(&t->vocab, i, &b, 1, 0, err);
    }
    if (rc || (rc = tok_add_special(t, 256, "<|endoftext|>", err)))
        return rc;
    if ((rc = tok_make_table(t, err)))
        return rc;
    return tok_finish(t, err);
}

int tok_add_special(struct slu_tokenizer *t, uint64_t id, const char *text,
                    struct slu_err *err)
{
    struct added_token token = {.id = (uint32_t)id, .special = true};
    size_t n = strlen(text);
    int rc;

    if (id < t->vocab.n && t->vocab.len[id] != UINT32_MAX)
        return slu_fail(err, SLU_E_FORMAT,
                        "token %llu is in the vocabulary already, so it cannot be %s; "
                        "is the split pattern right?",
                        (unsigned long long)id, text);
    if (!t->added && (rc = added_new(&t->added, err)))
        return rc;
    if ((rc = tok_vocab_set(&t->vocab, id, text, n, SLU_VOCAB_SPECIAL, err)))
        return rc;
    return added_put(t->added, token, text, n, err);
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);

    return n >= k && !strcmp(s + n - k, end);
}

/* ---- where a tokenizer comes from ---- */

struct origin {
    const char *path;    /* NULL: built in */
    const char *pattern; /* of a rank file; NULL: a tokenizer.json */
    const char *cache;   /* folder of compiled vocabularies, or NULL */
};

/* Finds where the tokenizer is. A path is a rank file by its name, or if there is a
 * pattern. */
static int find_origin(struct origin *o, const struct slu_tokenizer_cfg *cfg,
                       const char *spec, struct slu_err *err)
{
    bool builtin = !strcmp(spec, "builtin");

    *o = (struct origin){.path = builtin ? NULL : spec, .cache = cfg->cache_dir};
    if (builtin || (!cfg->pattern && !ends_with(spec, ".tiktoken")))
        return SLU_OK;
    if (tok_tiktoken_pattern(&o->pattern, spec, cfg->pattern, err))
        return slu_err_at(err, "%s", spec);
    return SLU_OK;
}

static struct slu_u128 key_of(const struct origin *o, struct slu_u128 content,
                              uint64_t n_byte)
{
    char kind[64];

    snprintf(kind, sizeof kind, "%s %s",
             !o->path     ? "builtin"
             : o->pattern ? "ranks"
                          : "tokenizer.json",
             o->pattern ? o->pattern : "");
    return compiled_key(kind, content, n_byte);
}

/* Computes the key of the file as it is now. It is read in pieces that stay in the
 * CPU's cache, as its bytes are not needed if the compiled form exists. False if it is
 * not a regular file, or cannot be read: the loader then says why. */
static bool key_of_file(const struct origin *o, struct slu_u128 *key)
{
    struct stat st;
    /* Not opened to find out what it is: the writer of a FIFO would see a reader come
     * and go. */
    if (stat(o->path, &st) || !S_ISREG(st.st_mode))
        return false;
    int fd = open(o->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    XXH3_state_t x;
    uint8_t *p = malloc(PIECE);
    size_t got = 0;
    uint64_t n_byte = 0;
    bool ok = fd >= 0 && p && XXH3_128bits_reset(&x) == XXH_OK;

    do {
        ok = ok && slu_read_full(fd, p, PIECE, &got, NULL) >= 0 &&
             (n_byte += got) <= TOK_MAX_FILE;
        if (ok)
            slu_xxh3_128_update(&x, p, got);
    } while (ok && got == PIECE);
    if (ok)
        *key = key_of(o, slu_xxh3_128_digest(&x), n_byte);
    free(p);
    if (fd >= 0)
        close(fd);
    return ok;
}

/* Whether the first line is base64, a space and a digit, as in rank files. */
static bool is_ranks(const struct slu_buf *file)
{
    static const char base64[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
    size_t i = 0;
    while (i < file->len && memchr(base64, file->data[i], sizeof base64 - 1))
        i++;
    return i && i + 1 < file->len && file->data[i] == ' ' && file->data[i + 1] >= '0' &&
           file->data[i + 1] <= '9';
}

/* Refuses what a file without a pattern can be that is no JSON. */
static int check_kind(const struct origin *o, const struct slu_buf *file,
                      struct slu_err *err)
{
    if (o->pattern)
        return SLU_OK;
    if (is_ranks(file))
        return slu_advise(err, SLU_ADVISE_PATTERN,
                          slu_fail(err, SLU_E_USAGE,
                                   "has tiktoken's ranks, and the name does not say "
                                   "how text is split for them"));
    return ends_with(o->path, ".model")
               ? slu_fail(err, SLU_E_UNSUPPORTED,
                          "SentencePiece's own format is not read; convert it to a "
                          "tokenizer.json")
               : SLU_OK;
}

/* Builds t from its origin. *key: the key of the bytes it was built from, even if the
 * file has changed since. */
static int build(struct slu_tokenizer *t, const struct origin *o, struct slu_u128 *key,
                 struct slu_err *err)
{
    struct slu_buf file = SLU_BUF_INIT;
    int rc;

    if (!o->path)
        return tok_load_builtin(t, err);
    if ((rc = slu_read_whole(&file, o->path, TOK_MAX_FILE, err)))
        goto out;
    if (o->cache)
        *key = key_of(o, slu_hash128(file.data, file.len), file.len);
    rc = check_kind(o, &file, err);
    if (!rc)
        rc = o->pattern ? tok_load_tiktoken(t, &file, o->pattern, err)
                        : tok_load_hf(t, &file, err);
    if (rc)
        slu_err_at(err, "%s", o->path);
out:
    slu_buf_release(&file);
    return rc;
}

/* ---- through the folder of compiled vocabularies ---- */

static void note(struct slu_tokenizer *t, const struct slu_err *err)
{
    snprintf(t->note, sizeof t->note, "%.*s", (int)sizeof t->note - 1, err->msg);
}

/* Replaces the empty *t by the compiled tokenizer of the folder. SLU_EOF: there is
 * none; an error: it cannot be used, and *t has a note. */
static int read_compiled(struct slu_tokenizer **t, const struct origin *o,
                         struct slu_u128 key)
{
    struct slu_tokenizer *c = calloc(1, sizeof *c);
    struct slu_err err = SLU_ERR_INIT;
    int rc = c ? compiled_read(o->cache, key, &c->compiled, &err)
               : slu_fail_nomem(&err, sizeof *c);

    if (!rc && (rc = compiled_decode(c, c->compiled.p, c->compiled.n_byte, key, &err)))
        slu_err_at(&err, "%s: compiled vocabulary", o->cache);
    if (rc)
        note(*t, &err);
    if (!rc) {
        compiled_unload(&c->compiled);
        slu_tokenizer_free(*t);
        *t = c;
    } else {
        slu_tokenizer_free(c);
    }
    return rc;
}

static void write_compiled(struct slu_tokenizer *t, const struct origin *o,
                           struct slu_u128 key)
{
    struct slu_buf image = SLU_BUF_INIT, packed = SLU_BUF_INIT;
    struct slu_err err = SLU_ERR_INIT;
    int rc = slu_vocab_pack(&t->table, &packed, &err);

    if (!rc) {
        /* This process needs it too. */
        t->table.packed = packed.data;
        t->table.packed_byte = packed.len;
        rc = compiled_encode(t, key, &image, &err);
    } else {
        slu_buf_release(&packed);
    }
    if (!rc)
        rc = compiled_write(o->cache, key, image.data, image.len, &err);
    if (rc)
        note(t, &err);
    slu_buf_release(&image);
}

static int load(struct slu_tokenizer **t, const struct origin *o, struct slu_err *err)
{
    struct slu_u128 key = {0, 0};
    bool keep = false;
    size_t n;
    int rc, found = SLU_EOF;

    if (o->cache && o->path) {
        keep = key_of_file(o, &key);
    } else if (o->cache) {
        const uint8_t *p = tok_builtin_bytes(&n);
        key = key_of(o, slu_hash128(p, n), n);
        keep = true;
    }
    if (keep && (found = read_compiled(t, o, key)) == SLU_OK)
        return SLU_OK;
    if ((rc = build(*t, o, &key, err)) || (rc = tok_finish(*t, err)) ||
        (rc = tok_find_leak(*t, err)))
        return rc;
    if (keep && (found < 0 || !compiled_exists(o->cache, key)))
        write_compiled(*t, o, key);
    return SLU_OK;
}

int slu_tokenizer_load(struct slu_tokenizer **out, const struct slu_tokenizer_cfg *cfg,
                       struct slu_err *err)
{
    const char *spec = cfg->spec ? cfg->spec : "builtin";
    bool bytes = !strcmp(spec, "bytes");
    struct slu_tokenizer *t = calloc(1, sizeof *t);
    struct origin o = {0};
    int rc;

    *out = NULL;
    if (!t)
        return slu_fail_nomem(err, sizeof *t);
    if ((bytes || !strcmp(spec, "builtin")) && cfg->pattern)
        rc = slu_advise(err, SLU_ADVISE_NO_PATTERN,
                        slu_fail(err, SLU_E_USAGE,
                                 "%s: only a .tiktoken file takes a split pattern",
                                 spec));
    else if (bytes)
        rc = load_bytes(t, err);
    else if (!(rc = find_origin(&o, cfg, spec, err)))
        rc = load(&t, &o, err);
    if (!rc)
        rc = tok_find_ids(t, cfg->eos, err);
    if (rc) {
        slu_tokenizer_free(t);
        return rc;
    }
    t->special_parse = cfg->special_parse;
    t->cut_kinds = (uint8_t)tok_cut_kinds(t);
    *out = t;
    return SLU_OK;
}

void slu_tokenizer_free(struct slu_tokenizer *t)
{
    if (!t)
        return;
    tok_vocab_release(&t->vocab);
    if (!t->compiled.p) {
        free((void *)t->table.off);
        free((void *)t->table.bytes);
        free((void *)t->table.flags);
        free((void *)t->table.packed);
    }
    free(t->in_model);
    bpe_free(t->model);
    norm_free(t->norm);
    free(t->sp);
    pre_free(t->pre);
    added_free(t->added);
    compiled_free(&t->compiled);
    free(t);
}

const struct slu_vocab_table *slu_tokenizer_vocab(const struct slu_tokenizer *t)
{
    return &t->table;
}

uint64_t slu_tokenizer_vocab_size(const struct slu_tokenizer *t)
{
    return t->table.n;
}

uint64_t slu_tokenizer_eos(const struct slu_tokenizer *t)
{
    return t->eos;
}

uint64_t slu_tokenizer_bos(const struct slu_tokenizer *t)
{
    return t->bos;
}

uint64_t slu_tokenizer_pad(const struct slu_tokenizer *t)
{
    return t->pad;
}

const uint8_t *slu_tokenizer_fingerprint(const struct slu_tokenizer *t)
{
    return t->fingerprint;
}

const char *slu_tokenizer_family(const struct slu_tokenizer *t)
{
    const char *name = "other";

    if (t->is_bytes)
        return "bytes";
    if (t->sp)
        return "sentencepiece";
    for (size_t i = 0; t->pre && i < t->pre->n; i++) {
        const struct pre_step *s = &t->pre->step[i];
        if (s->kind == PRE_PREFIX)
            continue;
        if (s->kind != PRE_SCAN || strcmp(name, "other"))
            return "other";
        name = pre_scan_name(s->scan);
    }
    return strcmp(name, "llama3") ? name : "llama3/cl100k"; /* files have one split */
}

bool slu_tokenizer_was_compiled(const struct slu_tokenizer *t)
{
    return t->compiled.p != NULL;
}

const char *slu_tokenizer_note(const struct slu_tokenizer *t)
{
    return t->note;
}

const char *slu_tokenizer_unicode(void)
{
    return UNI_VERSION;
}

void slu_ids_release(struct slu_ids *ids)
{
    free(ids->id);
    memset(ids, 0, sizeof *ids);
}
