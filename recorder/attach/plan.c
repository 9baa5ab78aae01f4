/* SPDX-License-Identifier: MIT */
/* Finds out, while nothing is stopped, whether a process can be attached to, and which of its
 * functions are to be patched. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../channel.h"
#include "../patch/clobbers.h"
#include "../patch/instruction.h"
#include "parts.h"
#include "process.h"

/* Refuses a process that is recorded: it has a channel mapped, which tells by whom. */
static bool check_unrecorded(struct attachment *attachment)
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
    if (attach_modules_named(&attachment->modules, "libttdpreload.so") != NULL)
        return attach_refuse(attachment, "it was started by a recorder, whose library is in it "
                                         "still; start it anew");
    return true;
}

static bool check_modules(struct attachment *attachment)
{
    struct attach_modules *modules = &attachment->modules;
    struct attach_module *libc = attach_modules_named(modules, "libc.so.6");
    struct attach_module *loader = attach_modules_named(modules, "ld-linux-x86-64.so.2");
    if (attach_modules_named(modules, "vgpreload_core") != NULL)
        return attach_refuse(attachment, "it runs in valgrind");
    for (size_t i = 0; i < modules->count; i++)
        if (strstr(modules->items[i].path, "/libasan.so") != NULL ||
            strstr(modules->items[i].path, "/libtsan.so") != NULL)
            return attach_refuse(attachment, "it has a sanitizer's runtime, whose malloc cannot be "
                                             "recorded");
    if (libc == NULL || loader == NULL)
        return attach_refuse(attachment,
                             "it has no GNU C library as a module of its own: programs that are "
                             "linked statically, or with musl, cannot be attached to");
    if (libc->file < 0)
        return attach_refuse(attachment, "the file of its C library was removed or replaced since "
                                         "it started; start it anew");
    if (attach_module_symbol(libc, "_dl_find_object") == 0 &&
        attach_module_symbol(loader, "_dl_find_object") == 0)
        return attach_refuse(attachment, "its C library is older than 2.35");
    const char *import;
    for (size_t i = 0; (import = attach_image_import(&attachment->image, i)) != NULL; i++)
        if (attach_module_symbol(libc, import) == 0 && attach_module_symbol(loader, import) == 0)
            return attach_refuse(attachment, "its C library lacks %s()", import);
    return true;
}

/* Whether the bytes of the function in the process are those of its file. */
static bool is_unchanged(const struct attachment *attachment,
                         const struct attach_function *function)
{
    unsigned char bytes[32], file[sizeof bytes];
    return attach_read(attachment, function->entry, bytes, sizeof bytes) &&
           attach_module_read(function->module, function->entry, file, sizeof file) &&
           memcmp(bytes, file, sizeof bytes) == 0;
}

static bool has_function(const struct attachment *attachment, uint64_t entry)
{
    for (size_t i = 0; i < attachment->function_count; i++)
        if (attachment->functions[i].entry == entry)
            return true;
    return false;
}

/* Functions that are hooked in the C library only. */
static bool is_of_libc_only(const char *name)
{
    static const char *const names[] = {"dlclose", "execve", "fexecve", "execveat",
                                        "_exit",   "prctl",  "syscall"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Code of the process, read in parts. */
struct plan_code {
    const struct attachment *attachment;
    uint64_t begin;
    size_t size;
    uint8_t bytes[4096];
};

static size_t plan_read_code(void *context, uint64_t address, const uint8_t **code)
{
    struct plan_code *part = context;
    if (address - part->begin >= part->size ||
        part->size - (address - part->begin) < INSTRUCTION_MAX) {
        ssize_t size =
            pread(part->attachment->memory, part->bytes, sizeof part->bytes, (off_t)address);
        part->begin = address;
        part->size = size > 0 ? (size_t)size : 0;
    }
    *code = part->bytes + (address - part->begin);
    return part->size - (address - part->begin);
}

/* Whether callers of the function leave nothing in registers that a hook changes. Those of the C
 * library's are compiled apart from it, and its own call other parts of it. */
static bool has_plain_callers(const struct attachment *attachment,
                              const struct attach_function *function)
{
    struct plan_code code = {.attachment = attachment};
    const char *name = strrchr(function->module->path, '/');
    return (name != NULL && strncmp(name, "/libc.so.6", 10) == 0) ||
           clobbers_all(function->entry, plan_read_code, &code);
}

static bool add_function(struct attachment *attachment, struct attach_module *module,
                         const struct attached_hook *hook)
{
    struct attach_function *function = &attachment->functions[attachment->function_count];
    *function = (struct attach_function){.module = module, .hook = hook};
    function->entry = attach_module_function(module, hook->name, &function->size);
    if (function->entry == 0 || has_function(attachment, function->entry))
        return true;
    if (!is_unchanged(attachment, function))
        return attach_refuse(attachment,
                             "%s() of '%s' is not as in its file: another tool has changed it, or "
                             "the file was replaced",
                             hook->name, module->path);
    if (!has_plain_callers(attachment, function))
        return attach_refuse(attachment,
                             "%s() of '%s' calls no other module, so that its callers may have "
                             "values in registers which a hook would change",
                             hook->name, module->path);
    attachment->function_count++;
    return true;
}

/* Refuses an allocator of which modules call functions that are not recorded. Those that ask for
 * them by name, when they run, are not seen. */
static bool check_allocator(struct attachment *attachment, struct attach_module *module)
{
    static const char *const names[] = {"_Zn",     "_Zd",      "mallocx", "rallocx", "xallocx",
                                        "dallocx", "sdallocx", "tc_",     "mi_"};
    uint64_t size;
    if (attach_module_function(module, "malloc", &size) == 0)
        return true;
    for (size_t i = 0; i < attachment->modules.count; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            struct attach_module *other = &attachment->modules.items[i];
            if (other != module && attach_module_imports(other, names[k]))
                return attach_refuse(attachment,
                                     "'%s' calls functions of its allocator, '%s', that are not "
                                     "recorded there yet, such as operator new; start it by "
                                     "ttdrecord instead",
                                     other->path, module->path);
        }
    return true;
}

/* Lists the functions to be patched: those of the C library, and allocators in other modules. */
static bool find_functions(struct attachment *attachment)
{
    const struct attached_hook *hooks = attachment->image.hooks;
    size_t count = attachment->image.hook_count;
    attachment->functions =
        calloc(count * attachment->modules.count + 1, sizeof *attachment->functions);
    if (attachment->functions == NULL)
        return attach_refuse(attachment, "no memory");
    struct attach_module *libc = attach_modules_named(&attachment->modules, "libc.so.6");
    struct attach_module *loader =
        attach_modules_named(&attachment->modules, "ld-linux-x86-64.so.2");
    for (size_t i = 0; i < attachment->modules.count; i++) {
        struct attach_module *module = &attachment->modules.items[i];
        if (module != libc && module != loader && !check_allocator(attachment, module))
            return false;
        for (size_t k = 0; k < count && module != loader; k++)
            if ((module == libc || !is_of_libc_only(hooks[k].name)) &&
                !add_function(attachment, module, &hooks[k]))
                return false;
    }
    if (attachment->function_count > ATTACHED_PATCHES)
        return attach_refuse(attachment, "it has too many allocators");
    return true;
}

/* Finds direct calls of a module's own functions in a part of its code. Bytes that just look like
 * one are as rare as a number of 32 bits that is hit by chance. */
static bool find_calls(struct attachment *attachment, const struct attach_module *module,
                       uint64_t begin, const unsigned char *code, size_t size)
{
    enum { CALL = 0xe8, CALL_SIZE = 5 };
    for (size_t i = 0; i + CALL_SIZE <= size; i++) {
        int32_t offset;
        if (code[i] != CALL)
            continue;
        memcpy(&offset, code + i + 1, sizeof offset);
        uint64_t site = begin + i + CALL_SIZE, target = site + (uint64_t)(int64_t)offset;
        for (size_t k = 0; k < attachment->function_count; k++) {
            if (attachment->functions[k].entry != target ||
                attachment->functions[k].module != module)
                continue;
            if (attachment->internal_count == ATTACHED_INTERNAL)
                return attach_refuse(attachment, "the allocator of '%s' calls itself too often",
                                     module->path);
            attachment->internal[attachment->internal_count++] = site;
            break;
        }
    }
    return true;
}

/* Finds the calls that allocators make of their own functions. The program's own, if it has an
 * allocator linked in, are as direct: it is left out. */
static bool find_internal(struct attachment *attachment)
{
    const struct attach_module *module = NULL;
    for (size_t i = 0; i < attachment->function_count; i++) {
        if (attachment->functions[i].module == module ||
            strstr(attachment->functions[i].module->path, ".so") == NULL)
            continue;
        module = attachment->functions[i].module;
        for (size_t k = 0; k < module->segment_count; k++) {
            const Elf64_Phdr *segment = &module->segments[k];
            if (segment->p_type != PT_LOAD || (segment->p_flags & PF_X) == 0)
                continue;
            uint64_t begin = module->bias + segment->p_vaddr;
            unsigned char *code = malloc(segment->p_filesz + 1);
            bool is_done = code != NULL &&
                           attach_read(attachment, begin, code, segment->p_filesz) &&
                           find_calls(attachment, module, begin, code, segment->p_filesz);
            free(code);
            if (!is_done)
                return attach_refuse(attachment, "'%s' cannot be read", module->path);
        }
    }
    return true;
}

static void read_command(struct attachment *attachment)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/cmdline", attachment->pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file >= 0 ? read(file, attachment->command, sizeof attachment->command) : 0;
    attachment->command_size = size > 0 ? (size_t)size : 0;
    if (file >= 0)
        close(file);
}

/* Opens the process and the library. */
static bool open_all(struct attachment *attachment, uint32_t pid, const char *library)
{
    char path[64];
    *attachment = (struct attachment){.pid = pid, .memory = -1, .file = -1, .channel = -1};
    if (!attach_process_check(pid, attachment->reason, sizeof attachment->reason))
        return false;
    uint32_t tid = attach_process_thread(pid);
    snprintf(path, sizeof path, "/proc/%u/task/%u/mem", pid, tid);
    attachment->memory = open(path, O_RDWR | O_CLOEXEC);
    if (attachment->memory < 0 ||
        !attach_modules_read(&attachment->modules, pid, tid, attachment->memory))
        return attach_refuse(attachment, "its memory cannot be read: %s", strerror(errno));
    if (!attach_image_load(&attachment->image, library))
        return attach_refuse(attachment, "the recorder's library is missing");
    read_command(attachment);
    return true;
}

static bool plan_clean(struct attachment *attachment, uint32_t pid, const char *library)
{
    return open_all(attachment, pid, library) && check_unrecorded(attachment) &&
           attach_clean(attachment);
}

bool attach_clean_left(uint32_t pid, const char *library, char reason[ATTACH_REASON_SIZE])
{
    struct attachment attachment;
    bool is_clean = plan_clean(&attachment, pid, library) && attachment.was_cleaned;
    memcpy(reason, attachment.reason, ATTACH_REASON_SIZE);
    attachment_free(&attachment);
    return is_clean;
}

bool attach_clean_child(uint32_t pid, const char *library)
{
    struct attachment attachment;
    bool is_clean = open_all(&attachment, pid, library) && attach_clean(&attachment);
    attachment_free(&attachment);
    return is_clean;
}

bool attach_plan(struct attachment *attachment, uint32_t pid, const char *library)
{
    return plan_clean(attachment, pid, library) && check_modules(attachment) &&
           find_functions(attachment) && find_internal(attachment);
}

void attachment_free(struct attachment *attachment)
{
    attach_modules_free(&attachment->modules);
    attach_image_free(&attachment->image);
    interrupted_calls_free(&attachment->interrupted);
    free(attachment->functions);
    known_blocks_free(&attachment->known);
    if (attachment->memory >= 0)
        close(attachment->memory);
}
