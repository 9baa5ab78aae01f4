/* SPDX-License-Identifier: MIT */
/*
 * Writes traces that are small and cost much: `hostile SHAPE COUNT OUT`. Each is a right trace,
 * with `COUNT` of what its shape is about.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ttdtrace/writer.h>

#define NAME_MAX_BYTES 65536
#define FRAMES_MAX     1024
#define TAIL_DEPTH     4000
#define MODULE         1
#define STEP           16

static struct ttd_writer *writer;
static uint64_t clock_ticks;
static uint64_t next_address = 0x10000;

static void check(enum ttd_status status)
{
    if (status == TTD_OK)
        return;
    fprintf(stderr, "hostile: %s: %s\n", ttd_status_text(status),
            writer ? ttd_writer_error(writer).what : "");
    exit(1);
}

static struct ttd_position tick(void)
{
    return (struct ttd_position){++clock_ticks, 0};
}

static ttd_id string(const char *text, size_t size)
{
    ttd_id id;
    check(ttd_writer_string(writer, text, size, &id));
    return id;
}

static ttd_id text(const char *data)
{
    return string(data, strlen(data));
}

static ttd_id stack(ttd_id parent, uint64_t offset)
{
    ttd_id id;
    check(ttd_writer_stack(writer, parent, MODULE, offset, &id));
    return id;
}

static void put(struct ttd_event event)
{
    event.time_start = tick();
    event.time_end = tick();
    event.thread = 1;
    event.heap = 1;
    event.result = 1;
    check(ttd_writer_event(writer, &event));
}

static uint64_t allocate(ttd_id stack_id)
{
    uint64_t address = next_address;
    next_address += STEP;
    put((struct ttd_event){.action = TTD_ACTION_ALLOC,
                           .api = 1,
                           .address = address,
                           .size = STEP / 2,
                           .stack = stack_id});
    return address;
}

static void release(uint64_t address, ttd_id stack_id)
{
    put((struct ttd_event){
        .action = TTD_ACTION_FREE, .api = 5, .base_address = address, .stack = stack_id});
}

static void symbol(uint64_t offset, const struct ttd_symbol_frame *frames, uint32_t count)
{
    struct ttd_symbol names = {
        .module = MODULE, .offset = offset, .frames = frames, .frame_count = count};
    check(ttd_writer_symbol(writer, &names));
}

static void name(uint64_t offset, const char *function)
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

/* A chain of stacks at an address into which as many functions are inlined as can be. */
static void inlined(uint64_t count)
{
    static struct ttd_symbol_frame frames[FRAMES_MAX];
    for (size_t i = 0; i < FRAMES_MAX; i++)
        frames[i] = (struct ttd_symbol_frame){.function = 1 + (ttd_id)(i & 1)};
    symbol(1, frames, FRAMES_MAX);
    ttd_id parent = 0;
    for (uint64_t i = 0; i < count; i++)
        allocate(parent = stack(parent, 1));
}

/* One chain, each of whose functions allocates. */
static void deep(uint64_t count)
{
    ttd_id parent = 0;
    for (uint64_t i = 0; i < count; i++)
        allocate(parent = stack(parent, i + 1));
}

/* The same, of one function. */
static void recursive(uint64_t count)
{
    ttd_id parent = 0;
    name(1, "again");
    for (uint64_t i = 0; i < count; i++)
        allocate(parent = stack(parent, 1));
}

/* Many stacks with a common, deep tail. */
static void tails(uint64_t count)
{
    ttd_id tail = 0;
    name(1, "tail");
    for (uint64_t i = 0; i < TAIL_DEPTH; i++)
        tail = stack(tail, i + 1);
    for (uint64_t i = 0; i < count; i++)
        allocate(stack(tail, (uint64_t)1 << 32 | i));
}

/* Two tails of the same functions, under each of many. */
static void twins(uint64_t count)
{
    ttd_id tail[2] = {0, 0};
    name(1, "same");
    name(2, "same");
    for (uint64_t i = 0; i < TAIL_DEPTH; i++)
        for (uint64_t k = 0; k < 2; k++)
            tail[k] = stack(tail[k], k + 1);
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t k = 0; k < 2; k++)
            allocate(stack(tail[k], 1000 + i));
}

static void stacks(uint64_t count)
{
    ttd_id id = 0;
    for (uint64_t i = 0; i < count; i++)
        id = stack(i % 2000 ? id : 0, 1);
    allocate(id);
}

static void strings(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        string("", 0);
    allocate(stack(0, 1));
}

/* Long names, in all frames. */
static void names(uint64_t count)
{
    static char long_name[NAME_MAX_BYTES];
    static struct ttd_symbol_frame frames[FRAMES_MAX];
    ttd_id ids[256];
    for (size_t i = 0; i < 256; i++) {
        memset(long_name, 'a', sizeof long_name);
        long_name[0] = (char)i;
        ids[i] = string(long_name, sizeof long_name);
    }
    for (size_t i = 0; i < FRAMES_MAX; i++)
        frames[i] = (struct ttd_symbol_frame){.function = ids[i & 255], .file = ids[i * 7 & 255]};
    for (uint64_t i = 0; i < count; i++) {
        symbol(i + 1, frames, FRAMES_MAX);
        allocate(stack(0, i + 1));
    }
}

static void symbols(uint64_t count)
{
    static struct ttd_symbol_frame frames[FRAMES_MAX];
    for (size_t i = 0; i < FRAMES_MAX; i++)
        frames[i] = (struct ttd_symbol_frame){.function = 1};
    for (uint64_t i = 0; i < count; i++)
        symbol(i + 1, frames, FRAMES_MAX);
    allocate(stack(0, 1));
}

static void mangled(uint64_t count)
{
    static char long_name[8000];
    size_t used = (size_t)snprintf(long_name, sizeof long_name, "_Z1fI");
    while (used + 40 < sizeof long_name - 8)
        used += (size_t)snprintf(long_name + used, sizeof long_name - used, "N1aI");
    for (uint64_t i = 0; i < count; i++) {
        char short_name[200];
        snprintf(short_name, sizeof short_name,
                 "_Z1f%06uI1aIS_S_EIS0_S0_EIS1_S1_EIS2_S2_EIS3_S3_EIS4_S4_EEvT_", (unsigned)i);
        struct ttd_symbol_frame frame = {
            .function = i % 2 ? text(short_name) : string(long_name, used - i / 2 % 4000)};
        symbol(i + 1, &frame, 1);
        allocate(stack(0, i + 1));
    }
}

static void blocks(uint64_t count)
{
    ttd_id id = stack(0, 1);
    for (uint64_t i = 0; i < count; i++)
        allocate(id);
}

static void churn(uint64_t count)
{
    ttd_id id = stack(0, 1);
    for (uint64_t i = 0; i < count; i++)
        release(allocate(id), id);
}

static void errors(uint64_t count)
{
    ttd_id tail = 0;
    for (uint64_t i = 0; i < TAIL_DEPTH; i++)
        tail = stack(tail, i + 1);
    for (uint64_t i = 0; i < count; i++)
        release(next_address + i * STEP, stack(tail, TAIL_DEPTH + 1 + i));
}

static void moves(uint64_t count)
{
    ttd_id tail = 0;
    for (uint64_t i = 0; i < TAIL_DEPTH; i++)
        tail = stack(tail, i + 1);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t from = allocate(tail);
        uint64_t to = next_address;
        next_address += STEP;
        put((struct ttd_event){.action = TTD_ACTION_REALLOC,
                               .api = 3,
                               .base_address = from,
                               .previous_address = from,
                               .address = to,
                               .size = STEP,
                               .stack = stack(tail, TAIL_DEPTH + 1 + i)});
    }
}

static void losses(uint64_t count)
{
    struct ttd_position last = tick();
    for (uint64_t i = 0; i < count; i++) {
        struct ttd_loss loss = {.reason = TTD_LOSS_OVERFLOW, .count = 1, .last_good = last};
        loss.first_good = last = tick();
        check(ttd_writer_loss(writer, &loss));
    }
    allocate(stack(0, 1));
}

static void threads(uint64_t count)
{
    ttd_id id;
    for (uint64_t i = 0; i < count; i++) {
        struct ttd_thread thread = {.os_id = i, .position = tick(), .action = TTD_THREAD_BEGIN};
        check(ttd_writer_thread(writer, &thread, &id));
    }
    allocate(stack(0, 1));
}

static void heaps(uint64_t count)
{
    ttd_id id;
    for (uint64_t i = 0; i < count; i++) {
        struct ttd_heap heap = {.handle = i + 1};
        check(ttd_writer_heap(writer, &heap, &id));
    }
    allocate(stack(0, 1));
}

static void modules(uint64_t count)
{
    ttd_id id;
    for (uint64_t i = 0; i < count; i++) {
        struct ttd_module module = {.path = 1,
                                    .begin = i << 12,
                                    .end = (i + 1) << 12,
                                    .position = tick(),
                                    .action = TTD_MODULE_LOAD};
        check(ttd_writer_module(writer, &module, &id));
    }
    allocate(stack(0, 1));
}

static void metadata(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct ttd_metadata item = {.key = {"k", 1}, .value = {"v", 1}};
        check(ttd_writer_metadata(writer, &item));
    }
    allocate(stack(0, 1));
}

static void user_events(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct ttd_user_event event = {.client = {1}, .position = tick(), .thread = 1};
        check(ttd_writer_user_event(writer, &event));
    }
    allocate(stack(0, 1));
}

/* ---- Snapshots: words of a heap of blocks side by side ---- */

#define HEAP_BEGIN UINT64_C(0x20000)
#define PART       65536

static uint64_t node_address(uint64_t node)
{
    return HEAP_BEGIN + node * STEP;
}

static void write_words(struct ttd_reference *words, size_t count)
{
    struct ttd_references references = {.snapshot = 1, .references = words, .count = count};
    check(ttd_writer_references(writer, &references));
}

static void end_snapshot(uint32_t number)
{
    struct ttd_snapshot snapshot = {.number = number,
                                    .position = tick(),
                                    .contents = TTD_SNAPSHOT_REFERENCES,
                                    .reason = TTD_SNAPSHOT_EXIT,
                                    .flags = TTD_SNAPSHOT_STOPPED};
    check(ttd_writer_snapshot(writer, &snapshot));
}

/* A snapshot of `count` blocks, each of which points at the one that `target` tells, if any. A root
 * points at the first one if `is_held`. */
static void connect_blocks(uint64_t count, uint64_t (*target)(uint64_t node, uint64_t count),
                           bool is_held)
{
    static struct ttd_reference words[PART];
    struct ttd_region all[] = {
        {.kind = TTD_REGION_MODULE, .begin = 0x1000, .size = 0x1000, .module = MODULE},
        {.kind = TTD_REGION_HEAP, .begin = HEAP_BEGIN, .size = count * STEP}};
    struct ttd_regions regions = {.snapshot = 1, .first = 1, .regions = all, .count = 2};
    check(ttd_writer_regions(writer, &regions));
    size_t used = 0;
    if (is_held)
        words[used++] = (struct ttd_reference){1, 0, node_address(0)};
    for (uint64_t i = 0; i < count; i++) {
        words[used++] = (struct ttd_reference){2, i * STEP, node_address(target(i, count))};
        if (used == PART || i + 1 == count)
            write_words(words, used);
        used = used == PART ? 0 : used;
    }
    end_snapshot(1);
}

static void graph(uint64_t count, uint64_t (*target)(uint64_t node, uint64_t count), bool is_held)
{
    ttd_id id = stack(0, 1);
    next_address = HEAP_BEGIN;
    for (uint64_t i = 0; i < count; i++)
        allocate(id);
    connect_blocks(count, target, is_held);
}

static uint64_t first_node(uint64_t node, uint64_t count)
{
    (void)node, (void)count;
    return 0;
}

static uint64_t next_node(uint64_t node, uint64_t count)
{
    return (node + 1) % count;
}

static uint64_t node_before(uint64_t node, uint64_t count)
{
    (void)count;
    return node ? node - 1 : 0;
}

static void star(uint64_t count)
{
    graph(count, first_node, true);
}

static void ring(uint64_t count)
{
    graph(count, next_node, true);
}

static void lost_ring(uint64_t count)
{
    graph(count, next_node, false);
}

/* From the last block to the first. */
static void lost_chain(uint64_t count)
{
    graph(count, node_before, false);
}

/* One large block, each word of which points at another block; `count` of them. */
static void sheaf(uint64_t count)
{
    static struct ttd_reference words[PART];
    uint64_t large = HEAP_BEGIN + 2 * STEP;
    ttd_id id = stack(0, 1);
    next_address = HEAP_BEGIN;
    allocate(id);
    struct ttd_event event = {.time_start = tick(),
                              .time_end = tick(),
                              .action = TTD_ACTION_ALLOC,
                              .result = 1,
                              .thread = 1,
                              .heap = 1,
                              .stack = id,
                              .address = large,
                              .size = count * 8};
    check(ttd_writer_event(writer, &event));
    struct ttd_region all[] = {
        {.kind = TTD_REGION_MODULE, .begin = 0x1000, .size = 0x1000, .module = MODULE},
        {.kind = TTD_REGION_HEAP, .begin = HEAP_BEGIN, .size = 2 * STEP + count * 8}};
    struct ttd_regions regions = {.snapshot = 1, .first = 1, .regions = all, .count = 2};
    check(ttd_writer_regions(writer, &regions));
    size_t used = 0;
    words[used++] = (struct ttd_reference){1, 0, large};
    for (uint64_t i = 0; i < count; i++) {
        words[used++] = (struct ttd_reference){2, 2 * STEP + i * 8, HEAP_BEGIN};
        if (used == PART || i + 1 == count)
            write_words(words, used);
        used = used == PART ? 0 : used;
    }
    end_snapshot(1);
}

/* A chain of blocks, to each of which a region of its own points. */
static void roots(uint64_t count)
{
    static struct ttd_reference words[PART];
    static struct ttd_region some[PART];
    ttd_id id = stack(0, 1);
    next_address = HEAP_BEGIN;
    for (uint64_t i = 0; i < count; i++)
        allocate(id);
    for (uint64_t i = 0; i <= count; i += PART) {
        size_t used = 0;
        for (uint64_t j = i; j <= count && used < PART; j++)
            some[used++] = j ? (struct ttd_region){.kind = TTD_REGION_ANONYMOUS,
                                                   .begin = UINT64_C(0x7f0000000000) + j * 0x2000,
                                                   .size = 0x1000}
                             : (struct ttd_region){.kind = TTD_REGION_HEAP,
                                                   .begin = HEAP_BEGIN,
                                                   .size = count * STEP};
        struct ttd_regions regions = {
            .snapshot = 1, .first = (uint32_t)i + 1, .regions = some, .count = used};
        check(ttd_writer_regions(writer, &regions));
    }
    for (int is_root = 0; is_root < 2; is_root++) {
        size_t used = 0;
        for (uint64_t i = 0; i < count; i++) {
            words[used++] =
                is_root ? (struct ttd_reference){(uint32_t)i + 2, 0, node_address(i)}
                        : (struct ttd_reference){1, i * STEP, node_address((i + 1) % count)};
            if (used == PART || i + 1 == count)
                write_words(words, used);
            used = used == PART ? 0 : used;
        }
    }
    end_snapshot(1);
}

/* A ring of blocks, each of a call site of its own. */
static void sites(uint64_t count)
{
    next_address = HEAP_BEGIN;
    for (uint64_t i = 0; i < count; i++)
        allocate(stack(0, i + 1));
    connect_blocks(count, next_node, true);
}

/* Snapshots of nothing. */
static void snapshots(uint64_t count)
{
    allocate(stack(0, 1));
    for (uint32_t i = 1; i <= count; i++)
        end_snapshot(i);
}

static const struct {
    const char *name;
    void (*write)(uint64_t count);
} shapes[] = {{"inlined", inlined},     {"deep", deep},
              {"recursive", recursive}, {"tails", tails},
              {"twins", twins},         {"stacks", stacks},
              {"strings", strings},     {"names", names},
              {"symbols", symbols},     {"mangled", mangled},
              {"blocks", blocks},       {"churn", churn},
              {"errors", errors},       {"moves", moves},
              {"losses", losses},       {"threads", threads},
              {"heaps", heaps},         {"modules", modules},
              {"metadata", metadata},   {"user-events", user_events},
              {"star", star},           {"ring", ring},
              {"lost-ring", lost_ring}, {"lost-chain", lost_chain},
              {"sheaf", sheaf},         {"roots", roots},
              {"sites", sites},         {"snapshots", snapshots}};

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
    for (size_t i = 0; count == 4 && i < sizeof shapes / sizeof shapes[0]; i++) {
        if (strcmp(shapes[i].name, arguments[1]) != 0)
            continue;
        struct ttd_end end = {.reason = TTD_END_REASON_EXITED};
        begin(arguments[3]);
        basics();
        shapes[i].write(strtoull(arguments[2], NULL, 0));
        check(ttd_writer_close(writer, &end, NULL));
        return 0;
    }
    fputs("Usage: hostile SHAPE COUNT OUT\n", stderr);
    return 2;
}
