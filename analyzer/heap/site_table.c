/* SPDX-License-Identifier: MIT */
#include "heap/site_table.h"

int heap_key_compare(struct heap_key a, struct heap_key b)
{
    if (a.stack != b.stack)
        return a.stack > b.stack ? 1 : -1;
    return (a.property > b.property) - (a.property < b.property);
}
