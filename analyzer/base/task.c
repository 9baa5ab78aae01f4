/* SPDX-License-Identifier: MIT */
#include "base/task.h"

#include <sched.h>

static void *task_run(void *argument)
{
    struct task *task = argument;
    task->status = task->run(task->context);
    return NULL;
}

unsigned task_processors(void)
{
#ifdef THREAD_NONE
    return 1;
#else
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
#endif
}

bool task_has_processor(void)
{
    return task_processors() > 1;
}

void task_start(struct task *task, task_function function, void *context)
{
    task->run = function;
    task->context = context;
    task->is_running = pthread_create(&task->thread, NULL, task_run, task) == 0;
    if (!task->is_running)
        task_run(task);
}

enum ttd_status task_wait(struct task *task)
{
    if (task->is_running)
        pthread_join(task->thread, NULL);
    task->is_running = false;
    enum ttd_status status = task->status;
    task->status = TTD_OK;
    return status;
}

/* Things that are worth the start of a thread. */
#define WORTH_A_THREAD 65536

struct second_half {
    halves_function function;
    void *context;
    size_t count;
};

static enum ttd_status task_do_second(void *context)
{
    const struct second_half *half = context;
    return half->function(half->context, task_halves_middle(half->count), half->count);
}

enum ttd_status halves_do(halves_function function, void *first, void *second, size_t count)
{
    struct second_half half = {function, second, count};
    struct task task = {.is_running = false};
    bool are_two = count >= WORTH_A_THREAD && task_has_processor();
    if (are_two)
        task_start(&task, task_do_second, &half);
    enum ttd_status first_status = function(first, 0, task_halves_middle(count));
    enum ttd_status second_status = are_two ? task_wait(&task) : task_do_second(&half);
    return first_status == TTD_OK ? second_status : first_status;
}

void ring_init(struct ring *ring, uint64_t size)
{
    *ring = (struct ring){.size = size};
    pthread_mutex_init(&ring->mutex, NULL);
    pthread_cond_init(&ring->filled, NULL);
    pthread_cond_init(&ring->emptied, NULL);
}

void ring_destroy(struct ring *ring)
{
    pthread_mutex_destroy(&ring->mutex);
    pthread_cond_destroy(&ring->filled);
    pthread_cond_destroy(&ring->emptied);
}

/* Slots that must be filled, or empty, before a waiting side is woken: it then finds several slots
 * of work. */
static uint64_t task_enough(const struct ring *ring)
{
    return ring->size / 2;
}

/* Wakes the other side if it waits. No wake-up is lost: a side announces that it waits before it
 * looks at the counts. */
static void task_wake(struct ring *ring, const _Atomic bool *waits, pthread_cond_t *condition)
{
    if (!atomic_load(waits))
        return;
    pthread_mutex_lock(&ring->mutex);
    pthread_cond_signal(condition);
    pthread_mutex_unlock(&ring->mutex);
}

static void task_ring_end(struct ring *ring, _Atomic bool *ended, pthread_cond_t *condition)
{
    pthread_mutex_lock(&ring->mutex);
    atomic_store(ended, true);
    pthread_cond_signal(condition);
    pthread_mutex_unlock(&ring->mutex);
}

/* ---- The filler ---- */

bool ring_fill(struct ring *ring, uint64_t tolerated)
{
    atomic_fetch_add(&ring->head, 1);
    uint64_t count = ring_count(ring);
    if (count > tolerated || count >= task_enough(ring))
        task_wake(ring, &ring->taker_waits, &ring->filled);
    if (count > tolerated) {
        pthread_mutex_lock(&ring->mutex);
        atomic_store(&ring->filler_waits, true);
        while (!atomic_load(&ring->taker_ended) && ring_count(ring) > tolerated)
            pthread_cond_wait(&ring->emptied, &ring->mutex);
        atomic_store(&ring->filler_waits, false);
        pthread_mutex_unlock(&ring->mutex);
    }
    return !atomic_load(&ring->taker_ended);
}

void ring_end_filling(struct ring *ring)
{
    task_ring_end(ring, &ring->filler_ended, &ring->filled);
}

/* ---- The taker ---- */

bool ring_wait_filled(struct ring *ring)
{
    if (ring_count(ring))
        return true;
    pthread_mutex_lock(&ring->mutex);
    atomic_store(&ring->taker_waits, true);
    while (!atomic_load(&ring->filler_ended) && !ring_count(ring))
        pthread_cond_wait(&ring->filled, &ring->mutex);
    atomic_store(&ring->taker_waits, false);
    pthread_mutex_unlock(&ring->mutex);
    return ring_count(ring) != 0;
}

void ring_empty(struct ring *ring)
{
    atomic_fetch_add(&ring->tail, 1);
    if (ring_count(ring) <= ring->size - task_enough(ring))
        task_wake(ring, &ring->filler_waits, &ring->emptied);
}

void ring_end_taking(struct ring *ring)
{
    task_ring_end(ring, &ring->taker_ended, &ring->emptied);
}
