/* SPDX-License-Identifier: MIT */
/* Looking up stacks: what cannot be had for want of memory is not what does not exist. */
#include <sys/resource.h>

#include <criterion/criterion.h>

#include "support/lazy_stack.h"
#include "symbols/frames.h"

static struct definitions names;

static void begin(void)
{
    definitions_init(&names);
}

static void finish(void)
{
    definitions_free(&names);
}

TestSuite(definitions, .init = begin, .fini = finish);

static void define(struct ttd_stack stack)
{
    uint8_t payload[STORED_STACK_SIZE_MAX];
    struct ttd_batch batch = lazy_stack(&stack, payload);
    cr_assert_eq(definitions_add(&names, &batch), TTD_OK);
}

Test(definitions, of_stacks)
{
    struct ttd_stack found;
    define((struct ttd_stack){.id = 3, .offset = 30});
    define((struct ttd_stack){.id = 4, .parent = 3, .offset = 40});
    define((struct ttd_stack){.id = 4, .offset = 41});
    define((struct ttd_stack){.id = 3, .offset = 31});
    define((struct ttd_stack){.id = 9, .parent = 4, .offset = 90});
    static const uint64_t offsets[] = {0, 0, 0, 30, 40, 0, 0, 0, 0, 90, 0};
    for (ttd_id id = 0; id <= 10; id++) {
        cr_assert_eq(definitions_stack(&names, id, &found), offsets[id] ? TTD_OK : TTD_END);
        cr_assert(!offsets[id] || found.offset == offsets[id], "the first definition stays");
    }
    struct frame_list list = {.frames = NULL};
    cr_assert_eq(frame_list_expand(&list, &names, 9), TTD_OK);
    cr_assert_eq(list.count, 3);
    cr_assert_eq(list.frames[2].offset, 30);
    frame_list_free(&list);
}

static void tell(void *context, const struct ttd_error *error)
{
    (*(int *)context)++;
    cr_assert_eq(error->status, TTD_ERROR_CORRUPT);
}

Test(definitions, damaged)
{
    int told = 0;
    uint8_t payload[STORED_STACK_SIZE_MAX];
    struct ttd_stack found;
    struct ttd_batch batch = lazy_stack(&(struct ttd_stack){.id = 1, .offset = 5}, payload);
    payload[batch.chunk.stored_size - 1] |= 0x80;
    names.stacks.damage = (struct stack_damage){&told, tell};
    cr_assert_eq(definitions_add(&names, &batch), TTD_OK);
    cr_assert_eq(definitions_stack(&names, 1, &found), TTD_END);
    cr_assert_eq(told, 1);
}

#ifndef __has_feature
#define __has_feature(name) 0
#endif

/* A payload that asks for more than there may be. */
Test(definitions, without_memory)
{
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
    cr_skip_test("AddressSanitizer ends the process where memory is limited");
#endif
    uint8_t payload[STORED_STACK_SIZE_MAX];
    struct ttd_batch batch = lazy_stack(&(struct ttd_stack){.id = 1, .offset = 5}, payload);
    batch.chunk.codec = TTD_CODEC_LZ4;
    batch.chunk.raw_size = UINT32_C(1) << 31;
    cr_assert_eq(definitions_add(&names, &batch), TTD_OK);
    struct rlimit limit = {UINT32_C(1) << 30, UINT32_C(1) << 30};
    cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
    struct ttd_stack found;
    struct frame_list list = {.frames = NULL};
    cr_assert_eq(definitions_stack(&names, 1, &found), TTD_ERROR_NO_MEMORY);
    cr_assert_eq(frame_list_expand(&list, &names, 1), TTD_ERROR_NO_MEMORY);
    frame_list_free(&list);
}
