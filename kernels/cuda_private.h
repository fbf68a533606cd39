/* cuda_private.h - shared by the .cu files: converts an error of the CUDA runtime to a
 * code of device.h. The runtime keeps an error until it is fetched, and the next launch
 * would return it again. So errors are fetched where they are detected.
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
