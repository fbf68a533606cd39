/* Fuzzes the lists of a shard set: a folder's own manifest.jsonl
 * (formats/shards/filelist.h), whose seal is mended first (unless the first byte is
 * odd); buckets' manifests and a set's report.json as schedule counts them
 * (formats/shards/manifests.h). Any bytes are refused in one line or add up.
 *
 * Input: a byte of options, then the files (folder.h). */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "folder.h"
#include "formats/shards/filelist.h"
#include "formats/shards/manifests.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void faulty(const struct slu_err *err)
{
    must(err->msg[0] && !strchr(err->msg, '\n'));
}

static void files(const uint8_t *p, size_t n, bool mend)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_filelist l = SLU_FILELIST_INIT, again = SLU_FILELIST_INIT;
    struct slu_buf t = SLU_BUF_INIT;
    must(slu_buf_append(&t, p, n, &err) == SLU_OK);
    if (mend)
        must(slu_seal_put(&t, "{\"xxh3_64\":\"", "\"}\n", &err) == SLU_OK);
    mkdir(in_folder("list"), 0700);
    put_file("list/manifest.jsonl", t.data, t.len);
    slu_buf_release(&t);
    if (slu_filelist_load(&l, in_folder("list"), &err)) {
        faulty(&err);
    } else {
        must(slu_filelist_write(&l, in_folder("list"), &err) == SLU_OK);
        must(slu_filelist_load(&again, in_folder("list"), &err) == SLU_OK);
        must(again.n == l.n);
        for (size_t i = 0; i < l.n; i++)
            must(!strcmp(l.file[i].name, again.file[i].name) &&
                 l.file[i].digest.n_byte == again.file[i].digest.n_byte &&
                 l.file[i].digest.xxh3 == again.file[i].digest.xxh3);
    }
    slu_filelist_release(&l);
    slu_filelist_release(&again);
}

/* A set of two buckets, of which the first may have no manifest, and its report. */
static void counts(const uint8_t *data, size_t n, unsigned options)
{
    static const char *const name[] = {"set/D_4/manifest.jsonl",
                                       "set/L_1000/manifest.jsonl", "set/report.json"};
    struct slu_err err = SLU_ERR_INIT;
    struct slu_bucket_counts s;
    const uint8_t *p;
    mkdir(in_folder("set"), 0700);
    mkdir(in_folder("set/D_4"), 0700);
    mkdir(in_folder("set/L_1000"), 0700);
    for (unsigned i = 0; i < 3; i++) {
        size_t len = next_file(&p, &data, &n, i == 2);
        unlink(in_folder(name[i]));
        if (!(options >> i & 1))
            put_file(name[i], p, len);
    }
    slu_bucket_counts_init(&s);
    if (slu_manifests_add(&s, in_folder("set"), &err)) {
        faulty(&err);
    } else {
        const struct slu_openlm_cfg cfg = {0, 1, 2, 2, 0, "grow-linear"};
        struct slu_openlm o = {0};
        uint64_t sum = 0;
        for (size_t i = 0; i < s.n_bucket; i++) {
            must(!i || s.bucket[i].length > s.bucket[i - 1].length);
            must(!__builtin_add_overflow(
                sum, slu_bucket_sequences(&s.bucket[i]) * s.bucket[i].length, &sum));
        }
        must(sum >= slu_bucket_counts_tokens(&s) && sum <= UINT64_C(1) << 62);
        if (slu_openlm_plan(&o, &s, &cfg, &err))
            faulty(&err);
        slu_openlm_release(&o);
    }
    slu_bucket_counts_release(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!n)
        return 0;
    if (data[0] & 2)
        files(data + 1, n - 1, data[0] % 2 == 0);
    else
        counts(data + 1, n - 1, data[0] >> 2);
    return 0;
}
