/* SPDX-License-Identifier: MIT */
/* Functions from symbol tables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "support.h"

TestSuite(symbols, .init = enter_directory, .fini = leave_directory, .timeout = 60);

/* Name of the address `distance` bytes after a symbol; "??" if it has none. */
static void expect_name(const char *symbol, int distance, const char *expected)
{
    struct program program;
    struct answers answers;
    load_program(&program, "program");
    program.offsets[0] = address_of("program", symbol) + distance + 1;
    program.count = 1;
    name_program(&program, &answers);
    cr_expect_str_eq(answers.count > 0 ? answers.items[0].places[0].function : "??", expected,
                     "%s + %d", symbol, distance);
    cr_expect(answers.count == 0 || answers.items[0].count == 1);
    free_answers(&answers);
    free_program(&program);
}

static void build_table(void)
{
    run("printf 'VERSION_1 { global: *; };' > versions");
    run("gcc -nostdlib -shared -Wl,--version-script=versions -o program table.S");
}

Test(symbols, of_aliases_the_most_global)
{
    build_table();
    expect_name("chosen", 0, "chosen");
    expect_name("chosen", 31, "chosen");
}

Test(symbols, labels_in_functions_do_not_count)
{
    build_table();
    expect_name("label_inside", 4, "chosen");
}

Test(symbols, the_innermost_one)
{
    build_table();
    expect_name("outer", 7, "outer");
    expect_name("inner", 0, "inner");
    expect_name("inner", 7, "inner");
    expect_name("inner", 8, "outer");
    expect_name("inner", 15, "outer");
}

Test(symbols, without_size_up_to_the_next)
{
    build_table();
    expect_name("unsized", 0, "unsized");
    expect_name("unsized", 7, "unsized");
    expect_name("next", 7, "next");
}

Test(symbols, without_version)
{
    build_table();
    expect_name("before_hole", -1, "renamed");
}

Test(symbols, holes_have_no_name)
{
    build_table();
    expect_name("chosen", 32, "??"); /* a mapping symbol is there */
    expect_name("before_hole", 7, "before_hole");
    expect_name("before_hole", 8, "??");
    expect_name("before_hole", 15, "??");
}

Test(symbols, without_size_only_to_the_end_of_the_section)
{
    run("printf '.text\\n.fill 8,1,0x90\\nlast:\\n.fill 8,1,0x90\\n"
        ".section .more,\"ax\"\\n.fill 16,1,0x90\\n' > last.S");
    run("gcc -nostdlib -shared -o program last.S");
    run("printf '.text\\n.globl f\\n.type f,@function\\nf: .fill 8,1,0x90\\n.size f,8\\n' > f.S");
    run("gcc -nostdlib -shared -o program f.S last.S");
    expect_name("last", 7, "last");
    expect_name("last", 8, "??");
}

/* Addresses in functions of plain.c that have this name. */
static size_t count_named(const struct answers *answers, const char *function)
{
    size_t count = 0;
    for (size_t i = 0; i < answers->count; i++)
        count += strcmp(answers->items[i].places[0].function, function) == 0;
    return count;
}

Test(symbols, without_debug_information)
{
    struct program program;
    struct answers answers;
    run("gcc -O2 -rdynamic -o program plain.c");
    load_program(&program, "program");
    name_program(&program, &answers);
    cr_assert_eq(answers.count, program.count);
    cr_assert(count_named(&answers, "local_function") > 10);
    cr_assert(count_named(&answers, "global_function") > 10);
    for (size_t i = 0; i < answers.count; i++) {
        cr_assert_str_eq(answers.items[i].places[0].file, "??");
        cr_assert_eq(answers.items[i].places[0].line, 0);
    }
    free_answers(&answers);
    free_program(&program);
}

Test(symbols, stripped)
{
    struct program program;
    struct answers answers;
    run("gcc -O2 -rdynamic -o program plain.c");
    load_program(&program, "program");
    run("strip program");
    name_program(&program, &answers);
    cr_assert(count_named(&answers, "global_function") > 10);
    cr_assert_eq(count_named(&answers, "local_function"), 0);
    free_answers(&answers);
    free_program(&program);
}

Test(symbols, from_a_compressed_table_in_a_stripped_file)
{
    struct program program;
    struct answers answers;
    if (!has_tool("xz"))
        return;
    run("gcc -O2 -rdynamic -o program plain.c");
    load_program(&program, "program");
    run("objcopy --only-keep-debug program table && strip program && xz table && "
        "objcopy --add-section .gnu_debugdata=table.xz program");
    name_program(&program, &answers);
    cr_assert(count_named(&answers, "global_function") > 10);
    cr_assert(count_named(&answers, "local_function") > 10);
    free_answers(&answers);
    free_program(&program);
}

Test(symbols, without_section_headers)
{
    struct program program;
    struct answers answers;
    run("gcc -O2 -rdynamic -o program plain.c");
    load_program(&program, "program");
    /* e_shoff, then e_shnum and e_shstrndx */
    run("printf '\\0\\0\\0\\0\\0\\0\\0\\0' | dd of=program bs=1 seek=40 conv=notrunc status=none");
    run("printf '\\0\\0\\0\\0' | dd of=program bs=1 seek=60 conv=notrunc status=none");
    struct symbolize_summary summary = name_program(&program, &answers);
    cr_assert_eq(summary.modules_read, 1);
    cr_assert(count_named(&answers, "global_function") > 10);
    free_answers(&answers);
    free_program(&program);
}
