#include "sort.h"

#include <cub/device/device_radix_sort.cuh>
#include <cuda_runtime.h>

#include "cuda_private.h"

/* CUB's radix sort is stable, also in descending order, and sorts by as many bits as
 * requested. It alternates between two buffers of keys and two of values; one of the
 * latter is the caller's `order`. */
namespace
{
const size_t ALIGNED = 256;

size_t aligned(size_t n_byte)
{
    return (n_byte + ALIGNED - 1) / ALIGNED * ALIGNED;
}

int bits_of(uint32_t longest)
{
    int bits = 1;
    while (bits < 32 && longest >> bits)
        bits++;
    return bits;
}

/* With temp NULL, only sets *temp_byte. */
cudaError_t radix_sort(void *temp, size_t *temp_byte, cub::DoubleBuffer<uint32_t> *key,
                       cub::DoubleBuffer<uint32_t> *value, size_t n, uint32_t longest,
                       cudaStream_t stream)
{
    /* Counts are 64-bit: n may exceed an int, and tiles extend past n. */
    return cub::DeviceRadixSort::SortPairsDescending(temp, *temp_byte, *key, *value,
                                                     (unsigned long long)n, 0,
                                                     bits_of(longest), stream);
}

cudaError_t temp_size(size_t n, uint32_t longest, size_t *n_byte)
{
    cub::DoubleBuffer<uint32_t> none;
    *n_byte = 0;
    return radix_sort(nullptr, n_byte, &none, &none, n, longest, 0);
}
} // namespace

__global__ static void start(const uint32_t *len, size_t n, uint32_t first,
                             uint32_t *key, uint32_t *value)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        key[i] = len[i];
        value[i] = first + (uint32_t)i;
    }
}

extern "C" size_t slu_sort_lengths_cuda_work(size_t n, uint32_t longest)
{
    size_t temp_byte;
    if (n == 0)
        return 0;
    if (slu_cuda_code(temp_size(n, longest, &temp_byte)))
        return 0; /* the sort itself will report this */
    return 3 * aligned(n * sizeof(uint32_t)) + aligned(temp_byte);
}

extern "C" int slu_sort_lengths_cuda(const uint32_t *len, size_t n, uint32_t longest,
                                     uint32_t first, uint32_t *order, void *work,
                                     size_t work_byte, void *stream)
{
    cudaStream_t s = (cudaStream_t)stream;
    size_t array = aligned(n * sizeof(uint32_t)), temp_byte;
    if (n == 0)
        return 0;
    cudaError_t e = temp_size(n, longest, &temp_byte);
    if (e == cudaSuccess &&
        work_byte == 0)       /* because of a fault, its size was not known */
        e = cudaErrorUnknown; /* a fault that has passed */
    if (e == cudaSuccess && work_byte < 3 * array + temp_byte)
        e = cudaErrorInvalidValue;
    if (e != cudaSuccess)
        return slu_cuda_code(e);
    char *at = (char *)work;
    uint32_t *key = (uint32_t *)at, *key2 = (uint32_t *)(at + array);
    uint32_t *value2 = (uint32_t *)(at + 2 * array);
    const unsigned threads = 256;
    const unsigned blocks = (unsigned)((n + threads - 1) / threads); /* n < 2^32 */
    start<<<blocks, threads, 0, s>>>(len, n, first, key, order);
    e = cudaGetLastError();
    if (e != cudaSuccess)
        return slu_cuda_code(e);
    cub::DoubleBuffer<uint32_t> keys(key, key2), values(order, value2);
    e = radix_sort(at + 3 * array, &temp_byte, &keys, &values, n, longest, s);
    if (e == cudaSuccess && values.Current() != order)
        e = cudaMemcpyAsync(order, values.Current(), n * sizeof *order,
                            cudaMemcpyDeviceToDevice, s);
    return slu_cuda_code(e);
}
