/* olmo_cache.h - writes, before a training, the files that OLMo-core's loader of
 * variable sequence lengths would make for itself (read in ai2-olmo-core 3.0.0:
 * data/numpy_dataset.py, NumpyVSLDataset; data/data_loader.py, NumpyVSLDataLoader).
 *
 * The files are below a work folder W; their u32 and u16 are little-endian, without
 * headers:
 *
 *   W/dataset-common/bucketed-doc-indices-H.npy   u32: start and end, in ids of the
 *       file, of each sequence of one .npy file. H = SHA-256 of the file's path, its
 *       size in bytes and every bucket length, each as text, concatenated
 *   W/dataset-F/instance-lengths.npy     length of every instance, in the smallest
 *       unsigned type that holds the longest length less 1
 *   W/dataset-F/bucketL-indices.npy      u32: the instances of length L
 *   W/dataset-F/CURRICULUM/instance_indices_bucketL_epochE_seedS.npy    u32: the same
 *       instances, in the order in which the loader takes them
 *   W/dataset-F/CURRICULUM/global_batch_indices_bzB_epochE_seedS.npy    u32: numbers of
 *       batches (B tokens each, counted bucket by bucket), in the order of the steps
 *   W/CURRICULUM.json   ours: the configuration that the training must have
 *   W/manifest.jsonl    ours: lists all of these files (formats/shards/filelist.h);
 *       written last
 *
 * F = SHA-256 of the class's name, tokenizer facts, type, lengths, curriculum, and of
 * each file's name (without folder) and size. An instance is a sequence. Instances are
 * numbered over the files in the order of the configuration; here that is OLMo-core's
 * order for the files of a pattern: sorted as strings, so that D_10 comes before D_9.
 *
 * H covers the path exactly as the configuration writes it. So a set that is read under
 * another path needs another cache, which schedule(1) makes from the counts.
 *
 * With 256 or 65536 as the longest length, the bucket file that the loader makes is
 * empty, because lengths overflow their type. The bucket files here are right, because
 * they are not made from these lengths.
 *
 * Each file is written completely or not at all. Memory: 64 KiB, and about 200 bytes
 * for each file. Thread safety: reentrant.
 */
#ifndef SLU_OLMO_CACHE_H
#define SLU_OLMO_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct slu_olmo_bucket {
    uint64_t length, n_seq;   /* a power of two; n_seq > 0 */
    uint64_t shard_sequences; /* in each shard but the last */
};

struct slu_olmo_set {
    const struct slu_olmo_bucket *bucket; /* by ascending length; borrowed */
    unsigned n_bucket;
    unsigned tok_bytes;            /* 2 or 4 */
    uint64_t vocab_size, eos, pad; /* of the training's tokenizer */
    const char *prefix; /* the folder's name for the trainer, before D_<i>/… */
};

enum slu_olmo_curriculum_kind { SLU_OLMO_NATURAL, SLU_OLMO_P2, SLU_OLMO_LINEAR };
struct slu_olmo_curriculum {
    enum slu_olmo_curriculum_kind kind;
    uint64_t cycles; /* without meaning for natural, like balanced */
    bool balanced;
};

/* Room for slu_olmo_curriculum_name. */
#define SLU_OLMO_NAME 64
/* "vsl-natural", "vsl-grow-p2-8-cycle-balanced", …: the name of the loader's folder. */
void slu_olmo_curriculum_name(const struct slu_olmo_curriculum *c,
                              char out[SLU_OLMO_NAME]);

/* SLU_E_MISMATCH, with one line, if OLMo-core cannot read the set as one of variable
 * sequence lengths. */
SLU_MUST_USE int slu_olmo_check(const struct slu_olmo_set *set, struct slu_err *err);

/* Sets vocabulary size, EOS and padding as in the trainer's TokenizerConfig, from
 * "VOCABULARY,EOS,PAD" or from OLMo-core's name of a configuration without BOS: dolma2,
 * gpt-neox-olmo-dolma-v1_5. SLU_E_USAGE for any other text. */
SLU_MUST_USE int slu_olmo_tokenizer(struct slu_olmo_set *set, const char *text,
                                    struct slu_err *err);

/* The folder as a trainer would name it: absolute, without "." and doubled slashes.
 * Links are kept, because users write the name of the link. Caller frees. */
SLU_MUST_USE int slu_olmo_prefix(char **prefix, const char *dir, struct slu_err *err);

/* Writes dataset-common, dataset-F and the configuration. */
SLU_MUST_USE int slu_olmo_write_index(const char *work, const struct slu_olmo_set *set,
                                      const struct slu_olmo_curriculum *c,
                                      struct slu_err *err);

/* The order of one epoch. `next` returns up to cap batch numbers, 0 at the end. It must
 * return n_batch numbers in total, or the files are not written. */
struct slu_olmo_order {
    uint64_t batch_tokens, epoch /* epoch: counted from 1 */, seed, n_batch;
    int (*next)(void *arg, uint32_t *batch, size_t cap, size_t *n, struct slu_err *err);
    void *arg;
};
/* Call after slu_olmo_write_index. Sequences are taken in the order of the shards. */
SLU_MUST_USE int slu_olmo_write_order(const char *work, const struct slu_olmo_set *set,
                                      const struct slu_olmo_curriculum *c,
                                      const struct slu_olmo_order *order,
                                      struct slu_err *err);

#endif
