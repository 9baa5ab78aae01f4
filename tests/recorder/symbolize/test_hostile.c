/* SPDX-License-Identifier: MIT */
/* Damaged files: names may be wrong or missing, but they are well-formed and all ends in time. */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "support.h"
#include "support/entropy.h"

TestSuite(hostile, .init = enter_directory, .fini = leave_directory, .timeout = 120);

enum { VARIANTS = 200, OFFSETS_MAX = 400 };

struct content {
    uint8_t *data;
    size_t size;
};

static void read_content(struct content *content, const char *path)
{
    int fd = open(path, O_RDONLY);
    struct stat status;
    cr_assert(fd >= 0 && fstat(fd, &status) == 0);
    content->size = (size_t)status.st_size;
    content->data = malloc(content->size);
    cr_assert(read(fd, content->data, content->size) == (ssize_t)content->size);
    close(fd);
}

static void write_content(const char *path, const uint8_t *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0700);
    cr_assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    close(fd);
}

/* Names all files "0", "1", … as the program; all of them must be accounted for. */
static struct symbolize_summary name_variants(const struct program *program, size_t count)
{
    struct symbolize_module modules[VARIANTS];
    char paths[VARIANTS][64];
    char directory[48];
    cr_assert(count <= VARIANTS && getcwd(directory, sizeof directory));
    for (size_t i = 0; i < count; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%zu", directory, i);
        modules[i] = module_of(program);
        modules[i].path = paths[i];
        if (modules[i].offset_count > OFFSETS_MAX)
            modules[i].offset_count = OFFSETS_MAX;
    }
    const struct symbolize_options options = {.module_time = 500, .total_time = 60000};
    struct symbolize_summary summary;
    struct answers answers = {0};
    cr_assert(symbolize_with(&options, modules, count, keep_answer, &answers, &summary) == 0);
    cr_assert_eq(summary.modules_read + summary.modules_reduced + summary.modules_absent +
                     summary.modules_failed,
                 count);
    cr_assert_eq(answers.count, summary.addresses_named);
    cr_assert(waitpid(-1, NULL, 0) < 0 && errno == ECHILD, "a child is left");
    cr_log_info("%zu variants: %zu read, %zu reduced, %zu absent, %zu failed, %zu of %zu named",
                count, summary.modules_read, summary.modules_reduced, summary.modules_absent,
                summary.modules_failed, summary.addresses_named, summary.addresses);
    free_answers(&answers);
    return summary;
}

static void build(struct program *program, struct content *content, const char *command)
{
    run("%s", command);
    load_program(program, "program");
    read_content(content, "program");
}

Test(hostile, truncated)
{
    struct program program;
    struct content content;
    build(&program, &content, "gcc -O2 -g -o program plain.c");
    for (size_t i = 0; i < VARIANTS; i++) {
        char name[16];
        snprintf(name, sizeof name, "%zu", i);
        size_t size = i < 70 ? i : content.size * i / VARIANTS;
        write_content(name, content.data, size);
    }
    name_variants(&program, VARIANTS);
    free(content.data);
    free_program(&program);
}

Test(hostile, garbage)
{
    struct program program;
    struct content content;
    build(&program, &content, "gcc -O2 -g -Wl,--build-id=none -o program plain.c");
    struct entropy entropy = entropy_of_seed(1);
    for (size_t i = 0; i < VARIANTS; i++) {
        char name[16];
        size_t kept = 16 + i % 50; /* the first bytes make it an ELF file */
        for (size_t k = kept; k < content.size; k++)
            content.data[k] = (uint8_t)entropy_below(&entropy, 256);
        snprintf(name, sizeof name, "%zu", i);
        write_content(name, content.data, content.size);
    }
    struct symbolize_summary summary = name_variants(&program, VARIANTS);
    cr_assert_eq(summary.addresses_named, 0);
    free(content.data);
    free_program(&program);
}

/* Sections whose name begins so: where they are in the file. */
struct part {
    size_t offset;
    size_t size;
};

static size_t find_parts(const char *path, const char *prefix, struct part parts[32])
{
    size_t count = 0;
    size_t names;
    int fd = open(path, O_RDONLY);
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    cr_assert(elf && elf_getshdrstrndx(elf, &names) == 0);
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        cr_assert(gelf_getshdr(section, &header) != NULL);
        const char *name = elf_strptr(elf, names, header.sh_name);
        if (strncmp(name, prefix, strlen(prefix)) == 0 && header.sh_size > 0 && count < 32)
            parts[count++] = (struct part){header.sh_offset, header.sh_size};
    }
    elf_end(elf);
    close(fd);
    cr_assert(count > 0);
    return count;
}

/* Another byte, or a number that is as small or as large as it gets. */
static void damage(struct entropy *entropy, uint8_t *data, size_t size)
{
    size_t at = entropy_below(entropy, size);
    size_t width = (size_t)1 << entropy_below(entropy, 4);
    if (entropy_below(entropy, 2) == 0)
        data[at] ^= (uint8_t)(1 + entropy_below(entropy, 255));
    else if (width <= size - at)
        memset(data + at, entropy_below(entropy, 2) == 0 ? 0 : 0xff, width);
}

static struct symbolize_summary flip(const char *command, const char *prefix, size_t most)
{
    struct program program;
    struct content content;
    struct part parts[32];
    build(&program, &content, command);
    size_t part_count = find_parts("program", prefix, parts);
    struct entropy entropy = entropy_of_seed(1);
    for (size_t i = 0; i < VARIANTS; i++) {
        char name[16];
        uint8_t *copy = malloc(content.size);
        memcpy(copy, content.data, content.size);
        for (size_t k = 1 + entropy_below(&entropy, most); k > 0; k--) {
            const struct part *part = &parts[entropy_below(&entropy, part_count)];
            damage(&entropy, copy + part->offset, part->size);
        }
        snprintf(name, sizeof name, "%zu", i);
        write_content(name, copy, content.size);
        free(copy);
    }
    struct symbolize_summary summary = name_variants(&program, VARIANTS);
    free(content.data);
    free_program(&program);
    return summary;
}

Test(hostile, few_bytes_of_debug_information)
{
    struct symbolize_summary summary = flip("gcc -O2 -g -o program plain.c", ".debug_", 4);
    cr_assert_eq(summary.modules_absent, 0);
    cr_assert(summary.addresses_named > summary.addresses / 2);
}

Test(hostile, many_bytes_of_debug_information)
{
    struct symbolize_summary summary = flip("g++ -O2 -g -o program mangled.cpp", ".debug_", 100);
    cr_assert_eq(summary.modules_absent, 0);
    cr_assert(summary.addresses_named > summary.addresses / 2);
}

Test(hostile, debug_information_version_4)
{
    flip("gcc -O2 -g -gdwarf-4 -o program plain.c", ".debug_", 20);
}

Test(hostile, compressed_debug_information)
{
    flip("gcc -O2 -g -gz -o program plain.c", ".debug_", 4);
}

Test(hostile, symbol_tables)
{
    flip("gcc -O2 -g -o program plain.c", ".symtab", 30);
    flip("gcc -O2 -o program plain.c", ".strtab", 30);
    flip("gcc -O2 -o program plain.c", ".dyn", 30);
}

Test(hostile, anything)
{
    flip("gcc -O2 -g -o program plain.c", "", 100);
}

Test(hostile, never_ends)
{
    struct program program;
    struct content content;
    build(&program, &content, "gcc -nostdlib -shared -o program endless.S");
    for (size_t i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "%zu", i);
        write_content(name, content.data, content.size);
    }
    struct symbolize_summary summary = name_variants(&program, 3);
    cr_assert_eq(summary.modules_reduced, 3);
    cr_assert_eq(summary.addresses_named, 3 * program.count);
    free(content.data);
    free_program(&program);
}
