/* Fuzzes files of ids (formats/ids/tokens.h): Megatron's pair, datatrove's .ds with
 * what is beside it, folders of MDS shards, .npy alone and with rows. Any bytes give
 * documents or one clear line, and the scan of lengths finds what the reader reads.
 *
 * Input: a byte that chooses the format, one of options, then the files (folder.h). */
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "folder.h"
#include "formats/ids/tokens.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct {
    const char *format, *path;
    unsigned n_file;
    const char *file[3];
} kind[] = {{"megatron", "m.idx", 2, {"m.idx", "m.bin"}},
            {"ds", "d.ds", 3, {"d.ds.index", "d.ds.metadata", "d.ds"}},
            {"ds", "e.ds", 2, {"e.ds.metadata", "e.ds"}},
            {"mds", "mds", 2, {"mds/index.json", "mds/shard.00000.mds"}},
            {"mds", "mdz", 2, {"mdz/index.json", "mdz/shard.00000.mds.zstd"}},
            {"npy", "n.npy", 1, {"n.npy"}},
            {"npy", "r.npy", 2, {"r.csv.gz", "r.npy"}}};
enum { N_KIND = sizeof kind / sizeof *kind };

static void faulty(const struct slu_err *err)
{
    must(err->msg[0] && !strchr(err->msg, '\n'));
}

/* SLU_OK: all was read. */
static int read_all(const struct slu_tokens_cfg *cfg, struct slu_count *sum)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_reader *r;
    struct slu_batch b;
    *sum = (struct slu_count){0, 0, 0};
    int rc = slu_tokens_open(&r, cfg, &err);
    if (rc) {
        faulty(&err);
        return rc;
    }
    slu_batch_init(&b, slu_reader_header(r)->tok_bytes);
    while (!(rc = slu_reader_next(r, &b, &err))) {
        sum->documents += b.n_seq;
        sum->tokens += b.n_tok;
        for (uint64_t i = 0; i < b.n_tok; i++)
            must(slu_batch_id(&b, i) < slu_reader_header(r)->vocab_size);
    }
    if (rc == SLU_EOF)
        rc = slu_reader_finish(r, NULL, &err);
    if (rc)
        faulty(&err);
    slu_batch_release(&b);
    slu_reader_free(r);
    return rc;
}

static int scan(const struct slu_tokens_cfg *cfg, struct slu_count *sum)
{
    const struct slu_tokens_lengths_cfg how = {.n_threads = 1, .memory = 4 << 20};
    struct slu_err err = SLU_ERR_INIT;
    struct slu_tokens_lengths l;
    const char *name;
    bool scans;
    if (slu_tokens_are(cfg, &name, &scans, &err) || !scans)
        return SLU_EOF;
    int rc = slu_tokens_lengths(cfg, &how, &l, &err);
    if (rc)
        faulty(&err);
    *sum = (struct slu_count){l.documents, l.documents, l.tokens};
    free(l.row);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct slu_tokens_seen seen = {0};
    struct slu_tokens_cfg cfg = {
        .n_path = 1, .eos = SLU_NO_TOKEN, .max_seq_tok = 1 << 22, .seen = &seen};
    struct slu_count read, scanned;
    const uint8_t *p;
    const char *path;
    if (n < 2)
        return 0;
    unsigned k = data[0] % N_KIND, options = data[1];
    data += 2;
    n -= 2;
    if (strchr(kind[k].file[0], '/'))
        mkdir(in_folder(kind[k].path), 0700);
    for (unsigned i = 0; i < kind[k].n_file; i++) {
        size_t len = next_file(&p, &data, &n, i + 1 == kind[k].n_file);
        put_file(kind[k].file[i], p, len);
    }
    path = in_folder(kind[k].path);
    cfg.path = &path;
    for (int i = 0; strcmp(slu_tokens_format_names[i], kind[k].format); i++)
        cfg.format = i + 1;
    if (options & 1)
        cfg.eos = 0;
    cfg.tok_bytes = options & 2 ? options & 4 ? 4 : 2 : options & 4 && k >= 3 ? 8 : 0;
    cfg.vocab_size = options & 8 ? 50000 : 0;
    cfg.any_id = (options & 16) != 0;
    int rc = read_all(&cfg, &read);
    int rs = scan(&cfg, &scanned);
    if (!rc && !rs)
        must(read.documents == scanned.documents && read.tokens == scanned.tokens);
    return 0;
}
