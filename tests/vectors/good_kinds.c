/* SPDX-License-Identifier: MIT */
/* A file with every kind of chunk, and every action with each of its properties. */
#include "vectors/vectors.h"

static struct ttd_event event_of(enum ttd_action action, enum ttd_api api, uint64_t step)
{
    return (struct ttd_event){.action = (uint8_t)action,
                              .api = (uint8_t)api,
                              .time_start = {0x1A, step},
                              .time_end = {0x1A, step + 1},
                              .wall_time = step * 10,
                              .result = 1,
                              .thread = 1,
                              .heap = 1,
                              .stack = 2};
}

/** One event of each action, with each property that it has. */
static void write_actions(struct ttd_writer *writer)
{
    struct ttd_event create = event_of(TTD_ACTION_CREATE, TTD_API_HEAP_CREATE, 1);
    create.flags = 4;
    create.reserve_size = 0x100000;
    create.commit_size = 0x1000;
    create.result = 0x2000000;
    vector_event(writer, create);
    struct ttd_event alloc = event_of(TTD_ACTION_ALLOC, TTD_API_CALLOC, 3);
    alloc.address = 0x2000040;
    alloc.size = 96;
    uint64_t parameters[] = {8, 12};
    alloc.parameters = parameters;
    alloc.parameter_count = 2;
    vector_event(writer, alloc);
    struct ttd_event protect = event_of(TTD_ACTION_PROTECT, TTD_API_HEAP_PROTECT, 5);
    protect.make_read_only = 1;
    vector_event(writer, protect);
    vector_event(writer, event_of(TTD_ACTION_LOCK, TTD_API_HEAP_LOCK, 7));
    struct ttd_event again = event_of(TTD_ACTION_REALLOC, TTD_API_REALLOC, 9);
    again.base_address = again.previous_address = alloc.address;
    again.address = 0x2000100;
    again.size = 200;
    vector_event(writer, again);
    vector_event(writer, event_of(TTD_ACTION_UNLOCK, TTD_API_HEAP_UNLOCK, 11));
    struct ttd_event release = event_of(TTD_ACTION_FREE, TTD_API_FREE_SIZED, 13);
    release.base_address = again.address;
    release.size = 200;
    vector_event(writer, release);
    struct ttd_event destroy = event_of(TTD_ACTION_DESTROY, TTD_API_HEAP_DESTROY, 15);
    destroy.time_end = ttd_position_invalid();
    destroy.result = 0;
    vector_event(writer, destroy);
}

static void write_definitions(struct ttd_writer *writer)
{
    ttd_id id;
    ttd_id path = vector_string(writer, "/usr/bin/example");
    ttd_id name = vector_string(writer, "main");
    vector_string(writer, "");
    struct ttd_module module = {.action = TTD_MODULE_LOAD,
                                .position = {1, 2},
                                .path = path,
                                .bias = 0x555555554000,
                                .begin = 0x555555554000,
                                .end = 0x555555558000,
                                .build_id = {0xDE, 0xAD, 0xBE, 0xEF},
                                .build_id_size = 4};
    vector_check(ttd_writer_module(writer, &module, &id));
    struct ttd_module unload = {.action = TTD_MODULE_UNLOAD, .id = id, .position = {0x1A, 16}};
    vector_check(ttd_writer_module(writer, &unload, NULL));
    struct ttd_thread thread = {
        .action = TTD_THREAD_BEGIN, .position = {1, 0}, .os_id = 77, .name = name};
    vector_check(ttd_writer_thread(writer, &thread, &id));
    struct ttd_thread end = {
        .action = TTD_THREAD_END, .id = id, .position = {0x1A, 17}, .name = name};
    vector_check(ttd_writer_thread(writer, &end, NULL));
    vector_check(ttd_writer_heap(
        writer, &(struct ttd_heap){.id = 0, .handle = 0x2000000, .name = name}, &id));
    ttd_id outer;
    vector_check(ttd_writer_stack(writer, TTD_NONE, 1, 0x1180, &outer));
    vector_check(ttd_writer_stack(writer, outer, 1, 0x1136, &id));
    struct ttd_symbol_frame frame = {.function = name, .file = path, .line = 12};
    vector_check(ttd_writer_symbol(
        writer,
        &(struct ttd_symbol){.module = 1, .offset = 0x1136, .frames = &frame, .frame_count = 1}));
}

static void write_records(struct ttd_writer *writer)
{
    struct ttd_user_event user = {.client = {9, 9, [6] = 0x40, [8] = 0x80},
                                  .position = {0x1A, 4},
                                  .wall_time = 40,
                                  .thread = 1};
    user.flags = TTD_USER_EVENT_KEYFRAME;
    user.data = (const uint8_t *)"mark";
    user.size = 4;
    vector_check(ttd_writer_user_event(writer, &user));
    struct ttd_loss loss = {.reason = TTD_LOSS_OVERFLOW,
                            .thread = 1,
                            .count = 12,
                            .last_good = {0x1A, 13},
                            .first_good = {0x1A, 15}};
    vector_check(ttd_writer_loss(writer, &loss));
    struct ttd_metadata metadata = {.key = {"command", 7}, .value = {"example -x", 10}};
    vector_check(ttd_writer_metadata(writer, &metadata));
    struct ttd_block block = {.address = 0x2000040,
                              .size = 96,
                              .event = 1,
                              .allocated = {0x1A, 4},
                              .thread = 1,
                              .heap = 1,
                              .stack = 2,
                              .api = TTD_API_CALLOC};
    struct ttd_live_blocks blocks = {.list = TTD_BLOCKS_SNAPSHOT,
                                     .list_id = 1,
                                     .last = true,
                                     .position = {0x1A, 8},
                                     .blocks = &block,
                                     .count = 1};
    vector_check(ttd_writer_live_blocks(writer, &blocks));
    uint8_t page[512] = {1, 2, 3};
    uint64_t first;
    vector_check(ttd_writer_pages(
        writer,
        &(struct ttd_pages){.first_page = 0, .page_size = sizeof page, .count = 1, .data = page},
        &first));
    struct ttd_memory_run runs[] = {{.address = 0x2000000,
                                     .page_count = 1,
                                     .protection = TTD_MEMORY_READ | TTD_MEMORY_WRITE,
                                     .page = TTD_PAGE_FIRST},
                                    {.address = 0x2000200,
                                     .page_count = 7,
                                     .protection = TTD_MEMORY_READ,
                                     .page = TTD_PAGE_ZERO}};
    struct ttd_memory_map map = {.snapshot = 1,
                                 .last = true,
                                 .position = {0x1A, 16},
                                 .page_size = sizeof page,
                                 .runs = runs,
                                 .count = 2};
    vector_check(ttd_writer_memory_map(writer, &map));
}

void vector_write_kinds(struct ttd_memory_output *memory, enum ttd_codec codec)
{
    struct ttd_writer_options options = ttd_writer_options_default();
    options.codec = codec;
    struct ttd_writer *writer = vector_writer(memory, &options);
    write_definitions(writer);
    write_actions(writer);
    write_records(writer);
    vector_close(writer);
}
