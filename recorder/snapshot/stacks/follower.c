/* SPDX-License-Identifier: MIT */
#include "snapshot/stacks/follower.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dwarf/cfi.h"
#include "dwarf/expr.h"
#include "dwarf/frame_file.h"
#include "snapshot/layout/process_layout.h"
#include "snapshot/process_reader.h"

enum {
    PAGES = 256,       /* that are kept, each in the place that its address gives */
    COPY_SIZE = 32768, /* call frame information that one step may look at */
    SEGMENTS = 8,      /* readable ones, of a module */
};

/* The call frame information of a module. */
struct module_frames {
    bool is_known;
    uint64_t header; /* of .eh_frame_hdr, or 0 */
    struct memory_span segments[SEGMENTS];
    size_t segment_count;
    bool is_file_read;
    struct debug_frame debug_frame; /* of the file; without FDEs if it has none */
};

struct follower {
    const struct memory *memory;
    const struct snapshot_subject *subject;
    struct module_frames *modules; /* as many as the subject has */
    struct module_frames *module;  /* the last one that was found */
    struct memory_span stack;      /* of the thread */
    struct unwind_scratch scratch;
    size_t copied; /* bytes of `copy` */
    unsigned char copy[COPY_SIZE];
    uint64_t pages[PAGES]; /* their addresses; 0 if there is none */
    unsigned char bytes[PAGES][MEMORY_PAGE];
};

struct follower *follower_new(const struct memory *memory, const struct snapshot_subject *subject)
{
    struct follower *follower = calloc(1, sizeof *follower);
    if (!follower)
        return NULL;
    follower->memory = memory;
    follower->subject = subject;
    follower->modules = calloc(subject->module_count + 1, sizeof *follower->modules);
    if (!follower->modules) {
        free(follower);
        return NULL;
    }
    return follower;
}

void follower_free(struct follower *follower)
{
    if (!follower)
        return;
    for (size_t i = 0; i < follower->subject->module_count; i++)
        debug_frame_unload(&follower->modules[i].debug_frame);
    free(follower->modules);
    free(follower);
}

/* Returns a page of the process; NULL if it cannot be read. */
static const unsigned char *follower_page_at(struct follower *follower, uint64_t page)
{
    size_t place = page / MEMORY_PAGE % PAGES;
    if (follower->pages[place] != page || page == 0) {
        follower->pages[place] = 0;
        if (!memory_read(follower->memory, page, follower->bytes[place], MEMORY_PAGE))
            return NULL;
        follower->pages[place] = page;
    }
    return follower->bytes[place];
}

static bool follower_read_bytes(struct follower *follower, uint64_t address, void *bytes,
                                size_t size)
{
    for (size_t done = 0; done < size;) {
        uint64_t offset = (address + done) % MEMORY_PAGE;
        size_t part = MEMORY_PAGE - offset < size - done ? MEMORY_PAGE - offset : size - done;
        const unsigned char *page = follower_page_at(follower, address + done - offset);
        if (!page)
            return false;
        memcpy((char *)bytes + done, page + offset, part);
        done += part;
    }
    return true;
}

bool unwind_read_elsewhere(struct unwind_mem *mem, uintptr_t address, uintptr_t *value)
{
    struct follower *follower = mem->process;
    uint64_t word;
    if (address < follower->stack.begin || address >= follower->stack.end ||
        follower->stack.end - address < sizeof word ||
        !follower_read_bytes(follower, address, &word, sizeof word))
        return false;
    *value = word;
    return true;
}

struct cursor span_fetch(const struct cfi_span *span, uintptr_t address, size_t size)
{
    struct follower *follower = span->process;
    unsigned char *bytes = follower->copy + follower->copied;
    struct cursor cursor = {.next = bytes, .end = bytes, .shift = address - (uintptr_t)bytes};
    if (size > COPY_SIZE - follower->copied ||
        !follower_read_bytes(follower, address, bytes, size)) {
        cursor_fail(&cursor);
        return cursor;
    }
    follower->copied += size;
    cursor.end += size;
    return cursor;
}

/* Reads where a module has its call frame information. All of it lies within the module. */
static void follower_look_at(const struct follower *follower, const struct snapshot_module *module,
                             struct module_frames *frames)
{
    Elf64_Phdr segments[MODULE_SEGMENTS];
    size_t count = module_segments(follower->memory, module, segments);
    frames->is_known = true;
    for (size_t i = 0; i < count; i++) {
        uint64_t begin = module->bias + segments[i].p_vaddr;
        if (begin < module->begin || begin >= module->end ||
            segments[i].p_filesz > module->end - begin)
            continue;
        if (segments[i].p_type == PT_GNU_EH_FRAME)
            frames->header = begin;
        else if (segments[i].p_type == PT_LOAD && (segments[i].p_flags & PF_R) != 0 &&
                 frames->segment_count < SEGMENTS)
            frames->segments[frames->segment_count++] =
                (struct memory_span){begin, begin + segments[i].p_filesz};
    }
}

bool modules_find(struct cfi_lookup *lookup, uintptr_t address)
{
    struct follower *follower = lookup->process;
    const struct snapshot_subject *subject = follower->subject;
    size_t i = 0;
    while (i < subject->module_count &&
           (address < subject->modules[i].begin || address >= subject->modules[i].end))
        i++;
    if (i == subject->module_count)
        return false;
    if (!follower->modules[i].is_known)
        follower_look_at(follower, &subject->modules[i], &follower->modules[i]);
    follower->module = &follower->modules[i];
    follower->copied = 0;
    lookup->object = (struct dl_find_object){
        .dlfo_map_start = (void *)(uintptr_t)subject->modules[i].begin,
        .dlfo_map_end = (void *)(uintptr_t)subject->modules[i].end,
        .dlfo_eh_frame = (void *)(uintptr_t)follower->module->header,
    };
    return true;
}

struct cfi_span modules_segment(const struct cfi_lookup *lookup, uintptr_t address)
{
    const struct follower *follower = lookup->process;
    for (size_t i = 0; i < follower->module->segment_count; i++) {
        const struct memory_span *segment = &follower->module->segments[i];
        if (address >= segment->begin && address < segment->end)
            return (struct cfi_span){segment->begin, segment->end, true, lookup->process};
    }
    return (struct cfi_span){0};
}

/* The file server may never answer: see process_reader.h. */
int dwarf_file_open(const char *path)
{
    reader_enter();
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    reader_leave();
    return file;
}

bool dwarf_file_read(int file, uint64_t offset, void *bytes, size_t size)
{
    ssize_t count = 1;
    for (size_t done = 0; done < size && count > 0; done += (size_t)count) {
        reader_enter();
        count = pread(file, (char *)bytes + done, size - done, (off_t)(offset + done));
        reader_leave();
        if (count <= 0)
            return false;
    }
    return true;
}

void dwarf_file_close(int file)
{
    close(file);
}

void *dwarf_pages(size_t size)
{
    return calloc(1, size);
}

void dwarf_pages_free(void *pages, size_t size)
{
    (void)size;
    free(pages);
}

/* Opens the file of a module if it is the one that the process has loaded. Returns a negative
 * number if it is not. */
static int follower_module_open(const struct snapshot_module *module)
{
    struct stat status;
    int file = module->inode != 0 ? dwarf_file_open(module->path) : -1;
    if (file < 0)
        return file;
    reader_enter();
    bool is_same = fstat(file, &status) == 0 && status.st_dev == module->device &&
                   status.st_ino == module->inode &&
                   (module->changed == 0 || (uint64_t)status.st_ctim.tv_sec * 1000000000u +
                                                    (uint64_t)status.st_ctim.tv_nsec ==
                                                module->changed);
    reader_leave();
    if (is_same)
        return file;
    dwarf_file_close(file);
    return -1;
}

const struct debug_frame *modules_debug_frame(struct cfi_lookup *lookup, uintptr_t *bias)
{
    struct follower *follower = lookup->process;
    struct module_frames *frames = follower->module;
    const struct snapshot_module *module = &follower->subject->modules[frames - follower->modules];
    int file = frames->is_file_read ? -1 : follower_module_open(module);
    frames->is_file_read = true;
    if (file >= 0) {
        debug_frame_load(file, module->path, module->begin - module->bias,
                         module->end - module->bias, &frames->debug_frame);
        dwarf_file_close(file);
    }
    *bias = module->bias;
    return frames->debug_frame.fde_count > 0 ? &frames->debug_frame : NULL;
}

/* A walk through the frames of a thread. */
struct follower_walk {
    struct step_regs regs;
    struct unwind_mem mem;
};

static void follower_walk_begin(struct follower_walk *walk, struct follower *follower,
                                const uint64_t registers[FOLLOWER_REGISTERS],
                                struct memory_span stack)
{
    *walk =
        (struct follower_walk){.regs = {.known = (1u << CFI_REGS) - 1}, .mem = UNWIND_MEM_PROBED};
    walk->mem.process = follower;
    follower->stack = stack;
    follower->scratch.lookup.process = follower;
    memcpy(walk->regs.reg, registers, sizeof walk->regs.reg);
    walk->regs.reg[CFI_RA]++; /* it was interrupted there, and does not return to it */
}

/* Goes on to the next frame. */
static enum step_result follower_walk_step(struct follower_walk *walk, struct follower *follower)
{
    uintptr_t sp = walk->regs.reg[CFI_RSP];
    if (memory_is_late(follower->memory))
        return STEP_BAD;
    cfi_forget(&follower->scratch.lookup); /* it compares places in `copy` */
    enum step_result result = unwind_step(&walk->regs, &walk->mem, &follower->scratch);
    bool is_outwards = walk->regs.reg[CFI_RSP] > sp || follower->scratch.log.is_signal_frame;
    return result == STEP_DONE && !is_outwards ? STEP_BAD : result;
}

void follower_list(struct follower *follower, const uint64_t registers[FOLLOWER_REGISTERS],
                   struct memory_span stack, struct stack_frames *frames)
{
    struct follower_walk walk;
    bool goes_on = true;
    follower_walk_begin(&walk, follower, registers, stack);
    for (frames->count = 0; goes_on && frames->count < STACK_FRAMES; frames->count++) {
        frames->pcs[frames->count] = walk.regs.reg[CFI_RA];
        goes_on = follower_walk_step(&walk, follower) == STEP_DONE;
        frames->cfas[frames->count] = goes_on ? walk.regs.reg[CFI_RSP] : 0;
    }
}

bool follower_visit(struct follower *follower, const uint64_t registers[FOLLOWER_REGISTERS],
                    struct memory_span stack, bool (*visit)(void *context, uint64_t pc),
                    void *context)
{
    enum { FRAMES_MAX = 100000 };
    struct follower_walk walk;
    enum step_result result = STEP_DONE;
    follower_walk_begin(&walk, follower, registers, stack);
    for (size_t i = 0; result == STEP_DONE && i < FRAMES_MAX; i++) {
        /* One more than the address that was interrupted: see struct step_regs. */
        bool is_interrupted = i == 0 || follower->scratch.log.is_signal_frame;
        if (!visit(context, walk.regs.reg[CFI_RA] - is_interrupted))
            return false;
        result = follower_walk_step(&walk, follower);
    }
    return result == STEP_END;
}
