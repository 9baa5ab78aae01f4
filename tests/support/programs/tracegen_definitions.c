/* SPDX-License-Identifier: MIT */
/* Words for what events and stacks refer to. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/programs/tracegen.h"

static void write_module(const struct line *from)
{
    struct ttd_module module = {.action = TTD_MODULE_LOAD,
                                .position = position_of(from, "position"),
                                .path = string_id(text_of(from, "path")),
                                .bias = number_of(from, "bias", 0),
                                .begin = number_of(from, "begin", 0),
                                .end = number_of(from, "end", 0)};
    const char *hex = text_of(from, "build_id");
    for (; hex && *hex && hex[1]; hex += 2) {
        unsigned byte = 0;
        sscanf(hex, "%2x", &byte);
        module.build_id[module.build_id_size++] = (uint8_t)byte;
    }
    ttd_id id;
    check(ttd_writer_module(writer, &module, &id));
}

static void write_unload(const struct line *from)
{
    struct ttd_module module = {.action = TTD_MODULE_UNLOAD,
                                .id = id_of(from, "id", 1),
                                .position = position_of(from, "position")};
    check(ttd_writer_module(writer, &module, NULL));
}

static void write_thread(const struct line *from)
{
    bool ends = text_of(from, "ends");
    struct ttd_thread thread = {.action = ends ? TTD_THREAD_END : TTD_THREAD_BEGIN,
                                .id = id_of(from, "ends", 0),
                                .position = position_of(from, "position"),
                                .os_id = number_of(from, "os", 0),
                                .name = string_id(text_of(from, "name"))};
    ttd_id id;
    check(ttd_writer_thread(writer, &thread, &id));
}

static void write_heap(const struct line *from)
{
    struct ttd_heap heap = {.handle = number_of(from, "handle", 0),
                            .name = string_id(text_of(from, "name"))};
    ttd_id id;
    check(ttd_writer_heap(writer, &heap, &id));
    struct ttd_heap_parent parent = {.heap = id, .parent = id_of(from, "parent", TTD_NONE)};
    if (parent.parent != TTD_NONE)
        check(ttd_writer_heap_parent(writer, &parent));
}

static void write_stack(const struct line *from)
{
    ttd_id id;
    check(ttd_writer_stack(writer, id_of(from, "parent", 0), id_of(from, "module", 0),
                           number_of(from, "offset", 0), &id));
}

/* frames=FUNCTION@FILE@LINE,... innermost first */
static void write_symbol(const struct line *from)
{
    struct ttd_symbol_frame frames[64];
    struct ttd_symbol symbol = {.module = id_of(from, "module", 1),
                                .offset = number_of(from, "offset", 0),
                                .frames = frames};
    char *rest = text_of(from, "frames");
    char *frame;
    while (rest && symbol.frame_count < 64 && (frame = strsep(&rest, ","))) {
        const char *function = strsep(&frame, "@");
        const char *file = frame ? strsep(&frame, "@") : NULL;
        frames[symbol.frame_count++] =
            (struct ttd_symbol_frame){.function = string_id(function),
                                      .file = string_id(file),
                                      .line = frame ? (uint32_t)strtoul(frame, NULL, 0) : 0};
    }
    check(ttd_writer_symbol(writer, &symbol));
}

static void write_metadata(const struct line *from)
{
    char *key = text_of(from, "key");
    char *value = text_of(from, "value");
    struct ttd_metadata metadata = {{key, decode(key)}, {value, decode(value)}};
    check(ttd_writer_metadata(writer, &metadata));
}

const struct word definition_words[] = {
    {"module", write_module},     {"unload", write_unload},
    {"thread", write_thread},     {"heap", write_heap},
    {"stack", write_stack},       {"symbol", write_symbol},
    {"metadata", write_metadata}, {NULL, NULL},
};
