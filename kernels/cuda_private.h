/* cuda_private.h - what the .cu files share: how an answer of the CUDA runtime becomes
 * a code of device.h. The runtime keeps an error until it is taken, and the next launch
 * would answer it again: so it is taken where it is seen.
 */
#ifndef SLU_KERNELS_CUDA_PRIVATE_H
#define SLU_KERNELS_CUDA_PRIVATE_H

#include <cuda_runtime.h>

static inline int slu_cuda_code(cudaError_t e)
{
    if (e != cudaSuccess)
        (void)cudaGetLastError();
    return (int)e;
}

#endif
