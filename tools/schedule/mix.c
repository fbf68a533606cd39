/* mix.c - schedule: warns if the set has a mix that changes, because its periods
 * overlap, and of periods that fell short when the set was mixed.
 */
#include "lib/base/buf.h"
#include "lib/base/json.h"
#include "tools/schedule/schedule.h"

#include <unistd.h>

typedef unsigned long long ull; /* for printf */

/* Warns of the periods that took less of a source than they wanted; adds their number
 * to *n_short. */
static void warn_short(struct cli_ctx *ctx, const char *dir, struct slu_json_value mix,
                       uint64_t *n_short)
{
    struct slu_json_value sources, periods, v;
    struct slu_json_iter source, period;
    if (!slu_json_get(mix, "sources", &sources))
        return;
    for (slu_json_iter_init(&source, sources); slu_json_next(&source);) {
        unsigned p = 0;
        if (!slu_json_get(source.value, "periods", &periods))
            continue;
        for (slu_json_iter_init(&period, periods); slu_json_next(&period); p++) {
            uint64_t wanted = 0, got = 0;
            if (!slu_json_get(period.value, "short", &v))
                continue;
            if (slu_json_get(period.value, "wanted", &v))
                (void)slu_json_u64(v, &wanted);
            if (slu_json_get(period.value, "tokens", &v))
                (void)slu_json_u64(v, &got);
            const char *name = slu_json_get_string(source.value, "name", "");
            ++*n_short;
            cli_warn(ctx,
                     "%s: period %u of its mix has %llu token%s of %s, and %llu were "
                     "wanted (shuffle --mix-schedule)",
                     dir, p + 1, (ull)got, slu_plural(got), *name ? name : "no domain",
                     (ull)wanted);
        }
    }
}

/* Number of periods of the mix in DIR/report.json; 0: no report, or no mix. */
static unsigned n_period(struct cli_ctx *ctx, const char *dir, uint64_t *n_short)
{
    struct slu_buf path = SLU_BUF_INIT;
    struct slu_json *j = NULL;
    struct slu_json_value mix, periods;
    unsigned n = 0;
    if (!slu_buf_printf(&path, NULL, "%s/report.json", dir) &&
        !access((const char *)path.data, F_OK) &&
        !slu_json_load(&j, (const char *)path.data, NULL) &&
        slu_json_get(slu_json_root(j), "mix", &mix) &&
        slu_json_get(mix, "periods", &periods)) {
        n = (unsigned)slu_json_count(periods);
        warn_short(ctx, dir, mix, n_short);
    }
    slu_json_free(j);
    slu_buf_release(&path);
    return n;
}

void schedule_warn_periods(struct cli_ctx *ctx, const struct slu_bucket_counts *set)
{
    uint64_t n_short = 0;
    for (size_t i = 0; i < ctx->n_input; i++) {
        unsigned n = n_period(ctx, ctx->input[i], &n_short);
        if (n > 1 && set->n_bucket > 1)
            cli_warn(ctx,
                     "%s: was mixed in %u periods (shuffle --mix-schedule), and the "
                     "schedule takes some sequences of a period before the earlier "
                     "period ends, because it takes short sequences sooner; "
                     "only a set of one bucket keeps periods apart",
                     ctx->input[i], n);
    }
    if (n_short)
        cli_stat_u64(ctx, "short_periods", n_short);
}
