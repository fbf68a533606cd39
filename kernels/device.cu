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
    return (int)cudaSetDevice(ordinal);
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

extern "C" int slu_device_alloc(void **p, size_t n_byte)
{
    *p = nullptr;
    return (int)cudaMalloc(p, n_byte);
}

extern "C" void slu_device_free(void *p)
{
    (void)cudaFree(p);
}

extern "C" int slu_device_zero(void *p, size_t n_byte, void *stream)
{
    return (int)cudaMemsetAsync(p, 0, n_byte, (cudaStream_t)stream);
}

extern "C" int slu_device_put(void *device, const void *host, size_t n_byte,
                              void *stream)
{
    return (int)cudaMemcpyAsync(device, host, n_byte, cudaMemcpyHostToDevice,
                                (cudaStream_t)stream);
}

extern "C" int slu_device_get(void *host, const void *device, size_t n_byte,
                              void *stream)
{
    cudaError_t e = cudaMemcpyAsync(host, device, n_byte, cudaMemcpyDeviceToHost,
                                    (cudaStream_t)stream);
    if (e == cudaSuccess)
        e = cudaStreamSynchronize((cudaStream_t)stream);
    return (int)e;
}
