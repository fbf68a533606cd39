/* hf.c - Hugging Face tokenizer.json (the `tokenizers` library's format): byte-level
 * BPE, and SentencePiece's BPE with byte fallback.
 *
 * Read: model BPE (hf_model.c), normalizers (hf_norm.c), pre-tokenizers (hf_pre.c for
 * byte-level models, hf_sp.c for the others), added tokens (hf_added.c), and of the
 * post-processor whether it trims offsets (trim.h). Ignored: what else it does,
 * truncation and padding, on which the caller decides, and the decoder, which does not
 * affect ids.
 */
#include "lib/token/hf.h"

#include <stdlib.h>
#include <string.h>

#include "lib/token/added.h"
#include "lib/token/tekken.h"
#include "lib/token/trim.h"

#define FILES "a model's tokenizer.json, tekken.json or .tiktoken file"

bool hf_flag(struct slu_json_value v, const char *key)
{
    struct slu_json_value x = SLU_JSON_NONE;
    bool b = false;

    return slu_json_get(v, key, &x) && slu_json_bool(x, &b) && b;
}

static int read_normalizer(struct hf_load *l, struct slu_json_value v,
                           struct slu_err *err)
{
    struct tok_norm *norm;
    int rc = norm_new(&norm, err);

    if (rc)
        return rc;
    l->t->norm = norm;
    if ((rc = hf_read_norm(norm, v, &l->byte_norm, err)))
        return rc;
    if (!norm->n) { /* an empty Sequence, or ByteLevel: bytes stay bytes here */
        norm_free(norm);
        l->t->norm = NULL;
    }
    return SLU_OK;
}

/* Reads normalizer and pre-tokenizer, which decide the kind of BPE. */
static int read_before(struct hf_load *l, struct slu_json_value root,
                       struct slu_json_value model, struct slu_err *err)
{
    struct slu_json_value x = SLU_JSON_NONE, pre = SLU_JSON_NONE;
    struct slu_tokenizer *t = l->t;
    bool has_pre = slu_json_get_set(root, "pre_tokenizer", &pre);
    int rc;

    if (slu_json_get_set(root, "normalizer", &x) && (rc = read_normalizer(l, x, err)))
        return rc;
    if ((rc = pre_new(&t->pre, err)))
        return rc;
    if (l->byte_norm) {
        if (has_pre)
            return slu_fail(
                err, SLU_E_UNSUPPORTED,
                "a pre-tokenizer behind the normalizer \"ByteLevel\" is not "
                "supported");
        rc = pre_finish(t->pre, err);
    } else if (hf_flag(model, "byte_fallback") && !hf_has_type(pre, "ByteLevel")) {
        if (hf_flag(model, "ignore_merges"))
            return slu_fail(err, SLU_E_UNSUPPORTED,
                            "the model's \"ignore_merges\" with \"byte_fallback\" is "
                            "not supported");
        if (!(rc = hf_read_sp(l, pre, err)))
            rc = pre_finish(t->pre, err);
    } else if (!has_pre) {
        rc = slu_fail(err, SLU_E_UNSUPPORTED,
                      "the model has no pre-tokenizer, so it is not byte-level BPE");
    } else {
        rc = hf_read_pre(t->pre, pre, err);
    }
    return rc ? rc : norm_scratch_init(&l->norm, t->norm, err);
}

/* Fails, and names the file of a model's folder that this is instead. */
static int no_model(struct slu_json_value root, struct slu_err *err)
{
    static const struct {
        const char *key, *is;
    } others[] = {
        {"tokenizer_class", "a tokenizer_config.json"},
        {"added_tokens_decoder", "a tokenizer_config.json"},
        {"model_type", "a model's config.json"},
        {"architectures", "a model's config.json"},
        {"eos_token", "a special_tokens_map.json"},
        {"eos_token_id", "a generation_config.json"},
        {"<|endoftext|>", "a vocab.json without its merges"},
        {"</s>", "a vocab.json without its merges"},
    };
    struct slu_json_value x;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (slu_json_get(root, others[i].key, &x))
            return slu_fail(err, SLU_E_FORMAT,
                            "this is %s, not a vocabulary; name the tokenizer.json of "
                            "the same model",
                            others[i].is);
    return slu_fail(err, SLU_E_FORMAT,
                    "not a tokenizer.json: no model with a vocabulary; name " FILES);
}

/* Whether the first line of several is a JSON value. */
static bool is_json_lines(const struct slu_buf *file)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_json *j = NULL;
    const uint8_t *end = file->len ? memchr(file->data, '\n', file->len) : NULL;
    const bool is = end && end > file->data &&
                    !slu_json_parse(&j, file->data, (size_t)(end - file->data), &err);
    slu_json_free(j);
    return is;
}

/* Says what a file is that is not JSON; *err has the reason. */
static int not_json(const struct slu_buf *file, struct slu_err *err)
{
    const char *is = !file->len ? "is empty"
                     : file->len >= 4 && !memcmp(file->data, "\xF5TKS", 4)
                         ? "is a token stream"
                     : is_json_lines(file) ? "is a file of JSON lines"
                                           : NULL;
    return is ? slu_fail(err, SLU_E_FORMAT, "%s, not a tokenizer; name " FILES, is)
              : slu_err_at(err, "not " FILES);
}

static int read_tokenizer(struct hf_load *l, struct slu_json_value root,
                          struct slu_err *err)
{
    struct slu_tokenizer *t = l->t;
    struct slu_json_value model = SLU_JSON_NONE, vocab = SLU_JSON_NONE,
                          merges = SLU_JSON_NONE, x = SLU_JSON_NONE;
    struct slu_json_iter it;
    int rc;

    if (!slu_json_get_set(root, "model", &model))
        return no_model(root, err);
    if ((rc = hf_check_model(model, err)))
        return rc;
    if (!slu_json_get_set(model, "vocab", &vocab))
        return no_model(root, err);
    if (!slu_json_get_set(model, "merges", &merges))
        return slu_fail(err, SLU_E_FORMAT, "the model has no merges");
    if ((rc = read_before(l, root, model, err)) || (rc = added_new(&t->added, err)) ||
        (rc = hf_add_vocab(l, vocab, err)))
        return rc;
    if (slu_json_get_set(root, "post_processor", &x))
        t->trims = tok_trims_of(x);
    size_t n_vocab = slu_json_count(vocab);
    if (slu_json_get_set(root, "added_tokens", &x)) {
        for (slu_json_iter_init(&it, x); !rc && slu_json_next(&it);)
            rc = hf_add_added(l, it.value, err);
    }
    size_t n = t->vocab.n;
    if (rc || (l->is_sp && (rc = hf_add_parts(l, err))) ||
        (rc = tok_make_table(t, err)))
        return rc;
    t->table.n = n; /* without the parts */
    if ((rc = hf_add_merges(l, merges, err)))
        return rc;
    return hf_check_added_ids(l, n_vocab, err);
}

int tok_load_hf(struct slu_tokenizer *t, struct slu_buf *file, struct slu_err *err)
{
    struct hf_load l = {.t = t};
    struct slu_json *json = NULL;
    struct slu_json_value model = SLU_JSON_NONE;
    bool whole_first = false;
    int rc;

    hf_make_alphabet(l.byte_of);
    rc = slu_json_parse(&json, file->data, file->len, err);
    if (rc == SLU_E_FORMAT)
        rc = not_json(file, err);
    slu_buf_release(file);
    if (!rc && tok_is_tekken(slu_json_root(json))) {
        rc = tok_load_tekken(t, slu_json_root(json), err);
        const struct bpe_cfg ranks = {
            .table = &t->model_table, .in_model = t->in_model, .whole_first = true};
        if (!rc)
            rc = bpe_build(&t->model, &ranks, err);
        goto out;
    }
    if (rc || (rc = read_tokenizer(&l, slu_json_root(json), err)))
        goto out;
    if (slu_json_get(slu_json_root(json), "model", &model))
        whole_first = hf_flag(model, "ignore_merges");
    /* The tree is as large as the file, so it is freed before the tables are made. */
    slu_json_free(json);
    json = NULL;
    tok_index_release(&l.index);
    const struct bpe_merge none = {0, 0, 0};
    const struct bpe_cfg cfg = {.table = &t->model_table,
                                .in_model = t->in_model,
                                .merge = l.merge ? l.merge : &none,
                                .n_merge = l.n_merge,
                                .whole_first = whole_first};
    rc = bpe_build(&t->model, &cfg, err);
    if (!rc && l.is_sp)
        rc = hf_make_sp(&l, t->table.n, err);
out:
    slu_json_free(json);
    slu_buf_release(&l.bytes);
    norm_scratch_release(&l.norm);
    tok_index_release(&l.index);
    free(l.merge);
    free(l.part);
    return rc;
}
