/* tokenizer.c - the tokenizer of `tokenize`: where it comes from, its ids in the stream's
 * header, its name in the provenance and in reports. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/json_write.h"
#include "tools/tokenize/tokenize.h"

bool tokenize_from_file(const struct tokenize_opts *o)
{
    return o->tokenizer && strcmp(o->tokenizer, "bytes") &&
           strcmp(o->tokenizer, "builtin");
}

const char *tokenize_own_file(const void *opts)
{
    const struct tokenize_opts *o = opts;
    return tokenize_from_file(o) ? o->tokenizer : NULL;
}

/* Whether a name that is no file looks like "gpt2" or "Qwen/Qwen3-8B". */
static bool is_hub_name(const char *s)
{
    const char *slash = strchr(s, '/'), *dot = strrchr(s, '.');
    return *s && *s != '.' && slash != s && !(slash && strchr(slash + 1, '/')) &&
           !(dot && (!strcmp(dot, ".json") || !strcmp(dot, ".tiktoken") ||
                     !strcmp(dot, ".model")));
}

int tokenize_find_file(struct tokenize_opts *o, struct slu_err *err)
{
    static const char *const names[] = {"tokenizer.json", "tekken.json"};
    const char *dir = o->tokenizer;
    struct stat st;
    if (!tokenize_from_file(o))
        return SLU_OK;
    if (stat(dir, &st)) {
        int rc = slu_fail_errno(err, "%s", dir);
        if (errno == ENOENT && is_hub_name(dir))
            rc =
                slu_fail(err, SLU_E_IO,
                         "%s: No such file or folder, and names of models on a hub are "
                         "not known here; get the model's tokenizer.json, as by 'hf "
                         "download %s tokenizer.json', and give its name to -t",
                         dir, dir);
        return rc;
    }
    if (!S_ISDIR(st.st_mode))
        return SLU_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *slash = dir[strlen(dir) - 1] == '/' ? "" : "/";
        int n = snprintf(o->file, sizeof o->file, "%s%s%s", dir, slash, names[i]);
        if (n > 0 && (size_t)n < sizeof o->file && !access(o->file, F_OK)) {
            o->tokenizer = o->file;
            return SLU_OK;
        }
    }
    return slu_fail(
        err, SLU_E_IO,
        "%s: has no tokenizer.json and no tekken.json; name the tokenizer's "
        "file",
        dir);
}

/* The folder of compiled vocabularies, in buf or the environment; NULL: none is used.
 * Relative paths are ignored, as the XDG specification requires; an empty
 * $SLUICE_CACHE_DIR turns the cache off. */
static const char *cache_dir(const struct tokenize_opts *o, char *buf, size_t n)
{
    const char *own = getenv("SLUICE_CACHE_DIR"), *xdg = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    int len = 0;
    if (o->no_cache || (own && *own != '/'))
        return NULL;
    if (own)
        return own;
    if (xdg && *xdg == '/')
        len = snprintf(buf, n, "%s/sluice", xdg);
    else if (home && *home == '/')
        len = snprintf(buf, n, "%s/.cache/sluice", home);
    return len > 0 && (size_t)len < n ? buf : NULL;
}

/* Warns if text can become special ids, which readers of the stream would
 * misinterpret. */
static int warn_of_leak(struct cli_ctx *ctx, const struct slu_tokenizer *t,
                        struct slu_err *err)
{
    struct tokenize_opts *o = ctx->opts;
    const struct slu_vocab_table *v = slu_tokenizer_vocab(t);
    uint64_t id;
    int rc = slu_tokenizer_leak(t, &id, err);
    o->leak_id = rc ? SLU_NO_TOKEN : id;
    if (!rc && id != SLU_NO_TOKEN)
        cli_warn(ctx,
                 "\"%.*s\" in a text becomes id %llu, %s; take such text out, or "
                 "use another tokenizer%s",
                 (int)(v->off[id + 1] - v->off[id]), v->bytes + v->off[id],
                 (unsigned long long)id,
                 id == slu_tokenizer_eos(t) ? "which ends a document"
                                            : "a special token",
                 id == slu_tokenizer_eos(t) ? " or --eos" : "");
    return rc;
}

/* Names the tokenizer: in the provenance, in --stats, and on standard error if the user
 * chose none. */
static int name_tokenizer(struct cli_ctx *ctx, const struct slu_tokenizer *t,
                          struct slu_err *err)
{
    struct tokenize_opts *o = ctx->opts;
    const char *file = tokenize_from_file(o) ? o->tokenizer : NULL;
    const char *family = slu_tokenizer_family(t);
    const uint8_t *print = slu_tokenizer_fingerprint(t);
    struct slu_buf b = SLU_BUF_INIT;
    if (!o->tokenizer)
        cli_warn(ctx,
                 "no -t: uses the built-in vocabulary of %llu ids; give -t FILE for "
                 "another one, or -t builtin",
                 (unsigned long long)slu_tokenizer_vocab_size(t));
    if (file)
        snprintf(o->family, sizeof o->family, "file:%s", family);
    o->tokenizer_name = file ? o->family : o->tokenizer ? o->tokenizer : "builtin";
    int rc = slu_buf_printf(&b, err, "{\"file\": ");
    if (!rc)
        rc = file ? slu_json_put_string(&b, file, strlen(file), err)
                  : slu_buf_printf(&b, err, "null");
    if (!rc)
        rc = slu_buf_printf(&b, err, ", \"family\": \"%s\", \"fingerprint\": \"",
                            family);
    for (int i = 0; i < 16 && !rc; i++)
        rc = slu_buf_printf(&b, err, "%02x", print[i]);
    if (!rc)
        rc = slu_buf_append(&b, "\"}", 3, err);
    if (!rc)
        cli_stat_json(ctx, "tokenizer", (const char *)b.data);
    slu_buf_release(&b);
    return rc;
}

int tokenize_load(struct cli_ctx *ctx, struct slu_tokenizer **t, struct slu_header *h,
                  struct slu_names *names, struct slu_err *err)
{
    const struct tokenize_opts *o = ctx->opts;
    char dir[PATH_MAX];
    struct slu_tokenizer_cfg cfg = {
        .spec = o->tokenizer,
        .pattern = o->pattern,
        .special_parse = o->special == 1,
        .eos = o->eos,
        .cache_dir = cache_dir(o, dir, sizeof dir),
    };
    const char *level = getenv("SLUICE_SIMD");
    int rc = slu_tokenizer_simd(level)
                 ? slu_tokenizer_load(t, &cfg, err)
                 : slu_fail(err, SLU_E_USAGE,
                            "SLUICE_SIMD=%s: this processor has no such level", level);
    if (rc)
        return rc;
    if (*slu_tokenizer_note(*t))
        cli_note(ctx, "%s", slu_tokenizer_note(*t));
    cli_stat_json(ctx, "vocabulary",
                  slu_tokenizer_was_compiled(*t) ? "\"compiled\"" : "\"built\"");
    h->vocab_size = slu_tokenizer_vocab_size(*t);
    h->tok_bytes = h->vocab_size <= 65536 ? 2 : 4;
    h->eos = slu_tokenizer_eos(*t);
    h->bos = slu_tokenizer_bos(*t);
    h->pad = slu_tokenizer_pad(*t);
    memcpy(h->fingerprint, slu_tokenizer_fingerprint(*t), sizeof h->fingerprint);
    if (!o->no_eos && h->eos == SLU_NO_TOKEN)
        return slu_fail(
            err, SLU_E_USAGE,
            "the tokenizer has no token that ends a document; name one with "
            "--eos, or use --no-eos");
    if (o->bos && h->bos == SLU_NO_TOKEN)
        return slu_fail(err, SLU_E_USAGE, "--bos: the tokenizer has no such token");
    slu_names_lend_vocab(names, slu_tokenizer_vocab(*t));
    rc = name_tokenizer(ctx, *t, err);
    return rc ? rc : warn_of_leak(ctx, *t, err);
}
