/* svg.c - inspect --svg: draws a stream, a shard set or a schedule as a picture. */
#include <stdlib.h>

#include "formats/schedule/schedulefile.h"
#include "lib/stream/svg.h"
#include "tools/inspect/inspect.h"

/* Describes how the stream was made: its programs with their arguments, as a pipe. */
static int put_steps(struct slu_buf *note, const struct slu_header *h,
                     struct slu_err *err)
{
    int rc = SLU_OK;
    for (size_t i = 0; i < h->n_step && !rc; i++)
        rc = slu_buf_printf(note, err, "%s%s%s%s", i ? " | " : "", h->step[i].program,
                            *h->step[i].arguments ? " " : "", h->step[i].arguments);
    return rc ? rc : slu_buf_append(note, "", 1, err);
}

int inspect_svg(const struct inspect_seen *s, const struct inspect_opts *o,
                struct slu_err *err)
{
    const struct slu_header *h = s->header;
    struct slu_buf note = SLU_BUF_INIT, out = SLU_BUF_INIT;
    struct slu_length_count *count = NULL;
    struct inspect_row *row = NULL;
    size_t n = 0;
    int rc = inspect_rows(&s->lengths, &row, &n, err);
    if (!rc)
        rc = put_steps(&note, h, err);
    if (!rc && !(count = calloc(n + 1, sizeof *count)))
        rc = slu_fail_nomem(err, (n + 1) * sizeof *count);
    for (size_t i = 0; i < n && !rc; i++)
        count[i] = (struct slu_length_count){row[i].len_tok, row[i].n_seq};
    struct slu_svg_lengths p = {.title = o->title,
                                .note = (const char *)note.data,
                                .row = count,
                                .n_row = n,
                                .bucket = h->bucket,
                                .n_bucket = h->n_bucket,
                                .label_tokens = h->label_tokens,
                                .documents = s->sum.n.documents,
                                .padding_tok = s->sum.padding};
    if (!rc)
        rc = slu_svg_lengths(&p, &out, err);
    if (!rc)
        rc = slu_out_whole(o->svg, out.data, out.len, err);
    slu_buf_release(&note);
    slu_buf_release(&out);
    free(count);
    free(row);
    return rc;
}

int inspect_svg_schedule(struct slu_schedulefile *f, const struct inspect_opts *o,
                         struct slu_err *err)
{
    const struct slu_steps_info *info = slu_schedulefile_info(f);
    uint64_t n = slu_schedulefile_count(f);
    struct slu_buf note = SLU_BUF_INIT, out = SLU_BUF_INIT;
    struct slu_svg_schedule p = {.title = o->title,
                                 .n_bucket = info->n_bucket,
                                 .n_bin = n < SLU_SVG_BINS ? (size_t)n : SLU_SVG_BINS,
                                 .first_step = slu_schedulefile_first(f),
                                 .n_step = n,
                                 .batch_tok = info->batch_tokens};
    uint64_t *length = calloc(info->n_bucket + 1, sizeof *length);
    uint64_t *count = calloc(p.n_bin * info->n_bucket + 1, sizeof *count);
    int rc = length && count ? SLU_OK : slu_fail_nomem(err, p.n_bin * info->n_bucket);
    for (size_t b = 0; b < info->n_bucket && !rc; b++)
        length[b] = info->bucket[b].length;
    if (!rc)
        rc = slu_buf_printf(
            &note, err, "curriculum %s%s, %llu cycle%s, seed %llu, %llu rank%s",
            info->curriculum, info->method == SLU_STEPS_OLMO ? " (OLMo-core)" : "",
            (unsigned long long)info->cycles, slu_plural(info->cycles),
            (unsigned long long)info->seed, (unsigned long long)info->world,
            slu_plural(info->world));
    if (!rc)
        rc = slu_buf_append(&note, "", 1, err);
    if (!rc && n)
        rc = slu_schedulefile_bins(f, p.n_bin, count, err);
    p.note = (const char *)note.data;
    p.length = length;
    p.count = count;
    if (!rc)
        rc = slu_svg_schedule(&p, &out, err);
    if (!rc)
        rc = slu_out_whole(o->svg, out.data, out.len, err);
    slu_buf_release(&note);
    slu_buf_release(&out);
    free(length);
    free(count);
    return rc;
}
