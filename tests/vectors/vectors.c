/* SPDX-License-Identifier: MIT */
#include "vectors/edit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct vector *const vectors_all[] = {vectors_good,          vectors_bad,
                                            vectors_bad_payload,   vectors_bad_events,
                                            vectors_bad_records,   vectors_bad_kinds,
                                            vectors_bad_snapshots, vectors_bad_heaps,
                                            vectors_bad_damage,    NULL};

void vector_check(enum ttd_status status)
{
    if (status == TTD_OK)
        return;
    fprintf(stderr, "a vector cannot be written: %s\n", ttd_status_text(status));
    abort();
}

void vector_resize(struct vector_file *file, size_t size)
{
    uint8_t *data = realloc(file->data, size ? size : 1);
    if (!data)
        abort();
    if (size > file->size)
        memset(data + file->size, 0, size - file->size);
    *file = (struct vector_file){data, size};
}

struct vector_file vector_make(const struct vector *of)
{
    struct ttd_memory_output memory;
    struct vector_file file = {0};
    (of->write ? of->write : vector_write_base)(&memory);
    vector_resize(&file, memory.size);
    memcpy(file.data, memory.data, memory.size);
    ttd_memory_output_free(&memory);
    if (of->field.size)
        vector_set_field(&file, &of->field);
    if (of->records.bytes)
        vector_replace(&file, &of->records);
    if (of->damage)
        of->damage(&file);
    return file;
}

struct ttd_writer *vector_writer(struct ttd_memory_output *memory,
                                 const struct ttd_writer_options *options)
{
    struct ttd_trace trace = {.trace_id = UINT64_C(0x1122334455667788),
                              .group = {{0xA0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
                              .start_time = INT64_C(1700000000000000000),
                              .time_unit = 10,
                              .process_id = 4711,
                              .parent_process_id = 42,
                              .architecture = TTD_ARCH_X86_64,
                              .pointer_size = 8};
    struct ttd_output output;
    struct ttd_writer *writer = NULL;
    vector_check(ttd_output_memory(memory, NULL, &output));
    vector_check(ttd_writer_open(&output, &trace, options, NULL, &writer, NULL));
    return writer;
}

ttd_id vector_string(struct ttd_writer *writer, const char *text)
{
    ttd_id id = TTD_NONE;
    vector_check(ttd_writer_string(writer, text, strlen(text), &id));
    return id;
}

void vector_event(struct ttd_writer *writer, struct ttd_event event)
{
    vector_check(ttd_writer_event(writer, &event));
}

void vector_close(struct ttd_writer *writer)
{
    struct ttd_end end = {.reason = TTD_END_REASON_EXITED, .code = 3, .wall_time = 5000};
    vector_check(ttd_writer_close(writer, &end, NULL));
}

void vector_write_base(struct ttd_memory_output *memory)
{
    struct ttd_writer_options options = ttd_writer_options_default();
    options.codec = TTD_CODEC_RAW;
    options.events_per_chunk = 2;
    struct ttd_writer *writer = vector_writer(memory, &options);
    ttd_id name = vector_string(writer, "malloc");
    ttd_id id;
    struct ttd_thread thread = {.action = TTD_THREAD_BEGIN, .os_id = 4711, .name = TTD_NONE};
    vector_check(ttd_writer_thread(writer, &thread, &id));
    vector_check(
        ttd_writer_heap(writer, &(struct ttd_heap){.id = 0, .handle = 0, .name = name}, &id));
    vector_check(ttd_writer_stack(writer, TTD_NONE, TTD_NONE, 0x401000, &id));
    for (uint64_t i = 0; i < 4; i++) {
        struct ttd_event event = {.action = i % 2 ? TTD_ACTION_FREE : TTD_ACTION_ALLOC,
                                  .api = i % 2 ? TTD_API_FREE : TTD_API_MALLOC,
                                  .time_start = {1, 2 * i},
                                  .time_end = {1, 2 * i + 1},
                                  .wall_time = 100 * i,
                                  .result = 1,
                                  .thread = 1,
                                  .heap = 1,
                                  .stack = 1};
        if (i % 2)
            event.base_address = 0x602010;
        else
            event.address = 0x602010;
        event.size = i % 2 ? 0 : 24;
        vector_event(writer, event);
    }
    vector_close(writer);
}
