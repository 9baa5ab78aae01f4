/* SPDX-License-Identifier: MIT */
/* Finds out, while nothing is stopped, whether a process can be attached to, and the functions to
 * patch. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "channel.h"
#include "attach/parts.h"

/* Refuses a process that is recorded: it has a channel mapped; that names the recorder. */
static bool plan_check_unrecorded(struct attachment *attachment)
{
    for (size_t i = 0; i < attachment->modules.maps.count; i++) {
        const struct mapping *mapping = &attachment->modules.maps.items[i];
        struct channel channel;
        if (strncmp(mapping->name, CHANNEL_NAME, strlen(CHANNEL_NAME)) == 0 &&
            attach_read(attachment, mapping->begin, &channel, sizeof channel) &&
            channel.magic == CHANNEL_MAGIC &&
            (kill((pid_t)channel.collector_pid, 0) == 0 || errno == EPERM))
            return attach_refuse(attachment, "process %u records it already",
                                 channel.collector_pid);
    }
    if (attach_modules_named(&attachment->modules, "libttdpreload.so"))
        return attach_refuse(attachment, "it was started by a recorder, whose library is in it "
                                         "still; start it anew");
    return true;
}

/* Whether the library finds the functions that it needs in a program that is linked statically. Its
 * C library is known by functions that only the GNU one has. */
static bool plan_check_static(struct attachment *attachment)
{
    struct attach_module *program = attachment->program;
    const char *import;
    if (program->file < 0)
        return attach_refuse(attachment, "the file of its program was removed or replaced since it "
                                         "started; start it anew");
    if (attach_module_symbols(program, true)->count == 0)
        return attach_refuse(attachment,
                             "it is statically linked and stripped, so its allocator cannot be "
                             "found; keep its symbols, or link it dynamically");
    if (attach_module_any_symbol(program, "__libc_setup_tls") == 0 ||
        attach_module_any_symbol(program, "__tls_init_tp") == 0)
        return attach_refuse(attachment,
                             "it is statically linked, and not with the GNU C library 2.34 or "
                             "newer; link it dynamically");
    for (size_t i = 0; (import = attach_image_import(&attachment->image, i, true)); i++)
        if (attach_module_any_symbol(program, import) == 0)
            return attach_refuse(attachment, "its C library lacks %s", import);
    return true;
}

/* Whether the program is to be loaded by the loader of the GNU C library; or there is none yet. */
static bool plan_has_loader(const struct attachment *attachment)
{
    static const char name[] = "/ld-linux-x86-64.so.2";
    const struct attach_module *program = attachment->program;
    const Elf64_Phdr *segment = program ? attach_module_segment(program, PT_INTERP) : NULL;
    char path[PATH_MAX];
    if (!program)
        return true;
    if (!segment || segment->p_filesz < sizeof name || segment->p_filesz > sizeof path ||
        !attach_read(attachment, program->bias + segment->p_vaddr, path, segment->p_filesz))
        return false;
    return memcmp(path + segment->p_filesz - sizeof name, name, sizeof name) == 0;
}

static bool plan_check_modules(struct attachment *attachment)
{
    struct attach_modules *modules = &attachment->modules;
    struct attach_module *libc = attach_modules_named(modules, "libc.so.6");
    struct attach_module *loader = attach_modules_named(modules, "ld-linux-x86-64.so.2");
    if (attach_modules_named(modules, "vgpreload_core"))
        return attach_refuse(attachment, "it runs in valgrind");
    for (size_t i = 0; i < modules->count; i++)
        if (strstr(modules->items[i].path, "/libasan.so") ||
            strstr(modules->items[i].path, "/libtsan.so"))
            return attach_refuse(attachment, "it has a sanitizer's runtime, whose malloc cannot be "
                                             "recorded");
    attachment->program = attach_modules_program(modules, attachment->pid);
    attachment->is_static = attachment->program && attachment->program != loader &&
                            !attach_module_segment(attachment->program, PT_INTERP);
    if (attachment->is_static)
        return plan_check_static(attachment);
    attachment->is_early = !libc && plan_has_loader(attachment);
    if (attachment->is_early)
        return attach_refuse(attachment, ATTACH_EARLY);
    if (!libc || !loader)
        return attach_refuse(attachment,
                             "it has no GNU C library as a module of its own: programs that are "
                             "linked with musl cannot be attached to");
    if (libc->file < 0)
        return attach_refuse(attachment, "the file of its C library was removed or replaced since "
                                         "it started; start it anew");
    if (attach_module_symbol(libc, "_dl_find_object") == 0 &&
        attach_module_symbol(loader, "_dl_find_object") == 0)
        return attach_refuse(attachment, "its C library is older than 2.35");
    const char *import;
    for (size_t i = 0; (import = attach_image_import(&attachment->image, i, false)); i++)
        if (attach_module_symbol(libc, import) == 0 && attach_module_symbol(loader, import) == 0)
            return attach_refuse(attachment, "its C library lacks %s()", import);
    return true;
}

/* Finds the memory of the live API that an earlier recorder's library has made. */
static void plan_find_live(struct attachment *attachment)
{
    for (size_t i = 0; i < attachment->modules.maps.count; i++) {
        const struct mapping *mapping = &attachment->modules.maps.items[i];
        uint64_t page = mapping->end - ATTACHED_LIVE_CODE, mark;
        if (mapping->is_executable && !mapping->is_writable && !mapping->is_file &&
            attach_read(attachment, page, &mark, sizeof mark) && mark == ATTACHED_LIVE_MARK)
            attachment->live = page;
    }
}

static void plan_read_command(struct attachment *attachment, uint32_t tid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/task/%u/cmdline", attachment->pid, tid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file >= 0 ? read(file, attachment->command, sizeof attachment->command) : 0;
    attachment->command_size = size > 0 ? (size_t)size : 0;
    if (file >= 0)
        close(file);
}

/* Opens the process and the library. */
static bool plan_open_all(struct attachment *attachment, uint32_t pid, const char *library)
{
    char path[64];
    attachment->pid = pid;
    attachment->memory = attachment->file = attachment->channel = -1;
    if (!attach_process_check(pid, attachment->hold != NULL, &attachment->is_filtered,
                              attachment->reason, sizeof attachment->reason))
        return false;
    uint32_t tid = attach_process_thread(pid);
    attachment->is_elsewhere = attach_process_inner(pid, tid) != tid;
    snprintf(path, sizeof path, "/proc/%u/task/%u/mem", pid, tid);
    attachment->memory = open(path, O_RDWR | O_CLOEXEC);
    if (attachment->memory < 0 ||
        !attach_modules_read(&attachment->modules, pid, tid, attachment->memory))
        return attach_refuse(attachment, "its memory cannot be read: %s", strerror(errno));
    if (!attach_image_load(&attachment->image, library))
        return attach_refuse(attachment, "the recorder's library is missing");
    plan_read_command(attachment, tid);
    return true;
}

static bool plan_clean(struct attachment *attachment, uint32_t pid, const char *library)
{
    return plan_open_all(attachment, pid, library) && plan_check_unrecorded(attachment) &&
           attach_clean(attachment);
}

bool attach_clean_left(uint32_t pid, const char *library, char reason[ATTACH_REASON_SIZE])
{
    struct attachment attachment = {0};
    bool is_clean = plan_clean(&attachment, pid, library) && attachment.was_cleaned;
    memcpy(reason, attachment.reason, ATTACH_REASON_SIZE);
    if (!attachment.was_found)
        reason[0] = '\0';
    attachment_free(&attachment);
    return is_clean;
}

bool attach_clean_child(uint32_t pid, const char *library, _Atomic uint64_t *sequence,
                        uint64_t *last)
{
    struct attachment attachment = {.sequence = sequence};
    bool is_clean = plan_open_all(&attachment, pid, library) && attach_clean(&attachment);
    *last = attachment.last_sequence;
    attachment_free(&attachment);
    return is_clean;
}

bool attach_plan(struct attachment *attachment, uint32_t pid, const char *library)
{
    if (!plan_clean(attachment, pid, library) || !plan_check_modules(attachment) ||
        !attach_find_functions(attachment) || !attach_find_bodies(attachment))
        return false;
    plan_find_live(attachment);
    return true;
}

void attach_forget(struct attachment *attachment)
{
    struct attach_hold *hold = attachment->hold;
    attachment_free(attachment);
    *attachment = (struct attachment){.hold = hold, .memory = -1};
}

void attachment_free(struct attachment *attachment)
{
    attach_modules_free(&attachment->modules);
    attach_image_free(&attachment->image);
    interrupted_calls_free(&attachment->interrupted);
    free(attachment->functions);
    free(attachment->bodies);
    known_blocks_free(&attachment->known);
    free(attachment->in_call);
    free(attachment->thread_pointers);
    if (attachment->memory >= 0)
        close(attachment->memory);
}
