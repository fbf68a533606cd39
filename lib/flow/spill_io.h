/* spill_io.h - the sorter's temporary files: threads do large reads and writes while
 * the caller continues; private to the sorter.
 *
 * A file has two descriptors: one through the page cache and, if the file system
 * supports O_DIRECT, one that bypasses the cache. The second is for data that will not
 * stay in memory anyway: it saves a copy, and keeps the cache for other files. Its
 * offsets, lengths and memory are multiples of SLU_SPILL_ALIGN; requests that it
 * refuses go through the page cache.
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

/* Creates a file without a name in folder dir. */
SLU_MUST_USE int slu_spill_file_open(struct slu_spill_file *f, const char *dir,
                                     struct slu_err *err);
void slu_spill_file_release(struct slu_spill_file *f);

/* Number of bytes which, written now, will probably still be in the page cache when
 * they are read: half of the free memory, or a quarter of the control group's limit. 0:
 * not known. */
uint64_t slu_spill_cache_room(void);

enum slu_spill_what { SLU_SPILL_READ, SLU_SPILL_WRITE };

struct slu_spill_req {
    const struct slu_spill_file *file;
    enum slu_spill_what what;
    bool direct; /* bypass the page cache, if supported */
    void *p;
    size_t n_byte;
    uint64_t off_byte;
    /* Private to the queue: */
    bool busy, ended_early;
    int sys_errno; /* 0: no error */
    struct slu_spill_req *next;
};

/* A queue and its threads. NULL is a queue that does each request at once. */
struct slu_spill_queue;

/* NULL if threads cannot be started. */
struct slu_spill_queue *slu_spill_queue_new(unsigned n_threads);
/* Waits for all requests in flight. NULL is legal. */
void slu_spill_queue_free(struct slu_spill_queue *q);
/* r is borrowed until slu_spill_wait returns. */
void slu_spill_submit(struct slu_spill_queue *q, struct slu_spill_req *r);
/* Waits for r and returns its result; does r now if it was never submitted. */
SLU_MUST_USE int slu_spill_wait(struct slu_spill_queue *q, struct slu_spill_req *r,
                                struct slu_err *err);

/* Writes bytes to a file one after another, in whole buffers. */
#define SLU_SPILL_BUFFERS 4
struct slu_spill_writer {
    struct slu_spill_queue *queue;
    uint8_t *buf; /* borrowed: n_buf buffers of cap_byte each, aligned */
    size_t cap_byte;
    unsigned n_buf, at;
    size_t fill_byte; /* bytes in buffer `at` */
    uint64_t off_byte;
    bool direct;
    const struct slu_spill_file *file;
    struct slu_spill_req req[SLU_SPILL_BUFFERS];
};

/* The bytes that follow go to `file` from off_byte on, a multiple of
 * SLU_SPILL_ALIGN. */
void slu_spill_writer_begin(struct slu_spill_writer *w,
                            const struct slu_spill_file *file, uint64_t off_byte,
                            bool direct);
SLU_MUST_USE int slu_spill_writer_put(struct slu_spill_writer *w, const void *p,
                                      size_t n, struct slu_err *err);
/* Pads to SLU_SPILL_ALIGN and submits all buffered bytes. */
SLU_MUST_USE int slu_spill_writer_end(struct slu_spill_writer *w, struct slu_err *err);
/* Waits until all bytes are written; also after an error. */
SLU_MUST_USE int slu_spill_writer_settle(struct slu_spill_writer *w,
                                         struct slu_err *err);

#endif
