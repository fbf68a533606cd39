/* domains.c - inspect: counts of tokens and bytes a token, in total and by domain. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/json_write.h"
#include "tools/inspect/inspect.h"

typedef unsigned long long ull; /* for printf */

#define ROWS 20 /* rows in the summary */

bool inspect_wants_domains(const struct inspect_opts *o)
{
    return o->json || !(o->records != NO_RECORDS || o->jsonl || o->histogram ||
                        o->svg || o->verify);
}

int inspect_rename_domains(struct slu_batch *b, struct slu_names *from,
                           struct slu_names *to, struct slu_err *err)
{
    uint32_t last = SLU_NO_DOMAIN, number = SLU_NO_DOMAIN;
    for (size_t i = 0; i < b->n_seg; i++) {
        uint32_t was = b->seg[i].domain;
        if (was == SLU_NO_DOMAIN)
            continue;
        if (was != last) {
            const char *name = slu_names_domain(from, was);
            int rc = slu_names_domain_number(to, name ? name : "",
                                             name ? strlen(name) : 0, &number, err);
            if (rc)
                return rc;
            last = was;
        }
        b->seg[i].domain = number;
    }
    return SLU_OK;
}

int inspect_put_domains(const struct inspect_seen *s, struct slu_buf *out,
                        struct slu_err *err)
{
    struct slu_domain_row *list;
    size_t n;
    int rc = slu_domains_list(&s->domains, s->names, &list, &n, err);
    struct slu_domain_row all = slu_domains_sum(list, 0, rc ? 0 : n);
    if (!rc && all.text_tok)
        rc = slu_buf_printf(out, err, ", \"bytes_per_token\": %.4f",
                            (double)all.text_byte / (double)all.text_tok);
    if (!rc)
        rc = slu_buf_printf(out, err, ", \"domains\": ");
    if (!rc)
        rc = slu_domains_put_json(list, n, out, err);
    free(list);
    return rc;
}

int inspect_put_name(struct slu_buf *b, const char *name, struct slu_err *err)
{
    struct slu_buf json = SLU_BUF_INIT;
    int rc = name ? slu_json_put_string(&json, name, strlen(name), err)
                  : slu_buf_printf(&json, err, "(none)");

    slu_buf_clear(b);
    if (!rc)
        rc = inspect_escape(b, (const char *)json.data, json.len, err);
    slu_buf_release(&json);
    return rc ? rc : slu_buf_append(b, "", 1, err);
}

static void print_row(const char *name, const struct slu_domain_row *r)
{
    printf("%19s %14llu %16llu", name, (ull)r->documents, (ull)r->tokens);
    if (r->text_tok)
        printf(" %11.4f", (double)r->text_byte / (double)r->text_tok);
    printf("\n");
}

int inspect_print_domains(const struct inspect_seen *s, struct slu_err *err)
{
    struct slu_buf b = SLU_BUF_INIT;
    struct slu_domain_row *list;
    size_t n;
    int rc = slu_domains_list(&s->domains, s->names, &list, &n, err);
    size_t most = n > ROWS ? ROWS : n;
    struct slu_domain_row all = slu_domains_sum(list, 0, rc ? 0 : n);
    if (!rc && all.text_tok)
        printf("  text        %llu bytes of %llu tokens, %.4f bytes a token\n",
               (ull)all.text_byte, (ull)all.text_tok,
               (double)all.text_byte / (double)all.text_tok);
    if (!rc && n > 0 && (n > 1 || list[0].name)) {
        printf("\n%19s %14s %16s%s\n", "domain", "documents", "tokens",
               all.text_tok ? " bytes/token" : "");
        for (size_t i = 0; i < most && !rc; i++) {
            rc = inspect_put_name(&b, list[i].name, err);
            if (!rc)
                print_row((const char *)b.data, &list[i]);
        }
        if (!rc && n > most) {
            char others[32];
            struct slu_domain_row rest = slu_domains_sum(list, most, n);
            snprintf(others, sizeof others, "(%zu others)", n - most);
            print_row(others, &rest);
        }
    }
    free(list);
    slu_buf_release(&b);
    return rc;
}
