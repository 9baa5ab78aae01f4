/* SPDX-License-Identifier: MIT */
#include "symbols/frames.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "symbols/canonical.h"

void frame_list_free(struct frame_list *list)
{
    free(list->frames);
    *list = (struct frame_list){0};
}

enum ttd_status frame_list_push(struct frame_list *list, const struct frame *frame)
{
    enum ttd_status status =
        grow_array((void **)&list->frames, &list->capacity, list->count + 1, sizeof *list->frames);
    if (status == TTD_OK)
        list->frames[list->count++] = *frame;
    return status;
}

/* Bytes of names that cost one step, because whoever asks for a frame reads its names. */
#define NAME_STEP 64

static enum ttd_status frames_spend(const struct definitions *definitions,
                                    const struct frame *frame)
{
    uint64_t bytes = (uint64_t)frame->function.size + frame->file.size + frame->module.size;
    return stack_table_spend(&definitions->stacks, 1 + bytes / NAME_STEP);
}

enum ttd_status frame_list_add(struct frame_list *list, struct definitions *definitions,
                               const struct ttd_stack *stack)
{
    struct frame frame = {
        .module_id = stack->module, .offset = stack->offset, .address = stack->offset};
    const struct definition_module *module = definitions_module(definitions, stack->module);
    if (module) {
        frame.module = definitions_text(definitions, module->path);
        frame.address += module->bias;
    }
    const struct definition_symbol *symbol =
        definitions_symbol(definitions, stack->module, stack->offset);
    enum ttd_status status = TTD_OK;
    /* Without names the frame has its module and offset, for a later lookup. */
    if (!symbol || !symbol->count) {
        status = frames_spend(definitions, &frame);
        return status == TTD_OK ? frame_list_push(list, &frame) : status;
    }
    for (uint32_t i = 0; i < symbol->count && status == TTD_OK; i++) {
        const struct ttd_symbol_frame *name = &definitions->frames[symbol->first + i];
        frame.function = definitions_function(definitions, name->function);
        frame.symbol = definitions_text(definitions, name->function);
        frame.name = name->function;
        frame.file = definitions_text(definitions, name->file);
        frame.line = name->line;
        frame.is_inlined = i + 1 < symbol->count;
        status = frames_spend(definitions, &frame);
        if (status == TTD_OK)
            status = frame_list_push(list, &frame);
    }
    return status;
}

enum ttd_status frame_list_expand(struct frame_list *list, struct definitions *definitions,
                                  ttd_id stack)
{
    return frame_list_begin(list, definitions, stack, FRAME_LIST_MAX);
}

enum ttd_status frame_list_begin(struct frame_list *list, struct definitions *definitions,
                                 ttd_id stack, size_t max_count)
{
    list->count = 0;
    enum ttd_status status = TTD_OK;
    while (status == TTD_OK && list->count < max_count) {
        struct ttd_stack current;
        status = definitions_stack(definitions, stack, &current);
        if (status == TTD_OK)
            status = frame_list_add(list, definitions, &current);
        if (status == TTD_OK)
            stack = current.parent;
    }
    return status == TTD_END ? TTD_OK : status;
}

/* Beginnings of the base names of the runtimes' modules. */
static const char *const modules[] = {
    "libc.so",      "libc-2.",   "ld-linux",  "ld-2.",     "ld.so",   "libc.musl-", "ld-musl-",
    "libstdc++.so", "libgcc_s.", "libc++.so", "libc++abi", "libm.so", "libm-2.",    "libpthread.so",
    "libpthread-",  "libdl.so",  "libdl-2.",  "librt.so",  "librt-2."};

/* Functions below main(), by their whole names. */
static const char *const beginnings[] = {"_start",
                                         "__libc_start_call_main",
                                         "__libc_csu_init",
                                         "call_init",
                                         "start_thread",
                                         "clone",
                                         "clone3",
                                         "__clone",
                                         "__clone3",
                                         "thread_start",
                                         "execute_native_thread_routine"};
static const char *const prefixes[] = {"__libc_start_main", "generic_start_main", "_GLOBAL__sub_I",
                                       "__GI___clone"};

static bool frames_runtime_text_equals(struct ttd_string text, const char *word)
{
    return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}

static bool frames_runtime_text_begins(struct ttd_string text, const char *word)
{
    size_t size = strlen(word);
    return text.size >= size && memcmp(text.data, word, size) == 0;
}

bool runtime_has_module(struct ttd_string path)
{
    size_t begin = path.size;
    while (begin > 0 && path.data[begin - 1] != '/')
        begin--;
    struct ttd_string name =
        begin ? (struct ttd_string){path.data + begin, path.size - begin} : path;
    for (size_t i = 0; i < sizeof modules / sizeof modules[0]; i++) {
        if (frames_runtime_text_begins(name, modules[i]))
            return true;
    }
    return false;
}

static bool frames_is_beginning(struct ttd_string symbol)
{
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++) {
        if (frames_runtime_text_equals(symbol, beginnings[i]))
            return true;
    }
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        if (frames_runtime_text_begins(symbol, prefixes[i]))
            return true;
    }
    return false;
}

bool runtime_begins(const struct frame *frame)
{
    return frames_is_beginning(frame->symbol);
}

bool runtime_has_beginning(const struct definitions *definitions)
{
    for (size_t i = 0; i < definitions->frame_count; i++) {
        if (frames_is_beginning(definitions_text(definitions, definitions->frames[i].function)))
            return true;
    }
    const struct definition_module *module;
    for (ttd_id id = 1; (module = definitions_module(definitions, id)); id++) {
        struct ttd_string path = definitions_text(definitions, module->path);
        static const char recorder[] = "/libttdpreload.so";
        if (path.size >= sizeof recorder - 1 &&
            frames_runtime_text_begins(
                (struct ttd_string){path.data + path.size - (sizeof recorder - 1),
                                    sizeof recorder - 1},
                recorder))
            return true;
    }
    return false;
}

bool runtime_has_function(struct ttd_string canonical, bool *is_mixed)
{
    static const char *const inner[] = {"__cxx11::", "__1::", "basic_"};
    *is_mixed = false;
    if (frames_runtime_text_begins(canonical, "__gnu_cxx::"))
        return true;
    if (!frames_runtime_text_begins(canonical, "std::"))
        return false;
    struct ttd_string name = {canonical.data + 5, canonical.size - 5};
    for (size_t i = 0; i < sizeof inner / sizeof inner[0]; i++) {
        if (!frames_runtime_text_begins(name, inner[i]))
            continue;
        *is_mixed = i == 2;
        name = (struct ttd_string){name.data + strlen(inner[i]), name.size - strlen(inner[i])};
    }
    return true;
}

/* Whether a symbol is of Rust: "_R…", or "_ZN…17h" and 16 digits of a hash. */
static bool frames_is_of_rust(struct ttd_string symbol)
{
    struct ttd_string name = canonical_without_clone(symbol);
    if (frames_runtime_text_begins(name, "_R"))
        return true;
    if (!frames_runtime_text_begins(name, "_ZN") || name.size < 24 ||
        name.data[name.size - 1] != 'E')
        return false;
    const char *hash = name.data + name.size - 20;
    return memcmp(hash, "17h", 3) == 0 && strspn(hash + 3, "0123456789abcdef") == 16;
}

/* Whether a type or path of Rust is one of the standard library: or a primitive type, whose methods
 * nobody else can define. */
static bool frames_is_of_rust_library(struct ttd_string path)
{
    static const char *const crates[] = {"core::", "alloc::", "std::", "hashbrown::"};
    static const char *const before[] = {"&", "mut ", "dyn ", "*const ", "*mut ", "[", "("};
    for (size_t i = 0; i < sizeof before / sizeof before[0];) {
        size_t size = strlen(before[i]);
        bool stands = frames_runtime_text_begins(path, before[i]);
        if (stands)
            path = (struct ttd_string){path.data + size, path.size - size};
        i = stands ? 0 : i + 1;
    }
    size_t size = 0;
    while (size < path.size && !strchr("<>;,[]() ", path.data[size]))
        size++;
    for (size_t i = 0; i < sizeof crates / sizeof crates[0]; i++) {
        if (frames_runtime_text_begins(path, crates[i]))
            return true;
    }
    return !memchr(path.data, ':', size);
}

bool runtime_is_rust(const struct frame *frame)
{
    struct ttd_string name = frame->function;
    if (!frames_is_of_rust(frame->symbol) || name.size < 2)
        return false;
    if (name.data[0] != '<')
        return memchr(name.data, ':', name.size) && frames_is_of_rust_library(name);
    /* "<Type as Trait>::method" is of the library if both are. */
    struct ttd_string type = {name.data + 1, name.size - 1};
    size_t depth = 0;
    for (size_t i = 0; i + 4 < type.size; i++) {
        char c = type.data[i];
        if (c == '<' || c == '(' || c == '[')
            depth++;
        else if (c == ')' || c == ']' || (c == '>' && i && type.data[i - 1] != '-')) {
            if (!depth)
                break;
            depth--;
        }
        if (!depth && memcmp(type.data + i, " as ", 4) == 0)
            return frames_is_of_rust_library(type) && frames_is_of_rust_library((struct ttd_string){
                                                          type.data + i + 4, type.size - i - 4});
    }
    return frames_is_of_rust_library(type);
}

bool runtime_is_main(const struct frame *frame)
{
    return frames_runtime_text_equals(canonical_without_clone(frame->symbol), "main") &&
           !runtime_has_module(frame->module);
}

size_t runtime_main_of(const struct frame_list *list)
{
    size_t index = list->count;
    while (index > 0) {
        if (runtime_is_main(&list->frames[--index]))
            return index;
    }
    return list->count;
}

unsigned runtime_traits(const struct frame *frame)
{
    bool is_note = !frame->module_id && frame->function.size && frame->function.data[0] == '[';
    return (runtime_is_main(frame) ? RUNTIME_IS_MAIN : 0u) |
           (runtime_begins(frame) ? RUNTIME_IS_BEGINNING : 0u) |
           (runtime_has_module(frame->module) ? RUNTIME_IS_LIBRARY : 0u) |
           (frame->function.size ? 0u : RUNTIME_IS_NAMELESS) | (is_note ? RUNTIME_IS_NOTE : 0u);
}

enum runtime_reach runtime_reach_next(enum runtime_reach reach, unsigned traits)
{
    bool is_outer = reach == RUNTIME_ONE_NAMED || reach == RUNTIME_ONE_NAMELESS;
    if (reach == RUNTIME_WHOLE || (traits & RUNTIME_IS_MAIN))
        return RUNTIME_WHOLE;
    if (reach == RUNTIME_NO_FRAME) {
        if (traits & (RUNTIME_IS_BEGINNING | RUNTIME_IS_LIBRARY | RUNTIME_IS_NOTE))
            return RUNTIME_WHOLE;
        return traits & RUNTIME_IS_NAMELESS ? RUNTIME_ONE_NAMELESS : RUNTIME_ONE_NAMED;
    }
    /* _start() of a stripped program has no name; the C library's function calls main(). */
    if (is_outer && (traits & RUNTIME_IS_BEGINNING))
        return RUNTIME_WHOLE;
    if (reach == RUNTIME_ONE_NAMELESS && (traits & RUNTIME_IS_NAMELESS) &&
        (traits & RUNTIME_IS_LIBRARY))
        return RUNTIME_WHOLE;
    return RUNTIME_CUT;
}

/* Whether a symbol is in the namespaces of the C++ library. A function with internal linkage, such
 * as one that takes a lambda's type, has no mangled name. */
static bool frames_is_of_cxx_library(struct ttd_string symbol)
{
    static const char *const scopes[] = {"_ZSt",          "_ZNSt", "_ZNKSt",
                                         "_ZN9__gnu_cxx", "std::", "__gnu_cxx::"};
    for (size_t i = 0; i < sizeof scopes / sizeof scopes[0]; i++) {
        if (frames_runtime_text_begins(symbol, scopes[i]))
            return true;
    }
    return false;
}

static bool frames_is_of_runtime(const struct frame *frame)
{
    return runtime_begins(frame) || runtime_has_module(frame->module) ||
           frames_is_of_cxx_library(frame->symbol) || runtime_is_rust(frame);
}

size_t runtime_begin_of(const struct frame_list *list)
{
    size_t index = runtime_main_of(list);
    if (index < list->count || !list->count)
        return index;
    const struct frame *outermost = &list->frames[list->count - 1];
    if (!runtime_begins(outermost) && !runtime_has_module(outermost->module))
        return list->count;
    while (index > 0 && frames_is_of_runtime(&list->frames[index - 1]))
        index--;
    return index ? index - 1 : list->count;
}

/* Functions of the dynamic linker that allocate storage for a thread, when it is created or first
 * uses a variable. */
static const char *const storage[] = {
    "_dl_allocate_tls",   "__GI__dl_allocate_tls", "allocate_dtv",  "_dl_resize_dtv",
    "allocate_dtv_entry", "tls_get_addr_tail",     "__tls_get_addr"};

static bool frames_is_storage_name(struct ttd_string name)
{
    for (size_t i = 0; i < sizeof storage / sizeof storage[0]; i++) {
        if (frames_runtime_text_equals(name, storage[i]))
            return true;
    }
    return false;
}

bool runtime_has_thread_storage(const struct definitions *definitions)
{
    for (size_t i = 0; i < definitions->frame_count; i++) {
        if (frames_is_storage_name(definitions_text(definitions, definitions->frames[i].function)))
            return true;
    }
    return false;
}

bool runtime_is_thread_storage(const struct frame_list *list)
{
    for (size_t i = 0; i < list->count && runtime_has_module(list->frames[i].module); i++) {
        if (frames_is_storage_name(list->frames[i].symbol))
            return true;
    }
    return false;
}
