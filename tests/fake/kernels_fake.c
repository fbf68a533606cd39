/* kernels_fake.c - every slu_*_cuda on the fake device: its oracle, when somebody waits
 * for the stream. A kernel that uses bytes outside its arrays ends the program.
 */
#include <stdint.h>
#include <stdlib.h>

#include "kernels/copy.h"
#include "kernels/hash.h"
#include "kernels/histogram.h"
#include "kernels/place.h"
#include "kernels/scan.h"
#include "kernels/sort.h"
#include "tests/fake/fake_private.h"

static struct {
    long histogram, scan, sort, place, copy, hash;
} fake_runs;

void fake_log_runs(FILE *f)
{
    fprintf(f, "histogram %ld\nscan %ld\nsort %ld\nplace %ld\ncopy %ld\nhash %ld\n",
            fake_runs.histogram, fake_runs.scan, fake_runs.sort, fake_runs.place,
            fake_runs.copy, fake_runs.hash);
}

static void run_histogram(struct op *o)
{
    size_t n = o->histogram.n, n_bin = o->histogram.n_bin;
    fake_runs.histogram++;
    slu_histogram_ref(fake_real(o->histogram.len, n * 4, "histogram: len"), n,
                      fake_real(o->histogram.count, n_bin * 8, "histogram: count"),
                      n_bin);
}

int slu_histogram_cuda(const uint32_t *len, size_t n, uint64_t *count, size_t n_bin,
                       void *stream)
{
    struct op o = {.run = run_histogram, .histogram = {len, n, count, n_bin}};
    return fake_queue(o, NULL, 0, 0, stream);
}

size_t slu_sort_lengths_cuda_work(size_t n, uint32_t longest)
{
    (void)longest;
    return n ? 12 * n + 256 : 0;
}

static void run_sort(struct op *o)
{
    size_t n = o->sort.n;
    void *work = fake_must(malloc(slu_sort_lengths_ref_work(n, o->sort.longest)));
    uint32_t *order = fake_real(o->sort.order, n * 4, "sort: order");
    fake_runs.sort++;
    slu_sort_lengths_ref(fake_real(o->sort.len, n * 4, "sort: len"), n, o->sort.longest,
                         order, work);
    for (size_t i = 0; i < n; i++)
        order[i] += o->sort.first;
    free(work);
}

int slu_sort_lengths_cuda(const uint32_t *len, size_t n, uint32_t longest,
                          uint32_t first, uint32_t *order, void *work, size_t work_byte,
                          void *stream)
{
    struct op o = {.run = run_sort, .sort = {len, n, longest, first, order}};
    return fake_queue(o, work, work_byte, slu_sort_lengths_cuda_work(n, longest),
                      stream);
}

static void run_place(struct op *o)
{
    struct slu_place p = o->place.p;
    uint32_t *run_item = fake_real(o->place.run_item, p.n * 4, "place: run_item");
    uint64_t *run_dst = fake_real(o->place.run_dst, p.n * 8, "place: run_dst");
    fake_runs.place++;
    p.order = fake_real(p.order, p.n * 4, "place: order");
    p.step = fake_real(p.step, p.n_step * sizeof *p.step, "place: step");
    p.interval =
        fake_real(p.interval, p.n_interval * sizeof *p.interval, "place: interval");
    slu_place_ref(&p, run_item, run_dst);
}

int slu_place_cuda(const struct slu_place *p, uint32_t *run_item, uint64_t *run_dst,
                   void *stream)
{
    struct op o = {.run = run_place, .place = {*p, run_item, run_dst}};
    if (p->n == 0)
        return 0;
    return fake_queue(o, NULL, 0, 0, stream);
}

static void run_copy(struct op *o)
{
    struct slu_copy c = o->copy.c;
    uint64_t most = 0; /* ids of the pool that are used */
    size_t n_item = 0;
    void *out = fake_real(o->copy.out, o->copy.n_tok * c.tok_bytes, "copy: out");
    fake_runs.copy++;
    c.run_item = fake_real(c.run_item, c.n_run * 4, "copy: run_item");
    c.run_dst = fake_real(c.run_dst, c.n_run * 8, "copy: run_dst");
    for (size_t r = 0; r < c.n_run; r++)
        n_item = c.run_item[r] >= n_item ? (size_t)c.run_item[r] + 1 : n_item;
    c.src = fake_real(c.src, n_item * 8, "copy: src");
    c.len = fake_real(c.len, n_item * 4, "copy: len");
    for (size_t i = 0; i < n_item; i++)
        most = c.src[i] + c.len[i] > most ? c.src[i] + c.len[i] : most;
    c.pool = fake_real(c.pool, (most * c.tok_bytes + 15) / 16 * 16, "copy: pool");
    slu_copy_ref(&c, o->copy.first_tok, o->copy.n_tok, out);
}

int slu_copy_cuda(const struct slu_copy *c, uint64_t first_tok, size_t n_tok, void *out,
                  void *stream)
{
    struct op o = {.run = run_copy, .copy = {*c, first_tok, n_tok, out}};
    if (n_tok == 0)
        return 0;
    return fake_queue(o, NULL, 0, 0, stream);
}

static void run_hash(struct op *o)
{
    struct slu_hash_seqs s = o->hash.s;
    uint64_t most = 0; /* ids that are used */
    fake_runs.hash++;
    s.first = fake_real(s.first, s.n * 8, "hash: first");
    s.len = fake_real(s.len, s.n * 4, "hash: len");
    for (size_t i = 0; i < s.n; i++)
        most = s.first[i] + s.len[i] > most ? s.first[i] + s.len[i] : most;
    s.tok = fake_real(s.tok, most * s.tok_bytes, "hash: tok");
    slu_hash_ref(&s, fake_real(o->hash.hash, s.n * 16, "hash: hash"));
}

int slu_hash_cuda(const struct slu_hash_seqs *s, uint64_t *hash, void *stream)
{
    struct op o = {.run = run_hash, .hash = {*s, hash}};
    if (s->n == 0)
        return 0;
    return fake_queue(o, NULL, 0, 0, stream);
}

size_t slu_eos_lengths_cuda_work(size_t n)
{
    return n / 1024 * 8 + 64;
}

static void run_scan(struct op *o)
{
    size_t n = o->scan.n, n_bin = o->scan.n_bin;
    size_t n_far = slu_eos_far_most(n, n_bin);
    fake_runs.scan++;
    slu_eos_lengths_ref(fake_real(o->scan.tok, n * o->scan.tok_bytes, "scan: tok"), n,
                        o->scan.tok_bytes, o->scan.eos,
                        fake_real(o->scan.count, n_bin * 8, "scan: count"), n_bin,
                        fake_real(o->scan.far, n_far * 8, "scan: far"),
                        fake_real(o->scan.b, sizeof *o->scan.b, "scan: block"));
}

int slu_eos_lengths_cuda(const void *tok, size_t n, unsigned tok_bytes, uint32_t eos,
                         uint64_t *count, size_t n_bin, uint64_t *far,
                         struct slu_eos_block *b, void *work, size_t work_byte,
                         void *stream)
{
    struct op o = {.run = run_scan,
                   .scan = {tok, n, tok_bytes, eos, count, far, n_bin, b}};
    return fake_queue(o, work, work_byte, slu_eos_lengths_cuda_work(n), stream);
}
