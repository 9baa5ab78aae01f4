/* SPDX-License-Identifier: MIT */
/* The memory of a process may contain anything: sizes and offsets are limited. */
#include "collect/trace/module_image.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SEGMENTS_MAX = 64, IMAGE_SIZE_MAX = 256 << 20, DYNAMIC_MAX = 4096, PART_SIZE = 256 * 1024 };

struct image_copy {
    const struct module *module;
    uint32_t pid;
    int fd;
    Elf64_Ehdr header;
    Elf64_Phdr segments[SEGMENTS_MAX];
};

static size_t read_process(uint32_t pid, void *data, size_t size, uint64_t address)
{
    struct iovec local = {data, size}, remote = {(void *)(uintptr_t)address, size};
    ssize_t read_size = process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0);
    return read_size > 0 ? (size_t)read_size : 0;
}

static bool read_headers(struct image_copy *copy)
{
    Elf64_Ehdr *header = &copy->header;
    uint64_t begin = copy->module->begin;
    if (read_process(copy->pid, header, sizeof *header, begin) != sizeof *header ||
        memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum > SEGMENTS_MAX ||
        header->e_phoff > PART_SIZE)
        return false;
    size_t size = header->e_phnum * sizeof(Elf64_Phdr);
    return read_process(copy->pid, copy->segments, size, begin + header->e_phoff) == size;
}

/* Copies what a segment has of the file; what cannot be read becomes zero. */
static bool copy_segment(const struct image_copy *copy, const Elf64_Phdr *segment, uint8_t *part)
{
    if (segment->p_filesz > IMAGE_SIZE_MAX || segment->p_offset > IMAGE_SIZE_MAX)
        return false;
    for (uint64_t done = 0; done < segment->p_filesz;) {
        size_t size = segment->p_filesz - done < PART_SIZE ? segment->p_filesz - done : PART_SIZE;
        uint64_t address = copy->module->bias + segment->p_vaddr + done;
        size = read_process(copy->pid, part, size, address);
        if (size == 0)
            break;
        if (pwrite(copy->fd, part, size, (off_t)(segment->p_offset + done)) != (ssize_t)size)
            return false;
        done += size;
    }
    return true;
}

/* Turns addresses in the dynamic section, which the loader has relocated, back into those of the
 * file. */
static bool restore_dynamic(const struct image_copy *copy, const Elf64_Phdr *segment)
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

/* Of the file there is no section, since none need be loaded. */
static bool copy_headers(struct image_copy *copy)
{
    copy->header.e_shoff = 0;
    copy->header.e_shnum = copy->header.e_shstrndx = 0;
    return pwrite(copy->fd, &copy->header, sizeof copy->header, 0) == sizeof copy->header;
}

int module_image_copy(const struct module *module, uint32_t pid)
{
    struct image_copy copy = {.module = module, .pid = pid, .fd = -1};
    uint8_t *part = malloc(PART_SIZE);
    bool is_whole = part != NULL && read_headers(&copy);
    if (is_whole)
        is_whole = (copy.fd = memfd_create("ttdrecord module", MFD_CLOEXEC)) >= 0;
    for (unsigned i = 0; is_whole && i < copy.header.e_phnum; i++)
        if (copy.segments[i].p_type == PT_LOAD)
            is_whole = copy_segment(&copy, &copy.segments[i], part);
    for (unsigned i = 0; is_whole && i < copy.header.e_phnum; i++)
        if (copy.segments[i].p_type == PT_DYNAMIC)
            is_whole = restore_dynamic(&copy, &copy.segments[i]);
    is_whole = is_whole && copy_headers(&copy);
    free(part);
    if (!is_whole && copy.fd >= 0)
        close(copy.fd);
    return is_whole ? copy.fd : -1;
}
