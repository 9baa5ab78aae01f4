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

/* Frames that show a block of thread-local storage: the frames of an allocator's caller in the
 * dynamic linker. */
#define JUDGED_FRAMES 4

/* Frames that include the allocating functions, behind wrappers of allocators. */
#define CALLER_FRAMES 16

/* Frames that mostly include them, and their callers. */
#define FEW_FRAMES 6

/* GLib's header before a closure, and libstdc++'s before the characters of a string that
 * exceptions share. */
#define CLOSURE_HEADER 32
#define STRING_HEADER  24

/* An exception of libstdc++ for 64 bits: its header, to which the thread has a pointer while the
 * exception is handled, lies behind a count of references, and before the thrown object. */
#define EXCEPTION_COUNT  16
#define EXCEPTION_HEADER 128

/* The record at the end of a buffer of std::pmr, by which its resource holds it. */
#define BUFFER_RECORD 16

static bool judge_keeps_stack(void *context, ttd_id stack)
{
    struct runtime_judge *judge = context;
    struct frame_list *frames = &judge->frames;
    uint32_t judged = map_get(&judge->judged, stack, 0);
    if (judged != MAP_NONE)
        return judged;
    enum ttd_status status = frame_list_begin(frames, judge->definitions, stack, JUDGED_FRAMES);
    bool keeps = status == TTD_OK && runtime_is_thread_storage(frames);
    if (status == TTD_OK)
        status = map_set(&judge->judged, stack, 0, keeps);
    if (status != TTD_OK)
        judge->status = status;
    return keeps;
}

/* Facts about a function, by its name: bits. */
enum judge_trait {
    JUDGE_WRAPS = 1,
    JUDGE_SDS = 2,
    JUDGE_HASH_TABLE = 4,
    JUDGE_INSTANCE = 8,
    JUDGE_CLOSURE = 16,
    JUDGE_SLICE = 32,
    JUDGE_EXCEPTION = 64,
    JUDGE_STRING = 128,
    JUDGE_BUFFER = 256,
    JUDGE_TREE = 512
};

/* The C library's search tree: a node's pointer to its left child has the colour of the node in its
 * lowest bit. The names are too short to be parts of others. */
#define TREE_COLOUR 1
static const char *const tree_functions[] = {"tsearch", "__tsearch", "__GI___tsearch"};

static const char slice_function[] = "g_slice_alloc";

/* Parts of symbols. */
static const struct {
    const char *part;
    enum judge_trait trait;
} judge_parts[] = {{"sdsnew", JUDGE_SDS},
                   {"sdsMakeRoomFor", JUDGE_SDS},
                   {"hashbrown", JUDGE_HASH_TABLE},
                   {"g_type_create_instance", JUDGE_INSTANCE},
                   {"g_closure_new_simple", JUDGE_CLOSURE},
                   {slice_function, JUDGE_SLICE},
                   {"__cxa_allocate_exception", JUDGE_EXCEPTION},
                   {"4_Rep9_S_create", JUDGE_STRING},
                   {"monotonic_buffer_resource13_M_new_buffer", JUDGE_BUFFER}};

static bool judge_has_part(struct ttd_string name, const char *part)
{
    return name.size && memmem(name.data, name.size, part, strlen(part));
}

static bool judge_is_whole(struct ttd_string name, const char *whole)
{
    return name.size == strlen(whole) && memcmp(name.data, whole, name.size) == 0;
}

static uint32_t judge_traits(struct runtime_judge *judge, const struct frame *frame)
{
    if (!frame->function.size)
        return 0;
    uint32_t traits = map_get(&judge->functions, frame->name, 0);
    if (traits != MAP_NONE)
        return traits;
    traits = allocators_have(frame->function) ||
                     allocators_wrap(definitions_canonical(judge->definitions, frame->name))
                 ? JUDGE_WRAPS
                 : 0;
    for (size_t i = 0; i < sizeof judge_parts / sizeof judge_parts[0]; i++) {
        if (judge_has_part(frame->symbol, judge_parts[i].part))
            traits |= judge_parts[i].trait;
    }
    for (size_t i = 0; i < sizeof tree_functions / sizeof tree_functions[0]; i++) {
        if (judge_is_whole(frame->symbol, tree_functions[i]))
            traits |= JUDGE_TREE;
    }
    enum ttd_status status = map_set(&judge->functions, frame->name, 0, traits);
    if (status != TTD_OK)
        judge->status = status;
    return traits;
}

/* Whether a stack may have functions of GLib's slices: all of its first frames are read then. */
static bool judge_may_have_slices(struct runtime_judge *judge)
{
    const struct definitions *definitions = judge->definitions;
    for (size_t i = 0; i < definitions->frame_count && !judge->knows_slices; i++) {
        if (judge_has_part(definitions_text(definitions, definitions->frames[i].function),
                           slice_function))
            judge->has_slices = judge->knows_slices = true;
    }
    judge->knows_slices = true;
    return judge->has_slices;
}

/* Sets `first` to the number of the first frames that wrap allocators. */
static bool judge_read_frames(struct runtime_judge *judge, ttd_id stack, size_t max_count,
                              size_t *first)
{
    struct frame_list *frames = &judge->frames;
    if (frame_list_begin(frames, judge->definitions, stack, max_count) != TTD_OK)
        return false;
    *first = 0;
    while (*first < frames->count && judge_traits(judge, &frames->frames[*first]) & JUDGE_WRAPS)
        ++*first;
    return true;
}

/* Sets the sizes of headers that the names of the allocating functions imply. The runtime's own may
 * count as wrappers. */
static void judge_find_headers(struct heap_callers *callers, uint32_t traits)
{
    if (traits & JUDGE_CLOSURE)
        callers->headers[0] = CLOSURE_HEADER;
    if (traits & JUDGE_STRING)
        callers->headers[0] = STRING_HEADER;
    if (traits & JUDGE_EXCEPTION) {
        callers->headers[0] = EXCEPTION_COUNT;
        callers->headers[1] = EXCEPTION_HEADER;
    }
    if (traits & JUDGE_TREE)
        callers->headers[0] = TREE_COLOUR;
    if (traits & JUDGE_BUFFER)
        callers->trailer = BUFFER_RECORD;
}

/* A list is shorter, or empty, if memory or steps are short: then less is inferred from it. */
static void judge_list_callers(void *context, ttd_id stack, struct heap_callers *callers)
{
    struct runtime_judge *judge = context;
    struct frame_list *frames = &judge->frames;
    size_t max_count = judge_may_have_slices(judge) ? CALLER_FRAMES : FEW_FRAMES;
    size_t first;
    if (!judge_read_frames(judge, stack, max_count, &first))
        return;
    if (frames->count >= max_count && first + HEAP_CALLERS > frames->count &&
        !judge_read_frames(judge, stack, CALLER_FRAMES, &first))
        return;
    if (first)
        callers->wrapper = (struct heap_caller){frames->frames[0].module_id,
                                                frames->frames[0].offset, frames->frames[0].name};
    for (size_t i = first; i < frames->count && callers->count < HEAP_CALLERS; i++) {
        const struct frame *frame = &frames->frames[i];
        callers->items[callers->count++] =
            (struct heap_caller){frame->module_id, frame->offset, frame->name};
    }
    uint32_t traits = callers->count ? judge_traits(judge, &frames->frames[first]) : 0;
    callers->is_sds = traits & JUDGE_SDS;
    callers->is_hash_table = traits & JUDGE_HASH_TABLE;
    callers->is_instance = traits & JUDGE_INSTANCE;
    for (size_t i = 0; i < first; i++)
        traits |= judge_traits(judge, &frames->frames[i]) & JUDGE_EXCEPTION;
    judge_find_headers(callers, traits);
    /* A slice of its own comes from a wrapper only. */
    for (size_t i = first + 1; i < frames->count && !callers->is_slice_page; i++)
        callers->is_slice_page = judge_traits(judge, &frames->frames[i]) & JUDGE_SLICE;
}

void runtime_judge_init(struct runtime_judge *judge, struct definitions *definitions)
{
    *judge = (struct runtime_judge){.definitions = definitions};
    map_init(&judge->judged);
    map_init(&judge->functions);
}

void runtime_judge_free(struct runtime_judge *judge)
{
    frame_list_free(&judge->frames);
    map_free(&judge->judged);
    map_free(&judge->functions);
}

void runtime_judge_attach(struct runtime_judge *judge, struct heap_trace *trace)
{
    trace->hook.callers = (struct heap_stack_callers){judge, judge_list_callers};
    if (runtime_has_thread_storage(judge->definitions))
        trace->hook.judge = (struct heap_stack_judge){judge, judge_keeps_stack};
}

/* Mismatches that are none. */

static bool judge_is_operator(const struct heap_call *call)
{
    static const char word[] = "operator";
    const char *name = ttd_api_name(call->api);
    return name && strncmp(name, word, sizeof word - 1) == 0;
}

/* Whether a call of malloc() or free() may come from an operator that is inlined in the frame:
 * nothing says which ones are. */
static bool judge_may_be_inlined(const struct heap_call *call, const struct frame *frame)
{
    return !judge_is_operator(call) && call->action != TTD_ACTION_REALLOC &&
           frame->file.size == 0 && !runtime_has_module(frame->module);
}

static bool judge_is_c(struct ttd_string file)
{
    return file.size >= 2 && memcmp(file.data + file.size - 2, ".c", 2) == 0;
}

/* Whether a call of malloc() or free() may come from an operator of the frame's module that has
 * left no frame, because it ends in this call, while the other module takes the operators of the
 * C++ library: a library that contains that one has its own and need not export them. */
static bool judge_may_be_hidden(const struct heap_call *call, const struct frame *frame,
                                const struct frame *other)
{
    return !judge_is_operator(call) && call->action != TTD_ACTION_REALLOC &&
           frame->module_id != other->module_id && !judge_is_c(frame->file) &&
           !runtime_has_module(frame->module);
}

/* Whether a function is one that releases blocks, or reallocates them. */
static bool judge_releases(struct ttd_string function)
{
    static const char *const names[] = {"free", "cfree", "realloc", "reallocarray"};
    struct ttd_string name = canonical_without_clone(function);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (name.size == strlen(names[i]) && memcmp(name.data, names[i], name.size) == 0)
            return true;
    return allocators_are_operator(function);
}

/* Sets `is_layer` to whether a call was made by such a function: one on top of the allocator. */
static enum ttd_status judge_is_layer(struct definitions *definitions, const struct heap_call *call,
                                      bool *is_layer)
{
    struct frame_list frames = {0};
    enum ttd_status status = frame_list_begin(&frames, definitions,
                                              heap_call_is_known(call) ? call->stack : TTD_NONE, 1);
    *is_layer = status == TTD_OK && frames.count && judge_releases(frames.frames[0].function);
    frame_list_free(&frames);
    return status;
}

/* Whether the program released the block once: a free() on top of the allocator's may keep it, and
 * release it in a later call. */
static enum ttd_status judge_deferral(struct definitions *definitions, struct heap_finding *finding)
{
    bool is_layer = false, was_layer = false;
    enum ttd_status status = judge_is_layer(definitions, &finding->call, &is_layer);
    if (status == TTD_OK && is_layer)
        status = judge_is_layer(definitions, &finding->released, &was_layer);
    finding->may_be_deferred = is_layer && !was_layer;
    finding->is_certain &= !finding->may_be_deferred;
    return status;
}

enum ttd_status finding_pairs_operators(struct definitions *definitions,
                                        struct heap_finding *finding, bool *pairs)
{
    const struct heap_call *calls[] = {&finding->call, &finding->allocated};
    struct frame_list frames = {0};
    struct frame innermost[2];
    int known = 0;
    enum ttd_status status = TTD_OK;
    *pairs = false;
    if (finding->kind == HEAP_ERROR_DOUBLE_FREE || finding->kind == HEAP_ERROR_REALLOC_OF_FREED)
        return judge_deferral(definitions, finding);
    if (finding->kind != HEAP_ERROR_MISMATCHED_FREE)
        return TTD_OK;
    bool has_operator = judge_is_operator(calls[0]) != judge_is_operator(calls[1]);
    for (size_t i = 0; i < 2 && status == TTD_OK; i++) {
        status = frame_list_begin(&frames, definitions,
                                  heap_call_is_known(calls[i]) ? calls[i]->stack : TTD_NONE, 1);
        if (status != TTD_OK || !frames.count)
            continue;
        innermost[i] = frames.frames[0];
        known++;
        *pairs |= allocators_are_operator(frames.frames[0].function);
        finding->may_be_inlined |=
            has_operator && judge_may_be_inlined(calls[i], &frames.frames[0]);
    }
    for (int i = 0; i < 2 && has_operator && known == 2; i++)
        finding->may_be_hidden |= judge_may_be_hidden(calls[i], &innermost[i], &innermost[1 - i]);
    finding->is_certain &= !finding->may_be_inlined && !finding->may_be_hidden;
    frame_list_free(&frames);
    return status;
}
