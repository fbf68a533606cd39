/* Fuzzes the ends of streams (lib/stream/stream_tail.h): any bytes are a stream's end
 * or are not, in the end. Headers' checksums are mended first (unless the first byte is
 * odd): of the last frame, of what it points to, and of the end frame before that. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "folder.h"
#include "lib/base/hash.h"
#include "lib/base/le.h"
#include "lib/stream/frame.h"
#include "lib/stream/stream_reader.h"
#include "lib/stream/stream_tail.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void mend_header(uint8_t *h, const char *type)
{
    static const uint8_t magic[4] = {0xF5, 'T', 'K', 'S'};
    memcpy(h, magic, 4);
    memcpy(h + 4, type, 4);
    memset(h + 12, 0, 4);
    slu_put_le64(h + 56, slu_hash64(h, 56));
}

static void mend(uint8_t *p, size_t n)
{
    const size_t head = SLU_FRAME_HEADER, ends = SLU_ENDS_BYTES;
    if (n < 2 * head + ends)
        return;
    mend_header(p + n - head, "FOOT");
    uint64_t at = slu_le64(p + n - head + 40);
    if (at > n || at < head + ends)
        return;
    uint8_t *e = p + at - head - ends;
    slu_put_le64(e + 48, slu_hash64(e + head, ends));
    mend_header(e, "ENDS");
    for (int i = 0; i < 1000 && at + 2 * head <= n; i++) {
        mend_header(p + at, "INDX");
        uint64_t stored = slu_le64(p + at + 32);
        if (stored > n)
            return;
        at += head + ((stored + 63) & ~UINT64_C(63));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_stream_tail t, again;
    if (!n)
        return 0;
    uint8_t *copy = malloc(n);
    must(copy != NULL);
    memcpy(copy, data + 1, n - 1);
    if (data[0] % 2 == 0)
        mend(copy, n - 1);
    put_file("stream", copy, n - 1);
    free(copy);
    int fd = open(in_folder("stream"), O_RDONLY | O_CLOEXEC);
    must(fd >= 0);
    int rc = slu_stream_tail_read(&t, fd, n - 1, &err);
    must(rc == SLU_OK || rc == SLU_EOF || err.msg[0]);
    if (!rc)
        must(slu_stream_tail_read(&again, fd, n - 1, &err) == SLU_OK &&
             t.n_tok == again.n_tok && t.longest_byte == again.longest_byte &&
             !slu_u128_cmp(t.checksum, again.checksum) &&
             !slu_u128_cmp(t.digest, again.digest));
    close(fd);
    return 0;
}
