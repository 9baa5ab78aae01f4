/* SPDX-License-Identifier: MIT */
/* A reader that is left behind in a read, and what it asks the thread for that waits. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "snapshot/process_reader.h"

/* A read that ends when something is written; and what was seen. */
struct reading {
    int pipe[2];
    uint64_t answer_after; /* the stall after which the watch answers; 0 for never */
    atomic_int looks, goes_on;
    pthread_t asked_thread;
};

static void read_pipe(void *context)
{
    struct reading *reading = context;
    char byte;
    reader_enter();
    (void)!read(reading->pipe[0], &byte, 1);
    reader_leave();
    atomic_store(&reading->goes_on, 1);
}

static void watch_pipe(void *context, uint64_t stalled)
{
    struct reading *reading = context;
    atomic_fetch_add(&reading->looks, 1);
    if (reading->answer_after != 0 && stalled > reading->answer_after) {
        reading->answer_after = 0;
        (void)!write(reading->pipe[1], "", 1);
    }
}

static struct reading begin(void)
{
    struct reading reading = {.answer_after = 0};
    cr_assert(pipe(reading.pipe) == 0);
    return reading;
}

/* The watch lets the process go on, which ends the read. */
Test(reader, a_read_that_ends_late)
{
    struct reading reading = begin();
    reading.answer_after = READER_STALL_NS;
    cr_assert(reader_run(read_pipe, watch_pipe, &reading));
    cr_assert(reading.goes_on == 1);
    cr_assert(reading.looks > 1);
}

/* An abandoned reader does nothing more, even if its read ends then. */
Test(reader, a_read_that_does_not_end)
{
    static struct reading reading;
    reading = begin();
    cr_assert_not(reader_run(read_pipe, watch_pipe, &reading));
    cr_assert(write(reading.pipe[1], "", 1) == 1);
    for (char byte = 1; byte != 0;) { /* until it was read */
        int available = 0;
        struct timespec moment = {.tv_nsec = 1000000};
        cr_assert(ioctl(reading.pipe[0], FIONREAD, &available) == 0);
        byte = available != 0;
        nanosleep(&moment, NULL);
    }
    usleep(100000);
    cr_assert(reading.goes_on == 0);
}

static void note_thread(void *context)
{
    ((struct reading *)context)->asked_thread = pthread_self();
}

static void ask(void *context)
{
    struct reading *reading = context;
    reader_ask(note_thread, reading);
    reading->goes_on = pthread_equal(reading->asked_thread, pthread_self()) != 0;
}

Test(reader, asks_the_thread_that_waits)
{
    struct reading reading = begin();
    cr_assert(reader_run(ask, NULL, &reading));
    cr_assert(pthread_equal(reading.asked_thread, pthread_self()));
    cr_assert(reading.goes_on == 0);
}

/* Outside of a reader, all is as if there were none. */
Test(reader, no_reader)
{
    struct reading reading = begin();
    cr_assert(write(reading.pipe[1], "", 1) == 1);
    read_pipe(&reading);
    cr_assert(reading.goes_on == 1);
    ask(&reading);
    cr_assert(reading.goes_on == 1);
}
