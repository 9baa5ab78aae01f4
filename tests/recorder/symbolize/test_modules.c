/* SPDX-License-Identifier: MIT */
/* Which files are used, and which addresses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "support.h"

TestSuite(modules, .init = enter_directory, .fini = leave_directory, .timeout = 60);

static struct symbolize_summary name_module(const struct symbolize_module *module,
                                            struct answers *answers)
{
    struct symbolize_summary summary;
    *answers = (struct answers){0};
    cr_assert(symbolize(module, 1, keep_answer, answers, &summary) == 0);
    sort_answers(answers);
    return summary;
}

static void expect_absent(const struct symbolize_module *module)
{
    struct answers answers;
    struct symbolize_summary summary = name_module(module, &answers);
    cr_assert_eq(answers.count, 0);
    cr_assert_eq(summary.modules_absent, 1);
    cr_assert_eq(summary.addresses, module->offset_count);
    cr_assert_eq(summary.modules_read + summary.modules_failed + summary.modules_reduced +
                     summary.modules_skipped,
                 0);
}

static void build(struct program *program, const char *flags)
{
    run("gcc -g %s -o program plain.c", flags);
    load_program(program, "program");
}

Test(modules, with_the_same_build_id)
{
    struct program program;
    struct answers answers;
    build(&program, "-Wl,--build-id=sha1");
    cr_assert_eq(program.build_id_size, 20);
    struct symbolize_summary summary = name_program(&program, &answers);
    cr_assert_eq(summary.modules_read, 1);
    cr_assert_eq(summary.addresses_named, program.count);
    free_answers(&answers);
    free_program(&program);
}

Test(modules, with_another_build_id)
{
    struct program program;
    build(&program, "-Wl,--build-id=sha1");
    for (size_t i = 0; i < program.build_id_size; i++) {
        program.build_id[i] ^= 1;
        struct symbolize_module module = module_of(&program);
        expect_absent(&module);
        program.build_id[i] ^= 1;
    }
    program.build_id_size--;
    struct symbolize_module module = module_of(&program);
    expect_absent(&module);
    free_program(&program);
}

Test(modules, the_file_has_no_build_id)
{
    struct program program;
    build(&program, "-Wl,--build-id=none");
    cr_assert_eq(program.build_id_size, 0);
    program.build_id_size = 20;
    struct symbolize_module module = module_of(&program);
    expect_absent(&module);
    free_program(&program);
}

Test(modules, only_the_file_has_a_build_id)
{
    struct program program;
    build(&program, "-Wl,--build-id=sha1");
    program.build_id_size = 0;
    struct symbolize_module module = module_of(&program);
    expect_absent(&module);
    free_program(&program);
}

Test(modules, neither_has_a_build_id)
{
    struct program program;
    struct answers answers;
    build(&program, "-Wl,--build-id=none");
    struct symbolize_summary summary = name_program(&program, &answers);
    cr_assert_eq(summary.modules_read, 1);
    cr_assert_eq(summary.addresses_named, program.count);
    free_answers(&answers);
    free_program(&program);
}

Test(modules, that_are_no_files)
{
    static const char *const paths[] = {
        "linux-vdso.so.1",
        "[vdso]",
        "[heap]",
        "",
        "/",
        "/dev/zero",
        "/dev/tty",
        "/nonexistent/library.so",
        "/usr/bin/env (deleted)",
        "/memfd:jit (deleted)",
        "program",
    };
    static const uint64_t offsets[] = {1, 2, 4097};
    run("gcc -Wl,--build-id=none -o program plain.c");
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const struct symbolize_module module = {
            .path = paths[i], .offsets = offsets, .offset_count = 3};
        expect_absent(&module);
    }
    const struct symbolize_module module = {.offsets = offsets, .offset_count = 3};
    expect_absent(&module);
}

Test(modules, opening_a_pipe_does_not_wait, .timeout = 10)
{
    static const uint64_t offset = 4097;
    char directory[4096];
    run("mkfifo pipe");
    cr_assert(realpath("pipe", directory) != NULL);
    const struct symbolize_module module = {
        .path = directory, .offsets = &offset, .offset_count = 1};
    expect_absent(&module);
}

Test(modules, addresses_outside_of_code)
{
    struct program program;
    struct answers answers;
    build(&program, "-no-pie");
    uint64_t data = address_of("program", "sink");
    const uint64_t offsets[] = {0,         1, data, data + 1, 0x8000000000000000, UINT64_MAX - 1,
                                UINT64_MAX};
    struct symbolize_module module = module_of(&program);
    module.offsets = offsets;
    module.offset_count = sizeof offsets / sizeof *offsets;
    struct symbolize_summary summary = name_module(&module, &answers);
    cr_assert_eq(summary.modules_read, 1);
    cr_assert_eq(answers.count, 0);
    free_program(&program);
}

Test(modules, addresses_given_twice_and_in_any_order)
{
    struct program program;
    struct answers answers;
    build(&program, "-O2");
    uint64_t first = address_of("program", "main") + 1;
    uint64_t second = address_of("program", "global_function") + 1;
    const uint64_t offsets[] = {first, second, first, second, first};
    struct symbolize_module module = module_of(&program);
    module.offsets = offsets;
    module.offset_count = 5;
    name_module(&module, &answers);
    cr_assert_eq(answers.count, 5);
    size_t firsts = 0;
    for (size_t i = 0; i < 5; i++)
        firsts += answers.items[i].offset == first;
    cr_assert_eq(firsts, 3);
    free_answers(&answers);
    free_program(&program);
}

/* The byte before a return address is in the call; the one at it may be in the next function. */
Test(modules, return_addresses)
{
    struct program program;
    struct answers answers;
    build(&program, "-O0");
    uint64_t begin = address_of("program", "global_function");
    struct symbolize_module module = module_of(&program);
    module.offsets = &begin;
    module.offset_count = 1;
    name_module(&module, &answers);
    cr_assert(answers.count == 0 ||
              strcmp(answers.items[0].places[0].function, "global_function") != 0);
    free_answers(&answers);
    free_program(&program);
}

static void count_per_module(void *context, size_t module, uint64_t offset,
                             const struct symbolize_frame *frames, size_t count)
{
    (void)offset, (void)frames;
    ((size_t *)context)[module] += count > 0;
}

Test(modules, many_at_once)
{
    struct program program;
    build(&program, "-O2 -Wl,--build-id=sha1");
    struct symbolize_module modules[6];
    for (size_t i = 0; i < 6; i++)
        modules[i] = module_of(&program);
    modules[0].offset_count = 0;
    modules[1].path = "[vdso]";
    modules[3].build_id_size--;
    modules[5].offset_count = 0;
    size_t counts[6] = {0};
    struct symbolize_summary summary;
    cr_assert(symbolize(modules, 6, count_per_module, counts, &summary) == 0);
    cr_assert(counts[0] == 0 && counts[1] == 0 && counts[3] == 0 && counts[5] == 0);
    cr_assert(counts[2] == program.count && counts[4] == program.count);
    cr_assert_eq(summary.modules_read, 2);
    cr_assert_eq(summary.modules_absent, 2);
    cr_assert_eq(summary.addresses, 4 * program.count);
    cr_assert_eq(summary.addresses_named, 2 * program.count);
    free_program(&program);
}

Test(modules, none)
{
    struct symbolize_summary summary;
    cr_assert(symbolize(NULL, 0, count_per_module, NULL, &summary) == 0);
    cr_assert_eq(summary.addresses, 0);
    cr_assert(symbolize(NULL, 0, count_per_module, NULL, NULL) == 0);
}
