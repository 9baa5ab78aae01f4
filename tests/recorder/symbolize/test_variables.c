/* SPDX-License-Identifier: MIT */
/* Variables that hold offsets of data. */
#include <gelf.h>
#include <stdio.h>

#include <criterion/criterion.h>

#include "symbolize/cache/cache.h"
#include "support.h"

TestSuite(variables, .init = enter_directory, .fini = leave_directory, .timeout = 60);

enum { NAMED_MAX = 64 };

struct named {
    uint64_t offset, begin, size;
    char name[256];
};

struct named_list {
    struct named items[NAMED_MAX];
    size_t count;
};

static void keep_variable(void *context, size_t module, uint64_t offset,
                          const struct symbolize_frame *frames, size_t count)
{
    struct named_list *list = context;
    (void)module;
    cr_assert_eq(count, 1);
    cr_assert_lt(list->count, NAMED_MAX);
    cr_assert(frames->begin <= offset && offset - frames->begin < frames->size);
    struct named *named = &list->items[list->count++];
    *named = (struct named){.offset = offset, .begin = frames->begin, .size = frames->size};
    snprintf(named->name, sizeof named->name, "%.*s", (int)frames->function_size,
             frames->function ? frames->function : "");
}

static struct symbolize_module data_of(const struct program *program, const uint64_t *offsets,
                                       size_t count)
{
    struct symbolize_module module = module_of(program);
    module.is_data = true;
    module.offsets = offsets;
    module.offset_count = count;
    return module;
}

static struct named_list name_data(const struct program *program, const uint64_t *offsets,
                                   size_t count)
{
    struct named_list list = {.count = 0};
    struct symbolize_module module = data_of(program, offsets, count);
    struct symbolize_summary summary;
    cr_assert_eq(symbolize(&module, 1, keep_variable, &list, &summary), 0);
    cr_assert_eq(summary.modules_read, 1);
    return list;
}

/* The name of one offset must be `expected`, and its variable must begin `before` bytes before. */
static void expect_variable(uint64_t offset, const char *expected, uint64_t before, uint64_t size)
{
    struct program program;
    load_program(&program, "program");
    struct named_list list = name_data(&program, &offset, 1);
    cr_assert_eq(list.count, 1);
    cr_expect_str_eq(list.items[0].name, expected);
    cr_expect_eq(offset - list.items[0].begin, before, "%s: %zu", expected,
                 (size_t)(offset - list.items[0].begin));
    cr_expect(size == 0 || list.items[0].size == size, "%s: %zu", expected,
              (size_t)list.items[0].size);
    free_program(&program);
}

static void build(const char *flags)
{
    run("gcc -O0 -rdynamic %s -o program variables.c", flags);
}

Test(variables, of_programs)
{
    build("-Wl,--build-id=sha1");
    expect_variable(address_of("program", "table"), "table", 0, 40 * sizeof(void *));
    expect_variable(address_of("program", "table") + 319, "table", 319, 40 * sizeof(void *));
    expect_variable(address_of("program", "own") + 8, "own", 8, 4 * sizeof(void *));
    expect_variable(address_of("program", "record") + 8, "record", 8, 16);
    expect_variable(address_of("program", "later"), "alias", 0, sizeof(void *));
}

/* Another section holds the same addresses as the thread-local one. */
Test(variables, of_threads)
{
    build("");
    expect_variable(SYMBOLIZE_TLS + 8, "per_thread", 8, 2 * sizeof(void *));
    expect_variable(SYMBOLIZE_TLS + 16 + 16, "empty_per_thread", 16, 3 * sizeof(void *));
}

Test(variables, of_separate_files)
{
    build("-g -Wl,--build-id=sha1");
    struct program program;
    load_program(&program, "program");
    uint64_t own = address_of("program", "own");
    run("objcopy --only-keep-debug program program.debug && strip program && "
        "objcopy --add-gnu-debuglink=program.debug program");
    struct named_list list = name_data(&program, &own, 1);
    cr_assert_str_eq(list.items[0].name, "own");
    free_program(&program);
}

/* Without a symbol, what is between the variables around is a part of a section. */
Test(variables, that_are_sections)
{
    build("-Wl,--build-id=sha1 -Wl,--section-start=.bss=0x800000 -no-pie");
    struct program program;
    load_program(&program, "program");
    uint64_t offsets[] = {address_of("program", "own"), address_of("program", "own") + 8};
    run("strip program");
    struct named_list list = name_data(&program, offsets, 2);
    cr_assert_eq(list.count, 1, "%zu", list.count);
    char expected[64];
    snprintf(expected, sizeof expected, ".bss+0x%zx", (size_t)list.items[0].begin - 0x800000);
    cr_expect_str_eq(list.items[0].name, list.items[0].begin == 0x800000 ? ".bss" : expected);
    cr_expect_geq(list.items[0].begin + list.items[0].size, offsets[1] + 8);
    free_program(&program);
}

/* The first of the offsets in one variable is answered. An offset in no section has no name. */
Test(variables, are_told_once)
{
    build("-Wl,--build-id=sha1");
    struct program program;
    load_program(&program, "program");
    uint64_t table = address_of("program", "table"), own = address_of("program", "own");
    uint64_t offsets[] = {table, table + 8, table + 312, own + 8, own + 24, UINT64_C(1) << 40};
    cr_assert_lt(table, own);
    struct named_list list = name_data(&program, offsets, 6);
    cr_assert_eq(list.count, 3, "%zu", list.count);
    cr_expect_str_eq(list.items[0].name, "table");
    cr_expect_str_eq(list.items[1].name, "own");
    cr_expect_str_eq(list.items[2].name, "");
    cr_expect_eq(list.items[1].offset, offsets[3]);
    cr_expect_eq(list.items[2].begin, offsets[5]);
    free_program(&program);
}

/* Functions and variables at the same offset do not get into each other's way. */
Test(variables, are_cached_apart)
{
    struct symbolize_cache *cache = symbolize_cache_new();
    build("-g -Wl,--build-id=sha1");
    struct program program;
    load_program(&program, "program");
    uint64_t offset = address_of("program", "own") + 8;
    struct symbolize_module data = data_of(&program, &offset, 1), code = data;
    code.is_data = false;
    struct named_list list = {.count = 0};
    cr_assert_eq(symbolize_cached(cache, (struct symbolize_module[]){code, data}, 2, keep_answer,
                                  &(struct answers){0}),
                 0);
    run("rm program");
    cr_assert_eq(symbolize_cached(cache, &data, 1, keep_variable, &list), 0);
    cr_assert_eq(list.count, 1);
    cr_expect_str_eq(list.items[0].name, "own");
    cr_expect_eq(offset - list.items[0].begin, 8);
    cr_expect_eq(list.items[0].size, 32);
    symbolize_cache_free(cache);
    free_program(&program);
}
