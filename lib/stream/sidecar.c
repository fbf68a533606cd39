#include "sidecar.h"

#include <stdlib.h>

void slu_sidecar_init(struct slu_sidecar *s)
{
    *s = (struct slu_sidecar){0};
    pthread_mutex_init(&s->mu, NULL);
}

void slu_sidecar_release(struct slu_sidecar *s)
{
    for (size_t i = 0; i < s->n; i++) {
        slu_buf_release(s->slot[i].buf);
        free(s->slot[i].buf);
    }
    free(s->slot);
    pthread_mutex_destroy(&s->mu);
}

int slu_sidecar_of(struct slu_sidecar *s, const void *batch, struct slu_buf **buf,
                   struct slu_err *err)
{
    int rc = SLU_OK;
    size_t i = 0;

    pthread_mutex_lock(&s->mu);
    while (i < s->n && s->slot[i].batch != batch)
        i++;
    if (i == s->n) {
        struct slu_buf *b = calloc(1, sizeof *b);
        rc = b ? slu_grow(&s->slot, &s->cap, i + 1, sizeof *s->slot, err)
               : slu_fail_nomem(err, sizeof *b);
        if (rc)
            free(b);
        else
            s->slot[s->n++] = (struct slu_sidecar_slot){batch, b};
    }
    *buf = rc ? NULL : s->slot[i].buf;
    pthread_mutex_unlock(&s->mu);
    return rc;
}
