/* spill_io.h - the sorter's temporary files: large reads and writes that threads do
 * while the caller goes on; private to the sorter.
 *
 * A file has two descriptors: one through the page cache, and, where the file system
 * allows it, one past it (O_DIRECT). The second one is for data that will not stay in
 * memory anyway: it costs no copy, and does not push out what others want cached. Its
 * offsets, lengths and memory are multiples of SLU_SPILL_ALIGN; what it refuses goes
 * through the page cache.
 *
 * Thread safety: one thread submits and waits, on a queue or a writer.
 */
#ifndef SLU_SPILL_IO_H
#define SLU_SPILL_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

#define SLU_SPILL_ALIGN 4096

struct slu_spill_file {
    int fd;          /* -1: none */
    int direct_fd;   /* -1: none */
    const char *dir; /* borrowed, for messages */
};

/* A new file without a name in folder dir. */
SLU_MUST_USE int slu_spill_file_open(struct slu_spill_file *f, const char *dir,
                                     struct slu_err *err);
void slu_spill_file_release(struct slu_spill_file *f);

/* How much of what is written now is likely to be in the page cache still when it is
 * read: half of the memory that is free, or a quarter of the control group's. 0: not
 * known. */
uint64_t slu_spill_cache_room(void);

enum slu_spill_what { SLU_SPILL_READ, SLU_SPILL_WRITE };

struct slu_spill_req {
    const struct slu_spill_file *file;
    enum slu_spill_what what;
    bool direct; /* if it can be */
    void *p;
    size_t n_byte;
    uint64_t off_byte;
    /* The queue's: */
    bool busy, ended_early;
    int sys_errno; /* 0: none */
    struct slu_spill_req *next;
};

/* A queue and its threads. NULL is a queue that does everything at once. */
struct slu_spill_queue;

/* NULL where there can be no threads. */
struct slu_spill_queue *slu_spill_queue_new(unsigned n_threads);
/* Waits for all that is under way. NULL is legal. */
void slu_spill_queue_free(struct slu_spill_queue *q);
/* r is borrowed until it was waited for. */
void slu_spill_submit(struct slu_spill_queue *q, struct slu_spill_req *r);
/* At once where r was never submitted. */
SLU_MUST_USE int slu_spill_wait(struct slu_spill_queue *q, struct slu_spill_req *r,
                                struct slu_err *err);

/* Bytes on their way to a file, one after another, in whole buffers. */
#define SLU_SPILL_BUFFERS 4
struct slu_spill_writer {
    struct slu_spill_queue *queue;
    uint8_t *buf; /* borrowed: n_buf of cap_byte each, aligned */
    size_t cap_byte;
    unsigned n_buf, at;
    size_t fill_byte; /* of buffer `at` */
    uint64_t off_byte;
    bool direct;
    const struct slu_spill_file *file;
    struct slu_spill_req req[SLU_SPILL_BUFFERS];
};

/* What follows goes to `file` from off_byte on, a multiple of SLU_SPILL_ALIGN. */
void slu_spill_writer_begin(struct slu_spill_writer *w,
                            const struct slu_spill_file *file, uint64_t off_byte,
                            bool direct);
SLU_MUST_USE int slu_spill_writer_put(struct slu_spill_writer *w, const void *p,
                                      size_t n, struct slu_err *err);
/* Zeros up to a multiple of SLU_SPILL_ALIGN; what there is is under way then. */
SLU_MUST_USE int slu_spill_writer_end(struct slu_spill_writer *w, struct slu_err *err);
/* All is written. Also after an error. */
SLU_MUST_USE int slu_spill_writer_settle(struct slu_spill_writer *w,
                                         struct slu_err *err);

#endif
