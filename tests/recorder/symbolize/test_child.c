/* SPDX-License-Identifier: MIT */
/* Whatever the child does: see false_names.c. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "process/helper.h"
#include "symbolize.h"

TestSuite(child, .timeout = 30);
TestSuite(helper, .timeout = 30);

enum { OFFSETS = 3 };

static const uint64_t offsets[OFFSETS] = {10, 20, 30};

static struct symbolize_module pretend(const char *path)
{
    return (struct symbolize_module){path, NULL, 0, offsets, OFFSETS, false};
}

/* How often each offset of each of up to four modules was answered, and the last answer. */
struct seen {
    unsigned times[4][OFFSETS];
    unsigned reduced[4];
    char last[256];
};

static void note(void *context, size_t module, uint64_t offset,
                 const struct symbolize_frame *frames, size_t count)
{
    struct seen *seen = context;
    cr_assert(module < 4 && count <= 1 && offset % 10 == 0 && offset <= 30);
    if (count == 0)
        return;
    seen->times[module][offset / 10 - 1]++;
    snprintf(seen->last, sizeof seen->last, "%.*s", (int)frames->function_size, frames->function);
    seen->reduced[module] += strcmp(seen->last, "reduced") == 0;
}

static void expect_answered(const struct seen *seen, size_t module)
{
    for (size_t i = 0; i < OFFSETS; i++)
        cr_assert_eq(seen->times[module][i], 1, "%zu: %zu", module, i);
}

enum { MEMORY = 64 << 20 };

static void expect_no_child(void)
{
    cr_assert(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "a child is left");
}

static void name_with(struct helper *helper, const struct symbolize_module *modules, size_t count,
                      struct seen *seen, struct symbolize_summary *summary)
{
    const struct symbolize_options options = {
        .helper = helper, .module_time = 1000, .memory = MEMORY};
    *seen = (struct seen){0};
    cr_assert(symbolize_with(&options, modules, count, note, seen, summary) == 0);
}

static void name(const struct symbolize_module *modules, size_t count, struct seen *seen,
                 struct symbolize_summary *summary)
{
    name_with(NULL, modules, count, seen, summary);
    expect_no_child();
}

struct behaviour {
    char path[24];
};

static struct behaviour bad[] = {
    {"crash"},  {"fault"},    {"hang"}, {"spin"},  {"leave"}, {"memory"}, {"close"},
    {"finish"}, {"nonsense"}, {"huge"}, {"index"}, {"twice"}, {"back"},
};

static struct criterion_test_params all_bad(void)
{
    struct behaviour *copy = cr_malloc(sizeof bad);
    memcpy(copy, bad, sizeof bad);
    return cr_make_param_array(struct behaviour, copy, sizeof bad / sizeof *bad, NULL);
}

ParameterizedTestParameters(child, does_not_take_others_down)
{
    return all_bad();
}

ParameterizedTest(struct behaviour *behaviour, child, does_not_take_others_down)
{
    const struct symbolize_module modules[] = {pretend("good"), pretend(behaviour->path),
                                               pretend("absent"), pretend("good")};
    struct symbolize_summary summary;
    struct seen seen;
    name(modules, 4, &seen, &summary);
    expect_answered(&seen, 0);
    expect_answered(&seen, 3);
    for (size_t i = 0; i < OFFSETS; i++)
        cr_assert(seen.times[1][i] <= 1);
    cr_assert_eq(summary.modules_read, 2);
    cr_assert_eq(summary.modules_absent, 1);
    cr_assert_eq(summary.modules_failed, 1);
    cr_assert_eq(summary.modules_reduced + summary.modules_skipped, 0);
}

ParameterizedTestParameters(child, is_asked_again_for_less)
{
    return all_bad();
}

/* Answers that were given stay, and are not given twice. */
ParameterizedTest(struct behaviour *behaviour, child, is_asked_again_for_less)
{
    char path[64];
    snprintf(path, sizeof path, "once late %s", behaviour->path);
    const struct symbolize_module modules[] = {pretend(path), pretend("good")};
    struct symbolize_summary summary;
    struct seen seen;
    name(modules, 2, &seen, &summary);
    expect_answered(&seen, 0);
    expect_answered(&seen, 1);
    cr_assert_eq(seen.reduced[0], 2);
    cr_assert_eq(seen.reduced[1], 0);
    cr_assert_eq(summary.modules_read, 1);
    cr_assert_eq(summary.modules_reduced, 1);
    cr_assert_eq(summary.addresses_named, 2 * OFFSETS);
}

Test(helper, answers_question_after_question)
{
    const struct symbolize_module modules[] = {
        {NULL, NULL, 0, NULL, 0, false}, pretend("good"), pretend("absent"), pretend("good")};
    struct helper helper;
    helper_start(&helper, MEMORY);
    cr_assert_eq(helper.state, HELPER_READY);
    for (int i = 0; i < 3; i++) {
        struct symbolize_summary summary;
        struct seen seen;
        name_with(&helper, modules, 4, &seen, &summary);
        expect_answered(&seen, 1);
        expect_answered(&seen, 3);
        cr_assert_eq(summary.modules_read, 2);
        cr_assert_eq(summary.modules_absent, 1);
        cr_assert_eq(helper.state, HELPER_READY);
        cr_assert_eq(waitpid(-1, NULL, WNOHANG), 0, "it has ended, or was not the only one");
    }
    helper_stop(&helper);
    expect_no_child();
}

static void count_answers(void *context, size_t module, uint64_t offset,
                          const struct symbolize_frame *frames, size_t count)
{
    (void)module, (void)offset, (void)frames;
    *(size_t *)context += count;
}

/* More than fits any socket. */
Test(helper, takes_large_questions)
{
    enum { MANY = 300000 };
    uint64_t *many = calloc(MANY, sizeof *many);
    const struct symbolize_module module = {"good", NULL, 0, many, MANY, false};
    struct helper helper;
    helper_start(&helper, MEMORY);
    size_t count = 0;
    cr_assert(symbolize_with(&(struct symbolize_options){.helper = &helper}, &module, 1,
                             count_answers, &count, NULL) == 0);
    cr_assert_eq(count, MANY);
    cr_assert_eq(helper.state, HELPER_READY);
    helper_stop(&helper);
    free(many);
}

ParameterizedTestParameters(helper, is_given_up_when_it_fails)
{
    return all_bad();
}

/* The rest is asked of others, as if there had been no helper. */
ParameterizedTest(struct behaviour *behaviour, helper, is_given_up_when_it_fails)
{
    const struct symbolize_module modules[] = {pretend("good"), pretend(behaviour->path),
                                               pretend("absent"), pretend("good")};
    struct helper helper;
    helper_start(&helper, MEMORY);
    for (int i = 0; i < 2; i++) {
        struct symbolize_summary summary;
        struct seen seen;
        name_with(&helper, modules, 4, &seen, &summary);
        expect_answered(&seen, 0);
        expect_answered(&seen, 3);
        cr_assert_eq(summary.modules_read, 2);
        cr_assert_eq(summary.modules_failed, 1);
        cr_assert_eq(helper.state, HELPER_NONE);
    }
    helper_stop(&helper);
    expect_no_child();
}

ParameterizedTestParameters(helper, may_fail_where_others_do_not)
{
    return all_bad();
}

/* Nobody is blamed for what it does; what it had told stays. */
ParameterizedTest(struct behaviour *behaviour, helper, may_fail_where_others_do_not)
{
    char path[64];
    snprintf(path, sizeof path, "helper late %s", behaviour->path);
    const struct symbolize_module modules[] = {pretend(path), pretend("good")};
    struct symbolize_summary summary;
    struct seen seen;
    struct helper helper;
    helper_start(&helper, MEMORY);
    name_with(&helper, modules, 2, &seen, &summary);
    expect_answered(&seen, 0);
    expect_answered(&seen, 1);
    cr_assert_eq(summary.modules_read, 2);
    cr_assert_eq(summary.modules_reduced, 0);
    cr_assert_eq(helper.state, HELPER_NONE);
    helper_stop(&helper);
    expect_no_child();
}

/* A child still has the time to fail, and another one to do with less: half of the total. If the
 * helper's time counted, nothing would be left, however long that is; but half a second may not be
 * enough on a busy machine. */
Test(helper, takes_no_time_from_others)
{
    const struct symbolize_module modules[] = {pretend("once hang"), pretend("good")};
    struct symbolize_summary summary;
    struct seen seen;
    unsigned time = 500;
    do {
        struct helper helper;
        const struct symbolize_options options = {
            .helper = &helper, .module_time = time, .total_time = 2 * time, .memory = MEMORY};
        seen = (struct seen){0};
        helper_start(&helper, MEMORY);
        cr_assert(symbolize_with(&options, modules, 2, note, &seen, &summary) == 0);
        helper_stop(&helper);
        time *= 2;
    } while (summary.modules_skipped != 0 && time <= 4000);
    expect_answered(&seen, 0);
    expect_answered(&seen, 1);
    cr_assert_eq(summary.modules_reduced, 1);
}

/* Its answer is to somebody who is gone. */
Test(helper, is_given_up_when_somebody_has_left_it)
{
    const struct symbolize_module modules[] = {pretend("absent"), pretend("good")};
    struct symbolize_summary summary;
    struct seen seen;
    struct helper helper;
    helper_start(&helper, MEMORY);
    cr_assert(helper_ask(&helper, modules, 1, INT64_MAX));
    name_with(&helper, modules + 1, 1, &seen, &summary);
    expect_answered(&seen, 0);
    cr_assert_eq(summary.modules_read, 1);
    cr_assert_eq(helper.state, HELPER_NONE);
    helper_stop(&helper);
    expect_no_child();
}

Test(helper, ends_with_those_who_could_ask_it)
{
    struct helper helper;
    helper_start(&helper, MEMORY);
    close(helper.fd);
    int status;
    cr_assert(waitpid(helper.pid, &status, 0) == helper.pid);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static double seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

Test(child, has_limited_time_for_all)
{
    const struct symbolize_module modules[] = {pretend("good"), pretend("hang"), pretend("good")};
    const struct symbolize_options options = {.total_time = 200};
    struct symbolize_summary summary;
    struct seen seen = {0};
    double begin = seconds();
    cr_assert(symbolize_with(&options, modules, 3, note, &seen, &summary) == 0);
    cr_assert(seconds() - begin < 2);
    expect_answered(&seen, 0);
    cr_assert_eq(summary.modules_read, 1);
    cr_assert_eq(summary.modules_skipped, 2);
    cr_assert(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

Test(child, has_the_time_of_a_module_for_each)
{
    const struct symbolize_module modules[] = {pretend("slow"), pretend("slow"), pretend("slow")};
    const struct symbolize_options options = {.module_time = 2000};
    struct symbolize_summary summary;
    struct seen seen = {0};
    cr_assert(symbolize_with(&options, modules, 3, note, &seen, &summary) == 0);
    cr_assert_eq(summary.modules_read, 3);
}

static volatile sig_atomic_t handled;

static void handle(int number)
{
    (void)number;
    handled++;
}

Test(child, has_little_around_it)
{
    const struct symbolize_module module = pretend("surroundings");
    struct symbolize_summary summary;
    struct seen seen;
    sigset_t blocked;
    sigset_t after;
    unsetenv("DEBUGINFOD_URLS");
    struct rlimit core;
    getrlimit(RLIMIT_CORE, &core);
    core.rlim_cur = core.rlim_max;
    setrlimit(RLIMIT_CORE, &core);
    signal(SIGUSR1, handle);
    signal(SIGINT, handle);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
    name(&module, 1, &seen, &summary);
    cr_assert_str_eq(seen.last, "files 4 core 0 size 0 blocked 0 handler 0 memory 0");
    cr_assert_eq(handled, 0);
    sigprocmask(SIG_SETMASK, NULL, &after);
    cr_assert(sigismember(&after, SIGUSR2) == 1 && sigismember(&after, SIGUSR1) == 0);
}

Test(child, works_with_standard_files_closed)
{
    const struct symbolize_module module = pretend("surroundings");
    struct symbolize_summary summary;
    struct seen seen;
    unsetenv("DEBUGINFOD_URLS");
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    name(&module, 1, &seen, &summary);
    cr_assert_str_eq(seen.last, "files 4 core 0 size 0 blocked 0 handler 0 memory 0");
}

Test(child, is_the_only_one_waited_for)
{
    pid_t other = fork();
    if (other == 0)
        _exit(7);
    const struct symbolize_module modules[] = {pretend("crash"), pretend("good")};
    const struct symbolize_options options = {.module_time = 1000};
    struct symbolize_summary summary;
    struct seen seen = {0};
    cr_assert(symbolize_with(&options, modules, 2, note, &seen, &summary) == 0);
    int status;
    cr_assert(waitpid(other, &status, 0) == other && WEXITSTATUS(status) == 7);
    cr_assert(waitpid(-1, NULL, 0) < 0 && errno == ECHILD);
}

Test(child, may_be_reaped_by_the_system)
{
    signal(SIGCHLD, SIG_IGN);
    const struct symbolize_module modules[] = {pretend("crash"), pretend("hang"), pretend("good")};
    struct symbolize_summary summary;
    struct seen seen;
    name(modules, 3, &seen, &summary);
    expect_answered(&seen, 2);
    cr_assert_eq(summary.modules_failed, 2);
}

Test(child, signals_while_waiting_do_no_harm)
{
    struct sigaction action = {.sa_handler = handle};
    sigaction(SIGALRM, &action, NULL);
    ualarm(1000, 1000);
    const struct symbolize_module modules[] = {pretend("good"), pretend("hang"), pretend("good")};
    struct symbolize_summary summary;
    struct seen seen;
    name(modules, 3, &seen, &summary);
    ualarm(0, 0);
    cr_assert(handled > 10);
    cr_assert_eq(summary.modules_read, 2);
    cr_assert_eq(summary.modules_failed, 1);
}
