/* SPDX-License-Identifier: MIT */
/* Modules that are pretended: what happens when their names are looked up is told by false_names.c,
 * from their paths. */
#ifndef TESTS_SYMBOLIZE_PRETEND_H
#define TESTS_SYMBOLIZE_PRETEND_H

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "symbolize/process/worker.h"
#include "symbolize/symbolize.h"

enum { OFFSETS = 3 };

static const uint64_t offsets[OFFSETS] = {10, 20, 30};

static inline struct symbolize_module pretend(const char *path)
{
    return (struct symbolize_module){.path = path, .offsets = offsets, .offset_count = OFFSETS};
}

/* How often each offset of each of up to four modules was answered, and the last answer. */
struct seen {
    unsigned times[4][OFFSETS];
    unsigned reduced[4];
    char last[256];
};

static inline void note(void *context, size_t module, uint64_t offset,
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

static inline void expect_answered(const struct seen *seen, size_t module)
{
    for (size_t i = 0; i < OFFSETS; i++)
        cr_assert_eq(seen->times[module][i], 1, "%zu: %zu", module, i);
}

enum { MEMORY = 64 << 20 };

static inline void expect_no_child(void)
{
    cr_assert(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "a child is left");
}

static inline void name_with(struct helper *helper, const struct symbolize_module *modules,
                             size_t count, struct seen *seen, struct symbolize_summary *summary)
{
    const struct symbolize_options options = {
        .helper = helper, .module_time = 1000, .memory = MEMORY};
    *seen = (struct seen){0};
    cr_assert(symbolize_with(&options, modules, count, note, seen, summary) == 0);
}

struct behaviour {
    char path[24];
};

static const struct behaviour bad[] = {
    {"crash"},  {"fault"},    {"hang"}, {"spin"},  {"leave"}, {"memory"}, {"close"},
    {"finish"}, {"nonsense"}, {"huge"}, {"index"}, {"twice"}, {"back"},
};

static inline struct criterion_test_params all_bad(void)
{
    struct behaviour *copy = cr_malloc(sizeof bad);
    memcpy(copy, bad, sizeof bad);
    return cr_make_param_array(struct behaviour, copy, sizeof bad / sizeof *bad, NULL);
}

#endif
