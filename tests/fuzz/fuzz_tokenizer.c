/* Fuzzes the loaders of tokenizer.json and of rank files: any bytes give a tokenizer or
 * one clear error, and what loads encodes hostile text without a fault, gives the text
 * back where its tokens are bytes, and gives the same ids with and without a word
 * cache.
 *
 * Input: a line "json" or "gpt2", "cl100k", … (the split of a rank file), then the
 * file. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/token/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char text[] =
    "Hello  world's 12345 it'S\r\n\n\t na\xc3\xafve \xe6\x97\xa5\xe6\x9c\xac "
    "e\xcc\x81 <|endoftext|> <s> aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa "
    "\xe2\x96\x81 \xe2\x96\x81x\xe6\x97\xa5\xe6\x97\xa6 "
    "\xf0\x9f\x98\x80\xe2\x80\x8d\xf0\x9f\x92\xbb \xc5\xbf !!! ---- 'll \x00 end  ";

static void encode(const struct slu_tokenizer *t, uint64_t cache, struct slu_ids *ids)
{
    struct slu_encoder *e;
    struct slu_err err = SLU_ERR_INIT;
    if (slu_encoder_new(&e, t, cache, &err))
        abort();
    for (int i = 0; i < 2; i++) {
        ids->n = 0;
        if (slu_encode(e, text, sizeof text - 1, ids, &err))
            break;
    }
    for (size_t i = 0; i < ids->n; i++)
        if (ids->id[i] >= slu_tokenizer_vocab_size(t))
            abort();
    slu_encoder_free(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const splits[] = {"gpt2",  "r50k",   "p50k", "cl100k",
                                         "o200k", "llama3", "qwen2"};
    const uint8_t *nl = memchr(data, '\n', n < 16 ? n : 16);
    struct slu_err err = SLU_ERR_INIT;
    struct slu_tokenizer *t;
    struct slu_tokenizer_cfg cfg = {0};
    char path[64];
    if (!nl)
        return 0;
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++)
        if (strlen(splits[i]) == (size_t)(nl - data) &&
            !memcmp(splits[i], data, strlen(splits[i])))
            cfg.pattern = splits[i];
    cfg.special_parse = data[0] == 'J';
    nl++;
    int fd = memfd_create("fuzz", 0);
    if (fd < 0 ||
        write(fd, nl, n - (size_t)(nl - data)) != (ssize_t)(n - (size_t)(nl - data)))
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    cfg.spec = path;
    int rc = slu_tokenizer_load(&t, &cfg, &err);
    if (rc && !err.msg[0])
        abort(); /* every fault has its line */
    if (!rc) {
        struct slu_ids a = {0}, b = {0};
        encode(t, 0, &a);
        encode(t, 2 << 20, &b);
        if (a.n != b.n || (a.n && memcmp(a.id, b.id, a.n * sizeof *a.id)))
            abort();
        slu_ids_release(&a);
        slu_ids_release(&b);
        slu_tokenizer_free(t);
    }
    close(fd);
    return 0;
}
