/* SPDX-License-Identifier: MIT */
/* The example of spec/example.md: what a small program with two threads does. */
#include "vectors/vectors.h"

#define BIAS UINT64_C(0x555555554000)

/** Threads, and a heap. */
static void write_objects(struct ttd_writer *writer)
{
    ttd_id id;
    struct ttd_thread main = {.action = TTD_THREAD_BEGIN, .position = {1, 0}, .os_id = 4711};
    struct ttd_thread worker = {.action = TTD_THREAD_BEGIN, .position = {2, 0}, .os_id = 4712};
    struct ttd_heap heap = {.name = vector_string(writer, "malloc")};
    vector_check(ttd_writer_thread(writer, &main, &id));
    vector_check(ttd_writer_thread(writer, &worker, &id));
    vector_check(ttd_writer_heap(writer, &heap, &id));
}

/** The program's module, and its stacks: main, and from there read_line and grow_line. */
static void write_stacks(struct ttd_writer *writer)
{
    ttd_id id;
    ttd_id outer;
    struct ttd_module module = {.action = TTD_MODULE_LOAD,
                                .position = {1, 0},
                                .path = vector_string(writer, "/home/user/src/lines"),
                                .bias = BIAS,
                                .begin = BIAS,
                                .end = BIAS + 0x5000,
                                .build_id = {0xDE, 0xAD, 0xBE, 0xEF},
                                .build_id_size = 4};
    ttd_id file = vector_string(writer, "/home/user/src/lines.c");
    vector_check(ttd_writer_module(writer, &module, &id));
    struct ttd_symbol_frame names[] = {
        {.function = vector_string(writer, "main"), .file = file, .line = 40},
        {.function = vector_string(writer, "read_line"), .file = file, .line = 12},
        {.function = vector_string(writer, "grow_line"), .file = file, .line = 25}};
    const uint64_t offsets[] = {0x1180, 0x1136, 0x1158};
    vector_check(ttd_writer_stack(writer, TTD_NONE, 1, offsets[0], &outer));
    vector_check(ttd_writer_stack(writer, outer, 1, offsets[1], &id));
    vector_check(ttd_writer_stack(writer, outer, 1, offsets[2], &id));
    for (int i = 0; i < 3; i++)
        vector_check(ttd_writer_symbol(
            writer, &(struct ttd_symbol){
                        .module = 1, .offset = offsets[i], .frames = &names[i], .frame_count = 1}));
}

static struct ttd_event event_of(enum ttd_action action, enum ttd_api api, ttd_id thread,
                                 ttd_id stack)
{
    return (struct ttd_event){.action = (uint8_t)action,
                              .api = (uint8_t)api,
                              .result = 1,
                              .thread = thread,
                              .heap = 1,
                              .stack = stack};
}

/** Main allocates two blocks and enlarges one while the worker frees the other. */
static void write_events(struct ttd_writer *writer)
{
    struct ttd_event first = event_of(TTD_ACTION_ALLOC, TTD_API_MALLOC, 1, 2);
    first.time_start = (struct ttd_position){1, 10};
    first.time_end = (struct ttd_position){1, 11};
    first.wall_time = 1000;
    first.address = 0x5555555592A0;
    first.size = 24;
    vector_event(writer, first);
    struct ttd_event second = first;
    second.time_start = (struct ttd_position){1, 12};
    second.time_end = (struct ttd_position){1, 13};
    second.address = 0x5555555592C0;
    vector_event(writer, second);
    struct ttd_event release = event_of(TTD_ACTION_FREE, TTD_API_FREE, 2, 1);
    release.time_start = (struct ttd_position){2, 0};
    release.time_end = (struct ttd_position){2, 1};
    release.wall_time = 3000;
    release.base_address = second.address;
    vector_event(writer, release);
    struct ttd_event grow = event_of(TTD_ACTION_REALLOC, TTD_API_REALLOC, 1, 3);
    grow.time_start = (struct ttd_position){3, 0};
    grow.time_end = (struct ttd_position){5, 0};
    grow.wall_time = 3000;
    grow.base_address = grow.previous_address = first.address;
    grow.address = 0x5555555592E0;
    grow.size = 48;
    vector_event(writer, grow);
    struct ttd_event third = event_of(TTD_ACTION_ALLOC, TTD_API_MALLOC, 2, 2);
    third.time_start = (struct ttd_position){2, 2};
    third.time_end = (struct ttd_position){4, 0};
    third.wall_time = 3000;
    third.address = second.address;
    third.size = 24;
    vector_event(writer, third);
    struct ttd_event last = event_of(TTD_ACTION_FREE, TTD_API_FREE, 2, 1);
    last.time_start = (struct ttd_position){4, 1};
    last.time_end = ttd_position_invalid();
    last.wall_time = 3000;
    last.result = 0;
    last.base_address = third.address;
    vector_event(writer, last);
}

void vector_write_example(struct ttd_memory_output *memory)
{
    struct ttd_writer *writer = vector_writer(memory, NULL);
    write_objects(writer);
    write_stacks(writer);
    write_events(writer);
    vector_close(writer);
}
