/* device_fake.c - a device for machines without one: kernels/device.h on host memory,
 * for programs that are linked with it instead of CUDA (tests/tests.mk), but for what
 * only bench-kernels calls. The fake tests the code around kernels, not kernels:
 * kernels_fake.c calls their oracles.
 *
 * The fake is as unforgiving as a device can be:
 *   - device memory can't be read or written through the pointers that programs have:
 *     each points to a mapping without access, of pages that the fake maps a second
 *     time; and kernels see locked memory of the host at another address
 *   - an operation on a stream is done when somebody waits for the stream, so a missing
 *     wait shows as old data
 *   - a copy or kernel that uses memory after its end, freed memory, or memory of the
 *     host ends the program (abort), and so does waiting for an event that was not
 *     recorded
 *   - each kernel overwrites its workspace with noise
 *
 * The environment tells which call fails:
 *   SLU_FAKE_FAIL=N       call N (from 1) fails, once ("out of memory")
 *   SLU_FAKE_FAIL=N:lost  all calls from N on fail ("the device is lost")
 *   SLU_FAKE_FAIL=N:late  call N succeeds, but its operation is not done, and the call
 *                         that waits for the stream fails ("the device is lost")
 *   SLU_FAKE_MEMORY=B     the device has B bytes
 *   SLU_FAKE_LOG=FILE     at exit, writes how many calls there were, their user time,
 *                         and how often each kernel ran
 * Calls that can't fail (freeing) are not counted.
 * One lock protects everything.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/device.h"
#include "tests/fake/device_fake.h"
#include "tests/fake/fake_private.h"

#define CODE_MEMORY    2
#define CODE_INVALID   1
#define CODE_NO_DEVICE 100
#define CODE_LOST      700
/* Added to the address of locked memory, where kernels see it. */
#define SHOWN ((uintptr_t)1 << 62)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long user_us; /* of all calls */

static void enter(void)
{
    pthread_mutex_lock(&lock);
    user_us -= fake_user_us();
}

static int leave(int code)
{
    user_us += fake_user_us();
    pthread_mutex_unlock(&lock);
    return code;
}

#define misuse(...)                                                                    \
    (fprintf(stderr, "fake device: MISUSE: "), fprintf(stderr, __VA_ARGS__),           \
     fprintf(stderr, "\n"), abort())

void *fake_must(void *p)
{
    if (!p || p == MAP_FAILED) {
        perror("fake device");
        abort();
    }
    return p;
}

/* ---- what fails ---- */

static struct {
    bool read;
    long fail_at; /* 0: none */
    enum slu_fake_mode mode;
    size_t memory_byte;
    const char *log;
    long calls;
    bool lost, ahead;
} fake;

static void write_log(void)
{
    FILE *f = fopen(fake.log, "w");
    if (!f)
        return;
    fprintf(f, "calls %ld\nuser_us %ld\n", fake.calls, user_us);
    fake_log_runs(f);
    fclose(f);
}

static void read_environment(void)
{
    const char *s = getenv("SLU_FAKE_FAIL"), *memory = getenv("SLU_FAKE_MEMORY");
    char *end;
    fake.read = true;
    fake.memory_byte = memory ? strtoull(memory, NULL, 10) : SIZE_MAX;
    if (s) {
        fake.fail_at = strtol(s, &end, 10);
        fake.mode = !strcmp(end, ":lost")   ? SLU_FAKE_LOST
                    : !strcmp(end, ":late") ? SLU_FAKE_LATE
                                            : SLU_FAKE_ONCE;
    }
    fake.log = getenv("SLU_FAKE_LOG");
    if (fake.log)
        atexit(write_log);
}

/* Counts a call. queued: it puts something on a stream, where it can fail later; *late
 * is set where it shall. */
static int call(bool queued, bool *late)
{
    if (late)
        *late = false;
    if (!fake.read)
        read_environment();
    if (fake.lost)
        return CODE_LOST;
    if (++fake.calls != fake.fail_at)
        return 0;
    if (fake.mode == SLU_FAKE_LATE && queued) {
        *late = true;
        return 0;
    }
    fake.lost = fake.mode != SLU_FAKE_ONCE;
    return fake.lost ? CODE_LOST : CODE_MEMORY;
}

/* Enters, and counts a call. */
static int begin(void)
{
    enter();
    return call(false, NULL);
}

/* ---- memory ---- */

struct block {
    struct block *next;
    char *shown; /* what the program has; no access */
    char *real;
    size_t n_byte, mapped;
    bool lent; /* the program's own memory, page-locked */
};

static struct block *device_block, *host_block;
static size_t used_byte, n_event;

static struct block *block_of(struct block *b, const void *p)
{
    for (; b; b = b->next)
        if ((const char *)p >= b->shown && (const char *)p < b->shown + b->n_byte)
            return b;
    return NULL;
}

void *fake_real(const void *p, size_t n_byte, const char *what)
{
    struct block *b = block_of(device_block, p);
    if (n_byte == 0)
        return NULL;
    if (!b && (uintptr_t)p > SHOWN) {
        p = (const void *)((uintptr_t)p - SHOWN);
        b = block_of(host_block, p);
    }
    if (!b)
        misuse("%s: %p is no memory of the device", what, p);
    size_t at = (size_t)((const char *)p - b->shown);
    if (n_byte > b->n_byte - at)
        misuse("%s: %zu bytes from byte %zu of %zu", what, n_byte, at, b->n_byte);
    return b->real + at;
}

static void add_host(void *p, size_t n_byte, bool lent)
{
    struct block *b = fake_must(calloc(1, sizeof *b));
    *b = (struct block){host_block, p, p, n_byte, 0, lent};
    host_block = b;
}

static void drop_block(struct block **list, void *p, const char *what)
{
    for (struct block **at = list; *at; at = &(*at)->next) {
        struct block *b = *at;
        if (b->shown != p)
            continue;
        *at = b->next;
        if (b->real != b->shown) {
            munmap(b->real, b->mapped);
            munmap(b->shown, b->mapped);
            used_byte -= b->n_byte;
        } else if (!b->lent) {
            free(b->real);
        }
        free(b);
        return;
    }
    misuse("%s: %p was not allocated, or is freed twice", what, p);
}

/* ---- streams ---- */

struct stream {
    struct stream *next;
    struct op *first, **last;
    uint64_t put, done; /* ops so far */
};

struct event {
    struct stream *stream; /* NULL: never recorded */
    uint64_t number;
};

static struct stream null_stream, *streams;

static struct stream *stream_of(void *p)
{
    struct stream *s = p ? p : &null_stream;
    if (!s->last)
        s->last = &s->first;
    for (struct stream *t = streams; p && t != p; t = t->next)
        if (!t)
            misuse("%p is no stream", p);
    return s;
}

static void push(void *stream, struct op op)
{
    struct stream *s = stream_of(stream);
    struct op *o = fake_must(malloc(sizeof *o));
    *o = op;
    o->next = NULL;
    o->number = ++s->put;
    *s->last = o;
    s->last = &o->next;
}

/* Does what is on the stream, up to op `number`. */
static void run_to(struct stream *s, uint64_t number)
{
    while (s->first && s->first->number <= number) {
        struct op *o = s->first;
        s->first = o->next;
        if (!s->first)
            s->last = &s->first;
        s->done = o->number;
        if (o->late)
            fake.lost = true;
        if (o->work_byte)
            memset(fake_real(o->work, o->work_byte, "workspace"), 0xdb, o->work_byte);
        if (!fake.lost)
            o->run(o);
        free(o->owned);
        free(o);
    }
}

static void run_all(void)
{
    run_to(stream_of(NULL), UINT64_MAX);
    for (struct stream *s = streams; s; s = s->next)
        run_to(s, UINT64_MAX);
}

static void run_wait(struct op *o)
{
    run_to(o->wait.stream, o->wait.number);
}

static void run_transfer(struct op *o)
{
    size_t n = o->transfer.n_byte;
    const void *from = o->owned ? o->owned : o->transfer.from;
    if (n && o->transfer.way == ZERO)
        memset(fake_real(o->transfer.to, n, "zero"), 0, n);
    else if (n && o->transfer.way == PUT)
        memcpy(fake_real(o->transfer.to, n, "put"), from, n);
    else if (n)
        memcpy(o->transfer.to, fake_real(from, n, "get"), n);
}

int fake_queue(struct op o, void *work, size_t work_byte, size_t want_byte,
               void *stream)
{
    enter();
    int code = call(true, &o.late);
    o.work = work;
    o.work_byte = want_byte;
    if (!code && work_byte < want_byte)
        code = CODE_INVALID;
    if (!code)
        push(stream, o);
    return leave(code);
}

/* ---- for tests ---- */

void slu_fake_set(long fail_at, enum slu_fake_mode mode, size_t memory_byte)
{
    memset(&fake, 0, sizeof fake);
    fake.read = true;
    fake.fail_at = fail_at;
    fake.mode = mode;
    fake.memory_byte = memory_byte;
}

void slu_fake_ahead(bool ahead)
{
    fake.ahead = ahead;
}

long slu_fake_calls(void)
{
    return fake.calls;
}

size_t slu_fake_held(void)
{
    size_t n = n_event;
    for (const struct block *b = device_block; b; b = b->next)
        n++;
    for (const struct block *b = host_block; b; b = b->next)
        n++;
    for (const struct stream *s = streams; s; s = s->next)
        n++;
    return n;
}

/* ---- device.h ---- */

int slu_device_count(int *n)
{
    int code = begin();
    *n = !code;
    return leave(code);
}

int slu_device_name(int ordinal, char *name, size_t name_cap)
{
    int code = begin();
    code = ordinal ? CODE_NO_DEVICE : code;
    snprintf(name, name_cap, "%s", code ? "" : "fake");
    return leave(code);
}

int slu_device_select(int ordinal)
{
    int code = begin();
    return leave(ordinal ? CODE_NO_DEVICE : code);
}

const char *slu_device_error(int code)
{
    return code == 0                ? "no error"
           : code == CODE_MEMORY    ? "out of memory"
           : code == CODE_NO_DEVICE ? "no CUDA device"
           : code == CODE_LOST      ? "the device is lost"
                                    : "invalid argument";
}

int slu_device_alloc(void **p, size_t n_byte)
{
    int code = begin();
    *p = NULL;
    if (!code && n_byte > fake.memory_byte - used_byte)
        code = CODE_MEMORY;
    if (!code) {
        struct block *b = fake_must(calloc(1, sizeof *b));
        b->n_byte = n_byte ? n_byte : 1;
        b->mapped = (b->n_byte + 4095) / 4096 * 4096;
        int fd = memfd_create("fake device", 0);
        if (fd < 0 || ftruncate(fd, (off_t)b->mapped))
            fake_must(NULL);
        b->real =
            fake_must(mmap(NULL, b->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
        b->shown = fake_must(mmap(NULL, b->mapped, PROT_NONE, MAP_SHARED, fd, 0));
        close(fd);
        memset(b->real, 0xdb, b->n_byte);
        used_byte += b->n_byte;
        b->next = device_block;
        device_block = b;
        *p = b->shown;
    }
    return leave(code);
}

static void release(struct block **list, void *p, const char *what)
{
    enter();
    run_all();
    if (p)
        drop_block(list, p, what);
    (void)leave(0);
}

void slu_device_free(void *p)
{
    release(&device_block, p, "free");
}

int slu_device_memory(size_t *free_byte, size_t *total_byte)
{
    int code = begin();
    *total_byte = code ? 0 : fake.memory_byte;
    *free_byte = code ? 0 : fake.memory_byte - used_byte;
    return leave(code);
}

int slu_device_host_alloc(void **p, size_t n_byte)
{
    int code = begin();
    *p = NULL;
    if (!code) {
        *p = fake_must(malloc(n_byte + 1));
        memset(*p, 0xdb, n_byte + 1);
        add_host(*p, n_byte + 1, false);
    }
    return leave(code);
}

void slu_device_host_free(void *p)
{
    release(&host_block, p, "free of host memory");
}

int slu_device_host_lock(void *p, size_t n_byte)
{
    int code = begin();
    if (!code && (!n_byte || block_of(host_block, p)))
        misuse("lock: %zu bytes at %p", n_byte, p);
    if (!code)
        add_host(p, n_byte, true);
    return leave(code);
}

int slu_device_host_shown(const void **shown, void *p)
{
    int code = begin();
    const struct block *b = block_of(host_block, p);
    if (!code && (!b || !b->lent || b->shown != p))
        misuse("shown: %p is not locked", p);
    *shown = code ? NULL : (const void *)((uintptr_t)p + SHOWN);
    return leave(code);
}

void slu_device_host_unlock(void *p)
{
    slu_device_host_free(p);
}

/* Checked now, done later. */
static int queue_transfer(void *to, const void *from, size_t n_byte, int way,
                          void *stream)
{
    struct op o = {.run = run_transfer, .transfer = {to, from, n_byte, way}};
    enter();
    int code = call(true, &o.late);
    if (!code) {
        if (way != GET)
            (void)fake_real(to, n_byte, "copy to");
        if (way == GET)
            (void)fake_real(from, n_byte, "copy from");
        if (way == GET && block_of(device_block, to))
            misuse("get: to memory of the device");
        if (way == PUT && block_of(device_block, from))
            misuse("put: from memory of the device");
        if (way == PUT && n_byte && !block_of(host_block, from)) {
            o.owned = fake_must(malloc(n_byte));
            memcpy(o.owned, from, n_byte);
        }
        push(stream, o);
    }
    return leave(code);
}

int slu_device_zero(void *p, size_t n_byte, void *stream)
{
    return queue_transfer(p, NULL, n_byte, ZERO, stream);
}

int slu_device_put(void *device, const void *host, size_t n_byte, void *stream)
{
    return queue_transfer(device, host, n_byte, PUT, stream);
}

int slu_device_get_async(void *host, const void *device, size_t n_byte, void *stream)
{
    if (n_byte && !block_of(host_block, host))
        misuse("get_async: to memory that is not page-locked");
    return queue_transfer(host, device, n_byte, GET, stream);
}

int slu_device_get(void *host, const void *device, size_t n_byte, void *stream)
{
    int code = queue_transfer(host, device, n_byte, GET, stream);
    return code ? code : slu_device_sync(stream);
}

int slu_device_stream_new(void **stream)
{
    int code = begin();
    *stream = NULL;
    if (!code) {
        struct stream *s = fake_must(calloc(1, sizeof *s));
        s->last = &s->first;
        s->next = streams;
        streams = s;
        *stream = s;
    }
    return leave(code);
}

void slu_device_stream_free(void *stream)
{
    enter();
    if (stream) {
        struct stream **at = &streams, *s = stream_of(stream);
        run_to(s, UINT64_MAX);
        while (*at != s)
            at = &(*at)->next;
        *at = s->next;
        free(s);
    }
    (void)leave(0);
}

int slu_device_sync(void *stream)
{
    int code = begin();
    if (!code)
        run_to(stream_of(stream), UINT64_MAX);
    if (fake.lost)
        code = CODE_LOST;
    return leave(code);
}

int slu_device_event_new(void **event)
{
    int code = begin();
    *event = code ? NULL : fake_must(calloc(1, sizeof(struct event)));
    n_event += code == 0;
    return leave(code);
}

void slu_device_event_free(void *event)
{
    enter();
    n_event -= event != NULL;
    free(event);
    (void)leave(0);
}

int slu_device_event_record(void *event, void *stream)
{
    int code = begin();
    if (!code) {
        struct stream *s = stream_of(stream);
        *(struct event *)event = (struct event){s, s->put};
    }
    return leave(code);
}

int slu_device_event_order(void *event, void *stream)
{
    const struct event *e = event;
    struct op o = {.run = run_wait, .wait = {e->stream, e->number}};
    enter();
    if (!e->stream)
        misuse("order: the event was not recorded");
    int code = call(true, &o.late);
    if (!code)
        push(stream, o);
    return leave(code);
}

int slu_device_event_wait(void *event)
{
    const struct event *e = event;
    int code = begin();
    if (!e->stream)
        misuse("wait: the event was not recorded");
    for (struct stream *s = streams; s && fake.ahead && !code; s = s->next)
        if (s != e->stream)
            run_to(s, UINT64_MAX);
    if (!code)
        run_to(e->stream, e->number);
    if (fake.lost)
        code = CODE_LOST;
    return leave(code);
}
