/* olmo_cache.h - the files that OLMo-core's loader of variable sequence lengths makes
 * for itself before a training, made beforehand (read in ai2-olmo-core 3.0.0:
 * data/numpy_dataset.py, NumpyVSLDataset; data/data_loader.py, NumpyVSLDataLoader).
 *
 * Below a work folder W, u32 and u16 little-endian without headers:
 *
 *   W/dataset-common/bucketed-doc-indices-H.npy   u32: start and end, in ids of the
 *       file, of each sequence of one .npy file. H = SHA-256 of the file's path, its
 *       bytes and every bucket length, each as text with nothing between
 *   W/dataset-F/instance-lengths.npy     length of every instance; the smallest
 *       unsigned type that holds the longest length less 1
 *   W/dataset-F/bucketL-indices.npy      u32: instances that have length L
 *   W/dataset-F/CURRICULUM/instance_indices_bucketL_epochE_seedS.npy    u32: those, in
 *       the order in which the loader takes them
 *   W/dataset-F/CURRICULUM/global_batch_indices_bzB_epochE_seedS.npy    u32: numbers of
 *       batches (B tokens each, counted bucket by bucket), in the order of the steps
 *   W/CURRICULUM.json   ours: what the training's configuration must say
 *   W/manifest.jsonl    ours: formats/shards/filelist.h's of all of these, written last
 *
 * F = SHA-256 of the class's name, tokenizer facts, type, lengths, curriculum, and of
 * each file's name without folder and size. An instance is a sequence, numbered over
 * the files in the order in which the configuration names them; here as OLMo-core sorts
 * what a pattern finds: as strings, so that D_10 comes before D_9.
 *
 * H covers the path as the configuration has it, letter for letter: a set that is read
 * under another path needs another cache, which schedule(1) makes from the counts.
 *
 * The loader's bucket file of 256 or 65536 as the longest length would be empty, as its
 * lengths overflow their type; those here are not made of lengths.
 *
 * Files are written whole or not at all. Memory: 64 KiB, and some 200 bytes a file.
 * Thread safety: reentrant.
 */
#ifndef SLU_OLMO_CACHE_H
#define SLU_OLMO_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct slu_olmo_bucket {
    uint64_t length, n_seq;   /* a power of two; > 0 */
    uint64_t shard_sequences; /* of all shards but the last */
};

struct slu_olmo_set {
    const struct slu_olmo_bucket *bucket; /* ascending lengths; borrowed */
    unsigned n_bucket;
    unsigned tok_bytes;            /* 2 or 4 */
    uint64_t vocab_size, eos, pad; /* as the training's tokenizer has them */
    const char *prefix; /* before D_<i>/…, as the trainer names the folder */
};

enum slu_olmo_curriculum_kind { SLU_OLMO_NATURAL, SLU_OLMO_P2, SLU_OLMO_LINEAR };
struct slu_olmo_curriculum {
    enum slu_olmo_curriculum_kind kind;
    uint64_t cycles; /* natural: without meaning, as balanced */
    bool balanced;
};

/* Room for slu_olmo_curriculum_name. */
#define SLU_OLMO_NAME 64
/* "vsl-natural", "vsl-grow-p2-8-cycle-balanced", …: the loader's name of its folder. */
void slu_olmo_curriculum_name(const struct slu_olmo_curriculum *c,
                              char out[SLU_OLMO_NAME]);

/* SLU_E_MISMATCH where OLMo-core cannot read the set as one of variable sequence
 * lengths, in one line. */
SLU_MUST_USE int slu_olmo_check(const struct slu_olmo_set *set, struct slu_err *err);

/* Vocabulary size, EOS and padding as the trainer's TokenizerConfig has them, from
 * "VOCABULARY,EOS,PAD" or a name that OLMo-core has for one without BOS: dolma2,
 * gpt-neox-olmo-dolma-v1_5. SLU_E_USAGE. */
SLU_MUST_USE int slu_olmo_tokenizer(struct slu_olmo_set *set, const char *text,
                                    struct slu_err *err);

/* The folder as a trainer would name it: absolute, without "." and doubled slashes;
 * links are not followed, as nobody writes what they lead to. Caller frees. */
SLU_MUST_USE int slu_olmo_prefix(char **prefix, const char *dir, struct slu_err *err);

/* dataset-common, dataset-F and the configuration. */
SLU_MUST_USE int slu_olmo_write_index(const char *work, const struct slu_olmo_set *set,
                                      const struct slu_olmo_curriculum *c,
                                      struct slu_err *err);

/* One epoch's order. `next` gives up to cap batch numbers, 0 at the end: n_batch of
 * them in all, or the files are not written. */
struct slu_olmo_order {
    uint64_t batch_tokens, epoch /* from 1 */, seed, n_batch;
    int (*next)(void *arg, uint32_t *batch, size_t cap, size_t *n, struct slu_err *err);
    void *arg;
};
/* After slu_olmo_write_index. Sequences are taken in the order of the shards. */
SLU_MUST_USE int slu_olmo_write_order(const char *work, const struct slu_olmo_set *set,
                                      const struct slu_olmo_curriculum *c,
                                      const struct slu_olmo_order *order,
                                      struct slu_err *err);

#endif
