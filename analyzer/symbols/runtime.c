/* SPDX-License-Identifier: MIT */
#include "symbols/runtime.h"

#include <string.h>

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

static bool equals(struct ttd_string text, const char *word)
{
    return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}

static bool begins(struct ttd_string text, const char *word)
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
        if (begins(name, modules[i]))
            return true;
    }
    return false;
}

bool runtime_begins(const struct frame *frame)
{
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++) {
        if (equals(frame->symbol, beginnings[i]))
            return true;
    }
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        if (begins(frame->symbol, prefixes[i]))
            return true;
    }
    return false;
}

bool runtime_has_function(struct ttd_string canonical, bool *is_mixed)
{
    static const char *const inner[] = {"__cxx11::", "__1::", "basic_"};
    *is_mixed = false;
    if (begins(canonical, "__gnu_cxx::"))
        return true;
    if (!begins(canonical, "std::"))
        return false;
    struct ttd_string name = {canonical.data + 5, canonical.size - 5};
    for (size_t i = 0; i < sizeof inner / sizeof inner[0]; i++) {
        if (!begins(name, inner[i]))
            continue;
        *is_mixed = i == 2;
        name = (struct ttd_string){name.data + strlen(inner[i]), name.size - strlen(inner[i])};
    }
    return true;
}

bool runtime_is_main(const struct frame *frame)
{
    return equals(frame->symbol, "main") && !runtime_has_module(frame->module);
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

/* Functions of the dynamic linker that allocate storage for a thread, when it is created or first
 * uses a variable. */
static const char *const storage[] = {
    "_dl_allocate_tls",   "__GI__dl_allocate_tls", "allocate_dtv",  "_dl_resize_dtv",
    "allocate_dtv_entry", "tls_get_addr_tail",     "__tls_get_addr"};

static bool is_storage_name(struct ttd_string name)
{
    for (size_t i = 0; i < sizeof storage / sizeof storage[0]; i++) {
        if (equals(name, storage[i]))
            return true;
    }
    return false;
}

bool runtime_has_thread_storage(const struct definitions *definitions)
{
    for (size_t i = 0; i < definitions->frame_count; i++) {
        if (is_storage_name(definitions_text(definitions, definitions->frames[i].function)))
            return true;
    }
    return false;
}

bool runtime_is_thread_storage(const struct frame_list *list)
{
    for (size_t i = 0; i < list->count && runtime_has_module(list->frames[i].module); i++) {
        if (is_storage_name(list->frames[i].symbol))
            return true;
    }
    return false;
}
