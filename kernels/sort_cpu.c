/* sort_cpu.c - a stable counting sort: by one digit, the whole length, if lengths have
 * few values; by two digits, the low one first, if they have many. The cost is writing
 * to thousands of positions in turn. So each position has a cache line in which items
 * are collected until the line can be written as a whole, bypassing the caches. (The
 * idea: Satish et al., "Fast sort on CPUs and GPUs", SIGMOD 2010.) */
#include "sort.h"

#include <stdbool.h>
#include <string.h>

#include "parallel.h"
#if defined __SSE2__
#include <emmintrin.h>
#endif

/* Number of values of a single digit. The lines of 2^15 values fit a second-level
 * cache. With 2^17 values, two passes are no faster even if all values are equally
 * frequent, and half as fast if most items are short, as in text
 * (tests/bench/NOTES.md). */
#define ONE_DIGIT   131073
#define LINE        16    /* items of 4 bytes in a cache line */
#define FEW         1024  /* up to this number, items are sorted by merging */
#define LEAST_SHARE 65536 /* items for which a thread is worth starting */

/* The tables of one thread; a digit has n_bin values. */
struct tables {
    uint32_t (*line)[LINE]; /* one for each digit */
    uint32_t *begin;        /* for each digit: the position of this thread's items;
                               first their count */
    uint32_t *count2;       /* counts every other item, because equal items in a row
                               would wait */
};

struct sort {
    const uint32_t *len;
    size_t n;
    uint32_t *order;
    uint64_t *pair; /* between two passes: high digit << 32 | item */
    unsigned low_bits, n_threads;
    uint32_t n_bin;
    unsigned shift; /* items from the beginning of a line to the beginning of `order`
                       or pair */
    char *tables;
    size_t tables_byte; /* of one thread */
    enum { FROM_LEN, LOW_DIGIT, HIGH_DIGIT } pass;
};

static unsigned bits_of(uint32_t longest)
{
    return longest ? 32 - (unsigned)__builtin_clz(longest) : 1;
}

/* Number of values of a digit; *low_bits: bits of the low digit (0: there is only one
 * digit). */
static uint32_t digits(size_t n, uint32_t longest, unsigned *low_bits)
{
    unsigned bits = bits_of(longest);
    /* Otherwise the tables would cost most. */
    bool one = longest < ONE_DIGIT && longest / 4 < n;
    *low_bits = one ? 0 : bits / 2;
    return one ? longest + 1 : UINT32_C(1) << (bits - bits / 2);
}

static size_t aligned(size_t n_byte)
{
    return (n_byte + 63) & ~(size_t)63;
}

static size_t tables_size(uint32_t n_bin)
{
    return n_bin * (size_t)64 + 2 * aligned(n_bin * sizeof(uint32_t));
}

static struct tables tables_of(const struct sort *s, unsigned thread)
{
    char *at = s->tables + thread * s->tables_byte;
    struct tables t;
    t.line = (void *)at;
    at += s->n_bin * (size_t)64;
    t.begin = (void *)at;
    t.count2 = (void *)(at + aligned(s->n_bin * sizeof(uint32_t)));
    return t;
}

/* ---- counting ---- */

static inline uint32_t digit(const struct sort *s, size_t i)
{
    switch (s->pass) {
    case FROM_LEN:
        return s->len[i];
    case LOW_DIGIT:
        return s->len[i] & ((UINT32_C(1) << s->low_bits) - 1);
    default:
        return (uint32_t)(s->pair[i] >> 32);
    }
}

static inline void count_range(const struct sort *s, size_t from, size_t to,
                               struct tables t)
{
    size_t i = from;
    for (; i + 1 < to; i += 2) {
        t.begin[digit(s, i)]++;
        t.count2[digit(s, i + 1)]++;
    }
    if (i < to)
        t.begin[digit(s, i)]++;
    for (uint32_t v = 0; v < s->n_bin; v++)
        t.begin[v] += t.count2[v];
}

static void count_part(void *arg, unsigned thread)
{
    /* A copy, so that the compiler may keep it in registers. */
    struct sort s = *(struct sort *)arg;
    struct tables t = tables_of(&s, thread);
    size_t from = slu_kernel_share(s.n, thread, s.n_threads);
    size_t to = slu_kernel_share(s.n, thread + 1, s.n_threads);
    memset(t.begin, 0, s.n_bin * sizeof *t.begin);
    memset(t.count2, 0, s.n_bin * sizeof *t.count2);
    switch (s.pass) { /* in each loop, the kind of digit is a constant */
    case FROM_LEN:
        s.pass = FROM_LEN;
        count_range(&s, from, to, t);
        break;
    case LOW_DIGIT:
        s.pass = LOW_DIGIT;
        count_range(&s, from, to, t);
        break;
    default:
        s.pass = HIGH_DIGIT;
        count_range(&s, from, to, t);
    }
}

/* Converts counts to positions: the highest digit first; for each digit, thread after
 * thread. */
static void places(struct sort *s)
{
    uint32_t before = s->shift;
    for (uint32_t v = s->n_bin; v-- > 0;)
        for (unsigned k = 0; k < s->n_threads; k++) {
            struct tables t = tables_of(s, k);
            uint32_t here = t.begin[v];
            t.begin[v] = before;
            before += here;
        }
}

/* ---- writing ---- */

/* Writes a whole line, which is not read again soon. */
static inline void put_line(void *to, const void *line)
{
#if defined __SSE2__
    __m128i *d = to;
    const __m128i *l = line;
    _mm_stream_si128(d, l[0]);
    _mm_stream_si128(d + 1, l[1]);
    _mm_stream_si128(d + 2, l[2]);
    _mm_stream_si128(d + 3, l[3]);
#else
    memcpy(to, line, 64);
#endif
}

static inline void fence(void)
{
#if defined __SSE2__
    _mm_sfence();
#endif
}

/* For items of 4 bytes. The last word of an incomplete line holds the position of its
 * next item, so that an item costs one line and no other table. Positions and out count
 * from the boundary of lines at or before `order`. */
static inline void scatter32(const struct sort *s, size_t from, size_t to,
                             struct tables t)
{
    uint32_t *out = s->order - s->shift;
    for (uint32_t v = 0; v < s->n_bin; v++)
        t.line[v][LINE - 1] = t.begin[v];
    for (size_t i = from; i < to; i++) {
        uint32_t v = digit(s, i), *line = t.line[v], pos = line[LINE - 1];
        line[pos % LINE] = s->pass == HIGH_DIGIT ? (uint32_t)s->pair[i] : (uint32_t)i;
        if (pos % LINE == LINE - 1) {
            uint32_t first = pos - (LINE - 1), begin = t.begin[v];
            if (begin <= first)
                put_line(out + first, line);
            else /* the items before belong to another thread */
                memcpy(out + begin, line + begin % LINE, (pos + 1 - begin) * 4);
        }
        line[LINE - 1] = pos + 1;
    }
    for (uint32_t v = 0; v < s->n_bin; v++) {
        uint32_t pos = t.line[v][LINE - 1], first = pos / LINE * LINE;
        if (first < t.begin[v])
            first = t.begin[v];
        memcpy(out + first, t.line[v] + first % LINE, (pos - first) * 4);
    }
    fence();
}

/* As scatter32, for pairs of 8 bytes: 8 in a line, and the position takes half of the
 * last. */
static inline void scatter64(const struct sort *s, size_t from, size_t to,
                             struct tables t)
{
    enum { PAIRS = LINE / 2 };
    uint64_t *out = s->pair - s->shift;
    for (uint32_t v = 0; v < s->n_bin; v++)
        t.line[v][LINE - 1] = t.begin[v];
    for (size_t i = from; i < to; i++) {
        uint32_t v = digit(s, i), *line = t.line[v], pos = line[LINE - 1];
        uint64_t pair = (uint64_t)(s->len[i] >> s->low_bits) << 32 | i;
        memcpy(line + 2 * (pos % PAIRS), &pair, sizeof pair);
        if (pos % PAIRS == PAIRS - 1) {
            uint32_t first = pos - (PAIRS - 1), begin = t.begin[v];
            if (begin <= first)
                put_line(out + first, line);
            else
                memcpy(out + begin, line + 2 * (begin % PAIRS), (pos + 1 - begin) * 8);
        }
        line[LINE - 1] = pos + 1;
    }
    for (uint32_t v = 0; v < s->n_bin; v++) {
        uint32_t pos = t.line[v][LINE - 1], first = pos / PAIRS * PAIRS;
        if (first < t.begin[v])
            first = t.begin[v];
        memcpy(out + first, t.line[v] + 2 * (first % PAIRS), (pos - first) * 8);
    }
    fence();
}

static void scatter_part(void *arg, unsigned thread)
{
    struct sort s = *(struct sort *)arg;
    struct tables t = tables_of(&s, thread);
    size_t from = slu_kernel_share(s.n, thread, s.n_threads);
    size_t to = slu_kernel_share(s.n, thread + 1, s.n_threads);
    switch (s.pass) {
    case FROM_LEN:
        s.pass = FROM_LEN;
        scatter32(&s, from, to, t);
        break;
    case LOW_DIGIT:
        s.pass = LOW_DIGIT;
        scatter64(&s, from, to, t);
        break;
    default:
        s.pass = HIGH_DIGIT;
        scatter32(&s, from, to, t);
    }
}

static void pass(struct sort *s, int which)
{
    s->pass = which;
    s->shift = which == LOW_DIGIT ? 0 : (uintptr_t)s->order % 64 / sizeof *s->order;
    slu_kernel_parallel(s->n_threads, count_part, s);
    places(s);
    slu_kernel_parallel(s->n_threads, scatter_part, s);
}

/* ---- few items ---- */

/* Merges neighbours until one run is left; `spare` has as much room. */
static void merge_sort(const uint32_t *len, size_t n, uint32_t *order, uint32_t *spare)
{
    uint32_t *a = order, *b = spare;
    for (size_t i = 0; i < n; i++)
        a[i] = (uint32_t)i;
    for (size_t w = 1; w < n; w *= 2) {
        for (size_t at = 0; at < n; at += 2 * w) {
            size_t mid = at + w < n ? at + w : n, end = mid + w < n ? mid + w : n;
            size_t x = at, y = mid;
            for (size_t k = at; k < end; k++)
                b[k] =
                    x < mid && (y == end || len[a[x]] >= len[a[y]]) ? a[x++] : a[y++];
        }
        uint32_t *t = a;
        a = b;
        b = t;
    }
    if (a != order && n)
        memcpy(order, a, n * sizeof *order);
}

/* ---- the whole sort ---- */

static unsigned threads_of(size_t n, unsigned n_threads)
{
    size_t most = n / LEAST_SHARE + 1;
    return n_threads < 1 ? 1 : n_threads < most ? n_threads : (unsigned)most;
}

size_t slu_sort_lengths_cpu_work(size_t n, uint32_t longest, unsigned n_threads)
{
    unsigned low_bits;
    uint32_t n_bin = digits(n, longest, &low_bits);
    size_t n_byte = 64 + threads_of(n, n_threads) * tables_size(n_bin);
    if (n <= FEW)
        return FEW * sizeof(uint32_t);
    return n_byte + (low_bits ? n * sizeof(uint64_t) : 0);
}

void slu_sort_lengths_cpu(const uint32_t *len, size_t n, uint32_t longest,
                          uint32_t *order, void *work, unsigned n_threads)
{
    if (n > UINT32_MAX - LINE) { /* positions would not fit their words */
        slu_sort_lengths_ref(len, n, longest, order, work);
        return;
    }
    if (n <= FEW) {
        merge_sort(len, n, order, work);
        return;
    }
    struct sort s = {.len = len,
                     .n = n,
                     .order = order,
                     .n_threads = threads_of(n, n_threads),
                     .tables = (char *)work + (64 - (uintptr_t)work % 64) % 64};
    s.n_bin = digits(n, longest, &s.low_bits);
    s.tables_byte = tables_size(s.n_bin);
    if (!s.low_bits) {
        pass(&s, FROM_LEN);
        return;
    }
    s.pair = (void *)(s.tables + s.n_threads * s.tables_byte);
    pass(&s, LOW_DIGIT);
    pass(&s, HIGH_DIGIT);
}
