/* mix.c - schedule: warns if the set has a mix that changes, because its periods
 * overlap.
 */
#include "lib/base/buf.h"
#include "lib/base/json.h"
#include "tools/schedule/schedule.h"

#include <unistd.h>

/* Number of periods of the mix in DIR/report.json; 0: no report, or no mix. */
static unsigned n_period(const char *dir)
{
    struct slu_buf path = SLU_BUF_INIT;
    struct slu_json *j = NULL;
    struct slu_json_value mix, periods;
    struct slu_json_iter it;
    unsigned n = 0;
    if (!slu_buf_printf(&path, NULL, "%s/report.json", dir) &&
        !access((const char *)path.data, F_OK) &&
        !slu_json_load(&j, (const char *)path.data, NULL) &&
        slu_json_get(slu_json_root(j), "mix", &mix) &&
        slu_json_get(mix, "periods", &periods))
        for (slu_json_iter_init(&it, periods); slu_json_next(&it);)
            n++;
    slu_json_free(j);
    slu_buf_release(&path);
    return n;
}

void schedule_warn_periods(struct cli_ctx *ctx, const struct slu_bucket_counts *set)
{
    for (size_t i = 0; i < ctx->n_input && set->n_bucket > 1; i++) {
        unsigned n = n_period(ctx->input[i]);
        if (n > 1)
            cli_warn(ctx,
                     "%s: was mixed in %u periods (shuffle --mix-schedule), and the "
                     "schedule takes some sequences of a period before the earlier "
                     "period ends, because it takes short sequences sooner; "
                     "only a set of one bucket keeps periods apart",
                     ctx->input[i], n);
    }
}
