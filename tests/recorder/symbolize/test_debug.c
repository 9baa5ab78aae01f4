/* SPDX-License-Identifier: MIT */
/* Functions, files, lines and inlined calls from debug information, wherever it is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "support.h"

TestSuite(debug, .init = enter_directory, .fini = leave_directory, .timeout = 60);

static bool needs(const char *tool)
{
    if (has_tool(tool))
        return true;
    cr_log_info("not tested: there is no %s", tool); /* a warning would be a failure */
    return false;
}

/* The referee has only short names of functions that are local to a file; we have mangled ones, by
 * symbol, and where they are inlined those with what is around them and their parameters. */
static void expect_function(const char *actual, const char *referee)
{
    if (strncmp(referee, "_Z", 2) != 0 && (actual[0] == '_' || strchr(actual, '(')))
        cr_assert(strstr(actual, referee) != NULL, "%s, %s", actual, referee);
    else
        cr_assert_str_eq(actual, referee);
}

static void expect_place(const struct place *actual, const struct place *expected)
{
    expect_function(actual->function, expected->function);
    cr_assert_str_eq(actual->file, expected->file);
    cr_assert_eq(actual->line, expected->line);
}

/* It misses calls inlined from other units or in namespaces, and units that tell no ranges. */
static void expect_no_less(const struct answer *actual, const struct answer *expected)
{
    const struct place *places = expected->places;
    cr_assert_eq(expected->count, 1);
    expect_function(actual->places[actual->count - 1].function, places[0].function);
    if (strcmp(places[0].file, "??") != 0) {
        cr_assert_str_eq(actual->places[0].file, places[0].file);
        cr_assert_eq(actual->places[0].line, places[0].line);
    }
}

static void expect_as_referee(const struct program *program, const struct answers *answers,
                              bool may_know_less)
{
    struct answers expected;
    ask_referee(program, &expected);
    cr_assert_eq(answers->count, program->count);
    cr_assert_eq(expected.count, program->count);
    for (size_t i = 0; i < answers->count; i++) {
        const struct answer *a = &answers->items[i];
        const struct answer *b = &expected.items[i];
        cr_assert_eq(a->offset, b->offset);
        if (may_know_less && b->count == 1) {
            expect_no_less(a, b);
            continue;
        }
        cr_assert_eq(a->count, b->count, "offset %zx", (size_t)a->offset);
        for (size_t k = 0; k < a->count; k++)
            expect_place(&a->places[k], &b->places[k]);
    }
    free_answers(&expected);
}

static size_t count_inlined(const struct answers *answers)
{
    size_t count = 0;
    for (size_t i = 0; i < answers->count; i++)
        count += answers->items[i].count > 1;
    return count;
}

struct variant {
    char compiler[16];
    char flags[48];
    char source[16];
    bool referee_may_know_less;
};

/* Ranges of units are optional and clang leaves them out; only the referee needs them. */
static const struct variant variants[] = {
    {"gcc", "-O0 -g -gdwarf-4", "plain.c", false},
    {"gcc", "-O2 -g -gdwarf-4", "plain.c", false},
    {"gcc", "-O0 -g -gdwarf-5", "plain.c", false},
    {"gcc", "-O2 -g -gdwarf-5", "plain.c", false},
    {"gcc", "-O2 -g1", "plain.c", false},
    {"gcc", "-O2 -g -gdwarf-3", "plain.c", false},
    {"gcc", "-O2 -g -no-pie", "plain.c", false},
    {"gcc", "-O2 -g -gz", "plain.c", false},
    {"gcc", "-O2 -g -flto", "plain.c", true},
    {"gcc", "-O2 -g -ffunction-sections -Wl,--gc-sections", "plain.c", false},
    {"g++", "-O0 -g -gdwarf-4", "mangled.cpp", false},
    {"g++", "-O2 -g -gdwarf-4", "mangled.cpp", false},
    {"g++", "-O0 -g -gdwarf-5", "mangled.cpp", false},
    {"g++", "-O2 -g -gdwarf-5", "mangled.cpp", false},
    {"clang", "-O0 -g -gdwarf-4", "plain.c", false},
    {"clang", "-O2 -g -gdwarf-4", "plain.c", false},
    {"clang", "-O0 -g -gdwarf-5", "plain.c", false},
    {"clang", "-O2 -g -gdwarf-5", "plain.c", false},
    {"clang", "-O2 -g1", "plain.c", true},
    {"clang++", "-O0 -g -gdwarf-4", "mangled.cpp", true},
    {"clang++", "-O2 -g -gdwarf-5", "mangled.cpp", true},
};

ParameterizedTestParameters(debug, as_referee)
{
    size_t count = sizeof variants / sizeof *variants;
    struct variant *copy = cr_malloc(sizeof variants);
    memcpy(copy, variants, sizeof variants);
    return cr_make_param_array(struct variant, copy, count, NULL);
}

ParameterizedTest(struct variant *variant, debug, as_referee)
{
    if (!needs(variant->compiler) || !needs("eu-addr2line"))
        return;
    bool is_clang = strncmp(variant->compiler, "clang", 5) == 0;
    run("%s %s %s -o program %s", variant->compiler, variant->flags,
        is_clang ? "-gdwarf-aranges" : "", variant->source);
    struct program program;
    struct answers answers;
    load_program(&program, "program");
    struct symbolize_summary summary = name_program(&program, &answers);
    cr_assert_eq(summary.modules_read, 1);
    cr_assert(count_inlined(&answers) > 50);
    expect_as_referee(&program, &answers, variant->referee_may_know_less);
    free_answers(&answers);
    free_program(&program);
}

/* Checks that names do not depend on where the debug information is. Leaves the program behind. */
static void expect_same_code(struct answers *expected, const char *build, const char *other)
{
    struct program program;
    struct answers answers;
    run("%s", build);
    load_program(&program, "program");
    name_program(&program, expected);
    cr_assert(count_inlined(expected) > 50);
    run("%s", other);
    /* Stripped, it has no table to find functions by; what changes the id is no matter here. */
    name_program(&program, &answers);
    expect_equal(&answers, expected);
    free_answers(&answers);
    free_program(&program);
}

Test(debug, ranges_of_units_are_optional)
{
    struct answers expected;
    if (!needs("clang"))
        return;
    expect_same_code(
        &expected, "clang -O2 -g -gdwarf-aranges -Wl,--build-id=0x1234 -o program plain.c",
        "clang -O2 -g -gno-dwarf-aranges -Wl,--build-id=0x1234 -o program plain.c 2>/dev/null"
        " || clang -O2 -g -Wl,--build-id=0x1234 -o program plain.c");
    free_answers(&expected);
}

static void expect_split(const char *compiler, const char *source, int version)
{
    struct answers expected;
    char build[256];
    char split[256];
    if (!needs(compiler))
        return;
    snprintf(build, sizeof build, "%s -O2 -g -gdwarf-%d -Wl,--build-id=0x1234 -o program %s",
             compiler, version, source);
    snprintf(
        split, sizeof split,
        "%s -O2 -g -gdwarf-%d -gsplit-dwarf -Wl,--build-id=0x1234 -o program %s && ls *.dwo >list",
        compiler, version, source);
    expect_same_code(&expected, build, split);
    free_answers(&expected);
}

Test(debug, split)
{
    for (int version = 4; version <= 5; version++) {
        expect_split("gcc", "plain.c", version);
        expect_split("g++", "mangled.cpp", version);
        expect_split("clang", "plain.c", version);
        expect_split("clang++", "mangled.cpp", version);
    }
}

Test(debug, split_but_the_other_file_is_gone)
{
    run("gcc -O2 -g -gsplit-dwarf -o program plain.c && rm *.dwo");
    struct program program;
    struct answers answers;
    load_program(&program, "program");
    struct symbolize_summary summary = name_program(&program, &answers);
    cr_assert_eq(summary.modules_read, 1);
    const struct answer *answer =
        find_answer(&answers, address_of("program", "global_function") + 1);
    cr_assert(answer && answer->count == 1);
    cr_assert_str_eq(answer->places[0].function, "global_function");
    cr_assert(strstr(answer->places[0].file, "/plain.c") != NULL);
    cr_assert(answer->places[0].line > 0);
    free_answers(&answers);
    free_program(&program);
}

static void expect_separate(const char *place)
{
    struct answers expected;
    char command[512];
    snprintf(command, sizeof command,
             "mkdir -p .debug && objcopy --only-keep-debug program %s && strip program && "
             "objcopy --add-gnu-debuglink=%s program",
             place, place);
    expect_same_code(&expected, "gcc -O2 -g -o program plain.c", command);
    free_answers(&expected);
}

Test(debug, separate_file_beside)
{
    expect_separate("program.debug");
}

Test(debug, separate_file_in_its_directory)
{
    expect_separate(".debug/program.debug");
}

Test(debug, shared_with_dwz)
{
    struct answers expected;
    if (!needs("dwz"))
        return;
    expect_same_code(&expected, "g++ -O2 -g -o program mangled.cpp && cp program twin",
                     "dwz -m common program twin");
    free_answers(&expected);
}

Test(debug, names_of_the_directory_are_absolute)
{
    run("gcc -O2 -g -o program plain.c");
    struct program program;
    struct answers answers;
    char directory[4096];
    cr_assert(getcwd(directory, sizeof directory) != NULL);
    load_program(&program, "program");
    name_program(&program, &answers);
    const struct answer *answer = find_answer(&answers, address_of("program", "main") + 1);
    cr_assert(answer != NULL);
    cr_assert(strncmp(answer->places[0].file, directory, strlen(directory)) == 0);
    cr_assert_str_eq(answer->places[0].file + strlen(directory), "/plain.c");
    free_answers(&answers);
    free_program(&program);
}
