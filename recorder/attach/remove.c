/* SPDX-License-Identifier: MIT */
/* Takes the hooks away from a process, and then the library. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "arrays.h"
#include "channel.h"
#include "attach/parts.h"

/* How long threads are waited for that are in the hooks, and how often that is looked at. */
#define GIVE_UP_NS UINT64_C(5000000000)
enum { GIVE_UP_LOOK_NS = 5 * 1000 * 1000, PARTS_MAX = 512 };

/* Moves a thread out of the trampolines, where it need not be any more. */
static void remove_move_back(const struct attachment *attachment, struct thread_state *thread)
{
    for (size_t i = 0; i < attachment->function_count && !thread->has_ended; i++) {
        const struct attach_function *function = &attachment->functions[i];
        uint64_t pc = attach_pc(thread);
        if (!attach_finds_frames(function) && patch_pc_back(&function->patch, &pc) == PATCH_MOVED)
            attach_move(thread, pc);
    }
}

/* Whether the library is not there any more: the process has executed another program, or ended; or
 * another recorder has removed it, and its own may be there. */
static bool attach_is_gone(const struct attachment *attachment)
{
    struct attached own;
    const size_t size = offsetof(struct attached, key) + sizeof own.key;
    return !attach_read(attachment, attach_own_address(attachment), &own, size) ||
           own.magic != ATTACHED_MAGIC || own.key != attachment->key;
}

bool attach_has_executed(const struct attachment *attachment)
{
    char path[64], program[16];
    snprintf(path, sizeof path, "/proc/%u/exe", attachment->pid);
    /* A process that ends has no program. */
    return attach_is_gone(attachment) && readlink(path, program, sizeof program) > 0;
}

/* Restores places that still have the written bytes; something else may have changed a function
 * since. The functions are those that unwinders find the frames of hooks by, or all others. */
static void remove_restore_entries(struct attachment *attachment, bool finds_frames)
{
    for (size_t i = 0; i < attachment->undo.patch_count; i++) {
        const struct attached_patch *patch = &attachment->undo.patches[i];
        unsigned char bytes[ATTACHED_ENTRY_SIZE];
        if ((patch->finds_frames != 0) != finds_frames ||
            !attach_read(attachment, patch->entry, bytes, sizeof bytes) ||
            memcmp(bytes, patch->original, sizeof bytes) == 0)
            continue;
        if (memcmp(bytes, patch->jump, sizeof bytes) != 0 ||
            !attach_write(attachment, patch->entry, patch->original, sizeof bytes))
            attachment->is_left = true;
    }
}

/* Has the functions of the live API do nothing. The program may have unmapped their memory. */
static void remove_close_live(struct attachment *attachment)
{
    static const uint64_t nothing[ATTACHED_LIVE_SLOTS];
    uint64_t address = attach_own_address(attachment) + offsetof(struct attached, live), mark;
    attachment->live = 0;
    if (!attach_read(attachment, address, &attachment->live, sizeof attachment->live) ||
        attachment->live == 0)
        return;
    if (attach_read(attachment, attachment->live, &mark, sizeof mark) && mark == ATTACHED_LIVE_MARK)
        attach_write(attachment, attachment->live + ATTACHED_LIVE_CODE, nothing, sizeof nothing);
    else
        attachment->live = 0;
}

static bool remove_unhook(struct attachment *attachment, struct threads *threads)
{
    if (attach_is_gone(attachment))
        return true;
    remove_restore_entries(attachment, false);
    remove_close_live(attachment);
    for (size_t i = 0; i < threads->count; i++)
        remove_move_back(attachment, &threads->items[i]);
    attachment->is_patched = false;
    /* Whatever takes effect from now on belongs to a fragment behind this one, which is nobody's.
     */
    if (attachment->sequence && attachment->last_sequence == 0)
        attachment->last_sequence = atomic_fetch_add(attachment->sequence, 1) + 1;
    return true;
}

void attach_unhook(struct attachment *attachment)
{
    if (attachment->is_patched)
        attach_stopped(attachment, remove_unhook);
}

static bool remove_is_within(const struct attachment *attachment, uint64_t address)
{
    const struct attached_undo *undo = &attachment->undo;
    if (address - attachment->base < attachment->size ||
        (attachment->live != 0 && address - attachment->live < ATTACHED_LIVE_CODE))
        return true;
    for (size_t i = 0; i < undo->area_count; i++)
        if (address - undo->areas[i].begin < undo->areas[i].size)
            return true;
    return false;
}

/* Whether a thread is in a hook, or about to enter or to leave one, or will return to one. A depth
 * that a longjmp() has left is disproved by the stack: by its words, or else by its frames. */
static bool remove_is_inside(struct attach_stacks *stacks, const struct thread_state *thread)
{
    const struct attachment *attachment = stacks->attachment;
    struct attached_thread own = {0};
    uint64_t block = thread->thread_pointer + attachment->thread_block;
    if (thread->has_ended)
        return false;
    /* A thread that a recorder has borrowed, and then was killed, has its stack there. */
    if (remove_is_within(attachment, attach_pc(thread)) ||
        remove_is_within(attachment, thread->registers[THREAD_STACK_POINTER]))
        return true;
    struct attach_stack stack = attach_stack_look(stacks, thread, remove_is_within);
    if (attachment->thread_block != 0)
        attach_read(attachment, block, &own, sizeof own);
    bool may_be_inside = stack.has_frame || (own.depth != 0 && stack.has_words);
    return may_be_inside &&
           attach_stack_follow(stacks, thread, remove_is_within) != FRAMES_HAVE_NONE;
}

static bool remove_is_any_inside(const struct attachment *attachment, const struct threads *threads)
{
    struct attach_stacks stacks;
    bool is_inside_any = !attach_stacks_open(&stacks, attachment, threads);
    for (size_t i = 0; i < threads->count && !is_inside_any; i++)
        is_inside_any = remove_is_inside(&stacks, &threads->items[i]);
    attach_stacks_close(&stacks);
    return is_inside_any;
}

static bool attach_remove_mapping(struct threads *threads, const struct borrowed_code *code,
                                  uint64_t begin, uint64_t size)
{
    return attach_call(threads, code, SYS_munmap, (const uint64_t[6]){begin, size, 0, 0, 0, 0}) ==
           0;
}

/* Memory to be unmapped. While it is mapped, the process has `noted` at the address `note`; 0 for
 * nowhere. */
struct remove_range {
    uint64_t begin, size, note, noted;
};

struct remove_ranges {
    struct remove_range *items;
    size_t count, capacity;
};

/* Adds all pages of a range. */
static void remove_add_range(struct attachment *attachment, struct remove_ranges *ranges,
                             struct remove_range range)
{
    range.size = (range.size + ATTACH_PAGE - 1) & -(uint64_t)ATTACH_PAGE;
    void *items = array_grow(ranges->items, ranges->count, &ranges->capacity, sizeof range);
    if (!items) {
        attachment->is_to_wait = true;
        return;
    }
    ranges->items = items;
    ranges->items[ranges->count++] = range;
}

/* Writes the notes of ranges, or 0 in their place. Returns false if that is impossible. */
static bool remove_note_ranges(const struct attachment *attachment,
                               const struct remove_range *ranges, size_t count, bool are_mapped)
{
    bool is_written = true;
    for (size_t i = 0; i < count; i++) {
        uint64_t noted = are_mapped ? ranges[i].noted : 0;
        if (ranges[i].note != 0)
            is_written &= attach_write(attachment, ranges[i].note, &noted, sizeof noted);
    }
    return is_written;
}

/* Unmaps adjacent ranges by one call. Their notes become 0 before: the addresses may soon be the
 * program's, and the next recorder must leave them alone. */
static void remove_unmap_adjacent(struct attachment *attachment, struct threads *threads,
                                  const struct borrowed_code *code,
                                  const struct remove_range *ranges, size_t count)
{
    uint64_t begin = ranges[0].begin, end = ranges[count - 1].begin + ranges[count - 1].size;
    if (remove_note_ranges(attachment, ranges, count, false) &&
        attach_remove_mapping(threads, code, begin, end - begin))
        return;
    /* No thread could, as when a signal has come: it is tried again. */
    remove_note_ranges(attachment, ranges, count, true);
    attachment->is_to_wait = true;
}

static int remove_compare_ranges(const void *left, const void *right)
{
    uint64_t a = ((const struct remove_range *)left)->begin;
    uint64_t b = ((const struct remove_range *)right)->begin;
    return a < b ? -1 : a > b;
}

/* Unmaps ranges: a process with many threads has thousands, nearly all of them side by side. */
static void remove_unmap_ranges(struct attachment *attachment, struct threads *threads,
                                const struct borrowed_code *code, struct remove_ranges *ranges)
{
    if (ranges->count > 0)
        qsort(ranges->items, ranges->count, sizeof *ranges->items, remove_compare_ranges);
    for (size_t first = 0, next; first < ranges->count; first = next) {
        const struct remove_range *items = ranges->items;
        next = first + 1;
        while (next < ranges->count &&
               items[next].begin == items[next - 1].begin + items[next - 1].size)
            next++;
        remove_unmap_adjacent(attachment, threads, code, &items[first], next - first);
    }
}

/* Lists the memory in a part of the list that the library has mapped for itself. Returns the
 * address of the next part; 0 for none. */
static uint64_t remove_list_part(struct attachment *attachment, uint64_t address,
                                 struct remove_ranges *ranges)
{
    struct own_memory part;
    if (!attach_read(attachment, address, &part, sizeof part))
        return 0;
    for (size_t k = 0; k < OWN_RANGES; k++) {
        uint64_t size = atomic_load(&part.ranges[k].size);
        struct remove_range range = {atomic_load(&part.ranges[k].begin), size,
                                     address + offsetof(struct own_memory, ranges[k].size), size};
        if (range.begin != attachment->base && range.size != 0)
            remove_add_range(attachment, ranges, range);
    }
    return atomic_load(&part.next);
}

/* Lists the windows of the channel: all of the file that is mapped at its address. */
static void remove_list_channel(struct attachment *attachment, const struct threads *threads,
                                struct remove_ranges *ranges)
{
    struct maps maps;
    uint64_t channel = 0;
    attach_read(attachment, attach_own_address(attachment) + offsetof(struct attached, channel),
                &channel, sizeof channel);
    if (channel == 0 || !maps_read(&maps, attachment->pid, attach_living(threads)))
        return;
    for (size_t i = 0; i < maps.count; i++)
        if (maps.items[i].begin == channel &&
            strncmp(maps.items[i].name, CHANNEL_NAME, strlen(CHANNEL_NAME)) == 0)
            attachment->channel_inode = maps.items[i].inode;
    for (size_t i = 0; i < maps.count; i++)
        if (maps.items[i].inode == attachment->channel_inode &&
            strncmp(maps.items[i].name, CHANNEL_NAME, strlen(CHANNEL_NAME)) == 0)
            remove_add_range(
                attachment, ranges,
                (struct remove_range){.begin = maps.items[i].begin,
                                      .size = maps.items[i].end - maps.items[i].begin});
    maps_free(&maps);
}

/* Unmaps the channel and all that is in the list, and then the list's parts but the first, which is
 * in the image. */
static void remove_unmap_own(struct attachment *attachment, struct threads *threads,
                             const struct borrowed_code *code)
{
    uint64_t parts[PARTS_MAX];
    size_t count = 0;
    struct remove_ranges ranges = {0};
    uint64_t first = attach_own_address(attachment) + offsetof(struct attached, own_memory);
    uint64_t address = 0;
    attach_read(attachment, first, &address, sizeof address);
    for (; address != 0 && count < PARTS_MAX; count++) {
        parts[count] = address;
        address = remove_list_part(attachment, address, &ranges);
    }
    remove_list_channel(attachment, threads, &ranges);
    remove_unmap_ranges(attachment, threads, code, &ranges);
    free(ranges.items);
    for (; count > 1 && !attachment->is_to_wait; count--) {
        const struct remove_range part = {parts[count - 1], sizeof(struct own_memory),
                                          parts[count - 2] + offsetof(struct own_memory, next),
                                          parts[count - 1]};
        remove_unmap_adjacent(attachment, threads, code, &part, 1);
    }
}

/* Whether code of no file is mapped in all of an area, as gates are. */
static bool remove_has_gates(const struct maps *maps, const struct attached_area *area)
{
    for (size_t i = 0; i < maps->count; i++) {
        const struct mapping *mapping = &maps->items[i];
        if (mapping->begin <= area->begin && mapping->end >= area->begin + area->size)
            return mapping->is_executable && !mapping->is_writable && !mapping->is_file;
    }
    return false;
}

/* Unmaps the gates. An area is noted from before it is mapped until after it is unmapped: whenever
 * a recorder is killed, another one finds it. Other mappings there are the program's. */
static void remove_unmap_areas(struct attachment *attachment, struct threads *threads,
                               const struct borrowed_code *code)
{
    struct maps maps;
    bool is_read = maps_read(&maps, attachment->pid, attach_living(threads));
    for (size_t i = 0; is_read && i < attachment->undo.area_count; i++) {
        struct attached_area *area = &attachment->undo.areas[i];
        if (area->size == 0 || !remove_has_gates(&maps, area) ||
            attach_remove_mapping(threads, code, area->begin, area->size))
            area->size = 0;
        else
            attachment->is_to_wait = true; /* no thread could, as when a signal has come */
    }
    attachment->is_to_wait |= !is_read || !attach_write_undo(attachment);
    maps_free(&maps);
}

/* Gives up the process's own copies of pages that were changed: they equal the files' again.
 */
static void remove_drop_pages(struct attachment *attachment, struct threads *threads,
                              const struct borrowed_code *code)
{
    uint64_t dropped = 0;
    for (size_t i = 0; i < attachment->undo.patch_count; i++) {
        const struct attached_patch *patch = &attachment->undo.patches[i];
        uint64_t page = patch->entry & -(uint64_t)ATTACH_PAGE;
        if (!patch->is_clean || page == dropped)
            continue;
        attach_call(threads, code, SYS_madvise,
                    (const uint64_t[6]){page, ATTACH_PAGE, MADV_DONTNEED, 0, 0, 0});
        dropped = page;
    }
}

/* Closes the channel's descriptor there, unless the process has done so, and uses the number again.
 */
static void remove_close_channel(struct attachment *attachment, struct threads *threads,
                                 const struct borrowed_code *code)
{
    char path[64], name[64] = "";
    snprintf(path, sizeof path, "/proc/%u/task/%u/fd/%d", attachment->pid, attach_living(threads),
             attachment->file);
    if (attachment->file >= 0 && readlink(path, name, sizeof name - 1) > 0 &&
        strncmp(name, CHANNEL_NAME, strlen(CHANNEL_NAME)) == 0)
        attach_call(threads, code, SYS_close,
                    (const uint64_t[6]){(uint64_t)attachment->file, 0, 0, 0, 0, 0});
    attachment->file = -1;
}

/* Restores the default action of a signal if the library's handler is in its place. */
static bool remove_restore_signal(struct attachment *attachment, struct threads *threads,
                                  const struct borrowed_code *code, uint64_t number)
{
    uint64_t own = attach_own_address(attachment);
    uint64_t present = own + offsetof(struct attached, present);
    uint64_t standard =
        own + offsetof(struct attached, defaults) + number * sizeof(struct attached_action);
    struct attached_action action;
    if (attach_call(threads, code, SYS_rt_sigaction,
                    (const uint64_t[6]){number, 0, present, sizeof action.mask, 0, 0}) != 0 ||
        !attach_read(attachment, present, &action, sizeof action))
        return false;
    return !remove_is_within(attachment, action.handler) ||
           attach_call(threads, code, SYS_rt_sigaction,
                       (const uint64_t[6]){number, standard, 0, sizeof action.mask, 0, 0}) == 0;
}

/* Restores the actions of all signals. Returns false if no thread can make the calls for it now. */
static bool remove_restore_signals(struct attachment *attachment, struct threads *threads)
{
    static const uint64_t nothing;
    uint64_t address = attach_own_address(attachment) + offsetof(struct attached, signals);
    uint64_t signals = 0;
    struct attach_cave cave;
    if (!attach_read(attachment, address, &signals, sizeof signals) || signals == 0)
        return true;
    if (!attach_cave_open(attachment, threads, &cave))
        return false;
    bool are_restored = true;
    for (uint64_t number = 1; number <= ATTACHED_SIGNALS && are_restored; number++)
        if ((signals >> (number - 1) & 1) != 0)
            are_restored = remove_restore_signal(attachment, threads, &cave.code, number);
    attach_cave_close(attachment, threads, &cave);
    return are_restored && attach_write(attachment, address, &nothing, sizeof nothing);
}

/* Clears the thread-local data of all threads. */
static void remove_clear_threads(const struct attachment *attachment, const struct threads *threads)
{
    static const unsigned char nothing[512];
    static const uint64_t mark = ATTACHED_MAGIC;
    for (size_t i = 0; i < threads->count; i++) {
        uint64_t block = threads->items[i].thread_pointer + attachment->thread_block, found;
        if (!threads->items[i].has_ended && attach_read(attachment, block, &found, sizeof found) &&
            found == mark && attachment->thread_size <= sizeof nothing)
            attach_write(attachment, block, nothing, attachment->thread_size);
    }
}

static bool remove_take_away(struct attachment *attachment, struct threads *threads)
{
    struct attach_cave cave;
    if (attach_is_gone(attachment))
        return true;
    remove_unhook(attachment, threads); /* threads may not have stopped for it before */
    bool are_restored = remove_restore_signals(attachment, threads);
    if (!are_restored || attachment->is_left || remove_is_any_inside(attachment, threads))
        return false;
    remove_restore_entries(attachment, true);
    if (attachment->is_left)
        return false;
    if (attachment->thread_block != 0)
        remove_clear_threads(attachment, threads);
    if (!attach_cave_open(attachment, threads, &cave))
        return false;
    attachment->is_to_wait = false;
    copy_bury(threads, &cave.code, &attachment->copies);
    remove_close_channel(attachment, threads, &cave.code);
    remove_unmap_own(attachment, threads, &cave.code);
    remove_drop_pages(attachment, threads, &cave.code);
    remove_unmap_areas(attachment, threads, &cave.code);
    /* Not if it confines itself by now. */
    bool is_unmapped =
        !attachment->is_to_wait &&
        attach_remove_mapping(threads, &cave.code, attachment->base, attachment->size);
    attach_cave_close(attachment, threads, &cave);
    return is_unmapped;
}

bool attach_remove(struct attachment *attachment)
{
    /* Before any entry leads to the library, stopping a few threads is enough: the rest may be
     * unable to stop. */
    bool (*const stop)(struct attachment *, bool (*)(struct attachment *, struct threads *)) =
        attachment->has_run ? attach_stopped : attach_stopped_some;
    if (attachment->base != 0 && !attachment->is_left && !stop(attachment, remove_take_away))
        return false;
    attachment->base = 0;
    return true;
}

static uint64_t attach_remove_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void attach_give_up(struct attachment *attachment)
{
    const struct timespec moment = {.tv_nsec = GIVE_UP_LOOK_NS};
    uint64_t begin = attach_remove_now();
    for (;;) {
        attach_unhook(attachment);
        if (attach_remove(attachment))
            return;
        attachment->is_left = attach_remove_now() - begin > GIVE_UP_NS;
        nanosleep(&moment, NULL);
    }
}

/* Finds the image that another recorder has mapped. Returns its address, or 0. */
static uint64_t remove_find_left(const struct attachment *attachment, Elf64_Ehdr *header)
{
    const struct maps *maps = &attachment->modules.maps;
    for (size_t i = 0; i < maps->count; i++) {
        const struct mapping *mapping = &maps->items[i];
        if (mapping->is_executable && !mapping->is_file && !mapping->is_writable &&
            attach_read(attachment, mapping->begin, header, sizeof *header) &&
            memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
            memcmp(header->e_ident + ATTACHED_MARK_AT, ATTACHED_MARK, strlen(ATTACHED_MARK)) == 0)
            return mapping->begin;
    }
    return 0;
}

/* Reads the other recorder's notes in its image. Returns false if it has not got that far.
 */
static bool remove_read_left(struct attachment *attachment, uint64_t begin,
                             const Elf64_Ehdr *header)
{
    struct attached *own = malloc(sizeof *own);
    attachment->base = begin;
    attachment->own = header->e_entry;
    bool is_read = own &&
                   attach_read(attachment, attach_own_address(attachment), own, sizeof *own) &&
                   own->magic == ATTACHED_MAGIC && own->undo.patch_count <= ATTACHED_PATCHES &&
                   own->undo.area_count <= ATTACHED_AREAS;
    if (is_read) {
        attachment->key = own->key;
        attachment->recorder = own->recorder;
        attachment->size = attachment->image.size;
        if (own->begin == begin) {
            attachment->size = own->end - own->begin;
            attachment->thread_block = own->thread_block;
            attachment->thread_size = own->thread_size;
        }
        attachment->undo = own->undo;
        attachment->file = own->file != 0 ? own->file : -1;
        attachment->is_patched = attachment->has_run = true;
    }
    free(own);
    return is_read;
}

/* Whether a recorder lives. It may be attaching: not all that is to be undone is written then, and
 * threads are about to enter the library. */
static bool remove_is_alive(uint32_t recorder)
{
    return recorder != 0 && (kill((pid_t)recorder, 0) == 0 || errno == EPERM);
}

bool attach_clean(struct attachment *attachment)
{
    Elf64_Ehdr header;
    uint64_t begin = remove_find_left(attachment, &header);
    attachment->was_found = begin != 0;
    if (begin == 0)
        return true;
    if (!remove_read_left(attachment, begin, &header))
        return attach_refuse(attachment, "a recorder was killed while it attached to it; start it "
                                         "anew");
    if (attachment->recorder != (uint32_t)getpid() && remove_is_alive(attachment->recorder)) {
        attachment->was_found = false;
        return attach_refuse(attachment, "process %u records it already", attachment->recorder);
    }
    /* It may have removed everything itself, and have ended then. */
    attachment->was_cleaned = !attach_is_gone(attachment);
    if (attachment->was_cleaned)
        attach_give_up(attachment);
    if (attachment->is_left)
        return attach_refuse(attachment, "a recorder that was killed has left its library there, "
                                         "and a thread is in it; try again");
    attachment->base = 0;
    attachment->undo = (struct attached_undo){0};
    attachment->thread_block = attachment->thread_size = 0;
    attachment->file = -1;
    return true;
}
