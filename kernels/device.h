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

int slu_device_alloc(void **p, size_t n_byte);
void slu_device_free(void *p);
int slu_device_zero(void *p, size_t n_byte, void *stream);
/* Host to device and back; back waits for the stream. */
int slu_device_put(void *device, const void *host, size_t n_byte, void *stream);
int slu_device_get(void *host, const void *device, size_t n_byte, void *stream);

#ifdef __cplusplus
}
#endif
#endif
