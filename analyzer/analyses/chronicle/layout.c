/* SPDX-License-Identifier: MIT */
/* Blocks in the order of their addresses. */
#include <stdlib.h>

#include "analyses/chronicle/chronicle.h"
#include "base/sort.h"

static void chronicle_sort_keys(const struct chronicle *chronicle, struct sort_key *keys,
                                struct sort_key *spare)
{
    for (size_t i = 0; i < chronicle->block_count; i++)
        keys[i] = (struct sort_key){chronicle->blocks[i].address, (uint32_t)i};
    sort_keys(keys, spare, chronicle->block_count);
}

enum ttd_status chronicle_sort(struct chronicle *chronicle)
{
    if (chronicle->by_address)
        return TTD_OK;
    size_t count = chronicle->block_count + 1;
    struct sort_key *keys = malloc(count * sizeof *keys);
    struct sort_key *spare = malloc(count * sizeof *spare);
    chronicle->by_address = malloc(count * sizeof *chronicle->by_address);
    chronicle->sorted_lives = malloc(count * sizeof *chronicle->sorted_lives);
    bool has_memory = keys && spare && chronicle->by_address && chronicle->sorted_lives;
    if (has_memory)
        chronicle_sort_keys(chronicle, keys, spare);
    for (size_t i = 0; has_memory && i < chronicle->block_count; i++) {
        chronicle->by_address[i] = keys[i].index;
        chronicle->sorted_lives[i] = chronicle->lives[keys[i].index];
    }
    if (!has_memory) {
        free(chronicle->by_address);
        chronicle->by_address = NULL;
    }
    free(keys);
    free(spare);
    return has_memory ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

void chronicle_each_live(const struct chronicle *chronicle, uint32_t moment,
                         chronicle_live_visit visit, void *context)
{
    for (size_t i = 0; i < chronicle->block_count; i++) {
        if (chronicle_is_live(chronicle->sorted_lives[i], moment) &&
            !visit(context, chronicle->by_address[i]))
            break;
    }
}
