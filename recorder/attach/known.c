/* SPDX-License-Identifier: MIT */
/* Looks for the blocks that a process had when it was attached to, in a copy of it. */
#include <elf.h>
#include <string.h>

#include "attach/parts.h"

/* Whether there is an allocator that takes the place of the C library's, or one beside it. */
static bool has_allocator(const struct attachment *attachment, bool is_beside)
{
    for (size_t i = 0; i < attachment->function_count; i++) {
        const struct attach_function *function = &attachment->functions[i];
        const char *name = strrchr(function->module->path, '/');
        if (function->has_own_name == is_beside && strcmp(function->hook->name, "malloc") == 0 &&
            strncmp(name ? name + 1 : "", "libc.so.6", 9) != 0)
            return true;
    }
    return false;
}

void attach_copy_known(struct attachment *attachment, struct threads *threads)
{
    const struct borrowed_code code = attach_own_code(attachment);
    if (attachment->is_filtered)
        attachment->known_reason = "a seccomp filter watches it";
    else if (has_allocator(attachment, false))
        attachment->known_reason = "its allocator is not the GNU C library's";
    else if (!copy_make(&attachment->copy, threads, &code, &attachment->copies))
        attachment->known_reason = "the process could not be copied";
}

/* Returns the segment of the C library with its variables. */
static struct memory_span find_data(const struct attach_module *libc)
{
    for (size_t i = 0; i < libc->segment_count; i++) {
        const Elf64_Phdr *segment = &libc->segments[i];
        uint64_t begin = libc->bias + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_W) != 0)
            return (struct memory_span){begin, begin + segment->p_memsz};
    }
    return (struct memory_span){0, 0};
}

static void search_copy(struct attachment *attachment)
{
    const struct attach_module *libc = attach_modules_named(&attachment->modules, "libc.so.6");
    unsigned version = known_blocks_version(libc->exported.names, libc->exported.names_size);
    struct memory memory;
    struct maps maps;
    attachment->known_reason = "memory ran out";
    if (version < KNOWN_BLOCKS_OLDEST || version > KNOWN_BLOCKS_NEWEST) {
        attachment->known_reason = "the version of its C library is not known";
        return;
    }
    if (!memory_open_copy(&memory, attachment->copy.pid))
        return;
    if (maps_read(&maps, attachment->copy.pid, attachment->copy.pid) &&
        known_blocks_find(&memory, &maps, find_data(libc), version, &attachment->known))
        attachment->known_reason = attachment->known.is_busy
                                       ? "a thread was allocating at that moment"
                                       : attachment->known.reason;
    if (!attachment->known_reason && has_allocator(attachment, true))
        attachment->known_reason = "it has an allocator beside the GNU C library's";
    maps_free(&maps);
    memory_close(&memory);
}

void attach_find_known(struct attachment *attachment)
{
    const struct borrowed_code code = attach_own_code(attachment);
    if (attachment->copy.pid == 0)
        return;
    search_copy(attachment);
    attachment->stop_time += copy_end(&attachment->copy, &code, &attachment->copies,
                                      attachment->pid, 0, &attachment->interrupted);
}
