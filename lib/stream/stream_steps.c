/* stream_steps.c - the frame acct: the steps of a stream, read and written. */
#include "lib/base/le.h"
#include "stream_reader.h"

int slu_reader_add_steps(struct slu_reader *r, const struct slu_step_list *s,
                         struct slu_err *err)
{
    int rc = slu_steps_join(&r->steps, s, err);

    return rc || !r->collect ? rc : slu_steps_join(r->collect, s, err);
}

int slu_meta_uncounted(struct slu_reader *r, const struct slu_header *h,
                       struct slu_err *err)
{
    int rc = SLU_OK;

    slu_steps_release(&r->uncounted);
    for (size_t i = 0; i < h->n_step && !rc; i++)
        rc = slu_steps_add(&r->uncounted, &h->step[i], NULL, err);
    return rc || h->n_step ? rc : slu_steps_add_unknown(&r->uncounted, err);
}

int slu_meta_no_steps(struct slu_reader *r, struct slu_err *err)
{
    int rc = slu_reader_add_steps(r, &r->uncounted, err);

    slu_steps_release(&r->uncounted);
    return rc;
}

int slu_meta_steps(struct slu_reader *r, struct slu_frame *f, struct slu_err *err)
{
    struct slu_step_list s = SLU_STEPS_INIT;
    struct slu_json *j = NULL;
    const uint8_t *p;
    size_t n;
    int rc = slu_frame_payload(f, &p, &n, err);

    if (!rc)
        rc = slu_json_parse(&j, (const char *)p, n, err);
    if (!rc)
        rc = slu_steps_get_json(&s, slu_json_root(j), err);
    if (rc)
        slu_err_at(err, "frame %llu", (unsigned long long)f->number);
    else
        rc = slu_reader_add_steps(r, &s, err);
    slu_steps_release(&r->uncounted);
    slu_json_free(j);
    slu_steps_release(&s);
    return rc;
}

const struct slu_step_list *slu_reader_steps(const struct slu_reader *r)
{
    return &r->steps;
}

int slu_reader_collect(struct slu_reader *r, struct slu_step_list *s,
                       struct slu_err *err)
{
    r->collect = s;
    return slu_steps_join(s, &r->steps, err);
}
