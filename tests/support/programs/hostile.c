/* SPDX-License-Identifier: MIT */
/*
 * Writes traces that are small and cost much: `hostile SHAPE COUNT OUT`. Each is a right trace,
 * with `COUNT` of what its shape is about.
 */
#include "support/programs/hostile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ttd_writer *writer;
uint64_t next_address = 0x10000;
static uint64_t clock_ticks;

void check(enum ttd_status status)
{
    if (status == TTD_OK)
        return;
    fprintf(stderr, "hostile: %s: %s\n", ttd_status_text(status),
            writer ? ttd_writer_error(writer).what : "");
    exit(1);
}

struct ttd_position tick(void)
{
    return (struct ttd_position){++clock_ticks, 0};
}

ttd_id string(const char *text, size_t size)
{
    ttd_id id;
    check(ttd_writer_string(writer, text, size, &id));
    return id;
}

ttd_id text(const char *data)
{
    return string(data, strlen(data));
}

ttd_id stack(ttd_id parent, uint64_t offset)
{
    ttd_id id;
    check(ttd_writer_stack(writer, parent, HOSTILE_MODULE, offset, &id));
    return id;
}

void put(struct ttd_event event)
{
    event.time_start = tick();
    event.time_end = tick();
    event.thread = 1;
    event.heap = 1;
    event.result = 1;
    check(ttd_writer_event(writer, &event));
}

uint64_t allocate(ttd_id stack_id)
{
    uint64_t address = next_address;
    next_address += HOSTILE_STEP;
    put((struct ttd_event){.action = TTD_ACTION_ALLOC,
                           .api = 1,
                           .address = address,
                           .size = HOSTILE_STEP / 2,
                           .stack = stack_id});
    return address;
}

void release(uint64_t address, ttd_id stack_id)
{
    put((struct ttd_event){
        .action = TTD_ACTION_FREE, .api = 5, .base_address = address, .stack = stack_id});
}

void symbol(uint64_t offset, const struct ttd_symbol_frame *frames, uint32_t count)
{
    struct ttd_symbol names = {
        .module = HOSTILE_MODULE, .offset = offset, .frames = frames, .frame_count = count};
    check(ttd_writer_symbol(writer, &names));
}

void name(uint64_t offset, const char *function)
{
    struct ttd_symbol_frame frame = {.function = text(function), .file = text("a.c"), .line = 1};
    symbol(offset, &frame, 1);
}

static void basics(void)
{
    struct ttd_module module = {
        .path = text("/opt/app"), .end = 1 << 20, .position = tick(), .action = TTD_MODULE_LOAD};
    struct ttd_thread thread = {.os_id = 100, .position = tick(), .action = TTD_THREAD_BEGIN};
    struct ttd_heap heap = {.handle = 0x1000, .name = text("heap")};
    ttd_id id;
    check(ttd_writer_module(writer, &module, &id));
    check(ttd_writer_thread(writer, &thread, &id));
    check(ttd_writer_heap(writer, &heap, &id));
}

static const struct hostile_shape *find_shape(const char *wanted)
{
    static const struct hostile_shape *const tables[] = {hostile_stack_shapes, hostile_list_shapes,
                                                         hostile_snapshot_shapes};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        for (const struct hostile_shape *shape = tables[i]; shape->name; shape++) {
            if (strcmp(shape->name, wanted) == 0)
                return shape;
        }
    }
    return NULL;
}

static void begin(const char *path)
{
    struct ttd_trace trace = {.trace_id = 1,
                              .time_unit = 1,
                              .process_id = 100,
                              .architecture = TTD_ARCH_X86_64,
                              .pointer_size = 8,
                              .parent_position = ttd_position_invalid()};
    struct ttd_output output;
    struct ttd_writer_options options = ttd_writer_options_default();
    options.level = 9;
    check(ttd_output_file(path, NULL, &output, NULL));
    check(ttd_writer_open(&output, &trace, &options, NULL, &writer, NULL));
}

int main(int count, char **arguments)
{
    const struct hostile_shape *shape = count == 4 ? find_shape(arguments[1]) : NULL;
    if (!shape) {
        fputs("Usage: hostile SHAPE COUNT OUT\n", stderr);
        return 2;
    }
    struct ttd_end end = {.reason = TTD_END_REASON_EXITED};
    begin(arguments[3]);
    basics();
    shape->write(strtoull(arguments[2], NULL, 0));
    check(ttd_writer_close(writer, &end, NULL));
    return 0;
}
