#include "device.h"

#include <cuda_runtime.h>
#include <cstdio>

#include "cuda_private.h"

extern "C" int slu_device_count(int *n)
{
    *n = 0;
    int code = slu_cuda_code(cudaGetDeviceCount(n));
    if (code)
        *n = 0;
    return code;
}

extern "C" int slu_device_name(int ordinal, char *name, size_t name_cap)
{
    cudaDeviceProp prop;
    int code = slu_cuda_code(cudaGetDeviceProperties(&prop, ordinal));
    if (name_cap)
        std::snprintf(name, name_cap, "%s", code ? "" : prop.name);
    return code;
}

extern "C" int slu_device_select(int ordinal)
{
    return slu_cuda_code(cudaSetDevice(ordinal));
}

extern "C" const char *slu_device_error(int code)
{
    switch (code) {
    case cudaErrorInsufficientDriver: /* also the result on a machine without any
                                         driver */
        return "no CUDA driver, or one older than this program needs";
    case cudaErrorNoDevice:
        return "no CUDA device";
    default:
        return cudaGetErrorString((cudaError_t)code);
    }
}

extern "C" int slu_device_alloc(void **p, size_t n_byte)
{
    *p = nullptr;
    return slu_cuda_code(cudaMalloc(p, n_byte ? n_byte : 1));
}

extern "C" void slu_device_free(void *p)
{
    if (p) /* cudaFree(NULL) would start a device that is not used */
        (void)slu_cuda_code(cudaFree(p));
}

extern "C" int slu_device_memory(size_t *free_byte, size_t *total_byte)
{
    *free_byte = *total_byte = 0;
    return slu_cuda_code(cudaMemGetInfo(free_byte, total_byte));
}

extern "C" int slu_device_zero(void *p, size_t n_byte, void *stream)
{
    return slu_cuda_code(cudaMemsetAsync(p, 0, n_byte, (cudaStream_t)stream));
}

extern "C" int slu_device_host_alloc(void **p, size_t n_byte)
{
    *p = nullptr;
    return slu_cuda_code(cudaHostAlloc(p, n_byte ? n_byte : 1, cudaHostAllocDefault));
}

extern "C" void slu_device_host_free(void *p)
{
    if (p)
        (void)slu_cuda_code(cudaFreeHost(p));
}

extern "C" int slu_device_host_lock(void *p, size_t n_byte)
{
    return slu_cuda_code(cudaHostRegister(p, n_byte, cudaHostRegisterMapped));
}

extern "C" int slu_device_host_shown(const void **shown, void *p)
{
    void *d = nullptr;
    int code = slu_cuda_code(cudaHostGetDevicePointer(&d, p, 0));
    *shown = d;
    return code;
}

extern "C" void slu_device_host_unlock(void *p)
{
    if (p)
        (void)slu_cuda_code(cudaHostUnregister(p));
}

/* Whether a copy from p may still read p after the call has returned. If the device
 * cannot access ordinary memory, the driver copies it to a buffer first; but some
 * devices can. */
static bool must_wait(const void *p)
{
    cudaPointerAttributes a;
    return slu_cuda_code(cudaPointerGetAttributes(&a, p)) != 0 ||
           a.type == cudaMemoryTypeUnregistered;
}

extern "C" int slu_device_put(void *device, const void *host, size_t n_byte,
                              void *stream)
{
    int code = slu_cuda_code(cudaMemcpyAsync(
        device, host, n_byte, cudaMemcpyHostToDevice, (cudaStream_t)stream));
    return code || !n_byte || !must_wait(host) ? code : slu_device_sync(stream);
}

extern "C" int slu_device_get(void *host, const void *device, size_t n_byte,
                              void *stream)
{
    int code = slu_device_get_async(host, device, n_byte, stream);
    return code ? code : slu_device_sync(stream);
}

extern "C" int slu_device_get_async(void *host, const void *device, size_t n_byte,
                                    void *stream)
{
    return slu_cuda_code(cudaMemcpyAsync(host, device, n_byte, cudaMemcpyDeviceToHost,
                                         (cudaStream_t)stream));
}

extern "C" int slu_device_copy(void *to, const void *from, size_t n_byte, void *stream)
{
    return slu_cuda_code(cudaMemcpyAsync(to, from, n_byte, cudaMemcpyDeviceToDevice,
                                         (cudaStream_t)stream));
}

extern "C" int slu_device_stream_new(void **stream)
{
    cudaStream_t s = nullptr;
    cudaError_t e = cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    *stream = e == cudaSuccess ? s : nullptr;
    return slu_cuda_code(e);
}

extern "C" void slu_device_stream_free(void *stream)
{
    if (stream)
        (void)slu_cuda_code(cudaStreamDestroy((cudaStream_t)stream));
}

extern "C" int slu_device_sync(void *stream)
{
    return slu_cuda_code(cudaStreamSynchronize((cudaStream_t)stream));
}

extern "C" int slu_device_event_new(void **event)
{
    cudaEvent_t v = nullptr;
    cudaError_t e = cudaEventCreate(&v);
    *event = e == cudaSuccess ? v : nullptr;
    return slu_cuda_code(e);
}

extern "C" void slu_device_event_free(void *event)
{
    if (event)
        (void)slu_cuda_code(cudaEventDestroy((cudaEvent_t)event));
}

extern "C" int slu_device_event_record(void *event, void *stream)
{
    return slu_cuda_code(cudaEventRecord((cudaEvent_t)event, (cudaStream_t)stream));
}

extern "C" int slu_device_event_order(void *event, void *stream)
{
    return slu_cuda_code(
        cudaStreamWaitEvent((cudaStream_t)stream, (cudaEvent_t)event, 0));
}

extern "C" int slu_device_event_wait(void *event)
{
    return slu_cuda_code(cudaEventSynchronize((cudaEvent_t)event));
}

extern "C" int slu_device_event_ms(void *from, void *to, float *ms)
{
    *ms = 0;
    return slu_cuda_code(cudaEventElapsedTime(ms, (cudaEvent_t)from, (cudaEvent_t)to));
}
