/* SPDX-License-Identifier: MIT */
#include "collect/trace/gathered.h"

#include <stdlib.h>
#include <string.h>

enum { SIZE = 16 * 1024 };

struct gathered {
    struct ttd_output output;
    size_t used;
    char bytes[SIZE];
};

int gathered_flush(struct gathered *gathered)
{
    size_t size = gathered->used;
    gathered->used = 0;
    return size != 0 ? gathered->output.write(gathered->output.context, gathered->bytes, size) : 0;
}

static int write_gathered(void *context, const void *data, size_t size)
{
    struct gathered *gathered = context;
    if (size > SIZE - gathered->used) {
        int reason = gathered_flush(gathered);
        if (reason != 0)
            return reason;
    }
    if (size > SIZE)
        return gathered->output.write(gathered->output.context, data, size);
    memcpy(gathered->bytes + gathered->used, data, size);
    gathered->used += size;
    return 0;
}

static int close_gathered(void *context)
{
    struct gathered *gathered = context;
    int reason = gathered_flush(gathered);
    int closing = gathered->output.close(gathered->output.context);
    free(gathered);
    return reason != 0 ? reason : closing;
}

struct gathered *gathered_put_before(struct ttd_output *output)
{
    struct gathered *gathered = malloc(sizeof *gathered);
    if (gathered == NULL)
        return NULL;
    gathered->output = *output;
    gathered->used = 0;
    *output = (struct ttd_output){gathered, write_gathered, close_gathered};
    return gathered;
}
