/* SPDX-License-Identifier: MIT */
/* The log of a process: the modules that were loaded and unloaded, and when. */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

#include "../../channel_record.h"
#include "../system/sys.h"
#include "../threads/thread.h"
#include "../system/memory.h"

enum { MODULES_MAX = 16384, PATH_BYTES_MAX = 4096 };

struct module {
    uintptr_t begin;
    uintptr_t end;
    const struct link_map *map;
    bool gone;
};

static struct module *modules;
static size_t module_count;

/* The thread that holds the log, or NO_THREAD. No code of the program runs while it is held, except
 * for a signal handler. */
static _Atomic uintptr_t lock;

enum { NO_THREAD = 1, POSTPONED_MAX = 8 };

/* Modules that a signal handler met while its own thread held the log. */
static struct postponed {
    uintptr_t begin, end;
    const struct link_map *map;
} postponed[POSTPONED_MAX];
static volatile size_t postponed_count;

static struct {
    uint32_t index; /* of the chunk, CHANNEL_NONE at first */
    struct chunk *chunk;
    uint64_t *write;
    uint64_t *limit;
    bool starving;
} process_log;

static uintptr_t own_lock(void)
{
    return target_self != NULL ? (uintptr_t)target_self : NO_THREAD;
}

/* Takes the log. False if this thread holds it already: a signal handler has interrupted it. */
static bool lock_modules(void)
{
    uintptr_t holder = 0;
    while (!atomic_compare_exchange_weak_explicit(&lock, &holder, own_lock(), memory_order_acquire,
                                                  memory_order_relaxed)) {
        if (holder == own_lock())
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

/* Returns room for a record of the log; NULL if there is none, and then the module has no name. */
static uint64_t *log_room(size_t words)
{
    if (process_log.limit - process_log.write >= (ptrdiff_t)words)
        return process_log.write;
    uint32_t index = chunk_wait(process_log.index, words, &process_log.starving);
    if (index == CHANNEL_NONE)
        return NULL;
    struct chunk *chunk = channel_chunk(&target_view, index);
    process_log.write = chunk->data;
    process_log.limit = chunk->data + channel_chunk_words(index);
    if (process_log.chunk != NULL)
        atomic_store_explicit(&process_log.chunk->next, index, memory_order_release);
    else
        atomic_store_explicit(&channel_process(&target_view, process_index())->log, index,
                              memory_order_release);
    process_log.index = index;
    process_log.chunk = chunk;
    return process_log.write;
}

static void log_commit(uint64_t *end)
{
    process_log.write = end;
    atomic_store_explicit(&process_log.chunk->committed,
                          (uint32_t)((char *)end - (char *)process_log.chunk->data),
                          memory_order_release);
}

/* Returns a note of the given type in a loaded module; NULL if there is none. */
static const ElfW(Nhdr) * find_note(const ElfW(Ehdr) * header, uintptr_t bias, uint32_t type)
{
    const ElfW(Phdr) *segment = (const ElfW(Phdr) *)((const char *)header + header->e_phoff);
    for (unsigned i = 0; i < header->e_phnum; i++) {
        if (segment[i].p_type != PT_NOTE)
            continue;
        const char *at = (const char *)(bias + segment[i].p_vaddr);
        const char *end = at + segment[i].p_memsz;
        while (end - at >= (ptrdiff_t)sizeof(ElfW(Nhdr))) {
            const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
            size_t size =
                sizeof *note + ((note->n_namesz + 3u) & ~3u) + ((note->n_descsz + 3u) & ~3u);
            if (size > (size_t)(end - at))
                break;
            if (note->n_type == type && note->n_namesz == 4 && memcmp(note + 1, "GNU", 4) == 0)
                return note;
            at += size;
        }
    }
    return NULL;
}

static uint64_t *put_bytes(uint64_t *word, const void *bytes, size_t size)
{
    size_t words = (size + 7) / 8;
    if (words != 0)
        word[words - 1] = 0;
    memcpy(word, bytes, size);
    return word + words;
}

/* Sets `path` to this program's, as it was at the first call. Returns its size, negative if
 * unknown.
 */
static long own_path(const char **path)
{
    static char own[PATH_BYTES_MAX];
    static long size;
    if (size == 0)
        size = sys_call3(SYS_readlink, (long)"/proc/self/exe", (long)own, sizeof own);
    *path = own;
    return size;
}

static void log_load(const struct module *module, uint64_t sequence, uint64_t steps)
{
    const struct link_map *map = module->map;
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)module->begin;
    const ElfW(Nhdr) *note = NULL;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) == 0)
        note = find_note(header, map->l_addr, NT_GNU_BUILD_ID);
    const char *id = note != NULL ? (const char *)(note + 1) + ((note->n_namesz + 3u) & ~3u) : "";
    size_t id_size = note != NULL && note->n_descsz <= TTD_BUILD_ID_MAX ? note->n_descsz : 0;

    /* The program itself has an empty name. */
    const char *path = map->l_name;
    long path_size = (long)strlen(path);
    if (path_size == 0)
        path_size = own_path(&path);
    if (path_size < 0 || path_size > PATH_BYTES_MAX)
        path_size = 0;

    uint64_t *room = log_room(8 + (id_size + 7) / 8 + ((size_t)path_size + 7) / 8);
    if (room == NULL)
        return;
    const uint64_t facts[] = {sequence,    steps,   map->l_addr,        module->begin,
                              module->end, id_size, (uint64_t)path_size};
    uint64_t *word = room + 1;
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        *word++ = facts[i];
    word = put_bytes(word, id, id_size);
    word = put_bytes(word, path, (size_t)path_size);
    *room = record_head(OP_MODULE_LOAD, 0, 0, 0, (unsigned)(word - room));
    log_commit(word);
}

static bool module_is_gone(const struct module *module)
{
    struct dl_find_object object;
    /* A fork may come after the unmapping and before the loader forgets the module. */
    return (!process_is_confined && !unwind_page_readable(module->begin)) ||
           _dl_find_object((void *)module->begin, &object) != 0 ||
           (uintptr_t)object.dlfo_map_start != module->begin || object.dlfo_link_map != module->map;
}

/* Logs the modules that are gone: not every unloading goes through the hook of dlclose. */
static void sweep(void)
{
    for (size_t i = 0; i < module_count; i++) {
        struct module *module = &modules[i];
        if (module->gone || !module_is_gone(module))
            continue;
        module->gone = true;
        unwind_forget(module->begin, module->end);
        uint64_t *room = log_room(4);
        if (room == NULL)
            continue;
        room[0] = record_head(OP_MODULE_UNLOAD, 0, 0, 0, 4);
        room[1] = atomic_fetch_add(&target_channel->sequence, 1) + 1; /* a fragment of its own */
        room[2] = 0;
        room[3] = module->begin;
        log_commit(room + 4);
    }
}

/* Logs a module; the caller holds the log. */
static void add_locked(uintptr_t begin, uintptr_t end, const struct link_map *map,
                       uint64_t sequence, uint64_t steps)
{
    bool known = false;
    for (size_t i = 0; i < module_count && !known; i++)
        known = !modules[i].gone && modules[i].begin == begin && modules[i].map == map;
    if (!known)
        sweep(); /* it may be where another one was */
    size_t place = 0;
    while (place < module_count && !modules[place].gone)
        place++;
    if (!known && place < MODULES_MAX) {
        modules[place] = (struct module){begin, end, map, false};
        module_count += place == module_count;
        log_load(&modules[place], sequence, steps);
    }
}

static void postpone(uintptr_t begin, uintptr_t end, const struct link_map *map)
{
    if (postponed_count < POSTPONED_MAX)
        postponed[postponed_count++] = (struct postponed){begin, end, map};
}

static void module_add(uintptr_t begin, uintptr_t end, const struct link_map *map,
                       uint64_t sequence, uint64_t steps)
{
    if (!lock_modules()) {
        postpone(begin, end, map);
        return;
    }
    add_locked(begin, end, map, sequence, steps);
    for (size_t i = 0; i < postponed_count; i++)
        add_locked(postponed[i].begin, postponed[i].end, postponed[i].map, sequence, steps);
    postponed_count = 0;
    unlock_modules();
}

/* Called by the unwinder when it meets a module for the first time. */
static void module_found(const struct dl_find_object *object)
{
    const struct thread *thread = target_self;
    module_add((uintptr_t)object->dlfo_map_start, (uintptr_t)object->dlfo_map_end,
               object->dlfo_link_map, thread != NULL ? thread->sequence : 0,
               thread != NULL ? thread->steps : 0);
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
    memset(&process_log, 0, sizeof process_log);
}

/* Logs all modules again, in the child of a fork: it has a log of its own. */
static void modules_again(uint64_t sequence)
{
    modules_forget_log();
    for (size_t i = 0; i < module_count; i++) {
        modules[i].gone |= module_is_gone(&modules[i]);
        if (!modules[i].gone)
            log_load(&modules[i], sequence, 0);
    }
}

void modules_begin(uint64_t sequence)
{
    unwind_setup(module_found);
    if (modules != NULL) {
        modules_again(sequence);
        return;
    }
    modules = unwind_pages(MODULES_MAX * sizeof *modules);
    if (modules == NULL)
        return;
    dl_iterate_phdr(module_listed, &sequence);
}

void modules_closed(void)
{
    if (!lock_modules())
        return;
    sweep();
    unlock_modules();
}

void modules_abandon(const struct thread *thread)
{
    if (atomic_load(&lock) == (uintptr_t)thread)
        unlock_modules();
}
