/* cli_part.c - see cli_part.h. */
#include <stdlib.h>
#include <string.h>

#include "tools/cli_part.h"

static bool number(const char *s, size_t len, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < len; i++) {
        if (s[i] < '0' || s[i] > '9' || *out > UINT32_MAX)
            return false;
        *out = *out * 10 + (uint64_t)(s[i] - '0');
    }
    return len > 0;
}

int cli_part_parse(struct cli_part *p, const char *value, struct slu_err *err)
{
    const char *slash = strchr(value, '/');
    size_t len = slash ? (size_t)(slash - value) : 0;

    p->is_auto = len == 4 && memcmp(value, "auto", 4) == 0;
    if (!slash || (!p->is_auto && !number(value, len, &p->i)) ||
        !number(slash + 1, strlen(slash + 1), &p->n) || p->n == 0)
        return slu_fail(err, SLU_E_USAGE,
                        "--part %s: I/N or auto/N, parts being counted from 0", value);
    return SLU_OK;
}

int cli_part_resolve(struct cli_part *p, struct slu_err *err)
{
    if (p->is_auto) {
        const char *task = getenv("SLURM_ARRAY_TASK_ID");
        uint64_t id;
        if (!task || !number(task, strlen(task), &id))
            return slu_fail(
                err, SLU_E_USAGE,
                "--part auto/N: $SLURM_ARRAY_TASK_ID is not set; give --part I/N");
        if (id < p->base)
            return slu_fail(err, SLU_E_USAGE,
                            "--part-base %llu: the array task's id is %llu",
                            (unsigned long long)p->base, (unsigned long long)id);
        p->i = id - p->base;
    }
    if (p->i >= p->n)
        return slu_fail(err, SLU_E_USAGE,
                        "--part %llu/%llu does not exist; parts are counted from 0",
                        (unsigned long long)p->i, (unsigned long long)p->n);
    return SLU_OK;
}
