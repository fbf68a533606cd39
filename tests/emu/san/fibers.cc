/* fibers.cc - blocks of fibers for cuda_runtime.h, and kernels/device.h over ordinary
 * memory, as far as tests/kernels asks for it. No sanitizer instruments this file: they
 * learn of fibers what the calls below say. */
#include "cuda_runtime.h"

#include <cstdio>
#include <cstdlib>
#include <sanitizer/asan_interface.h>
#include <sanitizer/tsan_interface.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <utility>
#include <vector>

#include "kernels/device.h"

/* NULL where the program has another sanitizer. */
#pragma weak __tsan_acquire
#pragma weak __tsan_release
#pragma weak __tsan_get_current_fiber
#pragma weak __tsan_create_fiber
#pragma weak __tsan_switch_to_fiber
#pragma weak __asan_poison_memory_region
#pragma weak __asan_unpoison_memory_region

san_place threadIdx, blockIdx, blockDim, gridDim;
void *san_dynamic;

static const unsigned MOST = 1024, SITES = 16, GAP = 64;
static const size_t SHARED = 256 << 10, STACK = 64 << 10;

/* A thread of a block; number MOST is whoever launched it. */
struct fiber {
    void *jump[5];
    void *tsan;
    char *stack;
    bool begun;
};

/* A multiprocessor takes one block after another, so TSan sees races between blocks of
 * two, not of one; which of two has a block is drawn. TSan orders by addresses: of
 * meetings in __syncthreads, and of blocks' ends. A fiber is at most one meeting ahead
 * of another, so two of each are enough. */
static struct multiprocessor {
    fiber fibers[MOST + 1];
    uint64_t meeting[2], end[2];
    unsigned n_meeting, n_block;
    char *memory; /* SHARED bytes, then stacks */
} multiprocessors[2], *mp = multiprocessors;
static unsigned running = MOST;

/* Those that can go on, those that wait in __syncthreads, those that have not ended. A
 * fiber must not allocate: TSan would see what others do with the memory. */
static unsigned ready[MOST], n_ready, waiting[MOST], n_waiting, n_alive;

/* Lanes are at most one exchange apart, too. */
static struct warp {
    uint64_t value[2][32];
    unsigned here, n_exchange;
} warps[MOST / 32];

static size_t shared_byte;
static void *shared[SITES];

static void (*kernel_call)(const void *);
static const void *kernel;

static uint64_t draw(uint64_t n)
{
    static uint64_t state = getenv("SLU_EMU_SEED") ? atoll(getenv("SLU_EMU_SEED")) : 1;
    state = state * 6364136223846793005 + 1442695040888963407;
    return (state >> 33) % n;
}

/* ---- switching ---- */

static void acquire(uint64_t *p)
{
    if (__tsan_acquire)
        __tsan_acquire(p);
}

static void release(uint64_t *p)
{
    if (__tsan_release)
        __tsan_release(p);
}

/* Opens the barrier if all that have not ended wait there. */
static void open_barrier()
{
    if (n_waiting < n_alive)
        return;
    while (n_waiting)
        ready[n_ready++] = waiting[--n_waiting];
    mp->n_meeting++;
}

static void give_up(const char *why)
{
    fprintf(stderr, "block %u, thread %u: %s\n", blockIdx.x, threadIdx.x, why);
    abort();
}

static void others();
static void first_steps()
{
    acquire(&mp->end[mp->n_block % 2]);
    kernel_call(kernel);
    release(&mp->end[(mp->n_block + 1) % 2]);
    n_alive--;
    open_barrier();
    others();
}

[[noreturn, gnu::noinline]] static void go_to(fiber *to)
{
    ucontext_t c;
    if (to->begun)
        __builtin_longjmp(to->jump, 1);
    to->begun = true;
    getcontext(&c);
    c.uc_stack.ss_sp = to->stack;
    c.uc_stack.ss_size = STACK;
    c.uc_link = nullptr;
    makecontext(&c, first_steps, 0);
    setcontext(&c);
    abort();
}

/* One that can go on does; returns when this one is drawn. */
[[gnu::noinline]] static void others()
{
    fiber *me = &mp->fibers[running];
    if (!n_ready && n_alive)
        give_up("threads wait for one another, or for one that has ended");
    running = MOST;
    if (n_alive) {
        std::swap(ready[draw(n_ready)], ready[n_ready - 1]);
        running = ready[--n_ready];
    }
    fiber *to = &mp->fibers[running];
    threadIdx.x = running;
    if (to == me)
        return;
    if (__tsan_switch_to_fiber)
        __tsan_switch_to_fiber(to->tsan, __tsan_switch_to_fiber_no_sync);
    if (!__builtin_setjmp(me->jump))
        go_to(to);
}

/* ---- what threads do together ---- */

void __syncthreads()
{
    uint64_t *m = &mp->meeting[mp->n_meeting % 2];
    release(m);
    waiting[n_waiting++] = running;
    open_barrier();
    others();
    acquire(m);
}

const uint64_t *san_exchange(unsigned mask, uint64_t mine)
{
    const unsigned lane = running % 32, first = running - lane;
    warp *w = &warps[first / 32];
    uint64_t *value = w->value[w->n_exchange % 2];
    if (mask != 0xffffffff)
        give_up("a mask that is not full");
    value[lane] = mine;
    if (++w->here == 32) {
        w->here = 0;
        w->n_exchange++;
        for (unsigned l = 0; l < 32; l++)
            ready[n_ready++] = first + l;
    }
    others();
    return value;
}

/* ---- a block, and a launch ---- */

static void *shared_memory(size_t n_byte)
{
    char *p = mp->memory + shared_byte;
    shared_byte += (n_byte + 15) / 16 * 16 + GAP;
    if (shared_byte > SHARED)
        give_up("too much shared memory");
    if (__asan_unpoison_memory_region) {
        __asan_unpoison_memory_region(p, n_byte);
        memset(p, 0x5a, n_byte);
    }
    return p;
}

void *san_shared_at(unsigned site, size_t n_byte)
{
    if (!shared[site % SITES])
        shared[site % SITES] = shared_memory(n_byte);
    return shared[site % SITES];
}

static void run_block(size_t dynamic_byte)
{
    if (__asan_poison_memory_region)
        __asan_poison_memory_region(mp->memory, SHARED);
    shared_byte = 0;
    for (void *&v : shared)
        v = nullptr;
    san_dynamic = shared_memory(dynamic_byte);
    n_alive = n_ready = blockDim.x;
    for (unsigned t = 0; t < n_alive; t++) {
        fiber *f = &mp->fibers[t];
        f->stack = mp->memory + SHARED + t * STACK;
        f->begun = false;
        if (__tsan_create_fiber && !f->tsan)
            f->tsan = __tsan_create_fiber(0);
        ready[t] = t;
    }
    others();
    mp->n_block++;
}

void san_run(void (*call)(const void *), const void *k, unsigned grid, unsigned block,
             size_t dynamic_byte)
{
    std::vector<unsigned> order(grid);
    if (!grid || block % 32 || block > MOST)
        give_up("a launch of no blocks, or of parts of warps");
    kernel_call = call;
    kernel = k;
    blockDim.x = block;
    gridDim.x = grid;
    for (multiprocessor &m : multiprocessors) {
        if (!m.memory)
            m.memory =
                (char *)mmap(nullptr, SHARED + MOST * STACK, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (m.memory == MAP_FAILED)
            give_up("no memory");
        m.fibers[MOST].begun = true;
        if (__tsan_get_current_fiber)
            m.fibers[MOST].tsan = __tsan_get_current_fiber();
        release(&m.end[m.n_block % 2]);
    }
    for (unsigned b = 0; b < grid; b++)
        order[b] = b;
    for (unsigned left = grid; left; left--) {
        std::swap(order[draw(left)], order[left - 1]);
        blockIdx.x = order[left - 1];
        mp = &multiprocessors[left % 2];
        run_block(dynamic_byte);
    }
    for (multiprocessor &m : multiprocessors)
        acquire(&m.end[m.n_block % 2]);
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
