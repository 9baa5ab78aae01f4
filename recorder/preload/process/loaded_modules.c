/* SPDX-License-Identifier: MIT */
/* The modules that are loaded, as far as they are logged, and when they come and go. */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "dwarf/cfi.h"
#include "dwarf/frame_file.h"
#include "preload/process/module_log.h"
#include "preload/system/own_memory.h"
#include "preload/system/real.h"
#include "preload/system/sys.h"
#include "preload/threads/recorded_thread.h"

/*
 * Copies of the section .debug_frame of modules whose segments lack call frame information, as
 * those built with -g and -fno-asynchronous-unwind-tables. Its callers hold the lock of modules.c,
 * except the callers of loaded_debug_frames_find().
 */

enum { COPIES = 64, IS_GONE = 1 };

/* The section of a module, and the identity of its file. Without FDEs it has none. */
static struct frame_copy {
    _Atomic uintptr_t begin; /* of the module; 0: free, IS_GONE: unloaded */
    struct debug_frame frame;
    uint64_t device, inode, size, changed;
} copies[COPIES];

static _Atomic bool is_full;

/* Sets `*frame` to the section of the module that begins there, or to NULL if it has none that can
   be read. False if that is not known yet. */
static bool loaded_debug_frames_find(uintptr_t begin, const struct debug_frame **frame)
{
    *frame = NULL;
    for (size_t i = 0; i < COPIES; i++) {
        const struct frame_copy *copy = &copies[i];
        uintptr_t known = atomic_load_explicit(&copy->begin, memory_order_acquire);
        if (known == begin && copy->frame.fde_count > 0)
            *frame = &copy->frame;
        if (known == begin)
            return true;
        if (known == 0)
            break;
    }
    return atomic_load_explicit(&is_full, memory_order_relaxed);
}

/* Called when the module is gone. The copy stays: the same file may be loaded again, and a thread
   may be reading it. */
static void loaded_debug_frames_forget(uintptr_t begin)
{
    for (size_t i = 0; i < COPIES; i++)
        if (atomic_load_explicit(&copies[i].begin, memory_order_relaxed) == begin)
            atomic_store_explicit(&copies[i].begin, IS_GONE, memory_order_relaxed);
}

/* In the child of a fork: another thread may have been reading a section. */
static void loaded_debug_frames_drop(void)
{
    for (size_t i = 0; i < COPIES; i++)
        if (atomic_load_explicit(&copies[i].begin, memory_order_relaxed) <= IS_GONE)
            copies[i].frame = (struct debug_frame){0};
}

int dwarf_file_open(const char *path)
{
    return (int)sys_call6(SYS_openat, AT_FDCWD, (long)path,
                          O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0, 0, 0);
}

void dwarf_file_close(int file)
{
    sys_call3(SYS_close, file, 0, 0);
}

bool dwarf_file_read(int file, uint64_t offset, void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        long count = sys_call6(SYS_pread64, file, (long)((char *)bytes + done), (long)(size - done),
                               (long)(offset + done), 0, 0);
        if (count <= 0)
            return false;
        done += (size_t)count;
    }
    return true;
}

void *dwarf_pages(size_t size)
{
    return unwind_pages_used(size);
}

void dwarf_pages_free(void *pages, size_t size)
{
    unwind_pages_free(pages, size);
}

/* Returns the place of a copy of this very file that is not used now; else a place for a new one,
   or NULL. */
static struct frame_copy *loaded_debug_frames_place(const struct frame_copy *file)
{
    struct frame_copy *place = NULL;
    for (size_t i = 0; i < COPIES; i++) {
        struct frame_copy *copy = &copies[i];
        uintptr_t begin = atomic_load_explicit(&copy->begin, memory_order_relaxed);
        if (begin == IS_GONE && copy->device == file->device && copy->inode == file->inode &&
            copy->size == file->size && copy->changed == file->changed)
            return copy;
        if (!place && (begin == 0 || (begin == IS_GONE && copy->frame.fde_count == 0)))
            place = copy;
        if (begin == 0)
            break;
    }
    if (place)
        *place = *file;
    return place;
}

/* Reads the section from the module's file. */
static void loaded_debug_frames_read(const struct module *module)
{
    const struct module_file *path = module_file_of(module);
    struct stat status;
    struct frame_copy file = {.begin = IS_GONE};
    int descriptor = -1;
    if (path->facts[MODULE_FILE_STATE] == MODULE_FILE_THERE)
        descriptor = dwarf_file_open(path->path);
    bool is_read = descriptor >= 0 && sys_call3(SYS_fstat, descriptor, (long)&status, 0) == 0 &&
                   status.st_dev == path->facts[MODULE_FILE_DEVICE] &&
                   status.st_ino == path->facts[MODULE_FILE_INODE];
    if (is_read) {
        file.device = status.st_dev;
        file.inode = status.st_ino;
        file.size = (uint64_t)status.st_size;
        file.changed = path->facts[MODULE_FILE_CHANGED];
    }
    struct frame_copy *copy = loaded_debug_frames_place(&file);
    if (!copy)
        atomic_store(&is_full, true);
    else if (is_read && copy->frame.fde_count == 0)
        debug_frame_load(descriptor, path->path, module->begin - module->map->l_addr,
                         module->end - module->map->l_addr, &copy->frame);
    if (descriptor >= 0)
        dwarf_file_close(descriptor);
    if (copy)
        atomic_store_explicit(&copy->begin, module->begin, memory_order_release);
}

enum { MODULES_MAX = 16384 };

static struct module *modules;
static size_t module_count;
static bool has_all_first; /* those that the program starts with */

/* The thread that holds the log, or NO_THREAD. No code of the program runs while it is held, except
 * for a signal handler. */
static _Atomic uintptr_t lock;

enum { NO_THREAD = 1, POSTPONED_MAX = 8 };

/* Modules that a signal handler met while its own thread held the log. Another handler may come at
 * any point, or jump out. */
static struct postponed {
    _Atomic uintptr_t begin; /* set last; 0: it is not known */
    uintptr_t end;
    const struct link_map *map;
} postponed[POSTPONED_MAX];
static _Atomic size_t postponed_count; /* perhaps more than there is room for */

static uintptr_t loaded_own_lock(void)
{
    return target_self ? (uintptr_t)target_self : NO_THREAD;
}

/* Takes the log. False if this thread holds it already: a signal handler has interrupted it. */
static bool lock_modules(void)
{
    uintptr_t holder = 0;
    while (!atomic_compare_exchange_weak_explicit(&lock, &holder, loaded_own_lock(),
                                                  memory_order_acquire, memory_order_relaxed)) {
        if (holder == loaded_own_lock())
            return false;
        if (holder != 0 && process_is_confined)
            __builtin_ia32_pause();
        else if (holder != 0)
            sys_call3(SYS_sched_yield, 0, 0, 0);
        holder = 0;
    }
    return true;
}

static void unlock_modules(void)
{
    atomic_store_explicit(&lock, 0, memory_order_release);
}

static bool module_is_gone(const struct module *module)
{
    struct dl_find_object object;
    if (module->is_lasting)
        return false;
    /* A fork may come after the unmapping and before the loader forgets the module. */
    return (!process_is_confined && !unwind_page_readable(module->begin)) ||
           _dl_find_object((void *)module->begin, &object) != 0 ||
           (uintptr_t)object.dlfo_map_start != module->begin || object.dlfo_link_map != module->map;
}

/* Logs the modules that are gone: not every unloading goes through the hook of dlclose. */
static void loaded_sweep(void)
{
    for (size_t i = 0; i < module_count; i++) {
        struct module *module = &modules[i];
        if (module->gone || !module_is_gone(module))
            continue;
        unwind_forget(module->begin, module->end);
        loaded_debug_frames_forget(module->begin);
        module->gone = true; /* last: a fork meanwhile forgets it again */
        module_log_unload(module->begin);
    }
}

/* Logs a module; the caller holds the log. */
static void loaded_add_locked(uintptr_t begin, uintptr_t end, const struct link_map *map,
                              uint64_t sequence, uint64_t steps)
{
    bool is_known = false;
    for (size_t i = 0; i < module_count && !is_known; i++)
        is_known = !modules[i].gone && modules[i].begin == begin && modules[i].map == map;
    if (!is_known)
        loaded_sweep(); /* it may be where another one was */
    size_t index = 0;
    while (index < module_count && !modules[index].gone)
        index++;
    if (!is_known && index < MODULES_MAX) {
        struct module *module = &modules[index];
        module->begin =
            begin; /* the kept facts of the slot's last module stay: its room is taken */
        module->end = end;
        module->map = map;
        module->is_lasting = !has_all_first;
        module->is_settled = false;
        atomic_signal_fence(memory_order_seq_cst); /* another thread may fork at any point */
        module->gone = false;
        module_count += index == module_count;
        module_log_load(module, sequence, steps);
        if (has_all_first)
            entries_look_at(begin);
    }
}

static void loaded_postpone(uintptr_t begin, uintptr_t end, const struct link_map *map)
{
    size_t place = atomic_fetch_add(&postponed_count, 1);
    if (place >= POSTPONED_MAX)
        return;
    postponed[place].end = end;
    postponed[place].map = map;
    atomic_store(&postponed[place].begin, begin);
}

/* Logs the postponed modules; the caller holds the log. */
static void loaded_add_postponed(uint64_t sequence, uint64_t steps)
{
    size_t next = 0, count = 0;
    while (!atomic_compare_exchange_strong(&postponed_count, &count, 0)) {
        for (; next < count && next < POSTPONED_MAX; next++) {
            struct postponed *module = &postponed[next];
            uintptr_t begin = atomic_load(&module->begin);
            if (begin)
                loaded_add_locked(begin, module->end, module->map, sequence, steps);
            atomic_store(&module->begin, 0); /* last: who jumps out leaves it to the next one */
        }
    }
}

static void module_add(uintptr_t begin, uintptr_t end, const struct link_map *map,
                       uint64_t sequence, uint64_t steps)
{
    /* There was no memory for the table: the program may have little address space. */
    if (!modules)
        return;
    if (!lock_modules()) {
        loaded_postpone(begin, end, map);
        return;
    }
    loaded_add_locked(begin, end, map, sequence, steps);
    loaded_add_postponed(sequence, steps);
    unlock_modules();
}

/* Called by the unwinder when it meets a module for the first time. */
static void module_found(const struct dl_find_object *object)
{
    const struct thread *thread = target_self;
    module_add((uintptr_t)object->dlfo_map_start, (uintptr_t)object->dlfo_map_end,
               object->dlfo_link_map, thread ? thread->sequence : 0, thread ? thread->steps : 0);
}

/* Called by the unwinder, for a module that was found. */
static const struct debug_frame *module_debug_frame(const struct dl_find_object *object,
                                                    bool *is_unsettled)
{
    const struct debug_frame *frame;
    uintptr_t begin = (uintptr_t)object->dlfo_map_start;
    if (loaded_debug_frames_find(begin, &frame) || process_is_confined || !modules)
        return frame;
    if (!lock_modules()) {
        *is_unsettled = true;
        return NULL;
    }
    if (!loaded_debug_frames_find(begin, &frame)) { /* no other thread has read it meanwhile */
        for (size_t i = 0; i < module_count; i++)
            if (!modules[i].gone && modules[i].begin == begin &&
                modules[i].map == object->dlfo_link_map)
                loaded_debug_frames_read(&modules[i]);
        loaded_debug_frames_find(begin, &frame);
    }
    unlock_modules();
    return frame;
}

static int module_listed(struct dl_phdr_info *info, size_t size, void *sequence)
{
    (void)size;
    struct dl_find_object object;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD)
            continue;
        if (_dl_find_object((void *)(info->dlpi_addr + segment->p_vaddr), &object) == 0)
            module_add((uintptr_t)object.dlfo_map_start, (uintptr_t)object.dlfo_map_end,
                       object.dlfo_link_map, *(const uint64_t *)sequence, 0);
        break;
    }
    return 0;
}

void modules_forget_log(void)
{
    atomic_store(&lock, 0);
    module_log_forget();
}

/* Logs all modules again, in the child of a fork: it has a log of its own. */
static void modules_again(uint64_t sequence)
{
    modules_forget_log();
    loaded_debug_frames_drop();
    for (size_t i = 0; i < module_count; i++) {
        struct module *module = &modules[i];
        if (module->gone)
            continue;
        if (!module_is_gone(module)) {
            module_log_again(module, sequence);
            continue;
        }
        module->gone = true;
        unwind_forget(module->begin, module->end);
        loaded_debug_frames_forget(module->begin);
    }
}

void modules_begin(uint64_t sequence)
{
    if (modules) {
        unwind_setup_forked();
        modules_again(sequence);
        return;
    }
    unwind_setup(module_found, module_debug_frame);
    module_files_begin();
    if ((modules = unwind_pages(MODULES_MAX * sizeof *modules + module_log_room()))) {
        module_log_keep(modules + MODULES_MAX);
        dl_iterate_phdr(module_listed, &sequence);
        has_all_first = true;
    }
    module_files_end();
}

void modules_closed(void)
{
    if (!lock_modules())
        return;
    loaded_sweep();
    unlock_modules();
}

void modules_abandon(const struct thread *thread)
{
    if (atomic_load(&lock) == (uintptr_t)thread)
        unlock_modules();
}
