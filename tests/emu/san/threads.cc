/* threads.cc - blocks of threads for cuda_runtime.h, and kernels/device.h over ordinary
 * memory, as far as tests/kernels asks for it. */
#include "cuda_runtime.h"

#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <thread>

#include "kernels/device.h"

thread_local san_place threadIdx, blockIdx;
san_place blockDim, gridDim;
void *san_dynamic;

/* A barrier of threads that have not ended. */
class barrier
{
    std::mutex lock;
    unsigned n = 0, here = 0;
    std::atomic<unsigned> round{0};

    void open_if_all()
    {
        if (here == n) {
            here = 0;
            round++;
            round.notify_all();
        }
    }

  public:
    void reset(unsigned n_thread)
    {
        n = n_thread;
    }
    void wait()
    {
        lock.lock();
        const unsigned now = round;
        here++;
        open_if_all();
        lock.unlock();
        while (round == now)
            round.wait(now);
    }
    void end()
    {
        std::lock_guard<std::mutex> held(lock);
        n--;
        if (n)
            open_if_all();
    }
};

struct warp {
    barrier meet;
    uint64_t value[32];
};

static barrier block_barrier, launch_barrier;
static warp *warps;

static void reset_block(unsigned n_thread)
{
    block_barrier.reset(n_thread);
    for (unsigned w = 0; w < n_thread / 32; w++)
        warps[w].meet.reset(32);
}

void san_launch(const std::function<void()> &kernel, unsigned grid, unsigned block,
                size_t dynamic_byte, cudaStream_t)
{
    if (!grid || block % 32)
        abort();
    std::vector<std::thread> thread;
    const std::unique_ptr<warp[]> mine(new warp[block / 32]);
    const std::unique_ptr<char[]> dynamic(new char[dynamic_byte]);
    warps = mine.get();
    san_dynamic = dynamic.get();
    blockDim.x = block;
    gridDim.x = grid;
    launch_barrier.reset(block);
    reset_block(block);
    for (unsigned t = 0; t < block; t++)
        thread.emplace_back([=, &kernel] {
            threadIdx.x = t;
            for (unsigned b = 0; b < grid; b++) {
                blockIdx.x = b;
                kernel();
                warps[t / 32].meet.end();
                block_barrier.end();
                launch_barrier.wait();
                if (t == 0)
                    reset_block(block);
                launch_barrier.wait();
            }
        });
    for (std::thread &t : thread)
        t.join();
}

void __syncthreads()
{
    block_barrier.wait();
}

san_values san_exchange(unsigned mask, uint64_t mine)
{
    warp *w = &warps[threadIdx.x / 32];
    san_values v;
    if (mask != 0xffffffff)
        abort();
    w->value[threadIdx.x % 32] = mine;
    w->meet.wait();
    memcpy(v.lane, w->value, sizeof v.lane);
    w->meet.wait();
    return v;
}

/* ---- kernels/device.h ---- */

int slu_device_count(int *n)
{
    *n = 1;
    return 0;
}

int slu_device_name(int, char *name, size_t name_cap)
{
    snprintf(name, name_cap, "threads");
    return 0;
}

int slu_device_select(int)
{
    return 0;
}

const char *slu_device_error(int code)
{
    return code ? "invalid argument" : "no error";
}

int slu_device_alloc(void **p, size_t n_byte)
{
    *p = malloc(n_byte ? n_byte : 1);
    return *p ? 0 : cudaErrorUnknown;
}

void slu_device_free(void *p)
{
    free(p);
}

int slu_device_zero(void *p, size_t n_byte, void *)
{
    memset(p, 0, n_byte);
    return 0;
}

int slu_device_put(void *device, const void *host, size_t n_byte, void *)
{
    memcpy(device, host, n_byte);
    return 0;
}

int slu_device_get(void *host, const void *device, size_t n_byte, void *)
{
    if (n_byte)
        memcpy(host, device, n_byte);
    return 0;
}
