/* SPDX-License-Identifier: MIT */
#include "view/function_names.h"

#include <string.h>

#include "symbols/canonical.h"

/* The functions of C and C++ that return a block, by their whole names. */
#define FUNCTION(name, value, text, symbol, template, effect, family, ...)                         \
    [value] = TTD_FAMILY_##family <= TTD_FAMILY_NEW_ARRAY_ALIGNED &&                               \
                      (TTD_EFFECT_##effect == TTD_EFFECT_ALLOC ||                                  \
                       TTD_EFFECT_##effect == TTD_EFFECT_REALLOC)                                  \
                  ? (text)                                                                         \
                  : NULL,

static const char *const functions[] = {TTD_APIS(FUNCTION)};

/* Allocation functions, by the beginning of the name: operators with their parameters, and the
 * functions that containers allocate through. */
static const char *const prefixes[] = {"operator new(",
                                       "operator new[](",
                                       "std::allocator<",
                                       "std::allocator_traits<",
                                       "std::__new_allocator<",
                                       "__gnu_cxx::new_allocator<",
                                       "__gnu_cxx::__alloc_traits<",
                                       "std::__1::allocator<",
                                       "std::__1::allocator_traits<"};

/* Functions of programs and libraries that only pass memory on, as patterns of canonical names. */
static const char *const wrappers[] = {
    /* GNU programs, and others with the same names */
    "xmalloc", "xzalloc", "xcalloc", "xrealloc", "xreallocarray", "x*nrealloc", "x2realloc",
    "xnmalloc", "xcharalloc", "xpalloc", "ximalloc", "xicalloc", "xirealloc", "xmemdup", "ximemdup",
    "xstrdup", "xstrndup", "xmemdupz", "do_xmalloc", "xmallocz", "xvasprintf", "xasprintf",
    "safe_malloc", "safe_calloc", "safe_realloc", "safe_strdup", "emalloc", "ecalloc", "erealloc",
    "estrdup",
    /* GLib, GTK, talloc */
    "g_malloc*", "g_try_malloc*", "g_realloc*", "g_try_realloc*", "g_slice_alloc*", "g_slice_copy",
    "g_strdup", "g_strndup", "g_memdup*", "g_aligned_alloc*", "g_rc_box_alloc*",
    "g_atomic_rc_box_alloc*", "_talloc*", "talloc_*alloc*", "__talloc*",
    /* Redis and its relatives, hiredis */
    "zmalloc*", "zcalloc*", "zrealloc*", "ztrymalloc*", "ztrycalloc*", "ztryrealloc*", "zstrdup",
    "valkey_malloc*", "valkey_calloc*", "valkey_realloc*", "hi_malloc", "hi_calloc", "hi_realloc",
    "hi_strdup", "s_malloc*", "s_realloc*", "s_trymalloc*", "s_tryrealloc*",
    /* Perl, Python, Ruby, PHP, Lua, Tcl */
    "Perl_safesys*", "Perl_malloc", "Perl_calloc", "Perl_realloc", "Perl_savepv*", "PyMem_*alloc",
    "PyMem_Malloc", "PyMem_Calloc", "PyMem_Realloc", "PyMem_Raw*", "PyObject_Malloc",
    "PyObject_Calloc", "PyObject_Realloc", "_PyMem_*", "_PyObject_Malloc", "_PyObject_Calloc",
    "_PyObject_Realloc", "pymalloc_alloc", "ruby_xmalloc*", "ruby_xcalloc*", "ruby_xrealloc*",
    "objspace_xmalloc*", "objspace_xcalloc*", "objspace_xrealloc*", "rb_*_xmalloc*", "_emalloc*",
    "_safe_emalloc*", "_ecalloc*", "_erealloc*", "_safe_erealloc*", "_estrdup*", "_estrndup*",
    "__zend_malloc", "__zend_calloc", "__zend_realloc", "zend_mm_alloc*", "l_alloc", "luaM_malloc_",
    "luaM_realloc_", "luaM_saferealloc_", "Tcl_Alloc", "Tcl_Realloc", "TclpAlloc", "TclpRealloc",
    /* SQLite, PostgreSQL, MariaDB */
    "sqlite3Malloc*", "sqlite3_malloc*", "sqlite3Realloc*", "sqlite3_realloc*", "sqlite3MemMalloc",
    "sqlite3MemRealloc", "sqlite3DbMalloc*", "sqlite3DbRealloc*", "sqlite3DbStrDup",
    "sqlite3DbStrNDup", "dbMallocRawFinish", "dbReallocFinish", "mallocWithAlarm", "palloc",
    "palloc0", "palloc_extended", "repalloc*", "pstrdup", "MemoryContextAlloc*",
    "MemoryContextStrdup", "AllocSetAlloc*", "AllocSetRealloc", "my_malloc", "my_realloc",
    "my_strdup",
    /* nginx, APR, OpenSSL, curl, libxml2 */
    "ngx_alloc", "ngx_calloc", "ngx_memalign", "ngx_palloc*", "ngx_pnalloc", "ngx_pcalloc",
    "apr_palloc*", "apr_pcalloc*", "allocator_alloc", "CRYPTO_malloc", "CRYPTO_zalloc",
    "CRYPTO_calloc", "CRYPTO_realloc", "CRYPTO_clear_realloc", "CRYPTO_aligned_alloc",
    "CRYPTO_strdup", "CRYPTO_strndup", "CRYPTO_memdup", "curl_dbg_*alloc", "xmlMallocLoc",
    "xmlReallocLoc", "xmlMemMalloc", "xmlMemRealloc",
    /* Other allocators' names, and names of Rust */
    "je_malloc", "je_calloc", "je_realloc", "je_memalign", "je_aligned_alloc", "je_posix_memalign",
    "je_valloc", "je_mallocx", "je_rallocx", "tc_malloc", "tc_calloc", "tc_realloc", "mi_malloc*",
    "mi_zalloc*", "mi_calloc*", "mi_realloc*", "__rust_alloc*", "__rust_realloc", "__rdl_alloc*",
    "__rdl_realloc", "alloc::alloc::*", "alloc::raw_vec::*", "*ascore::alloc::Allocator>::*",
    "hashbrown::raw::alloc::*",
    /* Frameworks of C++ */
    "operator new", "operator new[]", "qMallocAligned", "QArrayData::allocate*",
    "QArrayData::reallocate*", "llvm::safe_malloc", "llvm::safe_calloc", "llvm::safe_realloc",
    "llvm::allocate_buffer", "boost::pool*::malloc"};

static bool function_name_is_wrapper(struct ttd_string name)
{
    for (size_t i = 0; i < sizeof wrappers / sizeof wrappers[0]; i++) {
        /* Most patterns begin with another letter: a search looks at nothing else of these. */
        if ((!name.size || *wrappers[i] == *name.data || *wrappers[i] == '*') &&
            glob_match(GLOB_STARS, (struct ttd_string){wrappers[i], strlen(wrappers[i])}, name))
            return true;
    }
    return false;
}

bool allocators_wrap(struct ttd_string canonical)
{
    struct ttd_string last = canonical_last(canonical);
    return function_name_is_wrapper(canonical) ||
           (last.data != canonical.data && last.size && function_name_is_wrapper(last));
}

bool allocators_have(struct ttd_string function)
{
    /* The C library's functions have such names too. */
    static const char libc[] = "__libc_";
    const size_t libc_size = sizeof libc - 1;
    struct ttd_string plain = function;
    if (function.size > libc_size && memcmp(function.data, libc, libc_size) == 0)
        plain = (struct ttd_string){function.data + libc_size, function.size - libc_size};
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (functions[i] && strlen(functions[i]) == plain.size &&
            memcmp(functions[i], plain.data, plain.size) == 0)
            return true;
    }
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        size_t size = strlen(prefixes[i]);
        if (size <= function.size && memcmp(prefixes[i], function.data, size) == 0)
            return true;
    }
    return false;
}

bool allocators_are_operator(struct ttd_string function)
{
    static const char *const beginnings[] = {"operator new(", "operator new[](", "operator delete(",
                                             "operator delete[]("};
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++) {
        size_t size = strlen(beginnings[i]);
        if (size <= function.size && memcmp(beginnings[i], function.data, size) == 0)
            return true;
    }
    return false;
}

const char *allocators_symbol(uint8_t api)
{
#define SYMBOL(name, value, text, symbol, ...) [value] = (symbol),
    static const char *const symbols[] = {TTD_APIS(SYMBOL)};
    if (api < sizeof symbols / sizeof symbols[0] && symbols[api])
        return symbols[api];
    return ttd_api_name(api);
}

/* The first place in the text, from `t` on, at which the pattern behind a '*' may begin to match;
 * the end of the text if there is none, or nothing is behind the '*'. */
static size_t name_skip_to(enum glob_kind kind, struct ttd_string pattern, size_t star,
                           struct ttd_string text, size_t t)
{
    size_t end = star;
    while (end < pattern.size && pattern.data[end] != '*' &&
           (pattern.data[end] != '?' || kind == GLOB_STARS))
        end++;
    if (star == pattern.size || t == text.size)
        return text.size;
    const char *found = memmem(text.data + t, text.size - t, pattern.data + star, end - star);
    return found ? (size_t)(found - text.data) : text.size;
}

bool glob_match(enum glob_kind kind, struct ttd_string pattern, struct ttd_string text)
{
    size_t p = 0;
    size_t t = 0;
    /* State of backtracking: the pattern after the last '*', and the text where it was tried last.
     * One '*' suffices, because an earlier one need not match more. */
    size_t star = SIZE_MAX;
    size_t tried = 0;
    while (t < text.size) {
        char c = p < pattern.size ? pattern.data[p] : '\0';
        if (p < pattern.size && c == '*') {
            star = ++p;
            tried = t;
        } else if (p < pattern.size &&
                   (c == text.data[t] || (c == '?' && kind == GLOB_STARS_AND_MARKS))) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star;
            tried = name_skip_to(kind, pattern, star, text, tried + 1);
            t = tried;
        } else {
            return false;
        }
    }
    while (p < pattern.size && pattern.data[p] == '*')
        p++;
    return p == pattern.size;
}

bool glob_find(struct ttd_string pattern, struct ttd_string text)
{
    if (memchr(pattern.data, '*', pattern.size) || memchr(pattern.data, '?', pattern.size))
        return text.size && glob_match(GLOB_STARS_AND_MARKS, pattern, text);
    return text.size && memmem(text.data, text.size, pattern.data, pattern.size);
}

struct ttd_string glob_base_name(struct ttd_string path)
{
    for (size_t i = path.size; i > 0; i--) {
        if (path.data[i - 1] == '/')
            return (struct ttd_string){path.data + i, path.size - i};
    }
    return path;
}
