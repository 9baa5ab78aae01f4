/* SPDX-License-Identifier: MIT */
/* Stacks with names, written by someone who has return addresses, modules and a lookup. */
#include "api/fixture.h"

#include <string.h>

static struct ttd_memory_output memory;
static struct ttd_writer *writer;
static size_t asked;

#define TEXT(literal) ((struct ttd_string){literal, sizeof(literal) - 1})

/* Answers with the known names: nothing below 0x1000; from 0x5000 on an inlined function and its
 * caller. */
static size_t look_up(void *context, uint64_t address, struct ttd_name names[TTD_NAMES_MAX])
{
    (void)context;
    asked++;
    if (address < 0x1000)
        return 0;
    names[0] = (struct ttd_name){
        .function = TEXT("main"), .file = TEXT("main.c"), .line = (uint32_t)address};
    if (address < 0x5000)
        return 1;
    names[1] = names[0];
    names[0] = (struct ttd_name){.function = TEXT("inlined"), .file = TEXT("main.c"), .line = 7};
    return 2;
}

static const struct ttd_loaded program = {.path = {"/bin/program", 12},
                                          .bias = 0x1000,
                                          .begin = 0x1000,
                                          .end = 0x3000,
                                          .build_id = (const uint8_t *)"\x12\x34",
                                          .build_id_size = 2};
static const struct ttd_loaded jit = {.path = {"[jit]", 5}, .begin = 0x5000, .end = 0x6000};

static struct ttd_names *begin(ttd_names_lookup lookup, const struct ttd_allocator *allocator)
{
    struct ttd_trace trace = fixture_trace();
    struct ttd_names *names = NULL;
    asked = 0;
    writer = fixture_writer(&memory, &trace, NULL);
    cr_assert_eq(ttd_names_open(writer, lookup, NULL, allocator, &names), TTD_OK);
    return names;
}

/* Closes the trace, and returns its lines of a kind. */
static const char *end(struct ttd_names *names, enum ttd_kind kind)
{
    static struct text_table found;
    ttd_names_close(names);
    fixture_close(writer);
    fixture_check_intact(memory.data, memory.size);
    struct ttd_reader *reader = fixture_reader(&memory, false);
    text_table_free(&found);
    cr_assert_eq(model_read(reader, &found), TTD_END);
    ttd_reader_close(reader);
    ttd_memory_output_free(&memory);
    struct text *lines = text_table_at(&found, kind);
    text_append(lines, "%s", "");
    return lines->data;
}

static ttd_id stack_of(struct ttd_names *names, size_t count, const uint64_t *addresses)
{
    ttd_id stack = TTD_NONE;
    cr_assert_eq(ttd_names_stack(names, addresses, count, &stack), TTD_OK);
    return stack;
}

#define STACK(names, ...)                                                                          \
    stack_of(names, sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (uint64_t[]){__VA_ARGS__})

static void load(struct ttd_names *names, const struct ttd_loaded *module, ttd_id expected)
{
    ttd_id id;
    cr_assert_eq(ttd_names_load(names, ttd_position_min(), module, &id), TTD_OK);
    cr_assert_eq(id, expected);
}

/* Innermost first: the outermost frame has no parent, and common callers are written once. */
Test(names, stacks)
{
    struct ttd_names *names = begin(NULL, NULL);
    load(names, &jit, 1);
    load(names, &program, 2);
    cr_expect_eq(stack_of(names, 0, NULL), TTD_NONE);
    ttd_id first = STACK(names, 0x5010, 0x2000, 0x1800);
    cr_expect_eq(STACK(names, 0x5020, 0x2000, 0x1800), first + 1);
    cr_expect_eq(STACK(names, 0x5010, 0x2000, 0x1800), first);
    cr_expect_eq(STACK(names, 0x2000, 0x1800), first - 1);
    /* The call before the address is in the module, or is not. */
    cr_expect_eq(STACK(names, 0x3000), first + 2);
    cr_expect_eq(STACK(names, 0x1000), first + 3);
    cr_expect_str_eq(end(names, TTD_KIND_STACKS), "stack id=1 parent=0 module=2 offset=800\n"
                                                  "stack id=2 parent=1 module=2 offset=1000\n"
                                                  "stack id=3 parent=2 module=1 offset=5010\n"
                                                  "stack id=4 parent=2 module=1 offset=5020\n"
                                                  "stack id=5 parent=0 module=2 offset=2000\n"
                                                  "stack id=6 parent=0 module=0 offset=1000\n");
}

/* A frame is asked for once, whatever stacks it is in; what has no names has no symbol. */
Test(names, lookup)
{
    struct ttd_names *names = begin(look_up, NULL);
    load(names, &program, 1);
    load(names, &jit, 2);
    STACK(names, 0x5010, 0x2000);
    STACK(names, 0x2000, 0x5010);
    STACK(names, 0x800);
    STACK(names, 0x800);
    cr_expect_eq(asked, 3);
    cr_expect_str_eq(end(names, TTD_KIND_SYMBOLS), "symbol module=1 offset=1000 3,4,1fff\n"
                                                   "symbol module=2 offset=5010 5,4,7 3,4,500f\n");
}

Test(names, strings)
{
    struct ttd_names *names = begin(look_up, NULL);
    ttd_id first, again, none;
    cr_assert_eq(ttd_names_string(names, TEXT("malloc"), &first), TTD_OK);
    load(names, &(struct ttd_loaded){.path = TEXT("malloc"), .begin = 1, .end = 2}, 1);
    cr_assert_eq(ttd_names_string(names, TEXT("malloc"), &again), TTD_OK);
    cr_assert_eq(ttd_names_string(names, TEXT(""), &none), TTD_OK);
    cr_expect_eq(first, again);
    cr_expect_eq(none, TTD_NONE);
    cr_expect_str_eq(end(names, TTD_KIND_STRINGS), "string id=1 text=6d616c6c6f63\n");
}

/* A module that is loaded where another one was has frames of its own. */
Test(names, unload)
{
    const struct ttd_loaded above = {.begin = 0x7000, .end = 0x8000};
    struct ttd_names *names = begin(look_up, NULL);
    load(names, &jit, 1);
    load(names, &above, 2);
    ttd_id before = STACK(names, 0x5010);
    cr_expect_eq(ttd_names_load(names, ttd_position_min(), &jit, NULL), TTD_ERROR_ARGUMENT);
    cr_expect_eq(ttd_names_unload(names, ttd_position_min(), 0x6000), TTD_ERROR_ARGUMENT);
    cr_expect_eq(ttd_names_unload(names, ttd_position_min(), 0x5FFF), TTD_OK);
    ttd_id unknown = STACK(names, 0x5010);
    ttd_id kept = STACK(names, 0x7010);
    load(names, &jit, 3);
    cr_expect_eq(unknown, before + 1);
    cr_expect_eq(kept, before + 2);
    cr_expect_eq(STACK(names, 0x5010), before + 3);
    cr_expect_eq(ttd_names_unload(names, ttd_position_min(), 0x7000), TTD_OK);
    cr_expect_eq(STACK(names, 0x7010), before + 4);
    cr_expect_eq(asked, 5);
    cr_expect_str_eq(end(names, TTD_KIND_STACKS), "stack id=1 parent=0 module=1 offset=5010\n"
                                                  "stack id=2 parent=0 module=0 offset=5010\n"
                                                  "stack id=3 parent=0 module=2 offset=7010\n"
                                                  "stack id=4 parent=0 module=3 offset=5010\n"
                                                  "stack id=5 parent=0 module=0 offset=7010\n");
}

Test(names, arguments)
{
    static uint64_t deep[4097];
    struct ttd_names *names = begin(NULL, NULL);
    ttd_id id = 77;
    struct ttd_loaded module = jit;
    cr_expect_eq(ttd_names_open(NULL, NULL, NULL, NULL, &names), TTD_ERROR_ARGUMENT);
    module.end = module.begin;
    cr_expect_eq(ttd_names_load(names, ttd_position_min(), &module, &id), TTD_ERROR_ARGUMENT);
    module = jit;
    module.build_id_size = TTD_BUILD_ID_MAX + 1;
    cr_expect_eq(ttd_names_load(names, ttd_position_min(), &module, &id), TTD_ERROR_ARGUMENT);
    load(names, &jit, 1);
    module = (struct ttd_loaded){.begin = 0x4000, .end = 0x5001};
    cr_expect_eq(ttd_names_load(names, ttd_position_min(), &module, &id), TTD_ERROR_ARGUMENT);
    module.begin = 0x5FFF;
    module.end = 0x7000;
    cr_expect_eq(ttd_names_load(names, ttd_position_min(), &module, &id), TTD_ERROR_ARGUMENT);
    cr_expect_eq(ttd_names_stack(names, deep, 4097, &id), TTD_ERROR_LIMIT);
    cr_expect_eq(ttd_names_stack(names, NULL, 1, &id), TTD_ERROR_ARGUMENT);
    cr_expect_eq(ttd_names_symbol(names, 2, 0, NULL, 0), TTD_ERROR_ARGUMENT);
    cr_expect_eq(id, 77);
    end(names, TTD_KIND_STACKS);
}

/* Whichever allocation fails: the call can be made again, nothing leaks, the trace is intact. */
Test(names, no_memory)
{
    const uint64_t addresses[] = {0x5010, 0x2000, 0x1800};
    size_t failures = 0;
    for (uint64_t fail_at = 0, calls = 1; fail_at < calls; fail_at++) {
        struct chaos_memory chaos;
        chaos_memory_init(&chaos, CHAOS_NEVER);
        struct ttd_allocator allocator = chaos_allocator(&chaos);
        struct ttd_names *names = begin(look_up, &allocator);
        chaos.counter.fail_at = chaos.counter.calls + fail_at;
        ttd_id stack = TTD_NONE;
        enum ttd_status status = ttd_names_load(names, ttd_position_min(), &program, NULL);
        if (status == TTD_ERROR_NO_MEMORY && ++failures)
            status = ttd_names_load(names, ttd_position_min(), &program, NULL);
        cr_assert_eq(status, TTD_OK);
        status = ttd_names_stack(names, addresses, 3, &stack);
        if (status == TTD_ERROR_NO_MEMORY && ++failures)
            status = ttd_names_stack(names, addresses, 3, &stack);
        cr_assert_eq(status, TTD_OK);
        /* So many that the table grows. */
        for (char name[] = "name A"; name[5] <= 'z'; name[5]++) {
            ttd_id id = 77;
            status = ttd_names_string(names, (struct ttd_string){name, 6}, &id);
            if (status == TTD_ERROR_NO_MEMORY && ++failures) {
                cr_expect_eq(id, 77);
                status = ttd_names_string(names, (struct ttd_string){name, 6}, &id);
            }
            cr_assert_eq(status, TTD_OK);
        }
        calls = chaos.counter.calls;
        end(names, TTD_KIND_STACKS);
        cr_assert_eq(chaos.blocks, 0);
    }
    cr_expect_gt(failures, 8);
}
