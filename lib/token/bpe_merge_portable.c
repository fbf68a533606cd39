/* bpe_merge_portable.c - merging short pretokens, see bpe_merge.h. */
#include "lib/token/bpe_merge.h"

const struct bpe_merge_table bpe_merge_portable = BPE_MERGE_TABLE("portable");
