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

const char *allocators_symbol(uint8_t api)
{
    static const char *const symbols[] = {
        [TTD_API_NEW] = "_Znwm",
        [TTD_API_NEW_NOTHROW] = "_ZnwmRKSt9nothrow_t",
        [TTD_API_NEW_ALIGNED] = "_ZnwmSt11align_val_t",
        [TTD_API_NEW_ALIGNED_NOTHROW] = "_ZnwmSt11align_val_tRKSt9nothrow_t",
        [TTD_API_NEW_ARRAY] = "_Znam",
        [TTD_API_NEW_ARRAY_NOTHROW] = "_ZnamRKSt9nothrow_t",
        [TTD_API_NEW_ARRAY_ALIGNED] = "_ZnamSt11align_val_t",
        [TTD_API_NEW_ARRAY_ALIGNED_NOTHROW] = "_ZnamSt11align_val_tRKSt9nothrow_t",
        [TTD_API_DELETE] = "_ZdlPv",
        [TTD_API_DELETE_NOTHROW] = "_ZdlPvRKSt9nothrow_t",
        [TTD_API_DELETE_SIZED] = "_ZdlPvm",
        [TTD_API_DELETE_ALIGNED] = "_ZdlPvSt11align_val_t",
        [TTD_API_DELETE_ALIGNED_NOTHROW] = "_ZdlPvSt11align_val_tRKSt9nothrow_t",
        [TTD_API_DELETE_SIZED_ALIGNED] = "_ZdlPvmSt11align_val_t",
        [TTD_API_DELETE_ARRAY] = "_ZdaPv",
        [TTD_API_DELETE_ARRAY_NOTHROW] = "_ZdaPvRKSt9nothrow_t",
        [TTD_API_DELETE_ARRAY_SIZED] = "_ZdaPvm",
        [TTD_API_DELETE_ARRAY_ALIGNED] = "_ZdaPvSt11align_val_t",
        [TTD_API_DELETE_ARRAY_ALIGNED_NOTHROW] = "_ZdaPvSt11align_val_tRKSt9nothrow_t",
        [TTD_API_DELETE_ARRAY_SIZED_ALIGNED] = "_ZdaPvmSt11align_val_t"};
    if (api < sizeof symbols / sizeof symbols[0] && symbols[api])
        return symbols[api];
    return ttd_api_name(api);
}
