/* cudart.c - the functions of the CUDA runtime that nvcc's objects, CUB and
 * kernels/device.cu call, on the emulated device of emu.h. Linked in place of
 * libcudart_static. Each copy and each launch is done when its call returns.
 *
 *   SLU_EMU_ARCH=80      the architecture whose PTX is run: 80, 90, 100
 *   SLU_EMU_SM=2         the number of multiprocessors that the device reports
 *   SLU_EMU_MIB=8192     its memory
 *   SLU_EMU_SEED=0       order of blocks and warps: 0 ascending, else random
 *   SLU_EMU_DIVERGE=1    lanes of a warp run apart
 *   SLU_EMU_LOG=FILE     each run appends a line: launches, bytes copied, findings
 *   SLU_EMU_TRACE=FILE   a line for each launch, copy and wait, in their order
 *   SLU_EMU_TRUST=1      accesses are not recorded, and races not seen: larger inputs
 *
 * A run with findings (emu.h) exits with status 9, whatever status it had without them.
 */
#include "emu.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Parameters are the runtime's, used or not, and its headers declare only to C++ what
 * nvcc's objects call. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum {
    MOST_IMAGES = 8, /* of a fat binary */
    MOST_FUNCTIONS = 4096,
    SHARED_STATIC = 48 << 10, /* bytes of a block without cudaFuncSetAttribute */
    SHARED_MOST = 163 << 10,  /* and with it, as on sm_80 */
    SHARED_SM = 164 << 10,    /* of a multiprocessor, 1 KiB a block its own */
    THREADS_SM = 2048,
    EXIT_FOUND = 9,
};

struct image {
    uint32_t arch;
    const char *text;
    size_t n_byte;
    struct emu_module *module;
};

/* The handle by which the functions of one object are registered. */
struct binary {
    struct image image[MOST_IMAGES];
    unsigned n_image;
};

static struct function {
    const void *host; /* what a program calls it by */
    struct binary *binary;
    const char *name;
    const struct emu_kernel *kernel;
    uint32_t most_dynamic;
} function[MOST_FUNCTIONS];
static unsigned n_function;

static uint32_t arch = 80, n_sm = 2;
static size_t total_byte = (size_t)8 << 30, used_byte;
static cudaError_t lost; /* a launch failed: so does all from then on */
static _Thread_local cudaError_t last_error;
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static void lock(void)
{
    pthread_mutex_lock(&one_at_a_time);
}

static uint64_t n_call, failing_call;

uint64_t emu_fail_call(uint64_t nth)
{
    uint64_t n = n_call;
    failing_call = nth;
    n_call = 0;
    return n;
}

static cudaError_t answer(cudaError_t e)
{
    if (++n_call == failing_call)
        e = cudaErrorUnknown;
    if (lost)
        e = lost;
    if (e)
        last_error = e;
    pthread_mutex_unlock(&one_at_a_time);
    return e;
}

/* ---- begin and end ---- */

static void at_exit(void)
{
    char device[80];
    snprintf(device, sizeof device, "sm_%u, %u multiprocessors", arch, n_sm);
    if (emu_trace_end(device)) {
        fflush(NULL);
        _exit(EXIT_FOUND);
    }
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *s = getenv(name);
    return s && *s ? strtoull(s, NULL, 10) : otherwise;
}

static void begin(void)
{
    static bool done;
    if (done)
        return;
    done = true;
    arch = (uint32_t)setting("SLU_EMU_ARCH", arch);
    n_sm = (uint32_t)setting("SLU_EMU_SM", n_sm);
    total_byte = (size_t)setting("SLU_EMU_MIB", total_byte >> 20) << 20;
    emu_config.seed = setting("SLU_EMU_SEED", 0);
    emu_config.diverge = setting("SLU_EMU_DIVERGE", 0) != 0;
    emu_config.trusting = setting("SLU_EMU_TRUST", 0) != 0;
    emu_trace_begin();
    atexit(at_exit);
}

/* ---- what nvcc's objects call before main() ---- */

/* A fat binary: a header (magic, version, its own size, size of what follows), then
 * images: kind (1 is PTX), header's size at 4, size at 8, architecture at 28. */
void **__cudaRegisterFatBinary(void *p)
{
    struct {
        uint32_t magic, version;
        const uint8_t *data;
    } wrapper;
    struct binary *b = calloc(1, sizeof *b);
    uint16_t head;
    uint32_t magic;
    uint64_t size;
    begin();
    memcpy(&wrapper, p, sizeof wrapper);
    memcpy(&magic, wrapper.data, 4);
    memcpy(&head, wrapper.data + 6, 2);
    memcpy(&size, wrapper.data + 8, 8);
    if (!b || magic != 0xba55ed50)
        emu_stop("not a fat binary: magic %x", magic);
    const uint8_t *at = wrapper.data + head, *end = at + size;
    while (at < end) {
        uint16_t kind;
        uint32_t image_head, image_arch;
        uint64_t n_byte;
        memcpy(&kind, at, 2);
        memcpy(&image_head, at + 4, 4);
        memcpy(&n_byte, at + 8, 8);
        memcpy(&image_arch, at + 28, 4);
        at += image_head;
        if (kind == 1) {
            if (!memmem(at, n_byte, ".version", 8))
                emu_stop("PTX is compressed: nvcc wants --compress-mode=none");
            if (b->n_image < MOST_IMAGES)
                b->image[b->n_image++] =
                    (struct image){image_arch, (const char *)at, n_byte, NULL};
        }
        at += n_byte;
    }
    return (void **)b;
}

void __cudaRegisterFatBinaryEnd(void **h)
{
}

void __cudaUnregisterFatBinary(void **h)
{
    struct binary *b = (struct binary *)h;
    for (unsigned i = 0; i < b->n_image; i++)
        if (b->image[i].module)
            emu_module_free(b->image[i].module);
    free(b);
}

void __cudaRegisterFunction(void **h, const char *host, char *device, const char *name,
                            int threads, uint3 *tid, uint3 *bid, dim3 *block,
                            dim3 *grid, int *size)
{
    if (n_function == MOST_FUNCTIONS)
        emu_stop("too many kernels");
    function[n_function++] =
        (struct function){host, (struct binary *)h, name, NULL, SHARED_STATIC};
}

void __cudaRegisterVar(void **h, char *host, char *device, const char *name, int ext,
                       size_t n_byte, int is_constant, int is_global)
{
}

/* ---- kernels ---- */

/* NULL: no PTX of this architecture is there. */
static struct function *function_of(const void *host)
{
    unsigned k = 0;
    while (k < n_function && function[k].host != host)
        k++;
    if (k == n_function)
        return NULL;
    struct function *f = &function[k];
    for (unsigned i = 0; i < f->binary->n_image && !f->kernel; i++) {
        struct image *m = &f->binary->image[i];
        if (m->arch != arch)
            continue;
        if (!m->module)
            m->module = emu_module_new(m->text, m->n_byte);
        f->kernel = emu_module_kernel(m->module, f->name);
    }
    return f->kernel ? f : NULL;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
    lock();
    *kernel = (cudaKernel_t)function_of(host);
    return answer(*kernel ? cudaSuccess : cudaErrorNoKernelImageForDevice);
}

/* The arguments of a launch between <<< and >>>, kept until the code that nvcc makes of
 * the launch asks for them. */
static _Thread_local struct {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
} pushed;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                     cudaStream_t stream)
{
    pushed.grid = grid;
    pushed.block = block;
    pushed.shared = shared;
    pushed.stream = stream;
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                       void *stream)
{
    *grid = pushed.grid;
    *block = pushed.block;
    *shared = pushed.shared;
    memcpy(stream, &pushed.stream, sizeof pushed.stream);
    return cudaSuccess;
}

static bool may_launch(const struct function *f, const struct emu_launch *l,
                       size_t shared)
{
    uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
    return l->grid[0] && l->grid[1] && l->grid[2] && l->grid[0] <= INT32_MAX &&
           l->grid[1] <= 65535 && l->grid[2] <= 65535 && threads &&
           threads <= f->kernel->most_threads && shared <= f->most_dynamic &&
           f->kernel->shared_byte + shared <= SHARED_MOST;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
                               size_t shared, cudaStream_t stream)
{
    const struct function *f = (const struct function *)kernel;
    uint8_t param[4096];
    lock();
    if (!f)
        return answer(cudaErrorInvalidDeviceFunction);
    const struct emu_kernel *k = f->kernel;
    struct emu_launch l = {.kernel = k,
                           .grid = {grid.x, grid.y, grid.z},
                           .block = {block.x, block.y, block.z},
                           .param = param,
                           .dynamic_byte = (uint32_t)shared};
    if (!may_launch(f, &l, shared) || k->param_byte > sizeof param) {
        emu_report(EMU_LAUNCH, "%s: grid %u, block %u, %zu bytes shared", k->name,
                   grid.x, block.x, shared);
        return answer(cudaErrorInvalidConfiguration);
    }
    for (uint32_t i = 0; i < k->n_param; i++)
        memcpy(param + k->param[i].off, args[i], k->param[i].size);
    struct emu_counts before = emu_count;
    if (!lost && !emu_run(&l))
        lost = cudaErrorLaunchFailure;
    emu_trace_launch(&l, &before);
    return answer(cudaSuccess);
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *a, const void *host)
{
    lock();
    const struct function *f = function_of(host);
    memset(a, 0, sizeof *a);
    if (!f)
        return answer(cudaErrorInvalidDeviceFunction);
    a->ptxVersion = a->binaryVersion = (int)arch;
    a->sharedSizeBytes = f->kernel->shared_byte;
    a->maxThreadsPerBlock = (int)f->kernel->most_threads;
    a->maxDynamicSharedSizeBytes = (int)f->most_dynamic;
    a->numRegs = 32;
    return answer(cudaSuccess);
}

cudaError_t cudaFuncSetAttribute(const void *host, enum cudaFuncAttribute a, int v)
{
    lock();
    struct function *f = function_of(host);
    if (!f)
        return answer(cudaErrorInvalidDeviceFunction);
    if (a != cudaFuncAttributeMaxDynamicSharedMemorySize || v < 0 ||
        (uint32_t)v + f->kernel->shared_byte > SHARED_MOST)
        return answer(cudaErrorInvalidValue);
    f->most_dynamic = (uint32_t)v;
    return answer(cudaSuccess);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *n, const void *host, int threads, size_t dynamic, unsigned flags)
{
    lock();
    const struct function *f = function_of(host);
    if (!f || threads < 1)
        return answer(cudaErrorInvalidDeviceFunction);
    size_t by_shared = SHARED_SM / (f->kernel->shared_byte + dynamic + 1024);
    size_t by_threads = THREADS_SM / (size_t)threads;
    *n = (int)(by_shared < by_threads ? by_shared : by_threads);
    return answer(cudaSuccess);
}

/* ---- devices and errors ---- */

cudaError_t cudaGetDeviceCount(int *n)
{
    lock();
    *n = 1;
    return answer(cudaSuccess);
}

cudaError_t cudaGetDevice(int *device)
{
    lock();
    *device = 0;
    return answer(cudaSuccess);
}

cudaError_t cudaSetDevice(int device)
{
    lock();
    return answer(device ? cudaErrorInvalidDevice : cudaSuccess);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
    lock();
    if (device)
        return answer(cudaErrorInvalidDevice);
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "emulated sm_%u", arch);
    return answer(cudaSuccess);
}

cudaError_t cudaDeviceGetAttribute(int *v, enum cudaDeviceAttr a, int device)
{
    const struct {
        enum cudaDeviceAttr a;
        int v;
    } KNOWN[] = {
        {cudaDevAttrMultiProcessorCount, (int)n_sm},
        {cudaDevAttrComputeCapabilityMajor, (int)arch / 10},
        {cudaDevAttrComputeCapabilityMinor, (int)arch % 10},
        {cudaDevAttrMaxGridDimX, INT32_MAX},
        {cudaDevAttrMaxSharedMemoryPerBlock, SHARED_STATIC},
        {cudaDevAttrMaxSharedMemoryPerBlockOptin, SHARED_MOST},
        {cudaDevAttrMaxSharedMemoryPerMultiprocessor, SHARED_SM},
        {cudaDevAttrWarpSize, EMU_LANES},
    };
    lock();
    for (size_t k = 0; k < sizeof KNOWN / sizeof *KNOWN; k++)
        if (KNOWN[k].a == a) {
            *v = KNOWN[k].v;
            return answer(cudaSuccess);
        }
    emu_stop("device attribute %d is not known", (int)a);
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t e = last_error;
    last_error = cudaSuccess;
    return e;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}

const char *cudaGetErrorString(cudaError_t e)
{
    return e == cudaSuccess                 ? "no error"
           : e == cudaErrorMemoryAllocation ? "out of memory"
           : e == cudaErrorLaunchFailure    ? "unspecified launch failure"
           : e == cudaErrorInvalidValue     ? "invalid argument"
                                            : "a CUDA error";
}

/* ---- memory ---- */

cudaError_t cudaMalloc(void **p, size_t n_byte)
{
    lock();
    *p = used_byte + n_byte > total_byte ? NULL : emu_alloc(n_byte);
    used_byte += *p ? n_byte : 0;
    return answer(*p ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaFree(void *p)
{
    lock();
    used_byte -= emu_size(p);
    return answer(!p || emu_free(p) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemGetInfo(size_t *free_byte, size_t *total)
{
    lock();
    *total = total_byte;
    *free_byte = total_byte - used_byte;
    return answer(cudaSuccess);
}

cudaError_t cudaHostAlloc(void **p, size_t n_byte, unsigned flags)
{
    lock();
    *p = malloc(n_byte);
    return answer(*p && emu_pin(*p, n_byte, false, false) ? cudaSuccess
                                                          : cudaErrorMemoryAllocation);
}

cudaError_t cudaFreeHost(void *p)
{
    lock();
    bool good = emu_unpin(p, false);
    if (good)
        free(p);
    return answer(good ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaHostRegister(void *p, size_t n_byte, unsigned flags)
{
    lock();
    return answer(emu_pin(p, n_byte, true, flags & cudaHostRegisterMapped)
                      ? cudaSuccess
                      : cudaErrorInvalidValue);
}

cudaError_t cudaHostGetDevicePointer(void **device, void *p, unsigned flags)
{
    lock();
    *device = p;
    return answer(emu_is_shown(p) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaHostUnregister(void *p)
{
    lock();
    return answer(emu_unpin(p, true) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *a, const void *p)
{
    lock();
    memset(a, 0, sizeof *a);
    a->type = emu_is_device(p)   ? cudaMemoryTypeDevice
              : emu_is_pinned(p) ? cudaMemoryTypeHost
                                 : cudaMemoryTypeUnregistered;
    return answer(cudaSuccess);
}

cudaError_t cudaMemsetAsync(void *p, int v, size_t n_byte, cudaStream_t stream)
{
    lock();
    if (!emu_host_write(p, n_byte, "cudaMemset"))
        return answer(cudaErrorInvalidValue);
    memset(p, v, n_byte);
    return answer(cudaSuccess);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n_byte,
                            enum cudaMemcpyKind kind, cudaStream_t stream)
{
    bool good = true;
    lock();
    switch (kind) {
    case cudaMemcpyHostToDevice:
        good = emu_host_write(to, n_byte, "copy to the device");
        emu_trace_copy(EMU_UP, n_byte, emu_is_pinned(from));
        break;
    case cudaMemcpyDeviceToHost:
        good = emu_host_read(from, n_byte, "copy from the device");
        emu_trace_copy(EMU_DOWN, n_byte, emu_is_pinned(to));
        break;
    default:
        good = emu_device_copy(to, from, n_byte);
        emu_trace_copy(EMU_WITHIN, n_byte, false);
    }
    if (good && n_byte)
        memmove(to, from, n_byte);
    return answer(good ? cudaSuccess : cudaErrorInvalidValue);
}

/* ---- streams and events: all is over at once ---- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags)
{
    lock();
    *s = malloc(1);
    return answer(*s ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    lock();
    free(s);
    return answer(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    lock();
    emu_trace_wait();
    return answer(cudaSuccess);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags)
{
    lock();
    return answer(cudaSuccess);
}

cudaError_t cudaEventCreate(cudaEvent_t *e)
{
    lock();
    *e = malloc(1);
    return answer(*e ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    lock();
    free(e);
    return answer(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    lock();
    return answer(cudaSuccess);
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    lock();
    emu_trace_wait();
    return answer(cudaSuccess);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    lock();
    *ms = 1;
    return answer(cudaSuccess);
}
