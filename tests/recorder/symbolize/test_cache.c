/* SPDX-License-Identifier: MIT */
/* An address is looked up once: later its file is gone, and the answer is still there. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "symbolize/cache/cache.h"
#include "support.h"

static struct symbolize_cache *cache;

static void begin(void)
{
    enter_directory();
    cache = symbolize_cache_new();
    cr_assert(cache != NULL);
}

static void end(void)
{
    symbolize_cache_free(cache);
    leave_directory();
}

TestSuite(cache, .init = begin, .fini = end, .timeout = 60);

static void build(struct program *program, const char *name, const char *flags)
{
    run("gcc -g -O2 %s -o %s plain.c", flags, name);
    load_program(program, name);
}

/* Tells what is known without asking anybody. Returns how many of the offsets are not. */
static size_t tell_known(struct symbolize_module module, struct answers *answers)
{
    size_t image = symbolize_image(cache, &module);
    size_t unknown = 0;
    for (size_t i = 0; i < module.offset_count; i++) {
        struct symbolize_frame frames[SYMBOLIZE_FRAMES_MAX];
        size_t count;
        if (!symbolize_answer(cache, image, module.offsets[i], frames, &count))
            unknown++;
        else if (answers)
            keep_answer(answers, 0, module.offsets[i], frames, count);
    }
    return unknown;
}

static struct answers ask(struct symbolize_module module)
{
    struct answers answers = {0};
    cr_assert(symbolize_cached(cache, &module, 1, keep_answer, &answers) == 0);
    sort_answers(&answers);
    return answers;
}

enum { FEW = 3 };

static void ask_for_few(const struct program *program)
{
    struct symbolize_module few = module_of(program);
    few.offset_count = FEW;
    struct answers answers = ask(few);
    free_answers(&answers);
}

/* Its status is 0 if all was answered. */
static pid_t ask_in_process(const struct program *program)
{
    pid_t pid = fork();
    cr_assert(pid >= 0);
    if (pid == 0) {
        struct answers answers = ask(module_of(program));
        _exit(answers.count == program->count ? 0 : 1);
    }
    return pid;
}

Test(cache, answers_the_same_without_the_file)
{
    struct program program;
    build(&program, "program", "-Wl,--build-id=sha1");
    struct answers expected, first, second;
    name_program(&program, &expected);
    cr_assert(expected.count > 100);
    first = ask(module_of(&program));
    expect_equal(&first, &expected);
    run("rm program");
    second = ask(module_of(&program));
    expect_equal(&second, &expected);
    free_answers(&expected);
    free_answers(&first);
    free_answers(&second);
    free_program(&program);
}

static void reverse(uint64_t *offsets, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        uint64_t offset = offsets[i];
        offsets[i] = offsets[count - 1 - i];
        offsets[count - 1 - i] = offset;
    }
}

/* A third each time, in any order. */
Test(cache, asks_for_what_is_not_known)
{
    struct program program;
    build(&program, "program", "-Wl,--build-id=sha1");
    struct answers expected, some;
    name_program(&program, &expected);
    reverse(program.offsets, program.count);
    for (size_t part = 1; part <= 4; part++) {
        struct symbolize_module module = module_of(&program);
        module.offset_count = part < 3 ? part * program.count / 3 : program.count;
        cr_assert_eq(tell_known(module, NULL) == 0, part == 4);
        if (part == 4)
            run("rm program");
        some = ask(module);
        cr_assert_eq(some.count, module.offset_count);
        if (part >= 3)
            expect_equal(&some, &expected);
        free_answers(&some);
    }
    free_answers(&expected);
    free_program(&program);
}

/* Only what was asked for before, and nobody is asked now. */
Test(cache, tells_only_what_is_known)
{
    struct program program;
    struct answers none = {0}, few = {0};
    build(&program, "program", "-Wl,--build-id=sha1");
    struct symbolize_module module = module_of(&program);
    cr_assert_eq(tell_known(module, &none), program.count);
    cr_assert_eq(none.count, 0);
    size_t size = symbolize_cache_size(cache);
    ask_for_few(&program);
    cr_assert_gt(symbolize_cache_size(cache), size);
    cr_assert_eq(tell_known(module, &few), program.count - FEW);
    cr_assert_eq(few.count, FEW);
    free_answers(&none);
    free_answers(&few);
    free_program(&program);
}

static void wait_until_prepared(void)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    while (symbolize_is_preparing(cache))
        nanosleep(&moment, NULL);
}

/* By a process that outlives many questions; one at a time. */
Test(cache, has_names_looked_up)
{
    struct program program;
    build(&program, "program", "-Wl,--build-id=sha1");
    struct symbolize_module module = module_of(&program);
    struct symbolize_module few = module;
    few.offset_count = FEW;
    struct answers expected, answers = {0};
    name_program(&program, &expected);
    cr_assert(symbolize_prepare(cache, &few, 1));
    wait_until_prepared();
    cr_assert_eq(tell_known(module, NULL), program.count - FEW);
    cr_assert(symbolize_prepare(cache, &module, 1));
    cr_assert_not(symbolize_prepare(cache, &few, 1));
    wait_until_prepared();
    cr_assert_eq(tell_known(module, &answers), 0);
    sort_answers(&answers);
    expect_equal(&answers, &expected);
    free_answers(&answers);
    free_answers(&expected);
    free_program(&program);
}

struct places {
    struct answers of[2];
};

static void keep_by_module(void *context, size_t module, uint64_t offset,
                           const struct symbolize_frame *frames, size_t count)
{
    struct places *places = context;
    keep_answer(&places->of[module], module, offset, frames, count);
}

Test(cache, tells_programs_apart)
{
    struct program one, other;
    build(&one, "one", "-Wl,--build-id=sha1");
    build(&other, "other", "-Wl,--build-id=sha1 -DOTHER -O0");
    struct answers expected[2];
    name_program(&one, &expected[0]);
    name_program(&other, &expected[1]);
    const struct symbolize_module modules[] = {module_of(&one), module_of(&other)};
    for (int round = 0; round < 2; round++) {
        struct places places = {{{0}}};
        cr_assert(symbolize_cached(cache, modules, 2, keep_by_module, &places) == 0);
        for (size_t i = 0; i < 2; i++) {
            sort_answers(&places.of[i]);
            expect_equal(&places.of[i], &expected[i]);
            free_answers(&places.of[i]);
        }
        run("rm -f one other");
    }
    free_answers(&expected[0]);
    free_answers(&expected[1]);
    free_program(&one);
    free_program(&other);
}

Test(cache, keeps_nothing_without_a_build_id)
{
    struct program program;
    build(&program, "program", "-Wl,--build-id=none");
    cr_assert_eq(program.build_id_size, 0);
    struct answers first = ask(module_of(&program));
    cr_assert_eq(first.count, program.count);
    run("rm program");
    struct answers second = ask(module_of(&program));
    cr_assert_eq(second.count, 0);
    free_answers(&first);
    free_program(&program);
}

struct tally {
    size_t named[3];
    size_t nameless[3];
};

static void count_answers(void *context, size_t module, uint64_t offset,
                          const struct symbolize_frame *frames, size_t count)
{
    struct tally *tally = context;
    (void)offset, (void)frames;
    if (count > 0)
        tally->named[module]++;
    else
        tally->nameless[module]++;
}

/* A module that is loaded twice; and addresses that have no names. */
Test(cache, knows_what_has_no_name)
{
    struct program program;
    build(&program, "program", "-Wl,--build-id=sha1");
    uint64_t *offsets = calloc(program.count + 1, sizeof *offsets);
    cr_assert(offsets != NULL);
    memcpy(offsets, program.offsets, program.count * sizeof *offsets);
    offsets[program.count] = 1; /* no code there */
    struct symbolize_module modules[3];
    for (size_t i = 0; i < 3; i++) {
        modules[i] = module_of(&program);
        modules[i].offsets = offsets;
        modules[i].offset_count++;
    }
    modules[1].path = "[vdso]";
    for (int round = 0; round < 2; round++) {
        struct tally tally = {{0}, {0}};
        cr_assert(symbolize_cached(cache, modules, 3, count_answers, &tally) == 0);
        cr_assert(tally.named[0] == program.count && tally.nameless[0] == 1);
        cr_assert(tally.named[1] == 0 && tally.nameless[1] == 0);
        cr_assert(tally.named[2] == program.count && tally.nameless[2] == 1);
        run("rm -f program");
    }
    free(offsets);
    free_program(&program);
}

/* One file has lost its names, but neither its build-id nor the other file's names. */
Test(cache, tells_copies_apart)
{
    struct program whole, bare;
    build(&whole, "whole", "-Wl,--build-id=sha1");
    run("cp whole bare");
    load_program(&bare, "bare");
    run("strip bare");
    struct answers few = ask(module_of(&bare));
    cr_assert_lt(few.count, whole.count);
    struct answers all = ask(module_of(&whole));
    cr_assert_eq(all.count, whole.count);
    free_answers(&few);
    free_answers(&all);
    free_program(&whole);
    free_program(&bare);
}

/* Nothing is kept of a child that could not read all. */
Test(cache, keeps_nothing_of_what_failed)
{
    struct program program, broken;
    build(&program, "program", "-Wl,--build-id=sha1");
    run("cp program broken");
    load_program(&broken, "broken");
    run("printf x | dd of=broken bs=1 seek=4 conv=notrunc 2>/dev/null");
    const struct symbolize_module modules[] = {module_of(&program), module_of(&broken)};
    struct places places = {{{0}}};
    cr_assert(symbolize_cached(cache, modules, 2, keep_by_module, &places) == 0);
    cr_assert_eq(places.of[0].count, program.count);
    cr_assert_eq(places.of[1].count, 0);
    cr_assert_gt(tell_known(modules[0], NULL), 0);
    free_answers(&places.of[0]);
    free_program(&broken);
    free_program(&program);
}

/* An address that is asked for when its file is gone: somebody must have kept the file open. */
Test(cache, reads_a_file_once)
{
    struct program program;
    build(&program, "program", "-Wl,--build-id=sha1");
    ask_for_few(&program);
    run("rm program");
    struct answers answers = ask(module_of(&program));
    cr_assert_eq(answers.count, program.count);
    free_answers(&answers);
    free_program(&program);
}

/* The file that is kept open is the same, but no longer the same program. */
Test(cache, notices_a_file_that_is_overwritten)
{
    struct program program, other;
    build(&program, "program", "-Wl,--build-id=sha1");
    build(&other, "other", "-Wl,--build-id=sha1 -DOTHER -O0");
    ask_for_few(&program);
    run("cat other > program");
    struct answers answers = ask(module_of(&program));
    cr_assert_eq(answers.count, FEW);
    free_answers(&answers);
    free_program(&program);
    free_program(&other);
}

/* More files than may be open at once. */
Test(cache, makes_room_for_files)
{
    enum { COPIES = 20 };
    struct program program;
    symbolize_cache_free(cache);
    build(&program, "program", "-Wl,--build-id=sha1");
    run("for i in $(seq %d); do cp program copy$i; done", COPIES);
    cr_assert(setrlimit(RLIMIT_NOFILE, &(struct rlimit){18, 18}) == 0);
    cache = symbolize_cache_new();
    for (int i = 1; i <= COPIES; i++) {
        char path[sizeof program.path];
        struct symbolize_module module = module_of(&program);
        snprintf(path, sizeof path, "%.*s/copy%d", (int)(strrchr(program.path, '/') - program.path),
                 program.path, i);
        module.path = path;
        struct answers answers = ask(module);
        cr_assert_eq(answers.count, program.count);
        free_answers(&answers);
    }
    free_program(&program);
}

Test(cache, is_shared_with_processes)
{
    struct program program;
    build(&program, "program", "-Wl,--build-id=sha1");
    ask_for_few(&program);
    for (int i = 0; i < 4; i++) {
        ask_in_process(&program);
    }
    for (int i = 0; i < 4; i++) {
        int status;
        cr_assert(wait(&status) > 0 && status == 0);
    }
    run("rm program");
    struct answers answers = ask(module_of(&program));
    cr_assert_eq(answers.count, program.count);
    free_answers(&answers);
    free_program(&program);
}

/* Somebody dies while a child is asked; the others go on. */
Test(cache, survives_processes_that_are_killed)
{
    struct program program;
    build(&program, "program", "-Wl,--build-id=sha1");
    for (int i = 0; i < 50; i++) {
        pid_t pid = ask_in_process(&program);
        usleep((useconds_t)i * 100);
        kill(pid, SIGKILL);
        cr_assert(waitpid(pid, NULL, 0) == pid);
    }
    struct answers answers = ask(module_of(&program));
    cr_assert_eq(answers.count, program.count);
    free_answers(&answers);
    free_program(&program);
}

Test(cache, is_not_needed)
{
    struct program program;
    build(&program, "program", "-Wl,--build-id=sha1");
    struct symbolize_module module = module_of(&program);
    struct answers answers = {0};
    cr_assert(symbolize_cached(NULL, &module, 1, keep_answer, &answers) == 0);
    cr_assert_eq(symbolize_image(NULL, &module), SIZE_MAX);
    cr_assert_eq(answers.count, program.count);
    free_answers(&answers);
    free_program(&program);
}
