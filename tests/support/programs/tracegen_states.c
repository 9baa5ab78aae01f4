/* SPDX-License-Identifier: MIT */
/* Words for states: live blocks, sums, and contents of memory. */
#include <stdlib.h>
#include <string.h>

#include "support/programs/tracegen.h"

/* blocks=ADDRESS:SIZE:EVENT,... list=1 to 3; all of them allocated at one position. Without an id
 * they continue the list before if that has no last chunk, else begin the next one. */
static void write_blocks(const struct line *from)
{
    static struct ttd_block blocks[4096];
    static uint32_t next_id = 1;
    struct ttd_live_blocks list = {
        .list = (enum ttd_block_list)number_of(from, "list", TTD_BLOCKS_RUNTIME),
        .list_id = (uint32_t)number_of(from, "id", next_id),
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
    next_id = list.list_id + list.last;
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

const struct word state_words[] = {
    {"blocks", write_blocks}, {"state", write_state}, {"sum", write_sum},
    {"pages", write_pages},   {"map", write_map},     {NULL, NULL},
};
