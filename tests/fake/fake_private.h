/* fake_private.h - what device_fake.c offers to kernels_fake.c: a queue for operations,
 * and the memory behind device pointers.
 */
#ifndef SLU_TESTS_FAKE_PRIVATE_H
#define SLU_TESTS_FAKE_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>

#include "kernels/copy.h"
#include "kernels/hash.h"
#include "kernels/place.h"
#include "kernels/scan.h"

/* An operation on a stream. */
struct op {
    struct op *next;
    void (*run)(struct op *op);
    bool late; /* fails instead */
    uint64_t number;
    union {
        struct {
            void *to;
            const void *from;
            size_t n_byte;
            enum { PUT, GET, ZERO } way;
        } transfer;
        struct {
            struct stream *stream;
            uint64_t number;
        } wait;
        struct {
            const uint32_t *len;
            size_t n;
            uint64_t *count;
            size_t n_bin;
        } histogram;
        struct {
            const uint32_t *len;
            size_t n;
            uint32_t longest, first;
            uint32_t *order;
        } sort;
        struct {
            struct slu_place p;
            uint32_t *run_item;
            uint64_t *run_dst;
        } place;
        struct {
            struct slu_copy c;
            uint64_t first_tok;
            size_t n_tok;
            void *out;
        } copy;
        struct {
            const void *tok;
            size_t n;
            unsigned tok_bytes;
            uint32_t eos;
            uint64_t *count, *far;
            size_t n_bin;
            struct slu_eos_block *b;
        } scan;
        struct {
            struct slu_hash_seqs s;
            uint64_t *hash;
        } hash;
    };
    void *work;
    size_t work_byte;
    void *owned; /* what was at transfer.from */
};

/* Microseconds that the calling thread has spent in user mode. */
static inline long fake_user_us(void)
{
    struct rusage r;
    getrusage(RUSAGE_THREAD, &r);
    return r.ru_utime.tv_sec * 1000000L + r.ru_utime.tv_usec;
}

/* Writes how often each kernel ran. */
void fake_log_runs(FILE *f);

/* Counts a call and puts o on the stream; a CUDA error if the call is one that fails, or
 * if work has fewer than want_byte. */
int fake_queue(struct op o, void *work, size_t work_byte, size_t want_byte,
               void *stream);

/* The n_byte at a device pointer, where the fake can use them; NULL for 0 bytes. Ends the
 * program if they are not all in one allocation; `what` names them. */
void *fake_real(const void *p, size_t n_byte, const char *what);

/* p, or the end of the program if p is NULL or MAP_FAILED. */
void *fake_must(void *p);

#endif
