#include "fasttext.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/module.h"

enum { WHY = 256 };

struct slu_fasttext {
    const struct slu_fasttext_lib *lib;
    void *model;
    int label;
    double least;
};

int slu_fasttext_open(struct slu_fasttext **out, const char *path, const char *label,
                      double least, struct slu_err *err)
{
    const struct slu_fasttext_lib *lib =
        slu_module_symbol("libsluice-fasttext.so", "slu_fasttext_lib");
    struct slu_fasttext *m;
    char why[WHY] = "";

    *out = NULL;
    if (!lib || strncmp(lib->abi, SLU_FASTTEXT_ABI, sizeof lib->abi) != 0)
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "this build has no fastText; install libfasttext-dev and build "
                        "again");
    int rc = slu_fasttext_check(path, err);
    if (rc)
        return rc;
    *out = m = calloc(1, sizeof *m);
    if (!m)
        return slu_fail_nomem(err, sizeof *m);
    m->lib = lib;
    m->least = least;
    m->model = lib->open(path, why, sizeof why);
    if (!m->model)
        rc = slu_fail(err, SLU_E_FORMAT, "%s: fastText refuses the model: %s", path,
                      why);
    else if ((m->label = lib->label(m->model, label)) < 0)
        rc =
            slu_fail(err, SLU_E_FORMAT, "%s: the model has no label '%s'", path, label);
    if (rc) {
        slu_fasttext_free(m);
        *out = NULL;
    }
    return rc;
}

int slu_fasttext_ask(const struct slu_fasttext *m, const char *text, size_t n,
                     struct slu_buf *line, bool *yes, struct slu_err *err)
{
    char why[WHY] = "";
    float p = 0;

    *yes = false;
    slu_buf_clear(line);
    int rc = slu_buf_append(line, text, n, err);
    if (rc)
        return rc;
    for (char *at = (char *)line->data;
         n && (at = memchr(at, '\n', n - (size_t)(at - (char *)line->data)));)
        *at = ' ';
    rc = slu_buf_append(line, "\n", 1, err);
    if (rc)
        return rc;
    if (m->lib->ask(m->model, (const char *)line->data, line->len, m->label, &p, why,
                    sizeof why))
        return slu_fail(err, SLU_E_FORMAT, "fastText: %s", why);
    *yes = (double)p >= m->least;
    return SLU_OK;
}

void slu_fasttext_free(struct slu_fasttext *m)
{
    if (m && m->model)
        m->lib->free(m->model);
    free(m);
}
