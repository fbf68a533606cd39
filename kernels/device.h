/* device.h - the accelerator behind plain C: whether there is one, its name, and its
 * memory.
 *
 * The CUDA runtime is linked statically, so a program built with it starts on a machine
 * without a driver, and slu_device_count reports the missing driver. Builds without
 * CUDA use none.c.
 *
 * Functions return 0, or a code that slu_device_error converts to a short sentence.
 * Memory and streams belong to the device that the calling thread has selected.
 */
#ifndef SLU_KERNELS_DEVICE_H
#define SLU_KERNELS_DEVICE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SLU_DEVICE_NOT_BUILT (-1) /* this build has no CUDA */

/* Number of usable devices; *n is 0 on failure. */
int slu_device_count(int *n);
int slu_device_name(int ordinal, char *name, size_t name_cap);
/* Makes device `ordinal` the calling thread's own; cheap, so call it before each use.
 */
int slu_device_select(int ordinal);
/* Static string without a full stop. */
const char *slu_device_error(int code);

/* ---- memory ---- */

/* Aligned to at least 256 bytes. *p is NULL on failure; freeing NULL is legal. If a
 * stream still uses the memory, freeing waits for the stream. */
int slu_device_alloc(void **p, size_t n_byte);
void slu_device_free(void *p);
/* Bytes that are free now, and all bytes of the device. */
int slu_device_memory(size_t *free_byte, size_t *total_byte);
int slu_device_zero(void *p, size_t n_byte, void *stream);
/* Allocates page-locked host memory: copies from and to such memory do not wait. */
int slu_device_host_alloc(void **p, size_t n_byte);
void slu_device_host_free(void *p);
/* Locks pages of ordinary memory until slu_device_host_unlock, for the same. */
int slu_device_host_lock(void *p, size_t n_byte);
/* The address at which kernels can read locked memory, over the bus. p is the address
 * that was locked. */
int slu_device_host_shown(const void **shown, void *p);
void slu_device_host_unlock(void *p);

/* ---- copies, in order with what else is on the stream ---- */

/* Copies from the host. Page-locked memory must not change until the stream has done
 * the copy. With other memory the call waits for the copy, and for all earlier work of
 * the stream. */
int slu_device_put(void *device, const void *host, size_t n_byte, void *stream);
/* Copies to the host; waits for the stream. */
int slu_device_get(void *host, const void *device, size_t n_byte, void *stream);
/* Copies to page-locked host memory; does not wait. */
int slu_device_get_async(void *host, const void *device, size_t n_byte, void *stream);
/* Copies within the device. */
int slu_device_copy(void *to, const void *from, size_t n_byte, void *stream);

/* ---- streams and events; NULL is the default stream, and legal to free ---- */

/* Makes a stream that does not wait for the default stream. */
int slu_device_stream_new(void **stream);
void slu_device_stream_free(void *stream);
/* Waits for all work of the stream, and returns its faults. */
int slu_device_sync(void *stream);

int slu_device_event_new(void **event);
void slu_device_event_free(void *event);
/* The event occurs when the stream reaches it. */
int slu_device_event_record(void *event, void *stream);
/* Later work on the stream waits for the event … */
int slu_device_event_order(void *event, void *stream);
/* … or the calling thread waits for it. */
int slu_device_event_wait(void *event);
/* Time between two events that have occurred. */
int slu_device_event_ms(void *from, void *to, float *ms);

#ifdef __cplusplus
}
#endif
#endif
