/* SPDX-License-Identifier: MIT */
/* A helper process that is asked again and again, whatever it does. */
#include <stdlib.h>
#include <unistd.h>

#include "pretend.h"

TestSuite(helper, .timeout = 30);

Test(helper, answers_question_after_question)
{
    const struct symbolize_module modules[] = {
        {.path = NULL}, pretend("good"), pretend("absent"), pretend("good")};
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
    const struct symbolize_module module = {.path = "good", .offsets = many, .offset_count = MANY};
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
