/* device.h - the accelerator behind plain C: is there one, which, and its memory.
 *
 * The CUDA runtime is linked statically, so a program built with it starts on a machine
 * without a driver and slu_device_count says so. Builds without CUDA answer from
 * none.c.
 *
 * Functions return 0 or a code that slu_device_error turns into a short sentence.
 * Memory and streams belong to the device that the calling thread has selected.
 */
#ifndef SLU_KERNELS_DEVICE_H
#define SLU_KERNELS_DEVICE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SLU_DEVICE_NOT_BUILT (-1) /* this build has no CUDA */

/* Devices that can be used; *n is 0 where the answer is a fault. */
int slu_device_count(int *n);
int slu_device_name(int ordinal, char *name, size_t name_cap);
/* Makes device `ordinal` the calling thread's own; cheap, so call it before each use.
 */
int slu_device_select(int ordinal);
/* Static string without a full stop. */
const char *slu_device_error(int code);

/* ---- memory ---- */

/* Aligned to 256 bytes at least. *p is NULL where the answer is a fault; NULL is legal
 * to free. What is freed may still be in use by a stream: it is waited for. */
int slu_device_alloc(void **p, size_t n_byte);
void slu_device_free(void *p);
/* Bytes that are free now, and all there are. */
int slu_device_memory(size_t *free_byte, size_t *total_byte);
int slu_device_zero(void *p, size_t n_byte, void *stream);
/* Page-locked host memory: what is copied from and to it does not wait. */
int slu_device_host_alloc(void **p, size_t n_byte);
void slu_device_host_free(void *p);

/* ---- copies, in order with what else is on the stream ---- */

/* From the host. Page-locked memory must stay as it is until the stream has passed the
 * copy; with other memory this waits, also for what was on the stream before. */
int slu_device_put(void *device, const void *host, size_t n_byte, void *stream);
/* To the host; waits for the stream. */
int slu_device_get(void *host, const void *device, size_t n_byte, void *stream);
/* To page-locked host memory; waits for nothing. */
int slu_device_get_async(void *host, const void *device, size_t n_byte, void *stream);
/* Within the device. */
int slu_device_copy(void *to, const void *from, size_t n_byte, void *stream);

/* ---- streams and events; NULL is the default stream, and legal to free ---- */

/* A stream that does not wait for the default one. */
int slu_device_stream_new(void **stream);
void slu_device_stream_free(void *stream);
/* Waits for all that is on it, and answers for faults of what ran there. */
int slu_device_sync(void *stream);

int slu_device_event_new(void **event);
void slu_device_event_free(void *event);
/* The event happens when the stream comes to it. */
int slu_device_event_record(void *event, void *stream);
/* What is put on the stream from now on waits for the event … */
int slu_device_event_order(void *event, void *stream);
/* … or the calling thread does. */
int slu_device_event_wait(void *event);
/* Time between two that have happened. */
int slu_device_event_ms(void *from, void *to, float *ms);

#ifdef __cplusplus
}
#endif
#endif
