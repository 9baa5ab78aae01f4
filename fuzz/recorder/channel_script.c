/* SPDX-License-Identifier: MIT */
#include "channel_script.h"

#include <stdint.h>

/* Numbers of slots, chunks and processes that the script writes to. */
enum { SLOTS = 4, CHUNKS = 6, PIDS = CHANNEL_SCRIPT_CHILDREN + 3 };

enum { STEP_ROUND, STEP_PROCESS, STEP_THREAD, STEP_CHUNK, STEP_RECORD, STEP_WORD, STEP_END, STEPS };

static uint64_t take_byte(struct channel_script *script)
{
    return script->at < script->end ? *script->at++ : 0;
}

/* Reads a number: one byte or, if its first byte is large, up to eight more. */
static uint64_t take_number(struct channel_script *script)
{
    uint64_t first = take_byte(script), number = 0;
    if (first < 0xF0)
        return first;
    if (first == 0xFF)
        return UINT64_MAX - take_byte(script);
    for (uint64_t i = 0; i <= (first & 7); i++)
        number = number << 8 | take_byte(script);
    return number;
}

static struct channel_view *view_of(const struct channel_script *script)
{
    return &script->collector->host.view;
}

/* Maps a number to a chunk; every other one is large. */
static uint32_t chunk_index(uint64_t number)
{
    uint32_t entry = (uint32_t)(number % CHUNKS);
    return entry == 0 ? CHANNEL_NONE : entry % 2 ? entry : CHANNEL_SMALL_CHUNKS + entry;
}

/* Maps a number to a process: a running child, the launched process, an older process, or none. */
static uint32_t choose_pid(const struct channel_script *script, uint64_t number)
{
    number %= PIDS;
    if (number < CHANNEL_SCRIPT_CHILDREN)
        return (uint32_t)script->children[number];
    return number == CHANNEL_SCRIPT_CHILDREN       ? (uint32_t)script->collector->launched
           : number == CHANNEL_SCRIPT_CHILDREN + 1 ? 1
                                                   : 0x3FFFFF;
}

static void write_process(struct channel_script *script)
{
    uint64_t number = take_byte(script) % (2 * SLOTS);
    uint32_t index = 1 + (uint32_t)(number % SLOTS);
    struct process_slot *slot =
        channel_process(view_of(script), number < SLOTS ? index : channel_copy(index));
    slot->pid = choose_pid(script, take_byte(script));
    slot->parent_pid = choose_pid(script, take_byte(script));
    slot->parent = (uint32_t)take_number(script);
    slot->flags = (uint32_t)take_byte(script);
    slot->notes = (uint32_t)take_byte(script);
    slot->sequence = take_number(script);
    slot->clock = take_number(script);
    slot->parent_sequence = take_number(script);
    slot->parent_steps = take_number(script);
    slot->log = chunk_index(take_byte(script));
    slot->lost = take_number(script);
    slot->command_size = (uint32_t)take_number(script);
    slot->directory_size = (uint32_t)take_number(script);
    for (unsigned i = 0; i < 16; i++)
        slot->command[i] = (char)take_byte(script);
    slot->state = (uint32_t)take_number(script);
    script->collector->host.channel->free_processes.used = (uint32_t)(take_byte(script) + 1);
}

static void write_thread(struct channel_script *script)
{
    struct thread_slot *slot =
        channel_thread(view_of(script), 1 + (uint32_t)(take_byte(script) % SLOTS));
    slot->tid = (uint32_t)take_number(script);
    slot->within = (uint32_t)take_byte(script);
    slot->first = chunk_index(take_byte(script));
    slot->sequence = take_number(script);
    slot->pending = take_number(script);
    slot->in_release = (uint32_t)take_byte(script);
    slot->lost[take_byte(script) % LOSS_COUNTERS] = take_number(script);
    slot->state = (uint32_t)(take_byte(script) % 8 | take_byte(script) << SLOT_PROCESS);
    script->collector->host.channel->free_threads.used = (uint32_t)(take_byte(script) + 1);
}

static void write_chunk(struct channel_script *script)
{
    uint32_t index = chunk_index(take_byte(script));
    if (index == CHANNEL_NONE)
        return;
    struct chunk *chunk = channel_chunk(view_of(script), index);
    chunk->committed = (uint32_t)take_number(script);
    chunk->next = chunk_index(take_byte(script));
    chunk->counts = (uint32_t)take_byte(script);
}

/* Appends a record, mostly a consistent one. */
static void write_record(struct channel_script *script)
{
    uint32_t index = chunk_index(take_byte(script));
    if (index == CHANNEL_NONE)
        return;
    struct chunk *chunk = channel_chunk(view_of(script), index);
    unsigned operation = (unsigned)take_byte(script), flags = (unsigned)take_byte(script);
    unsigned kept = (unsigned)take_byte(script), added = (unsigned)take_byte(script) % 16;
    const struct call_shape *shape = &call_shapes[operation];
    uint32_t at = chunk->committed / 8 % (channel_chunk_words(index) - 64);
    unsigned words = 1 + (flags & RECORD_SEQUENCE ? 1 : 0) + (flags & RECORD_CLOCK ? 1 : 0) +
                     (shape->kind == CALL_UNKNOWN ? 9 : shape->operands) + added;
    chunk->data[at] = record_head(operation, flags & 3, kept, added, words + (flags >> 6));
    for (unsigned i = 1; i < words; i++)
        chunk->data[at + i] = take_number(script);
    chunk->committed = 8 * (at + words);
}

/* Writes a word anywhere in the header or in a chunk. */
static void write_word(struct channel_script *script)
{
    uint64_t where = take_byte(script), at = take_number(script), value = take_number(script);
    uint32_t index = chunk_index(where);
    if (index != CHANNEL_NONE) {
        channel_chunk(view_of(script), index)->data[at % channel_chunk_words(index)] = value;
        return;
    }
    uint32_t *header = (uint32_t *)script->collector->host.channel;
    size_t words = sizeof *script->collector->host.channel / sizeof *header;
    header[at % words] = (uint32_t)value;
}

void channel_script_write_round(struct channel_script *script)
{
    while (script->at < script->end && !script->collector->launched_has_ended) {
        switch (take_byte(script) % STEPS) {
        case STEP_PROCESS:
            write_process(script);
            break;
        case STEP_THREAD:
            write_thread(script);
            break;
        case STEP_CHUNK:
            write_chunk(script);
            break;
        case STEP_RECORD:
            write_record(script);
            break;
        case STEP_WORD:
            write_word(script);
            break;
        case STEP_END:
            script->collector->launched_has_ended = take_byte(script) % 4 == 0;
            break;
        default:
            return;
        }
    }
}
