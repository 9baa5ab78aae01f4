/* SPDX-License-Identifier: MIT */
#include "preload/process/debug_frames.h"

#include <elf.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "preload/system/memory.h"
#include "preload/system/sys.h"
#include "preload/process/module_file.h"

/* A larger section is not copied: the program may have little memory. */
#define SECTION_MAX ((size_t)64 << 20)

enum { COPIES = 64, IS_GONE = 1 };

/* The section of a module, and what tells its file from others. Without FDEs it has none. */
static struct frame_copy {
    _Atomic uintptr_t begin; /* of the module; 0: free, IS_GONE: unloaded */
    struct debug_frame frame;
    uint64_t device, inode, size, changed;
} copies[COPIES];

static _Atomic bool is_full;

bool debug_frames_find(uintptr_t begin, const struct debug_frame **frame)
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

void debug_frames_forget(uintptr_t begin)
{
    for (size_t i = 0; i < COPIES; i++)
        if (atomic_load_explicit(&copies[i].begin, memory_order_relaxed) == begin)
            atomic_store_explicit(&copies[i].begin, IS_GONE, memory_order_relaxed);
}

static bool debug_frames_read_at(int file, uint64_t offset, void *bytes, size_t size)
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

/* Whether a section's name, at `offset` in the file, is that of the section. */
static bool is_debug_frame(int file, uint64_t offset)
{
    static const char wanted[] = ".debug_frame";
    char name[sizeof wanted];
    return debug_frames_read_at(file, offset, name, sizeof name) &&
           memcmp(name, wanted, sizeof wanted) == 0;
}

/* Finds the section. False if there is none that is not compressed. */
static bool find_section(int file, Elf64_Shdr *section)
{
    Elf64_Ehdr header;
    Elf64_Shdr names;
    if (!debug_frames_read_at(file, 0, &header, sizeof header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_shentsize != sizeof *section ||
        header.e_shstrndx >= header.e_shnum ||
        !debug_frames_read_at(file, header.e_shoff + header.e_shstrndx * sizeof names, &names,
                              sizeof names))
        return false;
    for (size_t i = 1; i < header.e_shnum; i++) {
        if (!debug_frames_read_at(file, header.e_shoff + i * sizeof *section, section,
                                  sizeof *section))
            return false;
        if (section->sh_type == SHT_PROGBITS &&
            (section->sh_flags & (SHF_ALLOC | SHF_COMPRESSED)) == 0 &&
            is_debug_frame(file, names.sh_offset + section->sh_name))
            return section->sh_size > 0 && section->sh_size <= SECTION_MAX;
    }
    return false;
}

/* Copies the section and lists its FDEs. Leaves frame->fde_count 0 if it cannot. */
static void copy_section(int file, const struct module *module, struct debug_frame *frame)
{
    Elf64_Shdr section;
    if (!find_section(file, &section))
        return;
    void *bytes = unwind_pages_used(section.sh_size);
    if (bytes == NULL)
        return;
    *frame = (struct debug_frame){.bytes = bytes, .size = section.sh_size};
    uint64_t low = module->begin - module->map->l_addr, high = module->end - module->map->l_addr;
    if (debug_frames_read_at(file, section.sh_offset, bytes, frame->size)) {
        size_t count = debug_frame_list(frame, low, high);
        frame->fdes = count > 0 ? unwind_pages_used(count * sizeof *frame->fdes) : NULL;
        if (frame->fdes != NULL)
            frame->fde_count = debug_frame_list(frame, low, high);
    }
    if (frame->fde_count == 0)
        unwind_pages_free(bytes, section.sh_size);
}

/* Returns the place of a copy of this very file that is not used now; else a place for a new one,
   or NULL. */
static struct frame_copy *debug_frames_place(const struct frame_copy *file)
{
    struct frame_copy *place = NULL;
    for (size_t i = 0; i < COPIES; i++) {
        struct frame_copy *copy = &copies[i];
        uintptr_t begin = atomic_load_explicit(&copy->begin, memory_order_relaxed);
        if (begin == IS_GONE && copy->device == file->device && copy->inode == file->inode &&
            copy->size == file->size && copy->changed == file->changed)
            return copy;
        if (place == NULL && (begin == 0 || (begin == IS_GONE && copy->frame.fde_count == 0)))
            place = copy;
        if (begin == 0)
            break;
    }
    if (place != NULL)
        *place = *file;
    return place;
}

void debug_frames_read(const struct module *module)
{
    const struct module_file *path = module_file_of(module);
    struct stat status;
    struct frame_copy file = {.begin = IS_GONE};
    int descriptor = -1;
    if (path->facts[MODULE_FILE_STATE] == MODULE_FILE_THERE)
        descriptor = (int)sys_call6(SYS_openat, AT_FDCWD, (long)path->path,
                                    O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0, 0, 0);
    bool is_read = descriptor >= 0 && sys_call3(SYS_fstat, descriptor, (long)&status, 0) == 0 &&
                   status.st_dev == path->facts[MODULE_FILE_DEVICE] &&
                   status.st_ino == path->facts[MODULE_FILE_INODE];
    if (is_read) {
        file.device = status.st_dev;
        file.inode = status.st_ino;
        file.size = (uint64_t)status.st_size;
        file.changed = path->facts[MODULE_FILE_CHANGED];
    }
    struct frame_copy *copy = debug_frames_place(&file);
    if (copy == NULL)
        atomic_store(&is_full, true);
    else if (is_read && copy->frame.fde_count == 0)
        copy_section(descriptor, module, &copy->frame);
    if (descriptor >= 0)
        sys_call3(SYS_close, descriptor, 0, 0);
    if (copy != NULL)
        atomic_store_explicit(&copy->begin, module->begin, memory_order_release);
}
