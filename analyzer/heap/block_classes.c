/* SPDX-License-Identifier: MIT */
#include "heap/block_classes.h"

#include <stdlib.h>

void heap_block_classes_free(struct heap_block_classes *classes)
{
    free(classes->classes);
    map_free(&classes->numbers);
    *classes = (struct heap_block_classes){.count = 0};
}
