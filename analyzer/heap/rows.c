/* SPDX-License-Identifier: MIT */
#include "heap/rows.h"

int heap_key_compare(heap_key a, heap_key b)
{
    if (a.stack != b.stack)
        return a.stack > b.stack ? 1 : -1;
    return (a.other > b.other) - (a.other < b.other);
}
