/* SPDX-License-Identifier: MIT */
/* A library with an allocator of its own, in one mapping, which never uses memory again. */
#ifndef REACH_ALLOCATOR_H
#define REACH_ALLOCATOR_H

#include <stddef.h>

/* Memory of the same mapping that is no block. */
void *allocator_room(size_t size);

/* From now on, the allocator keeps a list of its blocks in such memory. */
void allocator_list_blocks(void);

#endif
