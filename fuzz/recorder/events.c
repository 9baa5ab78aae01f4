/* SPDX-License-Identifier: MIT */
/*
 * Whatever a program puts into the records of its events: a record is refused, or the trace has the
 * event with its data, byte by byte; the trace stays intact. An input is records, each after two
 * bytes: the kind of its client, and the number of its words of data.
 */
#include <stdlib.h>
#include <string.h>

#include "channel_record.h"
#include "../target.h"
#include "collect/process/thread_stream.h"
#include "collect/process/processes.h"
#include "lone_process.h"

enum { EVENTS_MAX = 64, WORDS_MAX = 255 };

struct sent {
    unsigned char client[16];
    size_t size;
    unsigned char *data;
};

static struct lone_process lone;
static struct sent sent[EVENTS_MAX];
static size_t sent_count;

/* Takes bytes of the input, zeros beyond its end. */
static void take(const uint8_t **data, size_t *size, void *bytes, size_t count)
{
    size_t taken = count < *size ? count : *size;
    memset(bytes, 0, count);
    memcpy(bytes, *data, taken);
    *data += taken;
    *size -= taken;
}

static void set_client(uint64_t client[2], unsigned kind)
{
    static const char *const known[] = {TTD_CLIENT_THREADS, TTD_CLIENT_CLIENTS, TTD_CLIENT_MARKS};
    if (kind % 4 != 3)
        memcpy(client, known[kind % 4], 16);
}

/* Gives a record to the collector, in memory of exactly its size. */
static void write_record(const uint64_t *operands, unsigned words)
{
    size_t bytes = (EVENT_OPERANDS + words) * sizeof *operands;
    uint64_t *record = (uint64_t *)(void *)target_copy((const uint8_t *)operands, bytes);
    uint64_t size = operands[EVENT_SIZE], flags = operands[EVENT_FLAGS];
    struct ttd_position position = lone_process_position(&lone);
    user_events_reach(lone.process, position.sequence);
    bool is_written = user_events_write(lone.process, &lone.thread, position, record, words);
    bool is_event = (flags & (EVENT_OF_HEAP | EVENT_OF_DUMP)) == 0;
    target_require(!is_written || size <= words * sizeof *operands, "data lie in the record");
    if (is_written && is_event) {
        struct sent *event = &sent[sent_count++];
        memcpy(event->client, operands, sizeof event->client);
        event->size = (size_t)size;
        event->data = target_copy((const uint8_t *)(record + EVENT_OPERANDS), (size_t)size);
    }
    free(record);
}

static void check(const struct lone_events *events)
{
    target_require(events->count == sent_count, "the trace has what was taken");
    for (size_t i = 0; i < sent_count; i++) {
        const struct ttd_user_event *event = &events->items[i];
        target_require(memcmp(event->client, sent[i].client, sizeof event->client) == 0 &&
                           event->size == sent[i].size &&
                           memcmp(event->data, sent[i].data, event->size) == 0,
                       "an event is what was sent");
        free(sent[i].data);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lone_events events;
    lone_process_open(&lone);
    sent_count = 0;
    for (int i = 0; i < EVENTS_MAX && size >= 2; i++) {
        uint64_t operands[EVENT_OPERANDS + WORDS_MAX];
        unsigned kind = data[0], words = data[1];
        data += 2;
        size -= 2;
        take(&data, &size, operands, EVENT_OPERANDS * sizeof *operands);
        take(&data, &size, operands + EVENT_OPERANDS, words * sizeof *operands);
        set_client(operands, kind);
        if (kind & 8) /* programs send these */
            operands[EVENT_SIZE] = words * sizeof *operands - operands[EVENT_SIZE] % 8;
        if (kind & 16)
            operands[EVENT_FLAGS] %= 16;
        write_record(operands, words);
    }
    dump_queue_refuse(&lone.process->dumps);
    lone_process_close(&lone, &events);
    check(&events);
    lone_events_free(&events);
    return 0;
}
