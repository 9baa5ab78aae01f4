/* SPDX-License-Identifier: MIT */
#include "analyses/errors/api_match.h"

/* Functions that may be paired. Aligned and unaligned operators are families of their own, since
 * their allocators may differ; free() takes what any of the C functions has allocated, those that
 * only one allocator has included. */
enum family {
    FAMILY_UNKNOWN,
    FAMILY_C,
    FAMILY_NEW,
    FAMILY_NEW_ALIGNED,
    FAMILY_NEW_ARRAY,
    FAMILY_NEW_ARRAY_ALIGNED,
    FAMILY_WINDOWS
};

static enum family family_of(uint8_t api)
{
    switch (api) {
    case TTD_API_NEW:
    case TTD_API_NEW_NOTHROW:
    case TTD_API_DELETE:
    case TTD_API_DELETE_NOTHROW:
    case TTD_API_DELETE_SIZED:
        return FAMILY_NEW;
    case TTD_API_NEW_ALIGNED:
    case TTD_API_NEW_ALIGNED_NOTHROW:
    case TTD_API_DELETE_ALIGNED:
    case TTD_API_DELETE_ALIGNED_NOTHROW:
    case TTD_API_DELETE_SIZED_ALIGNED:
        return FAMILY_NEW_ALIGNED;
    case TTD_API_NEW_ARRAY:
    case TTD_API_NEW_ARRAY_NOTHROW:
    case TTD_API_DELETE_ARRAY:
    case TTD_API_DELETE_ARRAY_NOTHROW:
    case TTD_API_DELETE_ARRAY_SIZED:
        return FAMILY_NEW_ARRAY;
    case TTD_API_NEW_ARRAY_ALIGNED:
    case TTD_API_NEW_ARRAY_ALIGNED_NOTHROW:
    case TTD_API_DELETE_ARRAY_ALIGNED:
    case TTD_API_DELETE_ARRAY_ALIGNED_NOTHROW:
    case TTD_API_DELETE_ARRAY_SIZED_ALIGNED:
        return FAMILY_NEW_ARRAY_ALIGNED;
    default:
        break;
    }
    if ((api >= TTD_API_MALLOC && api <= TTD_API_FREE_ALIGNED_SIZED) ||
        (api >= TTD_API_MALLOCX && api <= TTD_API_MI_REALPATH))
        return FAMILY_C;
    if (api >= TTD_API_HEAP_ALLOC && api <= TTD_API_HEAP_FREE)
        return FAMILY_WINDOWS;
    return FAMILY_UNKNOWN;
}

bool heap_api_matches(uint8_t allocation, uint8_t release)
{
    enum family a = family_of(allocation);
    enum family b = family_of(release);
    return a == FAMILY_UNKNOWN || b == FAMILY_UNKNOWN || a == b;
}

bool heap_api_is_custom(uint8_t api)
{
    return api >= TTD_API_LIVE_HEAP_CREATE && api <= TTD_API_LIVE_HEAP_DESTROY;
}

bool heap_release_is_sized(uint8_t release)
{
    switch (release) {
    case TTD_API_FREE_SIZED:
    case TTD_API_FREE_ALIGNED_SIZED:
    case TTD_API_DELETE_SIZED:
    case TTD_API_DELETE_SIZED_ALIGNED:
    case TTD_API_DELETE_ARRAY_SIZED:
    case TTD_API_DELETE_ARRAY_SIZED_ALIGNED:
        return true;
    default:
        return false;
    }
}
