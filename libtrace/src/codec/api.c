/* SPDX-License-Identifier: MIT */
#include "codec/api.h"

#include <string.h>
#include <ttdtrace/model.h>
#include <ttdtrace/reader.h>

struct api {
    const char *name;
    const char *items;
};

static const struct api apis[TTD_API_COUNT] = {
    [TTD_API_OTHER] = {"other", NULL},
    [TTD_API_MALLOC] = {"malloc", "S"},
    [TTD_API_CALLOC] = {"calloc", "XQ"},
    [TTD_API_REALLOC] = {"realloc", "BS"},
    [TTD_API_REALLOCARRAY] = {"reallocarray", "BXQ"},
    [TTD_API_FREE] = {"free", "B"},
    [TTD_API_CFREE] = {"cfree", "B"},
    [TTD_API_MEMALIGN] = {"memalign", "XS"},
    [TTD_API_POSIX_MEMALIGN] = {"posix_memalign", "XXS"},
    [TTD_API_ALIGNED_ALLOC] = {"aligned_alloc", "XS"},
    [TTD_API_VALLOC] = {"valloc", "S"},
    [TTD_API_PVALLOC] = {"pvalloc", "S"},
    [TTD_API_FREE_SIZED] = {"free_sized", "BS"},
    [TTD_API_FREE_ALIGNED_SIZED] = {"free_aligned_sized", "BXS"},
    [TTD_API_NEW] = {"operator new", "S"},
    [TTD_API_NEW_NOTHROW] = {"operator new(nothrow)", "S"},
    [TTD_API_NEW_ALIGNED] = {"operator new(align)", "SX"},
    [TTD_API_NEW_ALIGNED_NOTHROW] = {"operator new(align, nothrow)", "SX"},
    [TTD_API_NEW_ARRAY] = {"operator new[]", "S"},
    [TTD_API_NEW_ARRAY_NOTHROW] = {"operator new[](nothrow)", "S"},
    [TTD_API_NEW_ARRAY_ALIGNED] = {"operator new[](align)", "SX"},
    [TTD_API_NEW_ARRAY_ALIGNED_NOTHROW] = {"operator new[](align, nothrow)", "SX"},
    [TTD_API_DELETE] = {"operator delete", "B"},
    [TTD_API_DELETE_NOTHROW] = {"operator delete(nothrow)", "B"},
    [TTD_API_DELETE_SIZED] = {"operator delete(size)", "BS"},
    [TTD_API_DELETE_ALIGNED] = {"operator delete(align)", "BX"},
    [TTD_API_DELETE_ALIGNED_NOTHROW] = {"operator delete(align, nothrow)", "BX"},
    [TTD_API_DELETE_SIZED_ALIGNED] = {"operator delete(size, align)", "BSX"},
    [TTD_API_DELETE_ARRAY] = {"operator delete[]", "B"},
    [TTD_API_DELETE_ARRAY_NOTHROW] = {"operator delete[](nothrow)", "B"},
    [TTD_API_DELETE_ARRAY_SIZED] = {"operator delete[](size)", "BS"},
    [TTD_API_DELETE_ARRAY_ALIGNED] = {"operator delete[](align)", "BX"},
    [TTD_API_DELETE_ARRAY_ALIGNED_NOTHROW] = {"operator delete[](align, nothrow)", "BX"},
    [TTD_API_DELETE_ARRAY_SIZED_ALIGNED] = {"operator delete[](size, align)", "BSX"},
    [TTD_API_HEAP_ALLOC] = {"HeapAlloc", "XFS"},
    [TTD_API_HEAP_REALLOC] = {"HeapReAlloc", "XFBS"},
    [TTD_API_HEAP_FREE] = {"HeapFree", "XFB"},
    [TTD_API_HEAP_CREATE] = {"HeapCreate", "FCR"},
    [TTD_API_HEAP_PROTECT] = {"RtlProtectHeap", "XP"},
    [TTD_API_HEAP_LOCK] = {"HeapLock", "X"},
    [TTD_API_HEAP_UNLOCK] = {"HeapUnlock", "X"},
    [TTD_API_HEAP_DESTROY] = {"HeapDestroy", "X"},
    [TTD_API_LIVE_HEAP_CREATE] = {"ttd_live_heap_create", "RC"},
    [TTD_API_LIVE_HEAP_ALLOC] = {"ttd_live_heap_alloc", "S"},
    [TTD_API_LIVE_HEAP_REALLOC] = {"ttd_live_heap_realloc", "BS"},
    [TTD_API_LIVE_HEAP_FREE] = {"ttd_live_heap_free", "B"},
    [TTD_API_LIVE_HEAP_PROTECT] = {"ttd_live_heap_protect", "P"},
    [TTD_API_LIVE_HEAP_LOCK] = {"ttd_live_heap_lock", NULL},
    [TTD_API_LIVE_HEAP_UNLOCK] = {"ttd_live_heap_unlock", NULL},
    [TTD_API_LIVE_HEAP_DESTROY] = {"ttd_live_heap_destroy", NULL},
    [TTD_API_MALLOCX] = {"mallocx", "SX"},
    [TTD_API_RALLOCX] = {"rallocx", "BSX"},
    [TTD_API_XALLOCX] = {"xallocx", "BSXX"},
    [TTD_API_DALLOCX] = {"dallocx", "BX"},
    [TTD_API_SDALLOCX] = {"sdallocx", "BSX"},
    [TTD_API_MI_MALLOC_ALIGNED] = {"mi_malloc_aligned", "SX"},
    [TTD_API_MI_CALLOC_ALIGNED] = {"mi_calloc_aligned", "XQX"},
    [TTD_API_MI_REALLOC_ALIGNED] = {"mi_realloc_aligned", "BSX"},
    [TTD_API_MI_RECALLOC_ALIGNED] = {"mi_recalloc_aligned", "BXQX"},
    [TTD_API_MI_EXPAND] = {"mi_expand", "BS"},
    [TTD_API_MI_FREE_SIZE] = {"mi_free_size", "BS"},
    [TTD_API_MI_FREE_ALIGNED] = {"mi_free_aligned", "BX"},
    [TTD_API_MI_STRDUP] = {"mi_strdup", "X"},
    [TTD_API_MI_REALPATH] = {"mi_realpath", "X"},
};

const char *ttd_api_name(unsigned value)
{
    return value < TTD_API_COUNT && apis[value].name ? apis[value].name : "?";
}

const char *ttd_api_template(unsigned value)
{
    return value < TTD_API_COUNT ? apis[value].items : NULL;
}

size_t ttd_template_stored(const char *items)
{
    size_t count = 0;
    for (; *items; items++)
        count += *items == 'X';
    return count;
}

/** The value of a letter other than X; false if there is none. */
static bool item_value(char parameter, const struct ttd_event *event, uint64_t before,
                       uint64_t *value)
{
    switch (parameter) {
    case 'S':
        *value = event->size;
        return true;
    case 'B':
        *value = event->base_address;
        return true;
    case 'F':
        *value = event->flags;
        return true;
    case 'R':
        *value = event->reserve_size;
        return true;
    case 'C':
        *value = event->commit_size;
        return true;
    case 'P':
        *value = event->make_read_only;
        return true;
    default:
        /* The letter stands for a count of elements, whose size was the parameter before. */
        if (before == 0 || event->size % before != 0)
            return false;
        *value = event->size / before;
        return true;
    }
}

bool ttd_template_apply(const char *items, const struct ttd_event *event, const uint64_t *stored,
                        uint64_t *parameters)
{
    for (size_t i = 0; items[i]; i++) {
        if (items[i] == 'X')
            parameters[i] = *stored++;
        else if (!item_value(items[i], event, i ? parameters[i - 1] : 0, &parameters[i]))
            return false;
    }
    return true;
}

bool ttd_event_fits_template(const struct ttd_event *event)
{
    const char *items = ttd_api_template(event->api);
    if (!items)
        return false;
    uint32_t i = 0;
    for (; items[i]; i++) {
        uint64_t value;
        if (i == event->parameter_count)
            return false;
        if (items[i] == 'X')
            continue;
        if (!item_value(items[i], event, i ? event->parameters[i - 1] : 0, &value) ||
            value != event->parameters[i])
            return false;
    }
    return i == event->parameter_count;
}

size_t ttd_event_parameters(const struct ttd_event *event, uint64_t parameters[TTD_PARAMETERS_MAX])
{
    if (event->parameters) {
        memcpy(parameters, event->parameters, event->parameter_count * sizeof *parameters);
        return event->parameter_count;
    }
    const char *items = ttd_api_template(event->api);
    if (!items || ttd_template_stored(items) != 0 ||
        !ttd_template_apply(items, event, NULL, parameters))
        return 0;
    return strlen(items);
}

const char *ttd_action_name(enum ttd_action action)
{
    static const char *const names[] = {"?",       "Alloc", "ReAlloc", "Free",   "Create",
                                        "Protect", "Lock",  "Unlock",  "Destroy"};
    return (unsigned)action < sizeof names / sizeof *names ? names[action] : "?";
}

const char *ttd_kind_name(unsigned kind)
{
    static const char *const names[] = {"?",
                                        "trace",
                                        "strings",
                                        "stacks",
                                        "modules",
                                        "symbols",
                                        "threads",
                                        "heaps",
                                        "events",
                                        "user events",
                                        "losses",
                                        "live blocks",
                                        "pages",
                                        "memory map",
                                        "metadata",
                                        "index",
                                        "end",
                                        "states",
                                        "sums",
                                        "snapshots",
                                        "regions",
                                        "references",
                                        "variables",
                                        "frames",
                                        "classes",
                                        "fatal signals",
                                        "heap parents",
                                        "packed references",
                                        "block headers"};
    return kind < sizeof names / sizeof *names ? names[kind] : "?";
}
