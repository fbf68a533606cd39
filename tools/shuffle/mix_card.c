/* mix_card.c - shuffle: the mix on the card of a set: how often each source was used,
 * and what each period took. */
#include "formats/shards/card.h"
#include "tools/shuffle/mix.h"

static int put_name(const struct slu_mix *b, unsigned s, struct slu_buf *t,
                    struct slu_err *err)
{
    int rc = slu_buf_printf(t, err, "| ");
    if (!rc)
        rc = *b->source[s].name ? slu_card_text(t, b->source[s].name, err)
                                : slu_buf_printf(t, err, "(none)");
    return rc;
}

static int put_source(const struct slu_mix *b, const struct slu_mixer *x, unsigned s,
                      uint64_t all, struct slu_buf *t, struct slu_err *err)
{
    const struct slu_mix_gave *g = slu_mixer_gave(x, s);
    struct slu_count taken = {0};
    char n[5][32];
    for (unsigned p = 0; p < b->n_period; p++)
        slu_count_add(&taken, g->taken[p]);
    const double has = (double)g->available.tokens, took = (double)taken.tokens;
    int rc = put_name(b, s, t, err);
    return rc ? rc
              : slu_buf_printf(t, err, " | %s | %s | %s | %s | %.2f | %s | %.1f %% |\n",
                               slu_card_grouped(g->available.documents, n[0]),
                               slu_card_grouped(g->available.sequences, n[1]),
                               slu_card_grouped(g->sequences_used, n[2]),
                               slu_card_grouped(taken.sequences, n[3]),
                               has > 0 ? took / has : 0,
                               slu_card_grouped(taken.tokens, n[4]),
                               all ? 100 * took / (double)all : 0);
}

static int put_periods(const struct slu_mix *b, const struct slu_mixer *x,
                       struct slu_buf *t, struct slu_err *err)
{
    char n[3][32];
    int rc = slu_buf_printf(t, err,
                            "\n| source | period | tokens wanted | tokens | sequences "
                            "|\n|---|---:|---:|---:|---:|\n");
    for (unsigned p = 0; p < b->n_period; p++)
        for (unsigned s = 0; s < b->n_source && !rc; s++) {
            const struct slu_count *taken = &slu_mixer_gave(x, s)->taken[p];
            const uint64_t wanted = slu_mixer_planned(x)->target[s][p];
            if (!wanted)
                continue;
            rc = put_name(b, s, t, err);
            if (!rc)
                rc = slu_buf_printf(t, err, " | %u | %s | %s | %s |\n", p + 1,
                                    slu_card_grouped(wanted, n[0]),
                                    slu_card_grouped(taken->tokens, n[1]),
                                    slu_card_grouped(taken->sequences, n[2]));
        }
    return rc;
}

int shuffle_mix_card(const struct shuffle_mix *m, const struct slu_mixer *x,
                     struct slu_buf *t, struct slu_err *err)
{
    const struct slu_mix *b = &m->mix;
    uint64_t all = 0;
    for (unsigned s = 0; s < b->n_source; s++)
        for (unsigned p = 0; p < b->n_period; p++)
            all += slu_mixer_gave(x, s)->taken[p].tokens;
    int rc = slu_buf_printf(
        t, err,
        "## Mix\n\nEpochs are how often the tokens of a source are in the set; no "
        "sequence is repeated before all of\nits source were used.\n\n| source | "
        "documents available | sequences available | used | written | epochs | tokens "
        "written | "
        "share |\n|---|---:|---:|---:|---:|---:|---:|---:|\n");
    for (unsigned s = 0; s < b->n_source && !rc; s++)
        rc = put_source(b, x, s, all, t, err);
    if (!rc && m->opts->schedule)
        rc = put_periods(b, x, t, err);
    return rc ? rc : slu_buf_printf(t, err, "\n");
}
