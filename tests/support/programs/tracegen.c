/* SPDX-License-Identifier: MIT */
/*
 * Writes a trace as a script says: `tracegen OUT < SCRIPT`.
 *
 * Each line is a word and fields `name=value`, separated by spaces. Numbers are decimal or 0x,
 * positions as in SEQ:STEPS or "never", texts with %XX for bytes. Identifiers count from 1 in order
 * of definition. See the functions for the words and their fields.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/programs/tracegen.h"

#define LINE_MAX_ (1 << 20)

struct ttd_writer *writer;
static unsigned line_number;

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
                              .group = {{(uint8_t)number_of(from, "group", 0xAB), 0xCD}}};
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
    static const struct word own_words[] = {
        {"flush", write_flush}, {"close", close_writer}, {NULL, NULL}};
    static const struct word *const tables[] = {definition_words, event_words, state_words,
                                                snapshot_words, own_words};
    if (strcmp(order->word, "trace") == 0) {
        open_writer(order, path);
        return;
    }
    if (!writer)
        fail("no trace is open");
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        for (const struct word *word = tables[i]; word->word; word++) {
            if (strcmp(order->word, word->word) == 0) {
                word->write(order);
                return;
            }
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
