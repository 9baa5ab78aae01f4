/* SPDX-License-Identifier: MIT */
/*
 * Writes a synthetic trace: generate EVENTS LIVE-BLOCKS FILE. It has four threads and some
 * thousands of call stacks. Most blocks are short-lived; LIVE-BLOCKS are long-lived and replaced at
 * random; some grow by realloc. Addresses are reused last in, first out, by size class, as
 * allocators do.
 */
#include <stdio.h>
#include <stdlib.h>

#include <ttdtrace/ttdtrace.h>

#define PROGRAM "generate"
#include "generator.h"

#define THREADS     4
#define STACKS      4000
#define SHORT_LIVED 24
#define CLASSES     40
#define FIRST       UINT64_C(0x7f1200000000)

struct block {
    uint64_t address;
    uint64_t size;
};

struct free_list {
    uint64_t *addresses;
    size_t count;
    size_t capacity;
};

struct generator {
    struct ttd_writer *writer;
    uint64_t random;
    uint64_t events;
    uint64_t heap_end;
    struct free_list free[CLASSES];
    struct block *live;
    size_t live_count;
    size_t live_max;
    struct block recent[THREADS][SHORT_LIVED];
    uint64_t steps[THREADS];
    uint64_t sequence;
    unsigned thread;
    ttd_id heap;
};

/* Draws a size: mostly small, rarely large. */
static uint64_t draw_size(struct generator *generator)
{
    uint64_t size = 16 + 8 * draw(&generator->random, 14);
    return draw(&generator->random, 50) ? size : size << draw(&generator->random, 8);
}

static unsigned class_of(uint64_t size)
{
    uint64_t units = (size + 15) / 16;
    if (units <= 16)
        return (unsigned)units;
    unsigned bits = 0;
    while (units >> bits > 1)
        bits++;
    return 16 + bits;
}

static uint64_t take_address(struct generator *generator, uint64_t size)
{
    unsigned class = class_of(size);
    struct free_list *list = &generator->free[class];
    if (list->count)
        return list->addresses[--list->count];
    uint64_t address = generator->heap_end;
    generator->heap_end +=
        16 + (class <= 16 ? class * UINT64_C(16) : UINT64_C(32) << (class - 16) << 4);
    return address;
}

static void give_address(struct generator *generator, const struct block *old)
{
    struct free_list *list = &generator->free[class_of(old->size)];
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 1024;
        list->addresses = realloc(list->addresses, list->capacity * sizeof *list->addresses);
        require(list->addresses != NULL, "out of memory");
    }
    list->addresses[list->count++] = old->address;
}

/* Begins a call, sometimes in another thread and then in a new fragment. */
static struct ttd_event begin(struct generator *generator, enum ttd_action action, enum ttd_api api)
{
    if (draw(&generator->random, 24) == 0) {
        generator->thread = (unsigned)draw(&generator->random, THREADS);
        generator->sequence++;
        generator->steps[generator->thread] = 0;
    }
    uint64_t *steps = &generator->steps[generator->thread];
    struct ttd_event event = {.time_start = {generator->sequence, *steps + 1},
                              .time_end = {generator->sequence, *steps + 2},
                              .wall_time = generator->events / 1024 * 100000,
                              .result = 1,
                              .thread = generator->thread + 1,
                              .heap = generator->heap,
                              .action = (uint8_t)action,
                              .api = (uint8_t)api};
    *steps += 2;
    return event;
}

static void put(struct generator *generator, const struct ttd_event *event)
{
    require(ttd_writer_event(generator->writer, event) == TTD_OK, "cannot write");
    generator->events++;
}

static struct block allocate(struct generator *generator, uint64_t size, ttd_id stack)
{
    struct block block = {take_address(generator, size), size};
    struct ttd_event event = begin(generator, TTD_ACTION_ALLOC, TTD_API_MALLOC);
    event.address = block.address;
    event.size = size;
    event.stack = stack;
    put(generator, &event);
    return block;
}

static void release(struct generator *generator, const struct block *old, ttd_id stack)
{
    struct ttd_event event = begin(generator, TTD_ACTION_FREE, TTD_API_FREE);
    event.base_address = old->address;
    event.stack = stack;
    put(generator, &event);
    give_address(generator, old);
}

static struct block grow(struct generator *generator, const struct block *old, ttd_id stack)
{
    struct block block = {old->address, old->size * 2};
    if (class_of(block.size) != class_of(old->size)) {
        give_address(generator, old);
        block.address = take_address(generator, block.size);
    }
    struct ttd_event event = begin(generator, TTD_ACTION_REALLOC, TTD_API_REALLOC);
    event.address = block.address;
    event.base_address = old->address;
    event.previous_address = old->address;
    event.size = block.size;
    event.stack = stack;
    put(generator, &event);
    return block;
}

/* Draws a stack. Stacks come in runs, a few at a time, as from loops. */
static ttd_id draw_stack(struct generator *generator)
{
    uint64_t phase = generator->events / 50000;
    uint64_t local = draw(&generator->random, 8) ? draw(&generator->random, 12)
                                                 : draw(&generator->random, STACKS);
    return (ttd_id)(1 + STACKS + (phase * 97 + local * 31) % STACKS);
}

static void live_long(struct generator *generator)
{
    ttd_id stack = draw_stack(generator);
    if (generator->live_count < generator->live_max) {
        generator->live[generator->live_count++] = allocate(generator, draw_size(generator), stack);
        return;
    }
    struct block *old = &generator->live[draw(&generator->random, generator->live_count)];
    if (old->size < 4096 && draw(&generator->random, 16) == 0) {
        *old = grow(generator, old, stack);
        return;
    }
    release(generator, old, stack + STACKS / 2 > 2 * STACKS ? stack : stack + STACKS / 2);
    *old = allocate(generator, draw_size(generator), stack);
}

static void live_shortly(struct generator *generator)
{
    struct block *old =
        &generator->recent[generator->thread][draw(&generator->random, SHORT_LIVED)];
    ttd_id stack = draw_stack(generator);
    if (old->address)
        release(generator, old, stack);
    *old = allocate(generator, draw_size(generator), stack);
}

/* Defines threads, heap and stacks. Events use the second half of the stacks, each of which has a
 * caller in the first half. */
static void define(struct generator *generator)
{
    ttd_id id;
    struct ttd_heap heap = {.handle = 0};
    for (uint64_t i = 0; i < THREADS; i++) {
        struct ttd_thread thread = {.action = TTD_THREAD_BEGIN, .os_id = 1000 + i};
        require(ttd_writer_thread(generator->writer, &thread, &id) == TTD_OK, "cannot write");
    }
    require(ttd_writer_heap(generator->writer, &heap, &generator->heap) == TTD_OK, "cannot write");
    for (uint64_t i = 0; i < 2 * STACKS; i++) {
        ttd_id parent = i < STACKS ? (ttd_id)(i / 3) : (ttd_id)(i - STACKS + 1);
        uint64_t offset = 0x401000 + i * 37;
        require(ttd_writer_stack(generator->writer, parent, TTD_NONE, offset, &id) == TTD_OK,
                "cannot write");
    }
}

int main(int count, char **arguments)
{
    require(count == 4, "usage: generate EVENTS LIVE-BLOCKS FILE");
    uint64_t event_count = strtoull(arguments[1], NULL, 10);
    struct generator generator = {.random = 88172645463325252, .heap_end = FIRST, .sequence = 1};
    generator.live_max = strtoull(arguments[2], NULL, 10);
    generator.live = malloc((generator.live_max + 1) * sizeof *generator.live);
    struct ttd_output output;
    struct ttd_trace trace = {.trace_id = 1, .time_unit = 1, .pointer_size = 8};
    require(generator.live && ttd_output_file(arguments[3], NULL, &output, NULL) == TTD_OK &&
                ttd_writer_open(&output, &trace, NULL, NULL, &generator.writer, NULL) == TTD_OK,
            "cannot write");
    define(&generator);
    while (generator.events < event_count) {
        bool fills = generator.live_count < generator.live_max && draw(&generator.random, 2);
        if (fills || draw(&generator.random, 7) == 0)
            live_long(&generator);
        else
            live_shortly(&generator);
    }
    struct ttd_end end = {.reason = TTD_END_REASON_EXITED};
    require(ttd_writer_close(generator.writer, &end, NULL) == TTD_OK, "cannot write");
    free(generator.live);
    for (size_t i = 0; i < CLASSES; i++)
        free(generator.free[i].addresses);
    return 0;
}
