/* SPDX-License-Identifier: MIT */
/**
 * The table of the known allocation functions (spec, "APIs"): enum ttd_api, and every list of
 * functions in the library, the recorder and the analyzer, follow from it.
 *
 * An API is a function of a heap, such as malloc() or `operator new`. Programs use its number,
 * TTD_API_MALLOC, and its name, ttd_api_name(); only a program that needs the whole table expands
 * TTD_APIS.
 *
 *     #define PRINT(name, number, text, ...) printf("%d %s\n", number, text);
 *     TTD_APIS(PRINT)
 */
#ifndef TTDTRACE_APIS_H
#define TTDTRACE_APIS_H

/** Effect of a function: an enum ttd_action in the low four bits, and two that are closer. */
enum ttd_api_effect {
    TTD_EFFECT_NONE = 0,
    TTD_EFFECT_ALLOC = 1,
    TTD_EFFECT_REALLOC = 2,
    TTD_EFFECT_FREE = 3,
    TTD_EFFECT_CREATE = 4,
    TTD_EFFECT_PROTECT = 5,
    TTD_EFFECT_LOCK = 6,
    TTD_EFFECT_UNLOCK = 7,
    TTD_EFFECT_DESTROY = 8,
    /** A ReAlloc that never moves the block. */
    TTD_EFFECT_RESIZE = 18,
    /** A Free whose size is the one that was asked for. */
    TTD_EFFECT_FREE_SIZED = 19,
    TTD_EFFECT_ACTION_MASK = 15
};

/** Family of a function: a block is released by a function of the family that allocated it. */
enum ttd_api_family {
    /** Unknown: it may be any. */
    TTD_FAMILY_NONE = 0,
    /** free() takes the blocks of any C function, even of one that only one allocator has. */
    TTD_FAMILY_C = 1,
    /** Aligned and unaligned operators are apart, since their allocators may differ. */
    TTD_FAMILY_NEW = 2,
    TTD_FAMILY_NEW_ALIGNED = 3,
    TTD_FAMILY_NEW_ARRAY = 4,
    TTD_FAMILY_NEW_ARRAY_ALIGNED = 5,
    TTD_FAMILY_WINDOWS = 6,
    /** Heaps of the program's own. */
    TTD_FAMILY_CUSTOM = 7
};

/**
 * Expands ROW for each function, in the order of values. The columns are
 *
 *     name      of TTD_API_...
 *     value     in the format
 *     text      the function as C or C++ spells it
 *     symbol    its mangled symbol, where that differs from the text; else NULL
 *     template  of its parameters (spec, "APIs"), or NULL
 *     effect    of TTD_EFFECT_...
 *     family    of TTD_FAMILY_...
 *
 * and, for ttdrecord, the operands of a recorded call: the arguments as they were passed, then its
 * results, of which the last is the block.
 *
 *     operands  number of operands; 0 for a function that is not recorded
 *     arguments number of operands that are parameters of the event; they come first
 *     base      index of the operand that is the block given to the call, or ZERO
 *     size      index of the operand that is the size, or ZERO
 *     count     index of the operand to be multiplied with the size, or ONE
 */
/* clang-format off */
#define TTD_APIS(ROW)                                                                              \
    ROW(OTHER, 0, "other", NULL, NULL, NONE, NONE, 0, 0, ZERO, ZERO, ONE)                          \
    /* The C library. */                                                                           \
    ROW(MALLOC, 1, "malloc", NULL, "S", ALLOC, C, 2, 1, ZERO, 0, ONE)                              \
    ROW(CALLOC, 2, "calloc", NULL, "XQ", ALLOC, C, 3, 2, ZERO, 1, 0)                               \
    ROW(REALLOC, 3, "realloc", NULL, "BS", REALLOC, C, 2, 2, 0, 1, ONE)                            \
    ROW(REALLOCARRAY, 4, "reallocarray", NULL, "BXQ", REALLOC, C, 3, 3, 0, 2, 1)                   \
    ROW(FREE, 5, "free", NULL, "B", FREE, C, 1, 1, 0, ZERO, ONE)                                   \
    ROW(CFREE, 6, "cfree", NULL, "B", FREE, C, 1, 1, 0, ZERO, ONE)                                 \
    ROW(MEMALIGN, 7, "memalign", NULL, "XS", ALLOC, C, 3, 2, ZERO, 1, ONE)                         \
    ROW(POSIX_MEMALIGN, 8, "posix_memalign", NULL, "XXS", ALLOC, C, 5, 3, ZERO, 2, ONE)            \
    ROW(ALIGNED_ALLOC, 9, "aligned_alloc", NULL, "XS", ALLOC, C, 3, 2, ZERO, 1, ONE)               \
    ROW(VALLOC, 10, "valloc", NULL, "S", ALLOC, C, 2, 1, ZERO, 0, ONE)                             \
    ROW(PVALLOC, 11, "pvalloc", NULL, "S", ALLOC, C, 2, 1, ZERO, 0, ONE)                           \
    ROW(FREE_SIZED, 12, "free_sized", NULL, "BS", FREE_SIZED, C, 2, 2, 0, 1, ONE)                  \
    ROW(FREE_ALIGNED_SIZED, 13, "free_aligned_sized",                                              \
        NULL, "BXS", FREE_SIZED, C, 3, 3, 0, 2, ONE)                                               \
    /* C++: plain, array, aligned and nothrow forms; deletes also sized. */                        \
    ROW(NEW, 16, "operator new", "_Znwm", "S", ALLOC, NEW, 2, 1, ZERO, 0, ONE)                     \
    ROW(NEW_NOTHROW, 17, "operator new(nothrow)",                                                  \
        "_ZnwmRKSt9nothrow_t", "S", ALLOC, NEW, 3, 2, ZERO, 0, ONE)                                \
    ROW(NEW_ALIGNED, 18, "operator new(align)",                                                    \
        "_ZnwmSt11align_val_t", "SX", ALLOC, NEW_ALIGNED, 3, 2, ZERO, 0, ONE)                      \
    ROW(NEW_ALIGNED_NOTHROW, 19, "operator new(align, nothrow)",                                   \
        "_ZnwmSt11align_val_tRKSt9nothrow_t", "SX", ALLOC, NEW_ALIGNED, 4, 3, ZERO, 0, ONE)        \
    ROW(NEW_ARRAY, 20, "operator new[]", "_Znam", "S", ALLOC, NEW_ARRAY, 2, 1, ZERO, 0, ONE)       \
    ROW(NEW_ARRAY_NOTHROW, 21, "operator new[](nothrow)",                                          \
        "_ZnamRKSt9nothrow_t", "S", ALLOC, NEW_ARRAY, 3, 2, ZERO, 0, ONE)                          \
    ROW(NEW_ARRAY_ALIGNED, 22, "operator new[](align)",                                            \
        "_ZnamSt11align_val_t", "SX", ALLOC, NEW_ARRAY_ALIGNED, 3, 2, ZERO, 0, ONE)                \
    ROW(NEW_ARRAY_ALIGNED_NOTHROW, 23, "operator new[](align, nothrow)",                           \
        "_ZnamSt11align_val_tRKSt9nothrow_t", "SX", ALLOC, NEW_ARRAY_ALIGNED, 4, 3, ZERO, 0, ONE)  \
    ROW(DELETE, 24, "operator delete", "_ZdlPv", "B", FREE, NEW, 1, 1, 0, ZERO, ONE)               \
    ROW(DELETE_NOTHROW, 25, "operator delete(nothrow)",                                            \
        "_ZdlPvRKSt9nothrow_t", "B", FREE, NEW, 2, 2, 0, ZERO, ONE)                                \
    ROW(DELETE_SIZED, 26, "operator delete(size)",                                                 \
        "_ZdlPvm", "BS", FREE_SIZED, NEW, 2, 2, 0, 1, ONE)                                         \
    ROW(DELETE_ALIGNED, 27, "operator delete(align)",                                              \
        "_ZdlPvSt11align_val_t", "BX", FREE, NEW_ALIGNED, 2, 2, 0, ZERO, ONE)                      \
    ROW(DELETE_ALIGNED_NOTHROW, 28, "operator delete(align, nothrow)",                             \
        "_ZdlPvSt11align_val_tRKSt9nothrow_t", "BX", FREE, NEW_ALIGNED, 3, 3, 0, ZERO, ONE)        \
    ROW(DELETE_SIZED_ALIGNED, 29, "operator delete(size, align)",                                  \
        "_ZdlPvmSt11align_val_t", "BSX", FREE_SIZED, NEW_ALIGNED, 3, 3, 0, 1, ONE)                 \
    ROW(DELETE_ARRAY, 30, "operator delete[]",                                                     \
        "_ZdaPv", "B", FREE, NEW_ARRAY, 1, 1, 0, ZERO, ONE)                                        \
    ROW(DELETE_ARRAY_NOTHROW, 31, "operator delete[](nothrow)",                                    \
        "_ZdaPvRKSt9nothrow_t", "B", FREE, NEW_ARRAY, 2, 2, 0, ZERO, ONE)                          \
    ROW(DELETE_ARRAY_SIZED, 32, "operator delete[](size)",                                         \
        "_ZdaPvm", "BS", FREE_SIZED, NEW_ARRAY, 2, 2, 0, 1, ONE)                                   \
    ROW(DELETE_ARRAY_ALIGNED, 33, "operator delete[](align)",                                      \
        "_ZdaPvSt11align_val_t", "BX", FREE, NEW_ARRAY_ALIGNED, 2, 2, 0, ZERO, ONE)                \
    ROW(DELETE_ARRAY_ALIGNED_NOTHROW, 34, "operator delete[](align, nothrow)",                     \
        "_ZdaPvSt11align_val_tRKSt9nothrow_t", "BX", FREE, NEW_ARRAY_ALIGNED, 3, 3, 0, ZERO, ONE)  \
    ROW(DELETE_ARRAY_SIZED_ALIGNED, 35, "operator delete[](size, align)",                          \
        "_ZdaPvmSt11align_val_t", "BSX", FREE_SIZED, NEW_ARRAY_ALIGNED, 3, 3, 0, 1, ONE)           \
    /* Windows. */                                                                                 \
    ROW(HEAP_ALLOC, 48, "HeapAlloc", NULL, "XFS", ALLOC, WINDOWS, 0, 0, ZERO, ZERO, ONE)           \
    ROW(HEAP_REALLOC, 49, "HeapReAlloc", NULL, "XFBS", REALLOC, WINDOWS, 0, 0, ZERO, ZERO, ONE)    \
    ROW(HEAP_FREE, 50, "HeapFree", NULL, "XFB", FREE, WINDOWS, 0, 0, ZERO, ZERO, ONE)              \
    ROW(HEAP_CREATE, 51, "HeapCreate", NULL, "FCR", CREATE, NONE, 0, 0, ZERO, ZERO, ONE)           \
    ROW(HEAP_PROTECT, 52, "RtlProtectHeap", NULL, "XP", PROTECT, NONE, 0, 0, ZERO, ZERO, ONE)      \
    ROW(HEAP_LOCK, 53, "HeapLock", NULL, "X", LOCK, NONE, 0, 0, ZERO, ZERO, ONE)                   \
    ROW(HEAP_UNLOCK, 54, "HeapUnlock", NULL, "X", UNLOCK, NONE, 0, 0, ZERO, ZERO, ONE)             \
    ROW(HEAP_DESTROY, 55, "HeapDestroy", NULL, "X", DESTROY, NONE, 0, 0, ZERO, ZERO, ONE)          \
    /* Custom heaps, reported by the program through ttdtrace/live_heap.h. */                      \
    ROW(LIVE_HEAP_CREATE, 56, "ttd_live_heap_create",                                              \
        NULL, "RC", CREATE, CUSTOM, 3, 0, ZERO, ZERO, ONE)                                         \
    ROW(LIVE_HEAP_ALLOC, 57, "ttd_live_heap_alloc", NULL, "S", ALLOC, CUSTOM, 3, 0, ZERO, 1, ONE)  \
    ROW(LIVE_HEAP_REALLOC, 58, "ttd_live_heap_realloc",                                            \
        NULL, "BS", REALLOC, CUSTOM, 3, 0, 1, 2, ONE)                                              \
    ROW(LIVE_HEAP_FREE, 59, "ttd_live_heap_free", NULL, "B", FREE, CUSTOM, 2, 0, 1, ZERO, ONE)     \
    ROW(LIVE_HEAP_PROTECT, 60, "ttd_live_heap_protect",                                            \
        NULL, "P", PROTECT, CUSTOM, 2, 0, ZERO, ZERO, ONE)                                         \
    ROW(LIVE_HEAP_LOCK, 61, "ttd_live_heap_lock",                                                  \
        NULL, NULL, LOCK, CUSTOM, 1, 0, ZERO, ZERO, ONE)                                           \
    ROW(LIVE_HEAP_UNLOCK, 62, "ttd_live_heap_unlock",                                              \
        NULL, NULL, UNLOCK, CUSTOM, 1, 0, ZERO, ZERO, ONE)                                         \
    ROW(LIVE_HEAP_DESTROY, 63, "ttd_live_heap_destroy",                                            \
        NULL, NULL, DESTROY, CUSTOM, 1, 0, ZERO, ZERO, ONE)                                        \
    /* Functions of other allocators whose parameters differ from all of the above. */             \
    ROW(MALLOCX, 64, "mallocx", NULL, "SX", ALLOC, C, 3, 2, ZERO, 0, ONE)                          \
    ROW(RALLOCX, 65, "rallocx", NULL, "BSX", REALLOC, C, 3, 3, 0, 1, ONE)                          \
    ROW(XALLOCX, 66, "xallocx", NULL, "BSXX", RESIZE, C, 4, 4, 0, 1, ONE)                          \
    ROW(DALLOCX, 67, "dallocx", NULL, "BX", FREE, C, 2, 2, 0, ZERO, ONE)                           \
    ROW(SDALLOCX, 68, "sdallocx", NULL, "BSX", FREE, C, 3, 3, 0, 1, ONE)                           \
    ROW(MI_MALLOC_ALIGNED, 69, "mi_malloc_aligned", NULL, "SX", ALLOC, C, 3, 2, ZERO, 0, ONE)      \
    ROW(MI_CALLOC_ALIGNED, 70, "mi_calloc_aligned", NULL, "XQX", ALLOC, C, 4, 3, ZERO, 1, 0)       \
    ROW(MI_REALLOC_ALIGNED, 71, "mi_realloc_aligned", NULL, "BSX", REALLOC, C, 3, 3, 0, 1, ONE)    \
    ROW(MI_RECALLOC_ALIGNED, 72, "mi_recalloc_aligned", NULL, "BXQX", REALLOC, C, 4, 4, 0, 2, 1)   \
    ROW(MI_EXPAND, 73, "mi_expand", NULL, "BS", RESIZE, C, 2, 2, 0, 1, ONE)                        \
    ROW(MI_FREE_SIZE, 74, "mi_free_size", NULL, "BS", FREE, C, 2, 2, 0, 1, ONE)                    \
    ROW(MI_FREE_ALIGNED, 75, "mi_free_aligned", NULL, "BX", FREE, C, 2, 2, 0, ZERO, ONE)           \
    ROW(MI_STRDUP, 76, "mi_strdup", NULL, "X", ALLOC, C, 3, 1, ZERO, 1, ONE)                       \
    ROW(MI_REALPATH, 77, "mi_realpath", NULL, "X", ALLOC, C, 3, 1, ZERO, 1, ONE)
/* clang-format on */

#endif
