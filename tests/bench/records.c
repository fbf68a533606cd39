/* records.c - records of one size for tests/bench/shuffle: a token stream of `n`
 * documents of `len` ids of two bytes (source 0, document = place in a text of such
 * records), or as many lines of as many bytes, '\n' included, for programs that shuffle
 * lines.
 *
 *   records stream|lines N LEN > FILE
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/stream/stream.h"

static uint64_t mix(uint64_t z)
{
    z = (z + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static int lines(uint64_t n, size_t len)
{
    uint8_t *p = malloc(2 * len + 8);
    for (uint64_t i = 0; p && i < n; i++) {
        for (size_t k = 0; k < 2 * len; k += 8) {
            uint64_t v = (mix(i * len + k) & UINT64_C(0x3f3f3f3f3f3f3f3f)) +
                         UINT64_C(0x3030303030303030);
            memcpy(p + k, &v, 8);
        }
        p[2 * len - 1] = '\n';
        if (fwrite(p, 2 * len, 1, stdout) != 1)
            break;
    }
    free(p);
    return p && !fflush(stdout) && !ferror(stdout) ? 0 : 1;
}

static int stream(uint64_t n, size_t len, struct slu_err *err)
{
    struct slu_header h;
    struct slu_names *names = NULL;
    struct slu_out *out;
    struct slu_writer *w;
    struct slu_batch b;
    uint16_t *tok = calloc(len, 2);
    int rc = tok ? slu_names_new(&names, err) : slu_fail_nomem(err, 2 * len);

    slu_header_init(&h);
    h.tok_bytes = 2;
    h.vocab_size = 65536;
    h.eos = h.pad = 0;
    h.bos = SLU_NO_TOKEN;
    if (!rc)
        rc = slu_names_set_source(names, 0, "records", err);
    if (!rc)
        rc = slu_out_open(&out, "-", err);
    if (!rc)
        rc =
            slu_writer_open(&w, out, &h, &(struct slu_writer_cfg){.names = names}, err);
    slu_batch_init(&b, 2);
    for (uint64_t i = 0; !rc && i < n; i++) {
        struct slu_seg s = {
            .document = i * 4 * len, .len_tok = len, .domain = SLU_NO_DOMAIN};
        for (size_t k = 0; k < len; k++)
            tok[k] = (uint16_t)(mix(i * len + k) % 50257);
        rc = slu_batch_add(&b, tok, len, &s, 1, NULL, err);
        if (!rc && (i + 1 == n || slu_batch_weight(&b) > 1 << 18)) {
            rc = slu_writer_put(w, &b, err);
            slu_batch_clear(&b);
        }
    }
    if (!rc)
        rc = slu_writer_close(w, err);
    slu_batch_release(&b);
    slu_names_free(names);
    slu_header_release(&h);
    free(tok);
    return rc;
}

int main(int argc, char **argv)
{
    struct slu_err err = SLU_ERR_INIT;

    if (argc != 4 || (strcmp(argv[1], "stream") && strcmp(argv[1], "lines"))) {
        fprintf(stderr, "usage: records stream|lines N LEN > FILE\n");
        return 2;
    }
    uint64_t n = strtoull(argv[2], NULL, 10), len = strtoull(argv[3], NULL, 10);
    if (!strcmp(argv[1], "lines"))
        return lines(n, len);
    if (stream(n, len, &err)) {
        fprintf(stderr, "records: %s\n", err.msg);
        return 1;
    }
    return 0;
}
