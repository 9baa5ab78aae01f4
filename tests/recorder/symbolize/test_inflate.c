/* SPDX-License-Identifier: MIT */
/* Compressed sections of debug information, beside what another tool makes of them. */
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "symbolize/image/image_file.h"
#include "support.h"

static void enter(void)
{
    enter_directory();
    elf_version(EV_CURRENT);
    run("gcc -O2 -g -gz -o zlib plain.c");
    run("objcopy --decompress-debug-sections zlib plain");
    run("objcopy --compress-debug-sections=zstd plain zstd");
}

TestSuite(inflate, .init = enter, .fini = leave_directory, .timeout = 60);

struct file {
    int fd;
    Elf *elf;
    size_t strings;
};

static struct file open_file(const char *path)
{
    struct file file = {.fd = open(path, O_RDONLY)};
    cr_assert(file.fd >= 0);
    file.elf = elf_begin(file.fd, ELF_C_READ_MMAP_PRIVATE, NULL);
    cr_assert_eq(elf_getshdrstrndx(file.elf, &file.strings), 0);
    return file;
}

static void close_file(struct file *file)
{
    elf_end(file->elf);
    close(file->fd);
}

static Elf_Scn *find_section(const struct file *file, const char *name, GElf_Shdr *header)
{
    for (Elf_Scn *section = NULL; (section = elf_nextscn(file->elf, section));) {
        cr_assert(gelf_getshdr(section, header) != NULL);
        if (strcmp(elf_strptr(file->elf, file->strings, header->sh_name), name) == 0)
            return section;
    }
    cr_assert(false, "no %s", name);
    return NULL;
}

static void expect_same(const Elf_Data *actual, const Elf_Data *expected)
{
    cr_assert_eq(actual->d_size, expected->d_size);
    cr_assert_eq(memcmp(actual->d_buf, expected->d_buf, expected->d_size), 0);
}

/* Returns how many debug sections have the content that they should have; fails if one has another
 * without being marked as compressed. */
static size_t count_decompressed(const struct file *file)
{
    struct file plain = open_file("plain");
    size_t count = 0;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(file->elf, section));) {
        GElf_Shdr header, expected;
        cr_assert(gelf_getshdr(section, &header) != NULL);
        const char *name = elf_strptr(file->elf, file->strings, header.sh_name);
        if (strncmp(name, ".debug_", 7) != 0 || (header.sh_flags & SHF_COMPRESSED) != 0)
            continue;
        Elf_Scn *other = find_section(&plain, name, &expected);
        cr_assert_eq(header.sh_size, expected.sh_size);
        expect_same(elf_rawdata(section, NULL), elf_rawdata(other, NULL));
        expect_same(elf_getdata(section, NULL), elf_rawdata(other, NULL));
        count++;
    }
    close_file(&plain);
    return count;
}

static size_t count_debug(const struct file *file)
{
    size_t count = 0;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(file->elf, section));) {
        GElf_Shdr header;
        cr_assert(gelf_getshdr(section, &header) != NULL);
        count += strncmp(elf_strptr(file->elf, file->strings, header.sh_name), ".debug_", 7) == 0;
    }
    return count;
}

/* The files, by the method that compresses them; of zstd if it can be read here. */
static const char *const compressed[] = {
    "zlib",
#ifdef HAVE_LIBZSTD
    "zstd",
#endif
};
enum { COMPRESSED = sizeof compressed / sizeof *compressed };

static void expect_as_plain(const char *path)
{
    struct file file = open_file(path);
    struct inflated inflated;
    cr_assert(count_decompressed(&file) + 3 < count_debug(&file), "%s is not compressed", path);
    inflate_sections(&inflated, file.elf);
    cr_assert_eq(count_decompressed(&file), count_debug(&file));
    close_file(&file);
    inflate_free(&inflated);
}

Test(inflate, sections_as_another_tool_decompresses_them)
{
    for (size_t i = 0; i < COMPRESSED; i++)
        expect_as_plain(compressed[i]);
}

#ifndef HAVE_LIBZSTD
Test(inflate, a_method_that_is_not_there)
{
    char *zstd = realpath("zstd", NULL), *zlib = realpath("zlib", NULL);
    cr_assert(inflate_lacks_method(zstd));
    cr_assert(!inflate_lacks_method(zlib));
    cr_assert(!inflate_lacks_method("/none"));
    free(zstd);
    free(zlib);
}
#endif

/* Changes a byte of .debug_line, and checks that this section alone stays compressed. */
static void expect_left(const char *path, size_t at, uint8_t change)
{
    struct file file = open_file(path);
    struct inflated inflated;
    GElf_Shdr header;
    Elf_Scn *section = find_section(&file, ".debug_line", &header);
    ((uint8_t *)elf_rawdata(section, NULL)->d_buf)[at] ^= change;
    inflate_sections(&inflated, file.elf);
    cr_assert_eq(count_decompressed(&file), count_debug(&file) - 1, "%s: byte %zu", path, at);
    cr_assert(gelf_getshdr(section, &header) != NULL);
    cr_assert((header.sh_flags & SHF_COMPRESSED) != 0);
    close_file(&file);
    inflate_free(&inflated);
}

Test(inflate, leaves_damaged_sections_as_they_are)
{
    for (size_t i = 0; i < COMPRESSED; i++) {
        const char *path = compressed[i];
        expect_left(path, 0, 4);                             /* another method */
        expect_left(path, 0, 3);                             /* zlib's for zstd's */
        expect_left(path, offsetof(Elf64_Chdr, ch_size), 1); /* another size */
        expect_left(path, offsetof(Elf64_Chdr, ch_size) + 3, 1);
        expect_left(path, offsetof(Elf64_Chdr, ch_size) + 7, 0x80);
        expect_left(path, sizeof(Elf64_Chdr), 0xff); /* no magic number */
    }
    expect_left("zlib", sizeof(Elf64_Chdr) + 40, 0x55); /* zstd has no checksum */
}

Test(inflate, nothing_is_compressed)
{
    struct file file = open_file("plain");
    struct inflated inflated;
    inflate_sections(&inflated, file.elf);
    cr_assert(!inflated.memory);
    close_file(&file);
    inflate_free(&inflated);
    inflate_sections(&inflated, NULL);
    cr_assert(!inflated.memory);
}
