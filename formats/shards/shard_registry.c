/* shard_registry.c - the list of all formats, each with its writer and its layout. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/shards/shard.h"
#include "formats/shards/shardset.h"

/* Each ID has a writer, slu_shard_ID (shard.h), and a layout that reads it back,
 * slu_shard_layout_ID (shardset.h). */
/* clang-format off */
#define FORMATS(F)                                      \
    F(wds, "wds")           /* WebDataset: OpenLM */    \
    F(olmo, "olmo")         /* OLMo-core */             \
    F(ds, "ds")             /* datatrove, nanotron */   \
    F(megatron, "megatron")                             \
    F(mds, "mds")           /* MosaicML streaming */    \
    F(litdata, "litdata")   /* LitData */               \
    F(parquet, "parquet")   /* TRL, Hugging Face datasets; where Arrow is */ \
    F(megatron_sft, "megatron-sft") /* Megatron-Bridge; likewise */
/* clang-format on */

#define LAYOUT(id, name) extern const struct slu_shard_layout slu_shard_layout_##id;
FORMATS(LAYOUT)

static const struct kind {
    const struct slu_shard_format *format;
    const struct slu_shard_layout *layout;
} kinds[] = {
#define KIND(id, name) {&slu_shard_##id, &slu_shard_layout_##id},
    FORMATS(KIND)};
enum { N_KIND = sizeof kinds / sizeof *kinds };

const char *const slu_shard_format_names[] = {
#define NAME(id, name) name,
    FORMATS(NAME) NULL};

const char *const slu_shard_member_names[] = {"txt", "json", "json.gz", NULL};

bool slu_shard_compress_level(const char *value, int *level)
{
    char *end = NULL;

    *level = !strcmp(value, "zstd") ? 3 : 0;
    if (!strncmp(value, "zstd:", 5) && value[5] >= '1' && value[5] <= '9') {
        unsigned long n = strtoul(value + 5, &end, 10);
        *level = *end || n > SLU_SHARD_MOST_LEVEL ? 0 : (int)n;
    }
    return *level || !strcmp(value, "none");
}

const struct slu_shard_format *slu_shard_format_at(unsigned i)
{
    return i < N_KIND ? kinds[i].format : NULL;
}

int slu_shard_format_check(const struct slu_shard_format *f, struct slu_err *err)
{
    const struct {
        const char *member;
        bool missing;
    } of[] = {{"init", !f->init},
              {"n_file", f->n_file == 0},
              {"file_name", !f->file_name},
              {"owns", !f->owns},
              {"shard_sequences", !f->shard_sequences},
              {"encode or build", !f->encode && !f->build},
              {"build_byte", f->build && !f->build_byte},
              {"flush", f->flush_files && !f->flush},
              {"bucket", f->bucket_file && !f->bucket},
              {"owns_in_set", f->set_folder && !f->owns_in_set}};

    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (of[i].missing)
            return slu_fail(err, SLU_E_UNSUPPORTED,
                            "internal error: the table of format %s lacks %s; please "
                            "report it",
                            f->name, of[i].member);
    return SLU_OK;
}

int slu_shard_format_find(const struct slu_shard_format **f, const char *name,
                          struct slu_err *err)
{
    char built[128] = "";
    size_t n = 0;

    for (unsigned i = 0; i < N_KIND; i++) {
        *f = kinds[i].format;
        if (!strcmp((*f)->name, name))
            return slu_shard_format_check(*f, err);
        if (n < sizeof built)
            n += (size_t)snprintf(built + n, sizeof built - n, "%s%s", i ? ", " : "",
                                  (*f)->name);
    }
    *f = NULL;
    return slu_fail(err, SLU_E_UNSUPPORTED,
                    "format %s is not built into this version; there is %s", name,
                    built);
}

void slu_shard_formats_with(bool (*has)(const struct slu_shard_format *f), char *out,
                            size_t cap)
{
    unsigned left = 0;
    size_t n = 0;

    for (unsigned i = 0; i < N_KIND; i++)
        left += has(kinds[i].format);
    *out = 0;
    for (unsigned i = 0; i < N_KIND && n < cap; i++)
        if (has(kinds[i].format)) {
            const char *join = n == 0 ? "" : left == 1 ? " and " : ", ";
            n +=
                (size_t)snprintf(out + n, cap - n, "%s%s", join, kinds[i].format->name);
            left--;
        }
}

const struct slu_shard_layout *slu_shard_layout_find(const char *name)
{
    for (unsigned i = 0; i < N_KIND; i++)
        if (!strcmp(kinds[i].layout->format, name))
            return kinds[i].layout;
    return NULL;
}

bool slu_shard_name_is(const char *name, const char *prefix, const char *suffix)
{
    size_t n = strlen(prefix);

    if (strncmp(name, prefix, n))
        return false;
    size_t digits = strspn(name + n, "0123456789");
    return digits && !strcmp(name + n + digits, suffix);
}
