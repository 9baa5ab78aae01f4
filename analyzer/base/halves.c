/* SPDX-License-Identifier: MIT */
#include "base/halves.h"

#include "base/task.h"

/* Things that are worth the start of a thread. */
#define WORTH_A_THREAD 65536

struct second_half {
    halves_function function;
    void *context;
    size_t count;
};

static enum ttd_status do_second(void *context)
{
    const struct second_half *half = context;
    return half->function(half->context, halves_middle(half->count), half->count);
}

enum ttd_status halves_do(halves_function function, void *first, void *second, size_t count)
{
    struct second_half half = {function, second, count};
    struct task task = {.is_running = false};
    bool are_two = count >= WORTH_A_THREAD && task_has_processor();
    if (are_two)
        task_start(&task, do_second, &half);
    enum ttd_status first_status = function(first, 0, halves_middle(count));
    enum ttd_status second_status = are_two ? task_wait(&task) : do_second(&half);
    return first_status == TTD_OK ? second_status : first_status;
}
