/* SPDX-License-Identifier: MIT */
#include "snapshot/process_reader.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "quiet_thread.h"

#define WATCH_NS UINT64_C(20000000)

/* Is set in `reads` once the reader is left behind. */
#define LEFT (UINT64_C(1) << 63)

struct reader {
    void (*run)(void *context);
    void *context;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    void (*asked)(void *context); /* NULL if the reader asks for nothing */
    void *asked_context;
    bool is_done;
    _Atomic uint64_t reads; /* begins and ends of reads: odd during a read */
};

static _Thread_local struct reader *this_reader;

static uint64_t reader_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void reader_enter(void)
{
    if (this_reader)
        atomic_fetch_add(&this_reader->reads, 1);
}

void reader_leave(void)
{
    if (this_reader && (atomic_fetch_add(&this_reader->reads, 1) & LEFT) != 0)
        for (;;)
            pause();
}

void reader_ask(void (*function)(void *context), void *context)
{
    struct reader *reader = this_reader;
    if (!reader) {
        function(context);
        return;
    }
    pthread_mutex_lock(&reader->mutex);
    reader->asked = function;
    reader->asked_context = context;
    pthread_cond_broadcast(&reader->changed);
    while (reader->asked)
        pthread_cond_wait(&reader->changed, &reader->mutex);
    pthread_mutex_unlock(&reader->mutex);
}

static void *reader_main(void *argument)
{
    struct reader *reader = this_reader = argument;
    reader->run(reader->context);
    pthread_mutex_lock(&reader->mutex);
    reader->is_done = true;
    pthread_cond_broadcast(&reader->changed);
    pthread_mutex_unlock(&reader->mutex);
    return NULL;
}

/* Waits until the reader is done or asks for something, for a moment at most. Returns whether it
 * is done. */
static bool reader_await(struct reader *reader)
{
    uint64_t end = reader_now() + WATCH_NS;
    struct timespec until = {(time_t)(end / 1000000000u), (long)(end % 1000000000u)};
    int failure = 0;
    pthread_mutex_lock(&reader->mutex);
    while (!reader->is_done && !reader->asked && failure == 0)
        failure = pthread_cond_timedwait(&reader->changed, &reader->mutex, &until);
    while (reader->asked) {
        pthread_mutex_unlock(&reader->mutex);
        reader->asked(reader->asked_context);
        pthread_mutex_lock(&reader->mutex);
        reader->asked = NULL;
        pthread_cond_broadcast(&reader->changed);
    }
    bool is_done = reader->is_done;
    pthread_mutex_unlock(&reader->mutex);
    return is_done;
}

/* Waits for the reader. Returns false if it was left behind. */
static bool reader_watch(struct reader *reader, void (*watch)(void *context, uint64_t stalled))
{
    uint64_t last = 0, since = 0;
    while (!reader_await(reader)) {
        uint64_t now = reader_now(), reads = atomic_load(&reader->reads);
        if (reads != last || reads % 2 == 0)
            since = now;
        last = reads;
        if (watch)
            watch(reader->context, now - since);
        if (now - since > READER_LEAVE_NS &&
            atomic_compare_exchange_strong(&reader->reads, &reads, reads | LEFT))
            return false;
    }
    return true;
}

static struct reader *reader_new(void (*run)(void *context), void *context)
{
    pthread_condattr_t attributes;
    struct reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return NULL;
    reader->run = run;
    reader->context = context;
    pthread_mutex_init(&reader->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&reader->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return reader;
}

bool reader_run(void (*run)(void *context), void (*watch)(void *context, uint64_t stalled),
                void *context)
{
    pthread_t thread;
    struct reader *reader = reader_new(run, context);
    if (!reader || !quiet_thread_start(&thread, reader_main, reader)) {
        free(reader);
        run(context);
        return true;
    }
    bool has_ended = reader_watch(reader, watch);
    if (has_ended) {
        pthread_join(thread, NULL);
        free(reader);
    } else {
        pthread_detach(thread);
    }
    return has_ended;
}
