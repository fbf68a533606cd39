/* bpe_merge_avx2.c - merging short pretokens, see bpe_merge.h. */
#include "lib/token/bpe_merge.h"

const struct bpe_merge_table bpe_merge_avx2 = BPE_MERGE_TABLE("avx2");
