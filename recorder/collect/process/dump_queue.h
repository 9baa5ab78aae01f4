/* SPDX-License-Identifier: MIT */
/* The dumps that threads of a process have asked for by ttdtrace/live_dump.h, in their order. */
#ifndef RECORDER_COLLECT_PROCESS_DUMP_QUEUE_H
#define RECORDER_COLLECT_PROCESS_DUMP_QUEUE_H

#include "collect/process/thread_stream.h"

/* Limit on waiting dumps. More are refused, so that a program which asks without pause cannot
 * exhaust the collector's memory. */
enum { DUMPS_MAX = 1024 };

struct dump {
    uint32_t kind; /* enum dump_kind */
    uint32_t serial;
    uint64_t begin, end;
    uint32_t tid;
    ttd_id thread;              /* in the trace */
    struct thread_slot *waiter; /* NULL if the thread does not wait */
};

struct dump_queue {
    struct dump *items;
    size_t count, capacity;
    unsigned refused;
};

/* Adds the dump that an EVENT_OF_DUMP asks for, or refuses it. Returns false if the record is
 * invalid. */
bool dump_queue_add(struct dump_queue *queue, struct thread_stream *thread,
                    const uint64_t client[2], const uint64_t *fields, size_t size);

/* Answers the thread that waits for a dump; does nothing if none waits. */
void dump_answer(const struct dump *dump, bool is_taken);

/* Removes the oldest dump from the queue. Returns false if there is none. */
bool dump_queue_take(struct dump_queue *queue, struct dump *dump);

/* Refuses all dumps, after the memory of the process image is gone. */
void dump_queue_refuse(struct dump_queue *queue);

void dump_queue_free(struct dump_queue *queue);

#endif
