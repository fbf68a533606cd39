/* needs.c - records that say how their text must be encoded (formats/text/needs.h): the
 * options that they ask for; and texts that may need others. */
#include <string.h>

#include "formats/text/bytes.h"
#include "formats/text/needs.h"
#include "tools/tokenize/tokenize.h"

enum { SPECIAL_PARSE = 1 };

/* Returns the option on the command line that is against the field, and sets *why and
 * *value, which can be ""; NULL: none. */
static const char *against(const struct cli_ctx *ctx, const char **value,
                           const char **why)
{
    const struct tokenize_opts *o = ctx->opts;
    const char *spans = o->field[SLU_FIELD_SPANS];
    *value = "";
    *why = "the special tokens in its text must be parsed";
    if (cli_given(ctx, "special") && o->special != SPECIAL_PARSE)
        return "--special ordinary";
    *why = "its text has the beginning that it needs";
    if (o->bos)
        return "--bos";
    *why = "its spans are those of the whole text";
    if (o->c4_lines)
        return "--c4-lines";
    *why = "field \"" SLU_NEEDS_SPANS "\" has what is trained on";
    *value = spans ? spans : "";
    return spans && strcmp(spans, SLU_NEEDS_SPANS) != 0 ? "--spans-field " : NULL;
}

/* Sets *s to the field of the first record, and *spans if it has such a field, if they
 * can be seen in the file's first bytes. Errors are left to the reader. */
static int peek(struct slu_source *src, uint64_t window_byte, char s[SLU_BYTES_PEEK],
                bool *spans, struct slu_err *err)
{
    const bool once = !src->regular || !strcmp(src->path, "-");
    const uint8_t *head;
    const char *found = NULL;
    size_t n;
    struct slu_bytes *b = NULL;
    int rc = slu_bytes_open(&b, src->path, window_byte, -1, err);
    *s = 0;
    if (rc)
        return once ? rc : SLU_OK;
    if (!slu_bytes_peek(b, &head, &n, NULL)) {
        *spans = slu_needs_peek_spans(head, n);
        n = slu_needs_peek(head, n, &found);
        memcpy(s, n ? found : "", n);
        s[n] = 0;
    }
    if (once)
        src->opened = b;
    else
        slu_bytes_close(b);
    return SLU_OK;
}

int tokenize_follow_needs(struct cli_ctx *ctx, uint64_t memory_byte,
                          struct slu_err *err)
{
    struct tokenize_opts *o = ctx->opts;
    const struct slu_input_format *format = tokenize_format(o);
    struct slu_needs_cfg *needs = &o->needs;
    char s[SLU_BYTES_PEEK] = "";
    needs->read = !strcmp(o->field[SLU_FIELD_TEXT], SLU_NEEDS_TEXT);
    const char *value, *why, *other = against(ctx, &value, &why);
    needs->met =
        !other && o->special == SPECIAL_PARSE && o->no_eos && o->field[SLU_FIELD_SPANS];
    if ((format && !format->json) || !o->sources.n || needs->met)
        return SLU_OK;
    bool spans = false;
    struct slu_source *src = &o->sources.item[0];
    int rc = peek(src, memory_byte / 4, s, &spans, err);
    if (rc)
        return rc;
    if (!*s && spans && !o->field[SLU_FIELD_SPANS])
        cli_warn(
            ctx,
            "the first record has a field \"" SLU_NEEDS_SPANS
            "\", and all of its text is trained on; give --spans-field " SLU_NEEDS_SPANS
            " if it has what is to be trained on");
    if (*s && !needs->read)
        cli_warn(ctx,
                 "the first record is of sluice-chat, and --field %s reads another "
                 "field than its text, without masks",
                 o->field[SLU_FIELD_TEXT]);
    if (!*s || !needs->read)
        return SLU_OK;
    if (other)
        return slu_fail(err, SLU_E_USAGE,
                        "%s%s: is against the field \"" SLU_NEEDS_FIELD
                        "\" of sluice-chat in %s, \"%.80s\": %s; leave the option out, "
                        "or take the field out of the records",
                        other, value,
                        strcmp(src->path, "-") ? src->path : "standard input", s, why);
    o->special = SPECIAL_PARSE;
    o->no_eos = true;
    o->field[SLU_FIELD_SPANS] = SLU_NEEDS_SPANS;
    needs->met = needs->all = true;
    if (!o->field[SLU_FIELD_ID]) {
        o->field[SLU_FIELD_ID] = SLU_NEEDS_FROM;
        needs->ids = true;
    }
    return SLU_OK;
}

void tokenize_warn_ordinary(struct cli_ctx *ctx, const struct slu_vocab_table *v,
                            const struct slu_ingest_stat *s)
{
    const uint64_t id = s->ordinary_id;
    const struct tokenize_opts *o = ctx->opts;
    if (!s->ordinary || cli_given(ctx, "special") || id >= v->n || id == o->leak_id)
        return;
    cli_warn(ctx,
             "%s%llu time%s a text has the name of a special token, such as \"%.*s\", "
             "and it was encoded as ordinary text; give --special parse if tokens are "
             "meant, --special ordinary if text is",
             s->cut ? "about " : "", (unsigned long long)s->ordinary,
             slu_plural(s->ordinary), (int)(v->off[id + 1] - v->off[id]),
             v->bytes + v->off[id]);
}
