#include "device.h"

#include <cuda_runtime.h>
#include <cstdio>

extern "C" int slu_device_count(int *n)
{
    *n = 0;
    cudaError_t e = cudaGetDeviceCount(n);
    if (e != cudaSuccess) {
        *n = 0;
        (void)cudaGetLastError(); /* the fault is answered here, not at the next call */
    }
    return (int)e;
}

extern "C" int slu_device_name(int ordinal, char *name, size_t name_cap)
{
    cudaDeviceProp prop;
    cudaError_t e = cudaGetDeviceProperties(&prop, ordinal);
    if (name_cap)
        std::snprintf(name, name_cap, "%s", e == cudaSuccess ? prop.name : "");
    return (int)e;
}

extern "C" int slu_device_select(int ordinal)
{
    cudaError_t e = cudaSetDevice(ordinal);
    if (e != cudaSuccess)
        (void)cudaGetLastError();
    return (int)e;
}

extern "C" const char *slu_device_error(int code)
{
    switch (code) {
    case cudaErrorInsufficientDriver: /* what a machine without any driver answers, too
                                       */
        return "no CUDA driver, or one older than this program needs";
    case cudaErrorNoDevice:
        return "no CUDA device";
    default:
        return cudaGetErrorString((cudaError_t)code);
    }
}

/* Not every fault lasts, but some that do not are told again by the next call unless
 * they are taken here. */
static int answer(cudaError_t e)
{
    if (e != cudaSuccess)
        (void)cudaGetLastError();
    return (int)e;
}

extern "C" int slu_device_alloc(void **p, size_t n_byte)
{
    *p = nullptr;
    return answer(cudaMalloc(p, n_byte ? n_byte : 1));
}

extern "C" void slu_device_free(void *p)
{
    if (p) /* cudaFree(NULL) would wake a device that nobody asked for */
        (void)answer(cudaFree(p));
}

extern "C" int slu_device_memory(size_t *free_byte, size_t *total_byte)
{
    *free_byte = *total_byte = 0;
    return answer(cudaMemGetInfo(free_byte, total_byte));
}

extern "C" int slu_device_zero(void *p, size_t n_byte, void *stream)
{
    return answer(cudaMemsetAsync(p, 0, n_byte, (cudaStream_t)stream));
}

extern "C" int slu_device_host_alloc(void **p, size_t n_byte)
{
    *p = nullptr;
    return answer(cudaHostAlloc(p, n_byte ? n_byte : 1, cudaHostAllocDefault));
}

extern "C" void slu_device_host_free(void *p)
{
    if (p)
        (void)answer(cudaFreeHost(p));
}

/* Whether a copy from p may still read it when the call is back. The driver stages
 * ordinary memory first where the device can't reach it, but some devices can. */
static bool must_wait(const void *p)
{
    cudaPointerAttributes a;
    return answer(cudaPointerGetAttributes(&a, p)) != 0 ||
           a.type == cudaMemoryTypeUnregistered;
}

extern "C" int slu_device_put(void *device, const void *host, size_t n_byte,
                              void *stream)
{
    int code = answer(cudaMemcpyAsync(device, host, n_byte, cudaMemcpyHostToDevice,
                                      (cudaStream_t)stream));
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
    return answer(cudaMemcpyAsync(host, device, n_byte, cudaMemcpyDeviceToHost,
                                  (cudaStream_t)stream));
}

extern "C" int slu_device_copy(void *to, const void *from, size_t n_byte, void *stream)
{
    return answer(cudaMemcpyAsync(to, from, n_byte, cudaMemcpyDeviceToDevice,
                                  (cudaStream_t)stream));
}

extern "C" int slu_device_stream_new(void **stream)
{
    cudaStream_t s = nullptr;
    cudaError_t e = cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    *stream = e == cudaSuccess ? s : nullptr;
    return answer(e);
}

extern "C" void slu_device_stream_free(void *stream)
{
    if (stream)
        (void)answer(cudaStreamDestroy((cudaStream_t)stream));
}

extern "C" int slu_device_sync(void *stream)
{
    return answer(cudaStreamSynchronize((cudaStream_t)stream));
}

extern "C" int slu_device_event_new(void **event)
{
    cudaEvent_t v = nullptr;
    cudaError_t e = cudaEventCreate(&v);
    *event = e == cudaSuccess ? v : nullptr;
    return answer(e);
}

extern "C" void slu_device_event_free(void *event)
{
    if (event)
        (void)answer(cudaEventDestroy((cudaEvent_t)event));
}

extern "C" int slu_device_event_record(void *event, void *stream)
{
    return answer(cudaEventRecord((cudaEvent_t)event, (cudaStream_t)stream));
}

extern "C" int slu_device_event_order(void *event, void *stream)
{
    return answer(cudaStreamWaitEvent((cudaStream_t)stream, (cudaEvent_t)event, 0));
}

extern "C" int slu_device_event_wait(void *event)
{
    return answer(cudaEventSynchronize((cudaEvent_t)event));
}

extern "C" int slu_device_event_ms(void *from, void *to, float *ms)
{
    *ms = 0;
    return answer(cudaEventElapsedTime(ms, (cudaEvent_t)from, (cudaEvent_t)to));
}
