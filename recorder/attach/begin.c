/* SPDX-License-Identifier: MIT */
/* Maps the library into a process, and patches the process's functions. */
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "arrays.h"
#include "channel.h"
#include "attach/parts.h"
#include "attach/process.h"

/* A gate: the trampoline, then the entry of a call. */
enum { GATE_SIZE = 128, GATE_ENTRY = 64, GATE_LOAD = 10 };

/* Bytes behind the heap that stay free, for it to grow. */
#define HEAP_ROOM (UINT64_C(1) << 36)

/* How often a thread is waited for, a millisecond each time, that is where nothing can begin. */
enum { WAIT_TRIES = 200 };
static const struct timespec wait_step = {.tv_nsec = 1000000};

#define REACH ((UINT64_C(1) << 31) - (UINT64_C(64) << 20))

struct borrowed_code attach_own_code(const struct attachment *attachment)
{
    return (struct borrowed_code){.copy = attachment->base + attachment->image.copy,
                                  .call = attachment->base + attachment->image.call,
                                  .stack_begin =
                                      attachment->base + attachment->image.stack_end - 4096,
                                  .stack_end = attachment->base + attachment->image.stack_end};
}

static bool is_failed(struct attachment *attachment, int64_t result, const char *what)
{
    if (result >= 0 || result < -4095)
        return false;
    attachment->is_to_wait = result == -EAGAIN;
    if (result == -EAGAIN)
        attach_refuse(attachment, "none of its threads is where it can be interrupted; try again");
    else
        attach_refuse(attachment, "%s failed there: %s", what, strerror((int)-result));
    return true;
}

/* Writes the image. Its header, by which another recorder finds it, comes last: whatever has it is
 * complete, should this recorder be killed. */
static bool write_found(const struct attachment *attachment)
{
    const struct attach_image *image = &attachment->image;
    return attach_write(attachment, attachment->base + ATTACH_PAGE, image->bytes + ATTACH_PAGE,
                        image->size - ATTACH_PAGE) &&
           attach_write(attachment, attachment->base, image->bytes, ATTACH_PAGE);
}

/* Maps the image, and makes its data writable, by the code in a cave. It is written at once, so
 * that it can be found and removed. */
static bool map_parts(struct attachment *attachment, struct threads *threads,
                      const struct attach_cave *cave)
{
    const struct attach_image *image = &attachment->image;
    if (attachment->base == 0) {
        int64_t base = attach_call(threads, &cave->code, SYS_mmap,
                                   (const uint64_t[6]){0, image->size, PROT_READ | PROT_EXEC,
                                                       MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0});
        if (is_failed(attachment, base, "mmap()"))
            return false;
        attachment->base = (uint64_t)base;
        attachment->size = image->size;
        attachment->own = image->own;
        if (!write_found(attachment))
            return attach_refuse(attachment, "its memory cannot be written");
    }
    uint64_t begin = attachment->base + image->data, size = image->size - image->data;
    int64_t result = attach_call(threads, &cave->code, SYS_mprotect,
                                 (const uint64_t[6]){begin, size, PROT_READ | PROT_WRITE, 0, 0, 0});
    return !is_failed(attachment, result, "mprotect()");
}

static bool map_image(struct attachment *attachment, struct threads *threads)
{
    struct attach_cave cave;
    if (attachment->is_mapped)
        return true;
    if (!attach_cave_open(attachment, threads, &cave))
        return false;
    attachment->is_mapped = map_parts(attachment, threads, &cave);
    attach_cave_close(attachment, threads, &cave);
    return attachment->is_mapped;
}

static bool write_undo(struct attachment *attachment)
{
    uint64_t address = attach_own_address(attachment) + offsetof(struct attached, undo);
    return attach_write(attachment, address, &attachment->undo, sizeof attachment->undo) ||
           attach_refuse(attachment, "its memory cannot be written");
}

/* Returns free memory in reach of a module: below it, where nothing grows. */
static uint64_t find_room(const struct maps *maps, const struct attach_module *module,
                          uint64_t size)
{
    uint64_t found = 0;
    for (size_t i = 1; i < maps->count; i++) {
        const struct mapping *below = &maps->items[i - 1], *above = &maps->items[i];
        uint64_t page = above->begin - size - ATTACH_PAGE;
        bool grows = (strcmp(below->name, "[heap]") == 0 && page - below->end < HEAP_ROOM) ||
                     strncmp(above->name, "[stack", 6) == 0;
        if (above->begin - below->end >= size + 3 * ATTACH_PAGE && !grows && page < module->begin &&
            module->end - page < REACH)
            found = page;
    }
    if (found == 0 && maps->count > 0 && module->end - maps->items[0].begin < REACH &&
        maps->items[0].begin > (16 << 20))
        found = maps->items[0].begin - size - ATTACH_PAGE;
    return found;
}

/* Returns the size of the memory for the gates of the functions of a module, of which this is the
 * first. */
static uint64_t area_size(const struct attachment *attachment, size_t first)
{
    size_t end = first;
    while (end < attachment->function_count &&
           attachment->functions[end].module == attachment->functions[first].module)
        end++;
    return ((end - first) * GATE_SIZE + ATTACH_PAGE - 1) & -(uint64_t)ATTACH_PAGE;
}

/* Maps memory for the gates of a module's functions. Another thread may take the place first. */
static bool map_area(struct attachment *attachment, struct threads *threads,
                     const struct attach_module *module, struct attached_area *area)
{
    enum { TRIES = 16 };
    const struct borrowed_code code = attach_own_code(attachment);
    int64_t result = -EEXIST;
    for (int i = 0; i < TRIES && result == -EEXIST; i++) {
        struct maps maps;
        if (!maps_read(&maps, attachment->pid, attach_living(threads)))
            return attach_refuse(attachment, "its mappings cannot be read");
        area->begin = find_room(&maps, module, area->size);
        maps_free(&maps);
        if (area->begin == 0)
            return attach_refuse(attachment, "there is no room near '%s'", module->path);
        result = attach_call(threads, &code, SYS_mmap,
                             (const uint64_t[6]){area->begin, area->size, PROT_READ | PROT_EXEC,
                                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                                                 UINT64_MAX, 0});
    }
    return !is_failed(attachment, result, "mmap()");
}

/* Maps memory for the gates of the functions of all modules. */
static bool map_areas(struct attachment *attachment, struct threads *threads)
{
    struct attached_undo *undo = &attachment->undo;
    const struct attach_module *module = NULL;
    size_t number = 0;
    for (size_t i = 0; i < attachment->function_count; i++) {
        struct attached_area area = {.size = area_size(attachment, i)};
        if (attachment->functions[i].module == module)
            continue;
        module = attachment->functions[i].module;
        if (number++ < undo->area_count)
            continue;
        if (undo->area_count == ATTACHED_AREAS)
            return attach_refuse(attachment, "it has too many allocators");
        if (!map_area(attachment, threads, module, &area))
            return false;
        undo->areas[undo->area_count++] = area;
        if (!write_undo(attachment))
            return false;
    }
    return true;
}

/* Takes a descriptor of the channel's file, or opens that anew: the list of descriptors of a first
 * thread that has ended is empty. Returns -1 with errno if neither is possible. */
static int begin_take_channel(const struct attachment *attachment, uint32_t tid)
{
    char path[64];
    int process = (int)syscall(SYS_pidfd_open, (pid_t)attachment->pid, 0);
    int taken = process >= 0 ? (int)syscall(SYS_pidfd_getfd, process, attachment->file, 0) : -1;
    if (process >= 0)
        close(process);
    if (taken >= 0) {
        fcntl(taken, F_SETFD, FD_CLOEXEC);
        return taken;
    }
    snprintf(path, sizeof path, "/proc/%u/task/%u/fd/%d", attachment->pid, tid, attachment->file);
    return open(path, O_RDWR | O_CLOEXEC);
}

/* Makes the channel's file there, and takes a descriptor of it. */
static bool make_channel(struct attachment *attachment, struct threads *threads)
{
    static const char name[] = CHANNEL_FILE;
    const struct borrowed_code code = attach_own_code(attachment);
    /* The list of modules is not needed yet. */
    uint64_t address = attach_own_address(attachment) + offsetof(struct attached, modules);
    uint64_t note = attach_own_address(attachment) + offsetof(struct attached, file);
    if (!attach_write(attachment, address, name, sizeof name))
        return attach_refuse(attachment, "its memory cannot be written");
    int64_t file =
        attach_call(threads, &code, SYS_memfd_create,
                    (const uint64_t[6]){address, MFD_CLOEXEC | MFD_ALLOW_SEALING, 0, 0, 0, 0});
    if (is_failed(attachment, file, "memfd_create()"))
        return false;
    attachment->file = (int)file;
    attach_write(attachment, note, &attachment->file, sizeof attachment->file);
    attachment->channel = begin_take_channel(attachment, attach_living(threads));
    return attachment->channel >= 0 ||
           attach_refuse(attachment, "its descriptors cannot be taken over: %s", strerror(errno));
}

/* Goes on where it was refused the last time. */
static bool attach_reserve_threads(struct attachment *attachment, struct threads *threads)
{
    attachment->is_to_wait = false;
    return map_image(attachment, threads) && map_areas(attachment, threads) &&
           make_channel(attachment, threads);
}

bool attach_reserve(struct attachment *attachment)
{
    for (int tries = 0; tries < WAIT_TRIES; tries++) {
        attachment->reason[0] = '\0';
        /* At first a few threads, if these are where they can be interrupted. */
        if (tries == 0 ? attach_stopped_some(attachment, attach_reserve_threads)
                       : attach_stopped(attachment, attach_reserve_threads))
            return true;
        if (!attachment->is_to_wait)
            return false;
        nanosleep(&wait_step, NULL);
    }
    return attach_refuse(attachment,
                         "a thread is on its way back from another recorder; try again");
}

/* The control blocks of the living threads. */
enum { CONTROL_SIZE = 1024, CONTROL_FIELDS = 640, CONTROL_FREE = 128 };

struct controls {
    struct control {
        uint32_t id; /* in the process's PID namespace */
        unsigned char bytes[CONTROL_SIZE];
    } * items;
    size_t count;
};

static bool read_controls(const struct attachment *attachment, const struct threads *threads,
                          struct controls *controls)
{
    *controls = (struct controls){calloc(threads->count + 1, sizeof *controls->items), 0};
    for (size_t i = 0; controls->items && i < threads->count; i++) {
        const struct thread_state *thread = &threads->items[i];
        struct control *control = &controls->items[controls->count];
        if (thread->has_ended)
            continue;
        control->id = attachment->is_elsewhere ? attach_process_inner(attachment->pid, thread->tid)
                                               : thread->tid;
        if (!attach_read(attachment, thread->thread_pointer, control->bytes, CONTROL_SIZE))
            return false;
        controls->count++;
    }
    return controls->items != NULL;
}

/* Whether each control block has its thread's id at an offset. */
static bool has_ids(const struct controls *controls, uint32_t field)
{
    for (size_t i = 0; i < controls->count; i++)
        if (memcmp(controls->items[i].bytes + field, &controls->items[i].id, sizeof(uint32_t)) != 0)
            return false;
    return true;
}

/* Whether nothing uses these bytes of the control blocks; an earlier library may have left its own.
 */
static bool is_free(const struct controls *controls, uint64_t block, uint64_t size)
{
    static const unsigned char nothing[CONTROL_SIZE];
    static const uint64_t mark = ATTACHED_MAGIC;
    for (size_t i = 0; i < controls->count; i++) {
        const unsigned char *bytes = controls->items[i].bytes + block;
        if (memcmp(bytes, &mark, sizeof mark) != 0 && memcmp(bytes, nothing, size) != 0)
            return false;
    }
    return true;
}

/* Finds the places of the thread-local data and of the threads' ids. */
static bool find_fields(struct attachment *attachment, const struct threads *threads)
{
    uint64_t size = attachment->image.thread_size;
    uint32_t field = CONTROL_FIELDS;
    uint64_t block = CONTROL_FREE;
    struct controls controls;
    bool is_read = read_controls(attachment, threads, &controls);
    while (is_read && field < CONTROL_SIZE && !has_ids(&controls, field))
        field += 4;
    while (is_read && block + size <= CONTROL_FIELDS && !is_free(&controls, block, size))
        block += 32;
    free(controls.items);
    if (!is_read || field >= CONTROL_SIZE || block + size > CONTROL_FIELDS)
        return attach_refuse(attachment, "the control blocks of its threads are not as those of "
                                         "the GNU C library");
    attachment->id_field = field;
    attachment->thread_block = block;
    attachment->thread_size = size;
    return true;
}

bool attach_clear_threads(const struct attachment *attachment, const struct threads *threads)
{
    static const unsigned char nothing[CONTROL_SIZE];
    static const uint64_t mark = ATTACHED_MAGIC;
    bool is_done = true;
    for (size_t i = 0; i < threads->count; i++) {
        uint64_t block = threads->items[i].thread_pointer + attachment->thread_block, found;
        if (!threads->items[i].has_ended && attach_read(attachment, block, &found, sizeof found) &&
            found == mark)
            is_done &= attach_write(attachment, block, nothing, attachment->thread_size);
    }
    return is_done;
}

/* Lists the return addresses of calls within allocators. */
static void list_internal(const struct attachment *attachment, struct attached *own)
{
    own->internal_begin = UINT64_MAX;
    for (size_t i = 0; i < attachment->internal_count; i++) {
        uint64_t site = own->internal[i] = attachment->internal[i];
        own->internal_begin = site < own->internal_begin ? site : own->internal_begin;
        own->internal_end = site >= own->internal_end ? site + 1 : own->internal_end;
    }
    own->internal_count = attachment->internal_count;
    if (own->internal_count == 0)
        own->internal_begin = 0;
}

/* Lists an address in each module, which the library has looked up. */
static void attach_list_modules(const struct attachment *attachment, struct attached *own)
{
    own->module_count = 0;
    for (size_t i = 0; i < attachment->modules.count && i < ATTACHED_MODULES; i++)
        own->modules[own->module_count++] = attachment->modules.items[i].begin;
}

/* Writes the relocated image. */
static bool write_image(struct attachment *attachment)
{
    struct attach_image *image = &attachment->image;
    const char *missing = attach_image_relocate(
        image, attachment->base, (int64_t)attachment->thread_block, &attachment->modules);
    if (missing)
        return attach_refuse(attachment, "%s cannot be found there", missing);
    struct attached *own = attach_image_own(image);
    if (getrandom(&own->key, sizeof own->key, 0) != sizeof own->key)
        return attach_refuse(attachment, "there are no random numbers");
    own->key = (own->key | UINT64_C(1) << 63) & ~UINT64_C(0xffffffff);
    own->id_field = attachment->id_field;
    own->file = attachment->file;
    own->is_filtered = attachment->is_filtered;
    own->begin = attachment->base;
    own->end = attachment->base + image->size;
    own->thread_block = attachment->thread_block;
    own->thread_size = image->thread_size;
    own->undo = attachment->undo;
    memcpy(own->command, attachment->command, attachment->command_size);
    memcpy(own->preload, attachment->preload, sizeof own->preload);
    memcpy(own->place, attachment->place, sizeof own->place);
    own->command_size = (uint32_t)attachment->command_size;
    list_internal(attachment, own);
    attach_list_modules(attachment, own);
    return attach_write(attachment, attachment->base, image->bytes, image->size) ||
           attach_refuse(attachment, "its memory cannot be written");
}

/* Makes the library begin to record, in any thread. */
static bool run_library(struct attachment *attachment, struct threads *threads)
{
    const struct borrowed_code code = attach_own_code(attachment);
    struct borrowed_run run = {.code = &code,
                               .entry = attachment->base + attachment->image.run,
                               .over = attach_own_address(attachment) +
                                       offsetof(struct attached, over)};
    uint64_t records = attach_own_address(attachment) + offsetof(struct attached, records);
    uint32_t is_recorded = 0;
    enum borrow_result result = BORROW_REFUSED;
    for (size_t i = 0; i < threads->count && result == BORROW_REFUSED; i++)
        result = borrow_run(threads, &threads->items[i], &run);
    attachment->is_to_wait = result == BORROW_REFUSED;
    if (result == BORROW_REFUSED)
        return attach_refuse(attachment,
                             "none of its threads is where it can be interrupted; try again");
    attachment->file = -1;
    attachment->has_run = true;
    if (result == BORROW_RUNS_ON)
        return attach_refuse(attachment, "the recorder's library did not answer in time");
    return (attach_read(attachment, records, &is_recorded, sizeof is_recorded) &&
            is_recorded != 0) ||
           attach_refuse(attachment, "the recorder's library could not begin: memory may be short");
}

/* Writes the instruction that puts a value into the register of an argument, by its number. */
static bool put_load(unsigned char *code, uint64_t arguments, uint64_t value)
{
    static const unsigned char loads[6][2] = {{0x48, 0xbf}, {0x48, 0xbe}, {0x48, 0xba},
                                              {0x48, 0xb9}, {0x49, 0xb8}, {0x49, 0xb9}};
    static const unsigned char load_r11[2] = {0x49, 0xbb};
    if (arguments >= 6 && arguments != ATTACHED_IN_R11)
        return false;
    memcpy(code, arguments == ATTACHED_IN_R11 ? load_r11 : loads[arguments], 2);
    memcpy(code + 2, &value, sizeof value);
    return true;
}

/* Plans the patch of a function, whose gate is at an address, and writes the gate. */
static bool make_gate(struct attachment *attachment, struct attach_function *function,
                      uint64_t gate)
{
    unsigned char code[GATE_SIZE] = {0}, *bytes;
    const struct attached_hook *hook = function->hook;
    uint64_t size = function->size < 64 ? 64 : function->size;
    size = size < PATCH_SCAN_MAX ? size : PATCH_SCAN_MAX;
    bytes = malloc(size);
    enum patch_status status = PATCH_UNKNOWN;
    if (bytes && attach_read(attachment, function->entry, bytes, size))
        status =
            patch_make(&function->patch, function->entry, bytes, size, gate + GATE_ENTRY, gate);
    free(bytes);
    if (status != PATCH_OK)
        return attach_refuse(attachment, "%s() of '%s' cannot be redirected: %s", hook->name,
                             function->module->path, patch_reason(status));
    if (function->entry / ATTACH_PAGE != (function->entry + PATCH_JUMP_SIZE - 1) / ATTACH_PAGE)
        return attach_refuse(attachment, "%s() of '%s' lies across two pages", hook->name,
                             function->module->path);
    memcpy(code, function->patch.code, function->patch.code_size);
    if (!put_load(code + GATE_ENTRY, hook->arguments, gate))
        return attach_refuse(attachment, "%s() has too many arguments", hook->name);
    patch_stub(code + GATE_ENTRY + GATE_LOAD, hook->address);
    return attach_write(attachment, gate, code, sizeof code) ||
           attach_refuse(attachment, "its memory cannot be written");
}

/* Whether the page of a function is as in its file: then it is that of the file again, when it is
 * given up. */
static bool is_page_clean(const struct attachment *attachment,
                          const struct attach_function *function)
{
    unsigned char page[ATTACH_PAGE], file[ATTACH_PAGE];
    uint64_t begin = function->entry & -(uint64_t)ATTACH_PAGE;
    return attach_read(attachment, begin, page, sizeof page) &&
           attach_module_read(function->module, begin, file, sizeof file) &&
           memcmp(page, file, sizeof page) == 0;
}

/* Plans all patches, and notes how they are undone. */
static bool make_gates(struct attachment *attachment)
{
    struct attached_undo *undo = &attachment->undo;
    size_t area = 0, gate = 0;
    for (size_t i = 0; i < attachment->function_count; i++, gate++) {
        struct attach_function *function = &attachment->functions[i];
        if (i > 0 && function->module != function[-1].module) {
            area++;
            gate = 0;
        }
        if (!make_gate(attachment, function, undo->areas[area].begin + gate * GATE_SIZE))
            return false;
        struct attached_patch *patch = &undo->patches[undo->patch_count++];
        *patch = (struct attached_patch){.entry = function->entry,
                                         .trampoline = function->patch.trampoline,
                                         .is_clean = is_page_clean(attachment, function),
                                         .finds_frames = attach_finds_frames(function)};
        memcpy(patch->jump, function->patch.jump, PATCH_JUMP_SIZE);
        memcpy(patch->original, function->patch.original, PATCH_JUMP_SIZE);
    }
    return write_undo(attachment);
}

/* Whether an address lies in bytes that are to be replaced, behind the first. Functions are sorted
 * by their entries. */
static bool is_replaced(const struct attachment *attachment, uint64_t address)
{
    size_t before = array_count_up_to(attachment->functions, attachment->function_count,
                                      sizeof *attachment->functions,
                                      offsetof(struct attach_function, entry), address - 1);
    return before > 0 &&
           address - attachment->functions[before - 1].entry - 1 < PATCH_JUMP_SIZE - 1;
}

/* Whether a handler of a signal returns there. */
static bool returns_there(const struct attachment *attachment, const struct threads *threads)
{
    struct maps maps;
    bool returns = !maps_read(&maps, attachment->pid, attach_living(threads));
    for (size_t i = 0; i < threads->count && !returns; i++)
        returns = !threads->items[i].has_ended &&
                  attach_stack_look(attachment, &maps, &threads->items[i], is_replaced).has_frame &&
                  !attach_stack_is_free(attachment, &threads->items[i], is_replaced);
    maps_free(&maps);
    return returns;
}

/* Moves threads out of the bytes that are to be replaced. */
static bool move_threads(struct attachment *attachment, struct threads *threads)
{
    for (size_t i = 0; i < threads->count; i++)
        for (size_t k = 0; k < attachment->function_count && !threads->items[i].has_ended; k++) {
            uint64_t pc = attach_pc(&threads->items[i]);
            enum patch_place place = patch_pc_forward(&attachment->functions[k].patch, &pc);
            if (place == PATCH_BETWEEN ||
                (place == PATCH_MOVED && !attach_move(&threads->items[i], pc)))
                return attach_refuse(attachment, "a thread is where a call begins; try again");
        }
    return true;
}

static bool write_entries(struct attachment *attachment)
{
    attachment->is_patched = true;
    for (size_t i = 0; i < attachment->function_count; i++) {
        const struct patch *patch = &attachment->functions[i].patch;
        if (!attach_write(attachment, patch->entry, patch->jump, PATCH_JUMP_SIZE))
            return attach_refuse(attachment, "its code cannot be changed: %s", strerror(errno));
    }
    return true;
}

static bool attach_begin_threads(struct attachment *attachment, struct threads *threads)
{
    attachment->is_to_wait = returns_there(attachment, threads);
    return !attachment->is_to_wait && find_fields(attachment, threads) &&
           attach_clear_threads(attachment, threads) && write_image(attachment) &&
           run_library(attachment, threads) && make_gates(attachment) &&
           move_threads(attachment, threads) && write_entries(attachment) &&
           (attach_copy_known(attachment, threads), true);
}

bool attach_begin(struct attachment *attachment, void (*tick)(void *context), void *context)
{
    for (int tries = 0; tries < WAIT_TRIES; tries++) {
        attachment->reason[0] = '\0';
        if (attach_stopped_then(attachment, attach_begin_threads, attach_find_known, tick, context))
            return true;
        if (!attachment->is_to_wait)
            return false;
        nanosleep(&wait_step, NULL);
    }
    return attach_refuse(attachment, "a handler of a signal has interrupted the begin of a call; "
                                     "try again");
}
