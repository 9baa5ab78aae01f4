/* SPDX-License-Identifier: MIT */
#include "view/allocators.h"

#include <string.h>

/* Whole names. */
static const char *const functions[] = {
    "malloc",         "calloc",        "realloc",       "reallocarray",   "memalign",
    "posix_memalign", "aligned_alloc", "valloc",        "pvalloc",        "operator new",
    "operator new[]", "__libc_malloc", "__libc_calloc", "__libc_realloc", "__libc_memalign"};

/* How names begin: operators with their parameters, and what containers allocate through. */
static const char *const prefixes[] = {"operator new(",
                                       "operator new[](",
                                       "std::allocator<",
                                       "std::allocator_traits<",
                                       "std::__new_allocator<",
                                       "__gnu_cxx::new_allocator<",
                                       "__gnu_cxx::__alloc_traits<",
                                       "std::__1::allocator<",
                                       "std::__1::allocator_traits<"};

bool allocators_have(ttd_string function)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (strlen(functions[i]) == function.size &&
            memcmp(functions[i], function.data, function.size) == 0)
            return true;
    }
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        size_t size = strlen(prefixes[i]);
        if (size <= function.size && memcmp(prefixes[i], function.data, size) == 0)
            return true;
    }
    return false;
}
