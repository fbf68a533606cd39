/* Fuzzes work files (lib/flow/workfile.h): any bytes are refused in one line or are a file
 * whose sections can be read in any way, also as what a stream is beside its sequences
 * (lib/flow/workfile_names.h). Checksums are mended first (unless the first byte is odd), or
 * the fuzzer would never get behind them. The second byte is the kind that is asked
 * for. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "folder.h"
#include "lib/base/hash.h"
#include "lib/base/le.h"
#include "lib/flow/workfile.h"
#include "lib/flow/workfile_names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { HEAD = 16, TAIL = 128, FOOT = 32, ROW = 24 };

static void put_hash(uint8_t *to, struct slu_u128 h)
{
    slu_put_le64(to, h.lo);
    slu_put_le64(to + 8, h.hi);
}

/* Everything that must be as it is for any file, as far as it can be followed. */
static void mend(uint8_t *p, size_t n, uint64_t kind)
{
    if (n < HEAD + TAIL + FOOT)
        return;
    memcpy(p, "SLUNEAR1", 8);
    slu_put_le64(p + 8, kind);
    uint8_t *foot = p + n - FOOT;
    memcpy(foot + 24, "SLUNEND1", 8);
    uint64_t at = HEAD, tail = slu_le64(foot);
    if (tail < HEAD || tail > n - FOOT - TAIL)
        return;
    uint64_t n_param = slu_le64(p + tail + 112), n_section = slu_le64(p + tail + 120);
    if (n_param <= SLU_WORKFILE_MAX_PARAM) {
        uint64_t row = tail + TAIL + ((n_param + 7) & ~UINT64_C(7));
        for (uint64_t i = 0; i < n_section && row + ROW <= n - FOOT; i++, row += ROW) {
            uint64_t len = slu_le64(p + row);
            if (len > tail - at)
                break;
            put_hash(p + row + 8, slu_hash128(p + at, len));
            at += len;
        }
    }
    put_hash(foot + 8, slu_workfile_mix(slu_hash128(p, HEAD),
                                        slu_hash128(p + tail, n - FOOT - tail)));
}

static void in_steps(struct slu_workfile *f, uint64_t section, size_t step)
{
    struct slu_err err = SLU_ERR_INIT;
    uint64_t v[3], got = 0, last = 0, left = 0;
    int rc = slu_workfile_begin(f, section, &err);
    while (!rc) {
        left = slu_workfile_left(f);
        must(got + left == slu_workfile_len(f, section));
        if (left < step)
            break;
        rc = slu_workfile_get(f, step, v, &err);
        if (!rc) {
            got += step;
            last = v[step - 1];
        }
    }
    must(!rc || err.msg[0]);
    if (!rc && left)
        must(slu_workfile_get(f, step, v, &err) && err.msg[0]);
    if (!rc && got) {
        uint64_t again;
        must(slu_workfile_read(f, section, got - 1, 1, &again, &err) == SLU_OK &&
             again == last);
    }
}

static void as_bytes(struct slu_workfile *f, uint64_t section)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_buf b = SLU_BUF_INIT;
    int rc = slu_workfile_begin(f, section, &err);
    while (!rc && slu_workfile_left(f)) {
        rc = slu_workfile_get_bytes(f, &b, &err);
        must(rc || b.len <= 8 * slu_workfile_len(f, section));
    }
    if (!rc)
        rc = slu_workfile_end(f, &err);
    must(!rc || err.msg[0]);
    slu_buf_release(&b);
}

static void as_stream(struct slu_workfile *f, uint64_t section)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_workfile_stream s;
    struct slu_names *names;
    must(slu_names_new(&names, &err) == SLU_OK);
    int rc = slu_workfile_get_stream(f, section, names, &s, &err);
    must(!rc || err.msg[0]);
    if (!rc)
        rc = slu_workfile_get_vocab(f, section + 1, s.header.vocab_size, names, &err);
    must(!rc || err.msg[0]);
    for (uint64_t i = 0; !rc && i < s.n_domain; i++)
        must(slu_names_domain(names, s.domain[i]) != NULL);
    slu_workfile_stream_release(&s);
    slu_names_free(names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_workfile *f;
    if (n < 2)
        return 0;
    uint64_t kind = 1 + data[1] % SLU_WORKFILE_FLOW;
    uint8_t *copy = malloc(n);
    must(copy != NULL);
    memcpy(copy, data + 2, n - 2);
    if (data[0] % 2 == 0)
        mend(copy, n - 2, kind);
    put_file("work", copy, n - 2);
    free(copy);
    int rc = slu_workfile_open(&f, in_folder("work"), kind, &err);
    must(!rc || (err.msg[0] && !strchr(err.msg, '\n')));
    if (rc)
        return 0;
    must(slu_workfile_match(f, slu_workfile_head(f), &err) == SLU_OK);
    for (uint64_t i = 0; i <= slu_workfile_n_section(f) && i < 64; i++) {
        in_steps(f, i, 1);
        in_steps(f, i, 3);
        as_bytes(f, i);
        as_stream(f, i);
    }
    slu_workfile_free(f);
    return 0;
}
