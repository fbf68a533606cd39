/* kernels.h - what kernels.c and kernels_packing.c share. */
#ifndef SLU_TESTS_BENCH_KERNELS_H
#define SLU_TESTS_BENCH_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern size_t n_item, n_id;
extern unsigned n_threads;
extern uint32_t capacity; /* of a bin */
extern bool have_device;
/* Bytes a second, read and written, of a plain copy by one thread, by all, and by the
 * device. */
extern double cpu_memcpy, cpu_memcpy_all, gpu_memcpy;
/* For lib/base/device_model.h: seconds; bytes a second; a core's seconds for an id of two
 * bytes. 0: not measured. */
extern struct model {
    double start, bus, read, scan, copy, hash;
} model;

/* Cleared memory in huge pages; caller frees with munmap. A failure ends the program. */
void *big(size_t n_byte);
/* Ends the program if code is an error. */
void must(int code, const char *what);
/* A copy on the device, or with host NULL memory of any contents; caller frees with
 * slu_device_free. */
void *device(const void *host, size_t n_byte);

/* Seconds of a call, the median; on: the device's own clock. */
double seconds(void (*run)(void *), void *arg, bool on);
/* Prints a line: n items and n_byte took t seconds; memcpy moves memcpy_s bytes a
 * second. */
void row(const char *name, const char *where, double n, double n_byte, double t,
         double memcpy_s);
/* Borrowed until the next call. */
char *threads_name(unsigned n);

/* Lengths as text has them: log-normal, most of them short. */
uint32_t draw_length(void);
uint64_t rng(void);

/* order: the items by length, as kernels/sort.h sorts them. */
void bench_place(const uint32_t *len, const uint32_t *order);
void bench_copy(unsigned tok_bytes);
void bench_hash(unsigned tok_bytes);

#endif
