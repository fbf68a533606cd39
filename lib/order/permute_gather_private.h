/* permute_gather_private.h - what permute_gather.c (merging) and
 * permute_gather_files.c (what the files say of themselves) share. Private to them.
 */
#ifndef SLU_PERMUTE_GATHER_PRIVATE_H
#define SLU_PERMUTE_GATHER_PRIVATE_H

#include "permute_parts_private.h"
#include "lib/stream/seqrec.h"

/* Of a bucket's cells in a file, those whose places are kept: of the range that is read
 * and of the next one, where its last shard's rest is. Others are looked up. */
enum { NEAR = 2 };

struct slu_gather_extent { /* a cell in a file */
    uint64_t off_byte, n_byte, n_seq;
    struct slu_u128 hash; /* of the bytes */
};
struct slu_gather_file {
    char *path;
    int fd;
    struct slu_u128 id;
    struct slu_workfile_stream stream;
    struct slu_gather_extent *extent; /* n_bucket x NEAR */
};
struct slu_gather_run { /* a cell while it is read */
    uint64_t off, left; /* bytes that were not read yet */
    uint8_t *buf;
    size_t pos, len;
    struct slu_hash_parts *hash;
    struct slu_u128 want;
    uint64_t n_rec, n_want;
    struct slu_rec rec; /* the next one */
};

struct slu_gather {
    struct slu_parts_cfg cfg;
    char *work;
    uint64_t budget_byte;
    const struct slu_header *header; /* of the first file */
    struct slu_names *names;
    struct slu_gather_file *file;
    uint64_t n_file, n_range;
    unsigned n_bucket;
    struct slu_parts_cell *cell; /* of all files: n_bucket x n_range */
    struct slu_parts_books books;
    struct slu_u128 blend; /* id of the blend that they were scattered by; */
    uint64_t *took;        /* and what it took, added up */
    size_t n_took;

    /* While it is read: */
    size_t buffer_byte;         /* of each run */
    struct slu_gather_run *run; /* of each file */
    uint32_t *heap;             /* runs, the one with the least key first */
    size_t n_heap;
    uint64_t skip[SLU_MAX_BUCKETS], want[SLU_MAX_BUCKETS];
    unsigned bucket;
    uint64_t range;
    bool in_cell;
    struct slu_buf fetched;
};

/* A cell that is not near, from the file. */
SLU_MUST_USE int slu_gather_extent(const struct slu_gather *g, uint64_t file,
                                   unsigned bucket, uint64_t range,
                                   struct slu_gather_extent *e, struct slu_err *err);

#endif
