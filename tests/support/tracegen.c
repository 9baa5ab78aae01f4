/* SPDX-License-Identifier: MIT */
/*
 * Writes a trace as a script says: `tracegen OUT < SCRIPT`.
 *
 * Each line is a word and fields `name=value`, separated by spaces. Numbers are decimal or 0x,
 * positions as in SEQ:STEPS or "never", texts with %XX for bytes. Identifiers count from 1 in order
 * of definition. See the functions for the words and their fields.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/churn.h"
#include "support/tracegen.h"

#define LINE_MAX_ (1 << 20)

struct ttd_writer *writer;
static unsigned line_number;
static char *known_strings[65536];
static ttd_id known_count;

void fail(const char *what)
{
    struct ttd_error error = writer ? ttd_writer_error(writer) : (struct ttd_error){.what = ""};
    fprintf(stderr, "tracegen: line %u: %s %s\n", line_number, what, error.what ? error.what : "");
    exit(1);
}

void check(enum ttd_status status)
{
    if (status != TTD_OK)
        fail(ttd_status_text(status));
}

char *text_of(const struct line *from, const char *name)
{
    for (size_t i = 0; i < from->count; i++) {
        if (strcmp(from->names[i], name) == 0)
            return from->values[i];
    }
    return NULL;
}

uint64_t number_of(const struct line *from, const char *name, uint64_t otherwise)
{
    const char *text = text_of(from, name);
    return text ? strcmp(text, "unknown") == 0 ? TTD_UNKNOWN : strtoull(text, NULL, 0) : otherwise;
}

ttd_id id_of(const struct line *from, const char *name, ttd_id otherwise)
{
    return (ttd_id)number_of(from, name, otherwise);
}

struct ttd_position position_of(const struct line *from, const char *name)
{
    const char *text = text_of(from, name);
    struct ttd_position position = ttd_position_min();
    if (text && strcmp(text, "never") == 0)
        return ttd_position_invalid();
    if (text && !ttd_position_parse(text, &position))
        fail("not a position");
    return position;
}

/* Replaces %XX in place; returns the length. */
static size_t decode(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        unsigned byte;
        if (*from == '%' && sscanf(from + 1, "%2x", &byte) == 1) {
            *to++ = (char)byte;
            from += 2;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
    return (size_t)(to - text);
}

ttd_id string_id(const char *text)
{
    if (!text || !*text)
        return TTD_NONE;
    for (ttd_id i = 0; i < known_count; i++) {
        if (strcmp(known_strings[i], text) == 0)
            return i + 1;
    }
    char *copy = strdup(text);
    if (!copy || known_count == 65536)
        fail("too many strings");
    known_strings[known_count++] = strdup(text);
    size_t size = decode(copy);
    ttd_id id;
    check(ttd_writer_string(writer, copy, size, &id));
    free(copy);
    return id;
}

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

static uint8_t action_of(const char *name)
{
    for (int i = TTD_ACTION_ALLOC; name && i <= TTD_ACTION_DESTROY; i++) {
        if (strcmp(ttd_action_name((enum ttd_action)i), name) == 0)
            return (uint8_t)i;
    }
    fail("no such action");
    return 0;
}

static void write_event(const struct line *from)
{
    uint64_t parameters[TTD_PARAMETERS_MAX];
    struct ttd_event event = {.time_start = position_of(from, "start"),
                              .time_end = position_of(from, "end"),
                              .wall_time = number_of(from, "wall", 0),
                              .address = number_of(from, "address", 0),
                              .base_address = number_of(from, "base", 0),
                              .size = number_of(from, "size", 0),
                              .flags = number_of(from, "flags", 0),
                              .result = number_of(from, "result", 1),
                              .reserve_size = number_of(from, "reserve", 0),
                              .commit_size = number_of(from, "commit", 0),
                              .make_read_only = number_of(from, "read_only", 0),
                              .thread = id_of(from, "thread", 1),
                              .heap = id_of(from, "heap", 1),
                              .stack = id_of(from, "stack", 0),
                              .action = action_of(text_of(from, "action")),
                              .api = (uint8_t)number_of(from, "api", 0)};
    if (event.action == TTD_ACTION_REALLOC)
        event.previous_address = event.base_address;
    if (!ttd_position_is_valid(event.time_end))
        event.result = 0;
    char *rest = text_of(from, "parameters");
    char *parameter;
    while (rest && event.parameter_count < TTD_PARAMETERS_MAX && (parameter = strsep(&rest, ",")))
        parameters[event.parameter_count++] = strtoull(parameter, NULL, 0);
    if (event.parameter_count)
        event.parameters = parameters;
    check(ttd_writer_event(writer, &event));
}

/* count=N calls, all after the position, that use slots=N addresses; two threads and heaps. */
static void write_churn(const struct line *from)
{
    struct churn churn = {.random = number_of(from, "seed", 1),
                          .now = position_of(from, "position"),
                          .slots = (size_t)number_of(from, "slots", 1000)};
    churn.release_from = calloc(churn.slots, sizeof *churn.release_from);
    if (!churn.release_from)
        fail("no memory");
    for (uint64_t left = number_of(from, "count", 0); left > 0; left--) {
        struct ttd_event event = churn_next(&churn);
        check(ttd_writer_event(writer, &event));
    }
    free(churn.release_from);
}

static void write_loss(const struct line *from)
{
    struct ttd_loss loss = {.reason = (enum ttd_loss_reason)number_of(from, "reason", 0),
                            .thread = id_of(from, "thread", 0),
                            .count = number_of(from, "count", TTD_UNKNOWN),
                            .last_good = position_of(from, "last_good"),
                            .first_good = position_of(from, "first_good")};
    check(ttd_writer_loss(writer, &loss));
}

/* blocks=ADDRESS:SIZE:EVENT,... list=1 to 3; all of them allocated at one position */
static void write_blocks(const struct line *from)
{
    static struct ttd_block blocks[4096];
    struct ttd_live_blocks list = {
        .list = (enum ttd_block_list)number_of(from, "list", TTD_BLOCKS_RUNTIME),
        .list_id = (uint32_t)number_of(from, "id", 1),
        .last = number_of(from, "last", 1) != 0,
        .position = position_of(from, "position"),
        .blocks = blocks};
    char *rest = text_of(from, "blocks");
    char *block;
    while (rest && list.count < 4096 && (block = strsep(&rest, ","))) {
        char *end;
        struct ttd_block *to = &blocks[list.count++];
        *to = (struct ttd_block){.address = strtoull(block, &end, 0),
                                 .event = TTD_UNKNOWN,
                                 .allocated = position_of(from, "allocated"),
                                 .thread = id_of(from, "thread", 1),
                                 .heap = id_of(from, "heap", 1),
                                 .stack = id_of(from, "stack", 0),
                                 .api = (uint8_t)number_of(from, "api", 0)};
        if (*end == ':')
            to->size = strtoull(end + 1, &end, 0);
        if (*end == ':')
            to->event = strtoull(end + 1, &end, 0);
    }
    check(ttd_writer_live_blocks(writer, &list));
}

/* size=N bytes each, texts=TEXT,... the beginnings of pages */
static void write_pages(const struct line *from)
{
    struct ttd_pages pages = {.page_size = (uint32_t)number_of(from, "size", 4096)};
    char *rest = text_of(from, "texts");
    char *text;
    uint8_t *data = calloc(256, pages.page_size);
    if (!data)
        fail("no memory");
    while (rest && pages.count < 256 && (text = strsep(&rest, ","))) {
        size_t size = decode(text);
        memcpy(data + (size_t)pages.count++ * pages.page_size, text,
               size < pages.page_size ? size : pages.page_size);
    }
    uint64_t first;
    pages.data = data;
    check(ttd_writer_pages(writer, &pages, &first));
    free(data);
}

/* snapshot=N runs=ADDRESS:PAGES:FIRST,... all of them readable and writable */
static void write_map(const struct line *from)
{
    static struct ttd_memory_run runs[4096];
    struct ttd_memory_map map = {.snapshot = (uint32_t)number_of(from, "snapshot", 1),
                                 .last = number_of(from, "last", 1) != 0,
                                 .position = position_of(from, "position"),
                                 .page_size = (uint32_t)number_of(from, "size", 4096),
                                 .runs = runs};
    char *rest = text_of(from, "runs");
    char *run;
    while (rest && map.count < 4096 && (run = strsep(&rest, ","))) {
        char *end;
        struct ttd_memory_run *to = &runs[map.count++];
        *to = (struct ttd_memory_run){.address = strtoull(run, &end, 0), .protection = 3};
        if (*end == ':')
            to->page_count = strtoull(end + 1, &end, 0);
        if (*end == ':')
            to->page = strtoull(end + 1, &end, 0);
    }
    check(ttd_writer_memory_map(writer, &map));
}

static void write_metadata(const struct line *from)
{
    char *key = text_of(from, "key");
    char *value = text_of(from, "value");
    struct ttd_metadata metadata = {{key, decode(key)}, {value, decode(value)}};
    check(ttd_writer_metadata(writer, &metadata));
}

/* form=1 to 3, and the numbers of that form */
static void write_state(const struct line *from)
{
    static const char *const actions[TTD_STATE_ACTIONS] = {
        "other", "alloc", "realloc", "free", "create", "protect", "lock", "unlock", "destroy"};
    struct ttd_state state = {.form = (enum ttd_state_form)number_of(from, "form", 1),
                              .position = position_of(from, "position"),
                              .blocks = number_of(from, "blocks", 0),
                              .next_event = number_of(from, "next", 0),
                              .events = number_of(from, "events", 0),
                              .failed = number_of(from, "failed", 0),
                              .unfinished = number_of(from, "unfinished", 0),
                              .unknown_releases = number_of(from, "unknown", 0),
                              .overlaps = number_of(from, "overlaps", 0),
                              .sums = number_of(from, "sums", 0),
                              .end = position_of(from, "end"),
                              .bytes = number_of(from, "bytes", 0),
                              .bytes_high = number_of(from, "bytes_high", 0)};
    for (size_t i = 0; i < TTD_STATE_ACTIONS; i++)
        state.actions[i] = number_of(from, actions[i], 0);
    check(ttd_writer_state(writer, &state));
}

static void write_sum(const struct line *from)
{
    struct ttd_sum sum = {.table = (enum ttd_sum_table)number_of(from, "table", 0),
                          .key = (uint32_t)number_of(from, "key", 0),
                          .api = (uint8_t)number_of(from, "api", 0),
                          .blocks = number_of(from, "blocks", 0),
                          .bytes = number_of(from, "bytes", 0),
                          .first = position_of(from, "first"),
                          .last = position_of(from, "last")};
    check(ttd_writer_sum(writer, &sum));
}

static void write_user(const struct line *from)
{
    char *client = text_of(from, "client");
    char *data = text_of(from, "data");
    struct ttd_user_event event = {.position = position_of(from, "position"),
                                   .thread = id_of(from, "thread", 0),
                                   .flags = (uint32_t)number_of(from, "flags", 0),
                                   .data = (const uint8_t *)data,
                                   .size = data ? decode(data) : 0};
    size_t size = client ? decode(client) : 0;
    if (client)
        memcpy(event.client, client, size < sizeof event.client ? size : sizeof event.client);
    check(ttd_writer_user_event(writer, &event));
}

static void write_flush(const struct line *from)
{
    (void)from;
    check(ttd_writer_flush(writer));
}

static void open_writer(const struct line *from, const char *path)
{
    struct ttd_trace trace = {.trace_id = number_of(from, "id", 0x1234),
                              .parent_trace_id = number_of(from, "parent", 0),
                              .parent_position = position_of(from, "parent_position"),
                              .start_time = (int64_t)number_of(from, "start_time", 0),
                              .time_unit = number_of(from, "time_unit", 1),
                              .source_trace_id = number_of(from, "source_id", 0),
                              .source_size = number_of(from, "source_size", 0),
                              .source_hash = number_of(from, "source_hash", 0),
                              .process_id = number_of(from, "pid", 100),
                              .parent_process_id = number_of(from, "ppid", 1),
                              .flags = (uint32_t)number_of(from, "flags", 0),
                              .architecture = TTD_ARCH_X86_64,
                              .pointer_size = 8,
                              .group = {{0xAB, 0xCD}}};
    struct ttd_writer_options options = ttd_writer_options_default();
    options.codec = (enum ttd_codec)number_of(from, "codec", TTD_CODEC_LZ4);
    options.events_per_chunk = (uint32_t)number_of(from, "events_per_chunk", 65536);
    struct ttd_output output;
    struct ttd_error error = {.what = ""};
    enum ttd_status status = ttd_output_file(path, NULL, &output, &error);
    if (status == TTD_OK)
        status = ttd_writer_open(&output, &trace, &options, NULL, &writer, &error);
    if (status != TTD_OK)
        fail(error.what);
}

/* reason=0 to 4; without one the trace is left unclosed */
static void close_writer(const struct line *from)
{
    struct ttd_end end = {.reason = (enum ttd_end_reason)number_of(from, "reason", 0),
                          .code = (uint32_t)number_of(from, "code", 0),
                          .wall_time = number_of(from, "wall", 0)};
    struct ttd_error error = {.what = ""};
    enum ttd_status status =
        ttd_writer_close(writer, text_of(from, "reason") ? &end : NULL, &error);
    writer = NULL;
    if (status != TTD_OK)
        fail(error.what);
}

static void obey(const struct line *order, const char *path)
{
    static const struct {
        const char *word;
        void (*write)(const struct line *from);
    } words[] = {{"module", write_module},
                 {"unload", write_unload},
                 {"thread", write_thread},
                 {"heap", write_heap},
                 {"stack", write_stack},
                 {"symbol", write_symbol},
                 {"event", write_event},
                 {"loss", write_loss},
                 {"blocks", write_blocks},
                 {"user", write_user},
                 {"metadata", write_metadata},
                 {"flush", write_flush},
                 {"churn", write_churn},
                 {"state", write_state},
                 {"sum", write_sum},
                 {"pages", write_pages},
                 {"map", write_map},
                 {"regions", write_regions},
                 {"references", write_references},
                 {"classes", write_classes},
                 {"variable", write_variable},
                 {"frames", write_frames},
                 {"snapshot", write_snapshot},
                 {"fatal", write_fatal_signal},
                 {"close", close_writer}};
    if (strcmp(order->word, "trace") == 0) {
        open_writer(order, path);
        return;
    }
    if (!writer)
        fail("no trace is open");
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(order->word, words[i].word) == 0) {
            words[i].write(order);
            return;
        }
    }
    fail("no such word");
}

static void split(char *text, struct line *result)
{
    result->count = 0;
    text[strcspn(text, "\n")] = '\0';
    result->word = strsep(&text, " ");
    char *field;
    while (result->count < FIELDS_MAX && (field = strsep(&text, " "))) {
        char *value = strchr(field, '=');
        if (!value)
            continue;
        *value = '\0';
        result->names[result->count] = field;
        result->values[result->count++] = value + 1;
    }
}

int main(int count, char **arguments)
{
    if (count != 2) {
        fputs("Usage: tracegen OUT < SCRIPT\n", stderr);
        return 2;
    }
    char *text = malloc(LINE_MAX_);
    struct line order;
    while (text && fgets(text, LINE_MAX_, stdin)) {
        line_number++;
        if (*text == '\n' || *text == '#')
            continue;
        split(text, &order);
        obey(&order, arguments[1]);
    }
    free(text);
    if (writer)
        fail("the script does not end with close");
    return 0;
}
