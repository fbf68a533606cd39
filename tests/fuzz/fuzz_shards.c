/* Fuzzes the readers of shards (formats/shards/shardset.h): any bytes under a shard's
 * names are its sequences or one clear line, whatever lengths and counts the set's
 * report and manifest say.
 *
 * Input: bytes that choose the format (and suffix), log2 of the length, width of ids,
 * number of sequences; then the shard's files (folder.h). */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "folder.h"
#include "formats/shards/shardset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct {
    const char *format;
    unsigned n_file;
    const char *file[SLU_SHARD_FILES];
} kind[] = {{"wds", 1, {"s.tar"}},
            {"olmo", 2, {"s.npy", "s.csv.gz"}},
            {"ds", 3, {"s.ds", "s.ds.index", "s.ds.metadata"}},
            {"megatron", 2, {"s.bin", "s.idx"}},
            {"mds", 1, {"s.mds"}},
            {"mds", 1, {"s.mds.zstd"}},
            {"litdata", 1, {"c.bin"}},
            {"litdata", 1, {"c.zstd.bin"}}};
enum { N_KIND = sizeof kind / sizeof *kind };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct slu_shard_bucket b = {.name = "D_x", .shard_sequences = 1000};
    struct slu_err err = SLU_ERR_INIT;
    struct slu_buf ids = SLU_BUF_INIT;
    const char *path[SLU_SHARD_FILES];
    const uint8_t *p;
    void *state = NULL;
    uint64_t got = 0;
    if (n < 4)
        return 0;
    unsigned k = data[0] % N_KIND;
    /* All that slu_shardset_open lets through: up to 2^40. */
    b.length = data[1] < 128 ? data[1] % 41 : data[1] - 127;
    b.length = data[1] < 128 ? UINT64_C(1) << b.length : b.length;
    b.tok_bytes = b.id_bytes = data[2] & 1 ? 4 : 2;
    b.n_id = b.length + (data[2] >> 1 & 1);
    const uint64_t n_id = b.n_id;
    if (data[2] & 8 && strcmp(kind[k].format, "wds"))
        b.length = b.n_id = 0; /* whole documents, each of n_id by its segments */
    uint64_t n_seq = data[2] & 4 ? UINT64_C(1) << data[3] % 64 : data[3];
    data += 4;
    n -= 4;
    const struct slu_shard_layout *l = slu_shard_layout_find(kind[k].format);
    must(l != NULL);
    for (unsigned i = 0; i < kind[k].n_file; i++) {
        size_t len = next_file(&p, &data, &n, i + 1 == kind[k].n_file);
        put_file(kind[k].file[i], p, len);
        path[i] = in_folder(kind[k].file[i]);
    }
    int rc = l->open(&state, path, &b, n_seq, &err);
    must((rc == 0) == (state != NULL));
    if (!rc) {
        while (!(rc = l->next(state, n_id, &ids, &err))) {
            must(ids.len % (l->narrow ? b.id_bytes : 4) == 0);
            must(got++ < 1 << 20);
        }
        l->close(state);
    }
    must(rc == SLU_EOF || (err.msg[0] && !strchr(err.msg, '\n')));
    slu_buf_release(&ids);
    return 0;
}
