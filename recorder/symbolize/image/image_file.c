/* SPDX-License-Identifier: MIT */
#include "symbolize/image/image_file.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int image_file_open(const char *path)
{
    if (!path || path[0] != '/')
        return -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat status;
    if (fd >= 0 && (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))) {
        close(fd);
        return -1;
    }
    return fd;
}

static uint64_t file_time(struct timespec time)
{
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

bool image_file_read(int fd, struct symbolize_file *file)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return false;
    *file = (struct symbolize_file){
        .device = status.st_dev,
        .inode = status.st_ino,
        .size = (uint64_t)status.st_size,
        .modified = file_time(status.st_mtim),
        .changed = file_time(status.st_ctim),
    };
    return true;
}

bool image_file_same(const struct symbolize_file *now, const struct symbolize_file *file)
{
    return now->device == file->device && now->inode == file->inode && now->size == file->size &&
           now->modified == file->modified && (file->changed == 0 || now->changed == file->changed);
}

bool image_file_is(int fd, const struct symbolize_file *file)
{
    struct symbolize_file now;
    return file->inode == 0 || (image_file_read(fd, &now) && image_file_same(&now, file));
}

#ifdef HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif
#ifdef HAVE_LIBZSTD
#include <zstd.h>
#endif

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

/* A file may claim any size. */
#define SIZE_LIMIT (UINT64_C(256) << 20)

/* The most that one byte expands to: of deflate by its format; debug information in zstd is far
 * from it. */
enum { RATIO_MAX = 1032 };

/* A section that can be decompressed here. */
struct section {
    Elf_Data *raw, *data; /* libdw takes either */
    GElf_Shdr header;
    size_t size;     /* decompressed */
    size_t skip;     /* header of the compression */
    uint32_t method; /* ELFCOMPRESS_ZLIB or ELFCOMPRESS_ZSTD */
};

/* The contexts of the libraries; NULL until they are needed, or if there is no memory. */
struct inflaters {
#ifdef HAVE_LIBDEFLATE
    struct libdeflate_decompressor *deflate;
#endif
#ifdef HAVE_LIBZSTD
    ZSTD_DCtx *zstd;
#endif
    char unused;
};

static bool inflate_has(uint32_t method)
{
#ifdef HAVE_LIBDEFLATE
    if (method == ELFCOMPRESS_ZLIB)
        return true;
#endif
#ifdef HAVE_LIBZSTD
    if (method == ELFCOMPRESS_ZSTD)
        return true;
#endif
    (void)method;
    return false;
}

static void image_file_inflaters_free(struct inflaters *inflaters)
{
    (void)inflaters;
#ifdef HAVE_LIBDEFLATE
    libdeflate_free_decompressor(inflaters->deflate);
#endif
#ifdef HAVE_LIBZSTD
    ZSTD_freeDCtx(inflaters->zstd);
#endif
}

/* Decompresses a section. False unless it is sound and of exactly the size that it states. */
static bool inflate_stream(struct inflaters *inflaters, const struct section *section, void *target)
{
    const char *stream = (const char *)section->raw->d_buf + section->skip;
    size_t size = section->raw->d_size - section->skip;
    (void)inflaters, (void)stream, (void)size, (void)target;
#ifdef HAVE_LIBDEFLATE
    if (section->method == ELFCOMPRESS_ZLIB) {
        if (!inflaters->deflate)
            inflaters->deflate = libdeflate_alloc_decompressor();
        return inflaters->deflate &&
               libdeflate_zlib_decompress(inflaters->deflate, stream, size, target, section->size,
                                          NULL) == LIBDEFLATE_SUCCESS;
    }
#endif
#ifdef HAVE_LIBZSTD
    if (section->method == ELFCOMPRESS_ZSTD) {
        if (!inflaters->zstd)
            inflaters->zstd = ZSTD_createDCtx();
        return inflaters->zstd && ZSTD_decompressDCtx(inflaters->zstd, target, section->size,
                                                      stream, size) == section->size;
    }
#endif
    return false;
}

static bool image_file_is_debug(Elf *elf, size_t strings, const GElf_Shdr *header)
{
    static const char prefix[] = ".debug_";
    const char *name = elf_strptr(elf, strings, header->sh_name);
    return name && strncmp(name, prefix, sizeof prefix - 1) == 0;
}

static bool image_file_open_section(Elf *elf, size_t strings, Elf_Scn *handle,
                                    struct section *section)
{
    GElf_Chdr compression;
    if (!gelf_getshdr(handle, &section->header) || section->header.sh_type == SHT_NOBITS ||
        (section->header.sh_flags & SHF_COMPRESSED) == 0 ||
        !image_file_is_debug(elf, strings, &section->header) ||
        !gelf_getchdr(handle, &compression) || !inflate_has(compression.ch_type))
        return false;
    section->method = compression.ch_type;
    section->raw = elf_rawdata(handle, NULL);
    section->data = elf_getdata(handle, NULL);
    section->skip = gelf_getclass(elf) == ELFCLASS32 ? sizeof(Elf32_Chdr) : sizeof(Elf64_Chdr);
    section->size = compression.ch_size;
    return section->raw && section->data && section->size > 0 &&
           section->raw->d_size > section->skip &&
           section->size / RATIO_MAX <= section->raw->d_size - section->skip;
}

/* Returns the bytes that a section takes, so that the one behind it is at a multiple of 16. */
static size_t image_file_room_of(const struct section *section)
{
    return (section->size + 15) & -(size_t)16;
}

static void image_file_decompress(struct inflaters *inflaters, Elf_Scn *handle,
                                  struct section *section, void *target)
{
    if (!inflate_stream(inflaters, section, target))
        return;
    /* In memory only: the file is read. */
    section->header.sh_flags &= ~(GElf_Xword)SHF_COMPRESSED;
    section->header.sh_size = section->size;
    if (gelf_update_shdr(handle, &section->header) == 0)
        return;
    section->data->d_buf = section->raw->d_buf = target;
    section->data->d_size = section->raw->d_size = section->size;
}

static uint64_t image_file_total_of(Elf *elf, size_t strings)
{
    uint64_t total = 0;
    struct section section;
    for (Elf_Scn *handle = NULL; (handle = elf_nextscn(elf, handle)) && total <= SIZE_LIMIT;)
        if (image_file_open_section(elf, strings, handle, &section))
            total += section.size <= SIZE_LIMIT ? image_file_room_of(&section) : SIZE_LIMIT + 1;
    return total;
}

void inflate_sections(struct inflated *inflated, Elf *elf)
{
    size_t strings;
    *inflated = (struct inflated){0};
    if (!elf || elf_getshdrstrndx(elf, &strings) != 0)
        return;
    uint64_t total = image_file_total_of(elf, strings);
    if (total == 0 || total > SIZE_LIMIT)
        return;
    struct inflaters inflaters = {.unused = 0};
    /* All of it is written: a page fault for each page would take as long as the decompression. */
    void *memory = mmap(NULL, total, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory != MAP_FAILED)
        *inflated = (struct inflated){memory, total};
    char *target = memory;
    struct section section;
    for (Elf_Scn *handle = NULL; inflated->memory && (handle = elf_nextscn(elf, handle));)
        if (image_file_open_section(elf, strings, handle, &section)) {
            image_file_decompress(&inflaters, handle, &section, target);
            target += image_file_room_of(&section);
        }
    image_file_inflaters_free(&inflaters);
}

bool inflate_lacks_method(const char *path)
{
    size_t strings;
    bool is_lacking = false;
    if (inflate_has(ELFCOMPRESS_ZSTD) || elf_version(EV_CURRENT) == EV_NONE)
        return false;
    int fd = image_file_open(path);
    Elf *elf = fd >= 0 ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
    Elf_Scn *handle = NULL;
    while (elf && elf_getshdrstrndx(elf, &strings) == 0 && !is_lacking &&
           (handle = elf_nextscn(elf, handle))) {
        GElf_Shdr header;
        GElf_Chdr compression;
        is_lacking = gelf_getshdr(handle, &header) && (header.sh_flags & SHF_COMPRESSED) != 0 &&
                     image_file_is_debug(elf, strings, &header) &&
                     gelf_getchdr(handle, &compression) && compression.ch_type == ELFCOMPRESS_ZSTD;
    }
    elf_end(elf);
    if (fd >= 0)
        close(fd);
    return is_lacking;
}

void inflate_free(struct inflated *inflated)
{
    if (inflated->memory)
        munmap(inflated->memory, inflated->size);
    *inflated = (struct inflated){0};
}
