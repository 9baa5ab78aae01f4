/* SPDX-License-Identifier: MIT */
/* Blocks of an allocator that is not the C library's, with other data beside them. */
#include "allocator.h"
#include "case.h"

CASE(other_lost)
{
    lose(block(40));
}

CASE(other_kept)
{
    kept[0] = block(40);
    put(kept[0], 8, block(24));
}

CASE(other_listed)
{
    allocator_list_blocks();
    kept[0] = block(24);
    lose(block(40));
}

CASE(other_held_beside)
{
    void *memory;

    block(8);
    memory = allocator_room(64);
    block(8);
    put(memory, 16, block(40));
}

CASE(other_freed_holder)
{
    void *holder = block(64);

    put(holder, 16, block(40));
    free(holder);
}
