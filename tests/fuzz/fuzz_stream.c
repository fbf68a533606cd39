/* Fuzzes the stream reader: any bytes give records or one clear error, never a crash, a
 * leak or an endless loop. Frames get their checksums mended first (unless the first
 * byte is odd), or the fuzzer would never get behind them. What is accepted is written
 * again and must read back with the same sums. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/hash.h"
#include "lib/base/le.h"
#include "lib/stream/frame.h"
#include "lib/stream/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Numbers, magic and checksums of frames as far as they can be followed. */
static void mend(uint8_t *p, size_t n)
{
    static const uint8_t magic[4] = {0xF5, 'T', 'K', 'S'};
    uint64_t number = 0;
    for (size_t at = 0; at + SLU_FRAME_HEADER <= n; number++) {
        uint8_t *h = p + at;
        uint64_t stored = slu_le64(h + 32), span = (stored + 63) & ~(uint64_t)63;
        if (stored > n || span > n - at - SLU_FRAME_HEADER)
            return;
        if (!memcmp(h + 4, "HEAD", 4))
            number = 0;
        memcpy(h, magic, 4);
        slu_put_le64(h + 16, number);
        memset(h + SLU_FRAME_HEADER + stored, 0, span - stored);
        slu_put_le64(h + 48, slu_hash64(h + SLU_FRAME_HEADER, span));
        slu_put_le64(h + 56, slu_hash64(h, 56));
        at += SLU_FRAME_HEADER + span;
    }
}

static int open_fd(int fd, struct slu_reader **r)
{
    char path[64];
    const char *p = path;
    struct slu_reader_cfg cfg = {&p, 1, 1 << 22};
    struct slu_err err = SLU_ERR_INIT;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int rc = slu_reader_open(r, &cfg, &err);
    if (rc && !err.msg[0])
        abort(); /* every fault has its line */
    return rc;
}

/* Reads everything; copies to w where it is not NULL. */
static int read_all(struct slu_reader *r, struct slu_writer *w, struct slu_sum *sum)
{
    struct slu_batch b;
    struct slu_err err = SLU_ERR_INIT;
    int rc;
    slu_batch_init(&b, 2);
    while (!(rc = slu_reader_next(r, &b, &err)))
        if (w && slu_writer_put(w, &b, &err))
            abort();
    if (rc == SLU_EOF)
        rc = slu_reader_finish(r, sum, &err);
    if (rc && !err.msg[0])
        abort();
    slu_batch_release(&b);
    return rc;
}

/* Reads r, writes what it gives, reads that: the sums agree. */
static void again(struct slu_reader *r)
{
    struct slu_writer_cfg cfg = {0, false, slu_reader_names(r)};
    struct slu_err err = SLU_ERR_INIT;
    struct slu_sum a, b;
    struct slu_reader *r2;
    struct slu_writer *w;
    struct slu_out *o;
    char path[] = "/tmp/sluice-fuzz-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0 || slu_out_open(&o, path, &err) ||
        slu_writer_open(&w, o, slu_reader_header(r), &cfg, &err))
        abort();
    if (read_all(r, w, &a)) {
        slu_writer_abort(w);
    } else {
        if (slu_writer_close(w, &err))
            abort();
        int whole = open(path, O_RDONLY);
        if (whole < 0 || open_fd(whole, &r2) || read_all(r2, NULL, &b) ||
            slu_u128_cmp(a.checksum, b.checksum) ||
            slu_u128_cmp(a.meta_checksum, b.meta_checksum) || a.n.tokens != b.n.tokens)
            abort();
        slu_reader_free(r2);
        close(whole);
    }
    close(fd);
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct slu_reader *r;
    uint8_t *copy = malloc(n + 1);
    int fd = memfd_create("fuzz", 0);
    if (!copy || fd < 0)
        abort();
    if (n)
        memcpy(copy, data + 1, n - 1);
    if (n && data[0] % 2 == 0)
        mend(copy, n - 1);
    if (n && write(fd, copy, n - 1) != (ssize_t)(n - 1))
        abort();
    free(copy);
    if (!open_fd(fd, &r)) {
        again(r);
        slu_reader_free(r);
    }
    close(fd);
    return 0;
}
