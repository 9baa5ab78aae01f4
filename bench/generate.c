/* SPDX-License-Identifier: MIT */
/*
 * Writes the trace of a program that never was: generate EVENTS LIVE-BLOCKS FILE. Four threads,
 * some thousands of call stacks; most blocks live shortly, LIVE-BLOCKS live long and are replaced
 * at random; some grow by realloc. Addresses are used again last in, first out, by size class.
 */
#include <stdio.h>
#include <stdlib.h>

#include <ttdtrace/ttdtrace.h>

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

static void require(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "generate: %s\n", what);
    exit(1);
}

static uint64_t draw(struct generator *g, uint64_t count)
{
    g->random ^= g->random << 13;
    g->random ^= g->random >> 7;
    g->random ^= g->random << 17;
    return g->random % count;
}

/* Mostly small, seldom large. */
static uint64_t draw_size(struct generator *g)
{
    uint64_t size = 16 + 8 * draw(g, 14);
    return draw(g, 50) ? size : size << draw(g, 8);
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

static uint64_t take_address(struct generator *g, uint64_t size)
{
    unsigned class = class_of(size);
    struct free_list *list = &g->free[class];
    if (list->count)
        return list->addresses[--list->count];
    uint64_t address = g->heap_end;
    g->heap_end += 16 + (class <= 16 ? class * UINT64_C(16) : UINT64_C(32) << (class - 16) << 4);
    return address;
}

static void give_address(struct generator *g, const struct block *old)
{
    struct free_list *list = &g->free[class_of(old->size)];
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 1024;
        list->addresses = realloc(list->addresses, list->capacity * sizeof *list->addresses);
        require(list->addresses != NULL, "out of memory");
    }
    list->addresses[list->count++] = old->address;
}

/* A call begins: sometimes in another thread, and then in a new sequence. */
static struct ttd_event begin(struct generator *g, enum ttd_action action, enum ttd_api api)
{
    if (draw(g, 24) == 0) {
        g->thread = (unsigned)draw(g, THREADS);
        g->sequence++;
        g->steps[g->thread] = 0;
    }
    uint64_t *steps = &g->steps[g->thread];
    struct ttd_event event = {.time_start = {g->sequence, *steps + 1},
                              .time_end = {g->sequence, *steps + 2},
                              .wall_time = g->events / 1024 * 100000,
                              .result = 1,
                              .thread = g->thread + 1,
                              .heap = g->heap,
                              .action = (uint8_t)action,
                              .api = (uint8_t)api};
    *steps += 2;
    return event;
}

static void put(struct generator *g, const struct ttd_event *event)
{
    require(ttd_writer_event(g->writer, event) == TTD_OK, "cannot write");
    g->events++;
}

static struct block allocate(struct generator *g, uint64_t size, ttd_id stack)
{
    struct block made = {take_address(g, size), size};
    struct ttd_event event = begin(g, TTD_ACTION_ALLOC, TTD_API_MALLOC);
    event.address = made.address;
    event.size = size;
    event.stack = stack;
    put(g, &event);
    return made;
}

static void release(struct generator *g, const struct block *old, ttd_id stack)
{
    struct ttd_event event = begin(g, TTD_ACTION_FREE, TTD_API_FREE);
    event.base_address = old->address;
    event.stack = stack;
    put(g, &event);
    give_address(g, old);
}

static struct block grow(struct generator *g, const struct block *old, ttd_id stack)
{
    struct block made = {old->address, old->size * 2};
    if (class_of(made.size) != class_of(old->size)) {
        give_address(g, old);
        made.address = take_address(g, made.size);
    }
    struct ttd_event event = begin(g, TTD_ACTION_REALLOC, TTD_API_REALLOC);
    event.address = made.address;
    event.base_address = old->address;
    event.previous_address = old->address;
    event.size = made.size;
    event.stack = stack;
    put(g, &event);
    return made;
}

/* Stacks come in runs, as from loops: a few at a time. */
static ttd_id draw_stack(struct generator *g)
{
    uint64_t phase = g->events / 50000;
    uint64_t local = draw(g, 8) ? draw(g, 12) : draw(g, STACKS);
    return (ttd_id)(1 + STACKS + (phase * 97 + local * 31) % STACKS);
}

static void live_long(struct generator *g)
{
    ttd_id stack = draw_stack(g);
    if (g->live_count < g->live_max) {
        g->live[g->live_count++] = allocate(g, draw_size(g), stack);
        return;
    }
    struct block *old = &g->live[draw(g, g->live_count)];
    if (old->size < 4096 && draw(g, 16) == 0) {
        *old = grow(g, old, stack);
        return;
    }
    release(g, old, stack + STACKS / 2 > 2 * STACKS ? stack : stack + STACKS / 2);
    *old = allocate(g, draw_size(g), stack);
}

static void live_shortly(struct generator *g)
{
    struct block *old = &g->recent[g->thread][draw(g, SHORT_LIVED)];
    ttd_id stack = draw_stack(g);
    if (old->address)
        release(g, old, stack);
    *old = allocate(g, draw_size(g), stack);
}

/* Each stack of the second half, that events use, is a leaf on one of the first half. */
static void define(struct generator *g)
{
    ttd_id id;
    struct ttd_heap heap = {.handle = 0};
    for (uint64_t i = 0; i < THREADS; i++) {
        struct ttd_thread thread = {.action = TTD_THREAD_BEGIN, .os_id = 1000 + i};
        require(ttd_writer_thread(g->writer, &thread, &id) == TTD_OK, "cannot write");
    }
    require(ttd_writer_heap(g->writer, &heap, &g->heap) == TTD_OK, "cannot write");
    for (uint64_t i = 0; i < 2 * STACKS; i++) {
        ttd_id parent = i < STACKS ? (ttd_id)(i / 3) : (ttd_id)(i - STACKS + 1);
        uint64_t offset = 0x401000 + i * 37;
        require(ttd_writer_stack(g->writer, parent, TTD_NONE, offset, &id) == TTD_OK,
                "cannot write");
    }
}

int main(int count, char **arguments)
{
    require(count == 4, "usage: generate EVENTS LIVE-BLOCKS FILE");
    uint64_t wanted = strtoull(arguments[1], NULL, 10);
    struct generator g = {.random = 88172645463325252, .heap_end = FIRST, .sequence = 1};
    g.live_max = strtoull(arguments[2], NULL, 10);
    g.live = malloc((g.live_max + 1) * sizeof *g.live);
    struct ttd_output output;
    struct ttd_trace trace = {.trace_id = 1, .time_unit = 1, .pointer_size = 8};
    require(g.live && ttd_output_file(arguments[3], NULL, &output, NULL) == TTD_OK &&
                ttd_writer_open(&output, &trace, NULL, NULL, &g.writer, NULL) == TTD_OK,
            "cannot write");
    define(&g);
    while (g.events < wanted) {
        bool fills = g.live_count < g.live_max && draw(&g, 2);
        if (fills || draw(&g, 7) == 0)
            live_long(&g);
        else
            live_shortly(&g);
    }
    struct ttd_end end = {.reason = TTD_END_REASON_EXITED};
    require(ttd_writer_close(g.writer, &end, NULL) == TTD_OK, "cannot write");
    free(g.live);
    for (size_t i = 0; i < CLASSES; i++)
        free(g.free[i].addresses);
    return 0;
}
