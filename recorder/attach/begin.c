/* SPDX-License-Identifier: MIT */
/* Begins to record in a process: runs the library there, and patches the process's functions. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arrays.h"
#include "attach/parts.h"

/* A gate: the trampoline, then the entry of a call. */
enum { GATE_ENTRY = 64, GATE_LOAD = 10 };

/* The control blocks of the living threads. */
enum { CONTROL_SIZE = 1024, CONTROL_FIELDS = 640, CONTROL_FREE = 128 };

struct controls {
    struct control {
        uint64_t address; /* the thread pointer */
        uint32_t id;      /* in the process's PID namespace */
        unsigned char bytes[CONTROL_SIZE];
    } * items;
    size_t count;
};

/* Reads them. A thread without one is the first, before the loader has made it. */
static bool begin_read_controls(struct attachment *attachment, const struct threads *threads,
                                struct controls *controls)
{
    *controls = (struct controls){calloc(threads->count + 1, sizeof *controls->items), 0};
    for (size_t i = 0; controls->items && i < threads->count; i++) {
        const struct thread_state *thread = &threads->items[i];
        struct control *control = &controls->items[controls->count];
        if (thread->has_ended)
            continue;
        attachment->is_early |= thread->thread_pointer == 0;
        control->address = thread->thread_pointer;
        control->id = attachment->is_elsewhere ? attach_process_inner(attachment->pid, thread->tid)
                                               : thread->tid;
        if (!attach_read(attachment, thread->thread_pointer, control->bytes, CONTROL_SIZE))
            return false;
        controls->count++;
    }
    return controls->items != NULL;
}

/* Whether each control block has its thread's id at an offset. */
static bool begin_has_ids(const struct controls *controls, uint32_t field)
{
    for (size_t i = 0; i < controls->count; i++)
        if (memcmp(controls->items[i].bytes + field, &controls->items[i].id, sizeof(uint32_t)) != 0)
            return false;
    return true;
}

/* Whether nothing uses these bytes of the control blocks; an earlier library may have left its own.
 */
static bool begin_is_free(const struct controls *controls, uint64_t block, uint64_t size)
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

/* Clears the thread-local data of an earlier library. */
static bool begin_clear(const struct attachment *attachment, const struct controls *controls)
{
    static const unsigned char nothing[CONTROL_SIZE];
    static const uint64_t mark = ATTACHED_MAGIC;
    bool is_done = true;
    for (size_t i = 0; i < controls->count; i++)
        if (memcmp(controls->items[i].bytes + attachment->thread_block, &mark, sizeof mark) == 0)
            is_done &=
                attach_write(attachment, controls->items[i].address + attachment->thread_block,
                             nothing, attachment->thread_size);
    return is_done;
}

/* Finds the places of the thread-local data and of the threads' ids, and clears the former. */
static bool begin_find_fields(struct attachment *attachment, const struct threads *threads)
{
    uint64_t size = attachment->image.thread_size;
    uint32_t field = CONTROL_FIELDS;
    uint64_t block = CONTROL_FREE;
    struct controls controls;
    bool is_read = begin_read_controls(attachment, threads, &controls);
    while (is_read && field < CONTROL_SIZE && !begin_has_ids(&controls, field))
        field += 4;
    while (is_read && block + size <= CONTROL_FIELDS && !begin_is_free(&controls, block, size))
        block += 32;
    bool is_known = is_read && field < CONTROL_SIZE && block + size <= CONTROL_FIELDS;
    if (is_known) {
        attachment->id_field = field;
        attachment->thread_block = block;
        attachment->thread_size = size;
        is_known = begin_clear(attachment, &controls);
    }
    free(controls.items);
    if (attachment->is_early)
        return attach_refuse(attachment, ATTACH_EARLY);
    return is_known || attach_refuse(attachment, "the control blocks of its threads are not as "
                                                 "those of the GNU C library");
}

/* Lists the return addresses of calls within allocators. */
static void begin_list_internal(const struct attachment *attachment, struct attached *own)
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

/* Describes a program that is linked statically. */
static void begin_name_program(const struct attachment *attachment, struct attached *own)
{
    static const uint64_t types[] = {AT_PHDR, AT_PHNUM, AT_EXECFN};
    const struct attach_module *program = attachment->program;
    const Elf64_Phdr *index = attach_module_segment(program, PT_GNU_EH_FRAME);
    Elf64_auxv_t auxiliary[64];
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/auxv", attachment->pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file >= 0 ? read(file, auxiliary, sizeof auxiliary) : 0;
    if (file >= 0)
        close(file);
    for (ssize_t i = 0; i < size / (ssize_t)sizeof *auxiliary; i++)
        for (size_t k = 0; k < sizeof types / sizeof *types; k++)
            if (auxiliary[i].a_type == types[k])
                own->auxiliary[k] = auxiliary[i].a_un.a_val;
    own->program =
        (struct attached_program){.begin = program->begin,
                                  .end = program->end,
                                  .bias = program->bias,
                                  .frame_index = index ? program->bias + index->p_vaddr : 0};
}

/* Writes the relocated image. */
static bool begin_write_image(struct attachment *attachment)
{
    struct attach_image *image = &attachment->image;
    const char *missing = attach_image_relocate(
        image, attachment->base, (int64_t)attachment->thread_block, &attachment->modules,
        attachment->is_static ? attachment->program : NULL);
    if (missing)
        return attach_refuse(attachment, "%s cannot be found there", missing);
    struct attached *own = attach_image_own(image);
    own->id_field = attachment->id_field;
    own->file = attachment->file;
    own->live = attachment->live;
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
    begin_list_internal(attachment, own);
    if (attachment->is_static)
        begin_name_program(attachment, own);
    /* Lists an address in each module, as the library has looked it up. */
    own->module_count = 0;
    for (size_t i = 0; i < attachment->modules.count && i < ATTACHED_MODULES; i++)
        own->modules[own->module_count++] = attachment->modules.items[i].begin;
    return attach_write(attachment, attachment->base, image->bytes, image->size) ||
           attach_refuse(attachment, "its memory cannot be written");
}

/* Makes the library begin to record, in any thread. */
static bool begin_run_library(struct attachment *attachment, struct threads *threads)
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
static bool begin_put_load(unsigned char *code, uint64_t arguments, uint64_t value)
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

/* Whether there is an allocator that takes the place of the C library's, or one beside it. */
static bool begin_has_allocator(const struct attachment *attachment, bool is_beside)
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

/* Plans the patch of a function, whose gate is at an address, and writes the gate. */
static bool begin_make_gate(struct attachment *attachment, struct attach_function *function,
                            uint64_t gate, bool is_quick)
{
    unsigned char code[ATTACH_GATE_SIZE] = {0}, *bytes;
    const struct attached_hook *hook = function->hook;
    /* The padding behind a short function is wanted, but not the next function, which may end by a
     * jump to this one. */
    enum { ALIGNMENT = 16, UNKNOWN_SIZE = 64 };
    uint64_t least = function->size != 0 ? ALIGNMENT : UNKNOWN_SIZE;
    uint64_t size = function->size < least ? least : function->size;
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
    if (!begin_put_load(code + GATE_ENTRY, hook->arguments, gate))
        return attach_refuse(attachment, "%s() has too many arguments", hook->name);
    patch_stub(code + GATE_ENTRY + GATE_LOAD,
               is_quick && hook->quick != 0 ? hook->quick : hook->address);
    return attach_write(attachment, gate, code, sizeof code) ||
           attach_refuse(attachment, "its memory cannot be written");
}

/* Whether the page of a function is as in its file: then the file's page takes its place when it is
 * given up. */
static bool begin_is_page_clean(const struct attachment *attachment,
                                const struct attach_function *function)
{
    unsigned char page[ATTACH_PAGE], file[ATTACH_PAGE];
    uint64_t begin = function->entry & -(uint64_t)ATTACH_PAGE;
    return attach_read(attachment, begin, page, sizeof page) &&
           attach_module_read(function->module, begin, file, sizeof file) &&
           memcmp(page, file, sizeof page) == 0;
}

/* Plans all patches, and notes how they are undone. */
static bool begin_make_gates(struct attachment *attachment)
{
    struct attached_undo *undo = &attachment->undo;
    size_t area = 0, gate = 0;
    /* One allocator that calls another one would be counted for both. */
    bool is_quick = attachment->chooses && !begin_has_allocator(attachment, false) &&
                    !begin_has_allocator(attachment, true);
    for (size_t i = 0; i < attachment->function_count; i++, gate++) {
        struct attach_function *function = &attachment->functions[i];
        if (i > 0 && function->module != function[-1].module) {
            area++;
            gate = 0;
        }
        if (!begin_make_gate(attachment, function,
                             undo->areas[area].begin + gate * ATTACH_GATE_SIZE, is_quick))
            return false;
        struct attached_patch *patch = &undo->patches[undo->patch_count++];
        *patch = (struct attached_patch){.entry = function->entry,
                                         .trampoline = function->patch.trampoline,
                                         .is_clean = begin_is_page_clean(attachment, function),
                                         .finds_frames = attach_finds_frames(function)};
        memcpy(patch->jump, function->patch.jump, PATCH_JUMP_SIZE);
        memcpy(patch->original, function->patch.original, PATCH_JUMP_SIZE);
    }
    return attach_write_undo(attachment);
}

/* Moves threads out of the bytes that are to be replaced. */
static bool begin_move_threads(struct attachment *attachment, struct threads *threads)
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

static bool begin_write_entries(struct attachment *attachment)
{
    attachment->is_patched = true;
    for (size_t i = 0; i < attachment->function_count; i++) {
        const struct patch *patch = &attachment->functions[i].patch;
        if (!attach_write(attachment, patch->entry, patch->jump, PATCH_JUMP_SIZE))
            return attach_refuse(attachment, "its code cannot be changed: %s", strerror(errno));
    }
    return true;
}

/* The blocks that the process had when it was attached to: looked for in a copy of it. */

/* Whether the blocks are to be listed: the allocator is the C library's. */
static bool begin_wants_known(struct attachment *attachment)
{
    if (attachment->hold)
        return false; /* it has not allocated anything */
    if (attachment->is_filtered)
        attachment->known_reason = "a seccomp filter watches it";
    else if (attachment->is_static)
        attachment->known_reason = "its C library is linked statically";
    else if (begin_has_allocator(attachment, false))
        attachment->known_reason = "its allocator is not the GNU C library's";
    return !attachment->known_reason;
}

/* Makes a copy of the process, for attach_find_known(). */
static void attach_copy_known(struct attachment *attachment, struct threads *threads)
{
    const struct borrowed_code code = attach_own_code(attachment);
    if (!begin_wants_known(attachment))
        return;
    attachment->thread_pointers = calloc(threads->count, sizeof *attachment->thread_pointers);
    for (size_t i = 0; attachment->thread_pointers && i < threads->count; i++)
        if (!threads->items[i].has_ended)
            attachment->thread_pointers[attachment->thread_count++] =
                threads->items[i].thread_pointer;
    if (!copy_make(&attachment->copy, threads, &code, &attachment->copies))
        attachment->known_reason = "the process could not be copied";
}

/* Returns the segment of the C library with its variables. */
static struct memory_span begin_find_data(const struct attach_module *libc)
{
    for (size_t i = 0; i < libc->segment_count; i++) {
        const Elf64_Phdr *segment = &libc->segments[i];
        uint64_t begin = libc->bias + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_W) != 0)
            return (struct memory_span){begin, begin + segment->p_memsz};
    }
    return (struct memory_span){0, 0};
}

static void begin_search_copy(struct attachment *attachment)
{
    const struct attach_module *libc = attach_modules_named(&attachment->modules, "libc.so.6");
    unsigned version = known_blocks_version(libc->exported.names, libc->exported.names_size);
    const struct known_threads threads = {attachment->thread_pointers, attachment->thread_count};
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
        known_blocks_find(&memory, &maps, begin_find_data(libc), version, threads,
                          &attachment->known)) {
        bool is_busy = attachment->known.is_busy || attachment->in_call_count != 0;
        attachment->known_reason = is_busy
                                       ? "a thread was allocating or releasing one at that moment"
                                       : attachment->known.reason;
    }
    if (!attachment->known_reason && attachment->has_unknown_calls)
        attachment->known_reason = "its allocator has more code than was looked through";
    if (!attachment->known_reason && begin_has_allocator(attachment, true))
        attachment->known_reason = "it has an allocator beside the GNU C library's";
    maps_free(&maps);
    memory_close(&memory);
}

/* Finds the blocks that the process had, in the copy, and ends that. */
static void attach_find_known(struct attachment *attachment)
{
    const struct borrowed_code code = attach_own_code(attachment);
    if (attachment->copy.pid == 0)
        return;
    begin_search_copy(attachment);
    attachment->stop_time += copy_end(&attachment->copy, &code, &attachment->copies,
                                      attachment->pid, 0, &attachment->interrupted);
}

static bool attach_begin_threads(struct attachment *attachment, struct threads *threads)
{
    attachment->is_to_wait = false;
    if (!attachment->hold && !attach_leave_calls(attachment, threads))
        return false;
    return !attachment->is_to_wait && begin_find_fields(attachment, threads) &&
           begin_write_image(attachment) && begin_run_library(attachment, threads) &&
           begin_make_gates(attachment) && begin_move_threads(attachment, threads) &&
           begin_write_entries(attachment) && (attach_copy_known(attachment, threads), true);
}

bool attach_begin(struct attachment *attachment, void (*tick)(void *context), void *context)
{
    for (int tries = 0; tries < ATTACH_TRIES; tries++) {
        attachment->reason[0] = '\0';
        if (attach_stopped_then(attachment, attach_begin_threads, attach_find_known, tick, context))
            return true;
        if (!attachment->is_to_wait)
            return false;
        attach_pause();
    }
    return attach_refuse(attachment, "a handler of a signal has interrupted the begin of a call; "
                                     "try again");
}
