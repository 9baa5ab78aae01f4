/* SPDX-License-Identifier: MIT */
#include "collect/trace/trace_modules.h"

#include <dirent.h>
#include <elf.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include "arrays.h"
#include "symbolize/image/image_file.h"

/* Many processes live only for a moment. The others soon fill a small table. */
enum { FIRST_CAPACITY = 1 << 9, SMALL_CAPACITY = 1 << 14 };

/* Has the system provide the pages of a large table at once: entries come to all of them soon, and
 * a page that is read before it is written would be provided twice. An old system refuses. */
static void trace_stacks_populate(void *table, size_t size)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)table + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)table + size) / page * page;
    if (begin < end)
        madvise((void *)begin, end - begin, MADV_POPULATE_WRITE);
}

/* Makes an empty table. False, with nothing changed, when there is no memory. */
static bool trace_stacks_make_table(struct stacks *stacks, size_t capacity)
{
    struct stack_entry *entries = calloc(capacity, sizeof *entries);
    uint32_t *hashes = malloc(capacity * sizeof *hashes);
    if (!entries || !hashes) {
        free(entries);
        free(hashes);
        return false;
    }
    if (capacity > SMALL_CAPACITY)
        trace_stacks_populate(entries, capacity * sizeof *entries);
    stacks->entries = entries;
    stacks->hashes = hashes;
    stacks->capacity = capacity;
    stacks->count = 0;
    return true;
}

bool stacks_init(struct stacks *stacks)
{
    memset(stacks, 0, sizeof *stacks);
    if (getrandom(&stacks->key, sizeof stacks->key, 0) != sizeof stacks->key)
        stacks->key = (uintptr_t)stacks;
    return trace_stacks_make_table(stacks, FIRST_CAPACITY);
}

void stacks_free(struct stacks *stacks)
{
    free(stacks->entries);
    free(stacks->hashes);
    stacks->entries = NULL;
    stacks->hashes = NULL;
}

/* Adds an entry that the table does not have. */
static struct stack_entry *trace_stacks_add_entry(struct stacks *stacks, uint32_t hash,
                                                  const struct stack_entry *new)
{
    struct stack_entry *entry = stacks_probe(stacks, hash, new->parent, new->pc);
    stacks->hashes[entry - stacks->entries] = hash;
    stacks->count++;
    *entry = *new;
    return entry;
}

/* Moves all entries, except addresses in [begin, end), to a table of the given capacity. */
static bool trace_stacks_rebuild(struct stacks *stacks, size_t capacity, uint64_t begin,
                                 uint64_t end)
{
    struct stacks old = *stacks;
    if (!trace_stacks_make_table(stacks, capacity))
        return false;
    for (size_t i = 0; i < old.capacity; i++) {
        const struct stack_entry *entry = &old.entries[i];
        if (entry->id != TTD_NONE && (entry->pc < begin || entry->pc >= end))
            trace_stacks_add_entry(stacks, old.hashes[i], entry);
    }
    stacks_free(&old);
    return true;
}

struct stack_entry *stacks_find(struct stacks *stacks, uint32_t hash, ttd_id parent, uint64_t pc)
{
    struct stack_entry *entry = stacks_probe(stacks, hash, parent, pc);
    if (entry->id != TTD_NONE)
        return entry;
    if (stacks->count + stacks->count / 2 >= stacks->capacity) {
        size_t factor = stacks->capacity < SMALL_CAPACITY ? 4 : 2;
        if (!trace_stacks_rebuild(stacks, stacks->capacity * factor, 0, 0))
            return NULL;
    }
    return trace_stacks_add_entry(stacks, hash, &(struct stack_entry){.pc = pc, .parent = parent});
}

void stacks_forget(struct stacks *stacks, uint64_t begin, uint64_t end)
{
    stacks->removals++;
    /* If memory runs out the entries stay, and names may belong to the unloaded code. */
    trace_stacks_rebuild(stacks, stacks->capacity, begin, end);
}

bool modules_init(struct modules *modules)
{
    *modules = (struct modules){0};
    return stacks_init(&modules->addresses);
}

void modules_free(struct modules *modules)
{
    for (size_t i = 0; i < modules->count; i++) {
        module_files_release(&modules->items[i]);
        free(modules->items[i].path);
    }
    free(modules->items);
    free(modules->frames);
    stacks_free(&modules->addresses);
}

bool modules_add(struct modules *modules, const struct module *module)
{
    void *items =
        array_grow(modules->items, modules->count, &modules->capacity, sizeof *modules->items);
    if (!items)
        return false;
    modules->items = items;
    char *path = strdup(module->path);
    if (!path)
        return false;
    struct module *added_module = &modules->items[modules->count++];
    *added_module = *module;
    added_module->path = path;
    added_module->is_loaded = true;
    return true;
}

size_t modules_at(const struct modules *modules, uint64_t begin)
{
    for (size_t i = modules->count; i-- > 0;)
        if (modules->items[i].is_loaded && modules->items[i].begin == begin)
            return i;
    return SIZE_MAX;
}

void modules_unload(struct modules *modules, size_t index)
{
    struct module *module = &modules->items[index];
    module->is_loaded = false;
    stacks_forget(&modules->addresses, module->begin, module->end);
}

void modules_forget(struct modules *modules)
{
    stacks_forget(&modules->addresses, 0, UINT64_MAX);
}

/* A return address may lie just past the end of its function, and so of its module. */
static bool modules_has(const struct module *module, uint64_t pc)
{
    return module->is_loaded && pc > module->begin && pc <= module->end;
}

static struct frame modules_locate(struct modules *modules, uint64_t pc)
{
    size_t index = modules->hint;
    if (index >= modules->count || !modules_has(&modules->items[index], pc)) {
        index = modules->count;
        while (index-- > 0 && !modules_has(&modules->items[index], pc))
            ;
        if (index == SIZE_MAX)
            return (struct frame){.module = TTD_NONE, .offset = pc, .is_settled = true};
        modules->hint = index;
    }
    return (struct frame){.module = (ttd_id)(index + 1), .offset = pc - modules->items[index].bias};
}

const struct frame *modules_frame(struct modules *modules, uint64_t pc)
{
    uint32_t hash = stacks_hash(&modules->addresses, 0, pc);
    struct stack_entry *entry = stacks_find(&modules->addresses, hash, TTD_NONE, pc);
    if (!entry)
        return NULL;
    if (entry->id != TTD_NONE)
        return &modules->frames[entry->id - 1];
    void *frames = array_grow(modules->frames, modules->frame_count, &modules->frame_capacity,
                              sizeof *modules->frames);
    if (!frames)
        return NULL;
    modules->frames = frames;
    modules->frames[modules->frame_count++] = modules_locate(modules, pc);
    entry->id = (ttd_id)modules->frame_count;
    return &modules->frames[entry->id - 1];
}

/* A copy of a loaded module's file, made of its memory: the symbols that other modules link to. */

/* The memory of a process may contain anything: sizes and offsets are limited. */

enum { SEGMENTS_MAX = 64, IMAGE_SIZE_MAX = 256 << 20, DYNAMIC_MAX = 4096, PART_SIZE = 256 * 1024 };

struct image_copy {
    const struct module *module;
    uint32_t pid;
    int fd;
    Elf64_Ehdr header;
    Elf64_Phdr segments[SEGMENTS_MAX];
};

static size_t trace_modules_read_process(uint32_t pid, void *data, size_t size, uint64_t address)
{
    struct iovec local = {data, size}, remote = {(void *)(uintptr_t)address, size};
    ssize_t read_size = process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0);
    return read_size > 0 ? (size_t)read_size : 0;
}

static bool trace_modules_read_headers(struct image_copy *copy)
{
    Elf64_Ehdr *header = &copy->header;
    uint64_t begin = copy->module->begin;
    if (trace_modules_read_process(copy->pid, header, sizeof *header, begin) != sizeof *header ||
        memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum > SEGMENTS_MAX ||
        header->e_phoff > PART_SIZE)
        return false;
    size_t size = header->e_phnum * sizeof(Elf64_Phdr);
    return trace_modules_read_process(copy->pid, copy->segments, size, begin + header->e_phoff) ==
           size;
}

/* Copies a segment's part of the file; unreadable bytes become zero. */
static bool trace_modules_copy_segment(const struct image_copy *copy, const Elf64_Phdr *segment,
                                       uint8_t *part)
{
    if (segment->p_filesz > IMAGE_SIZE_MAX || segment->p_offset > IMAGE_SIZE_MAX)
        return false;
    for (uint64_t done = 0; done < segment->p_filesz;) {
        size_t size = segment->p_filesz - done < PART_SIZE ? segment->p_filesz - done : PART_SIZE;
        uint64_t address = copy->module->bias + segment->p_vaddr + done;
        size = trace_modules_read_process(copy->pid, part, size, address);
        if (size == 0)
            break;
        if (pwrite(copy->fd, part, size, (off_t)(segment->p_offset + done)) != (ssize_t)size)
            return false;
        done += size;
    }
    return true;
}

/* Turns addresses in the dynamic section (relocated by the loader) back into the file's. */
static bool trace_modules_restore_dynamic(const struct image_copy *copy, const Elf64_Phdr *segment)
{
    const struct module *module = copy->module;
    for (uint64_t i = 0; i < segment->p_filesz / sizeof(Elf64_Dyn) && i < DYNAMIC_MAX; i++) {
        Elf64_Dyn entry;
        off_t offset = (off_t)(segment->p_offset + i * sizeof entry);
        if (pread(copy->fd, &entry, sizeof entry, offset) != sizeof entry)
            return false;
        if (entry.d_un.d_ptr < module->begin || entry.d_un.d_ptr >= module->end)
            continue;
        entry.d_un.d_ptr -= module->bias;
        if (pwrite(copy->fd, &entry, sizeof entry, offset) != sizeof entry)
            return false;
    }
    return true;
}

/* Writes the header without a table of sections: the process need not have loaded any. */
static bool trace_modules_copy_headers(struct image_copy *copy)
{
    copy->header.e_shoff = 0;
    copy->header.e_shnum = copy->header.e_shstrndx = 0;
    return pwrite(copy->fd, &copy->header, sizeof copy->header, 0) == sizeof copy->header;
}

/* Returns a file in memory, to be closed; -1 if the module cannot be read. */
static int module_image_copy(const struct module *module, uint32_t pid)
{
    struct image_copy copy = {.module = module, .pid = pid, .fd = -1};
    uint8_t *part = malloc(PART_SIZE);
    bool is_whole = part && trace_modules_read_headers(&copy);
    if (is_whole)
        is_whole = (copy.fd = memfd_create("ttdrecord module", MFD_CLOEXEC)) >= 0;
    for (unsigned i = 0; is_whole && i < copy.header.e_phnum; i++)
        if (copy.segments[i].p_type == PT_LOAD)
            is_whole = trace_modules_copy_segment(&copy, &copy.segments[i], part);
    for (unsigned i = 0; is_whole && i < copy.header.e_phnum; i++)
        if (copy.segments[i].p_type == PT_DYNAMIC)
            is_whole = trace_modules_restore_dynamic(&copy, &copy.segments[i]);
    is_whole = is_whole && trace_modules_copy_headers(&copy);
    free(part);
    if (!is_whole && copy.fd >= 0)
        close(copy.fd);
    return is_whole ? copy.fd : -1;
}

/* A file that stays open. */
struct kept_file {
    struct symbolize_file logged;
    uint8_t build_id[TTD_BUILD_ID_MAX];
    uint32_t build_id_size;
    struct symbolize_file file;
    int fd;
    size_t users; /* modules; 0 if the entry is free */
    char place[48];
};

static struct kept_file kept_files[MODULE_FILES_MAX];

/* Whether a path is one of the system's, whose files are replaced together with their debug files,
 * by build-id. */
static bool module_file_is_of_system(const char *path)
{
    static const char *const directories[] = {"/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/"};
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
        if (strncmp(path, directories[i], strlen(directories[i])) == 0)
            return true;
    return false;
}

static bool module_file_is_same(const struct symbolize_file *a, const struct symbolize_file *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->modified == b->modified;
}

static struct kept_file *trace_modules_find_kept(const struct module *module,
                                                 const struct symbolize_file *file)
{
    for (size_t i = 0; i < MODULE_FILES_MAX; i++) {
        struct kept_file *kept = &kept_files[i];
        if (kept->users > 0 && module_file_is_same(&kept->logged, file) &&
            kept->build_id_size == module->build_id_size &&
            memcmp(kept->build_id, module->build_id, module->build_id_size) == 0)
            return kept;
    }
    return NULL;
}

/* Returns a free entry for a file; NULL if there is none, or if other processes and traces may need
 * the descriptor. */
static struct kept_file *trace_modules_free_entry(int fd)
{
    size_t i = 0;
    while (i < MODULE_FILES_MAX && kept_files[i].users > 0)
        i++;
    bool has_room = trace_descriptor_may_stay(fd, DESCRIPTORS_OF_FILES);
    return i < MODULE_FILES_MAX && has_room ? &kept_files[i] : NULL;
}

/* Sets and returns the path of a kept file. A forked process has the file, too: under its own id.
 */
static const char *trace_modules_kept_file_path(struct kept_file *kept)
{
    snprintf(kept->place, sizeof kept->place, "/proc/%ld/fd/%d", (long)getpid(), kept->fd);
    return kept->place;
}

/* Keeps an open file, and takes it over. NULL if it cannot be kept. */
static struct kept_file *trace_modules_keep_file(int fd, const struct module *module,
                                                 const struct symbolize_file *logged,
                                                 const struct symbolize_file *file)
{
    struct kept_file *kept = trace_modules_free_entry(fd);
    if (kept)
        kept->fd = fd;
    if (!kept || access(trace_modules_kept_file_path(kept), R_OK) != 0) {
        close(fd);
        return NULL;
    }
    kept->logged = *logged;
    kept->build_id_size = module->build_id_size;
    memcpy(kept->build_id, module->build_id, module->build_id_size);
    kept->file = *file;
    kept->file.changed = 0; /* removing the file will change it */
    return kept;
}

/* Opens a file if it is the one that was logged; perhaps only its inode is known. */
static int trace_modules_open_logged(const char *path, const struct symbolize_file *logged,
                                     struct symbolize_file *file)
{
    int fd = image_file_open(path);
    if (fd < 0 || !image_file_read(fd, file) || file->inode != logged->inode ||
        (logged->size != 0 && !image_file_is(fd, logged))) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    return fd;
}

/* Opens the file of a module as the process sees it, or any of its threads: a first thread that has
 * ended sees no files. */
static int trace_modules_open_as_seen(const char *module, const struct symbolize_file *sought,
                                      uint32_t pid, struct symbolize_file *file)
{
    char path[PATH_MAX], threads[64], program;
    int size = snprintf(path, sizeof path, "/proc/%u/root%s", pid, module);
    int fd = size < (int)sizeof path ? trace_modules_open_logged(path, sought, file) : -1;
    snprintf(threads, sizeof threads, "/proc/%u/exe", pid);
    if (fd >= 0 || readlink(threads, &program, sizeof program) > 0)
        return fd;
    snprintf(threads, sizeof threads, "/proc/%u/task", pid);
    DIR *directory = opendir(threads);
    const struct dirent *entry;
    while (fd < 0 && directory && (entry = readdir(directory))) {
        size = snprintf(path, sizeof path, "%s/%.16s/root%s", threads, entry->d_name, module);
        if (entry->d_name[0] != '.' && size < (int)sizeof path)
            fd = trace_modules_open_logged(path, sought, file);
    }
    if (directory)
        closedir(directory);
    return fd;
}

/* Opens the file of a module by the system's view of the process. It may have been removed. */
static int trace_modules_open_of_process(const struct module *module,
                                         const struct logged_file *logged, uint32_t pid,
                                         struct symbolize_file *file)
{
    char path[PATH_MAX];
    struct symbolize_file sought = logged->file;
    int fd = logged->is_there ? trace_modules_open_as_seen(module->path, &sought, pid, file) : -1;
    sought.changed = 0;
    if (fd < 0) {
        snprintf(path, sizeof path, "/proc/%u/exe", pid);
        fd = trace_modules_open_logged(path, &sought, file);
    }
    if (fd < 0) {
        snprintf(path, sizeof path, "/proc/%u/map_files/%llx-%llx", pid,
                 (unsigned long long)logged->begin, (unsigned long long)logged->end);
        fd = trace_modules_open_logged(path, &sought, file);
    }
    return fd;
}

/* Whether the file has other contents now: its mapped part may have them too. */
static bool module_file_is_overwritten(const struct module *module,
                                       const struct logged_file *logged)
{
    struct symbolize_file now;
    int fd = logged->is_there ? image_file_open(module->path) : -1;
    bool is_same_inode = fd >= 0 && image_file_read(fd, &now) &&
                         now.device == logged->file.device && now.inode == logged->file.inode;
    if (fd >= 0)
        close(fd);
    return is_same_inode;
}

void module_files_keep(struct module *module, const struct logged_file *logged, uint32_t pid)
{
    module->kept = 0;
    module->file = logged->is_there ? logged->file : (struct symbolize_file){.inode = 0};
    if (logged->file.inode == 0 || (logged->is_there && module_file_is_of_system(module->path)))
        return;
    struct kept_file *kept = trace_modules_find_kept(module, &logged->file);
    if (!kept) {
        struct symbolize_file file;
        int fd =
            logged->is_there ? trace_modules_open_logged(module->path, &logged->file, &file) : -1;
        if (fd < 0)
            fd = trace_modules_open_of_process(module, logged, pid, &file);
        if (fd < 0 && !module_file_is_overwritten(module, logged)) {
            file = (struct symbolize_file){.inode = 0};
            fd = module_image_copy(module, pid);
        }
        if (fd >= 0)
            kept = trace_modules_keep_file(fd, module, &logged->file, &file);
    }
    if (!kept)
        return;
    kept->users++;
    module->kept = (uint32_t)(kept - kept_files) + 1;
    module->file = kept->file;
}

void module_files_release(struct module *module)
{
    if (module->kept == 0)
        return;
    struct kept_file *kept = &kept_files[module->kept - 1];
    if (--kept->users == 0)
        close(kept->fd);
    module->kept = 0;
}

const char *module_files_place(const struct module *module)
{
    return module->kept != 0 ? trace_modules_kept_file_path(&kept_files[module->kept - 1]) : NULL;
}
