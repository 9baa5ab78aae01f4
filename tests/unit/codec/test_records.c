/* SPDX-License-Identifier: MIT */
/* Records that are stored one after the other come back as they were. */
#include <string.h>

#include "codec/records.h"
#include "layout.h"
#include "support/fixtures/record.h"

TestSuite(records, .init = buffer_begin, .fini = buffer_finish);

static void expect_all_read(const struct ttd_cursor *cursor)
{
    cr_assert_null(cursor->error, "%s", cursor->error);
    cr_assert_eq(ttd_cursor_left(cursor), 0);
}

static void expect_string(struct ttd_string string, const char *expected)
{
    cr_assert_eq(string.size, strlen(expected));
    cr_assert_eq(memcmp(string.data, expected, string.size), 0);
}

Test(records, module_that_is_loaded)
{
    struct ttd_module module = loaded_module();
    struct ttd_module decoded;
    ttd_encode_module(&buffer, &module);
    struct ttd_cursor cursor = encoded();

    ttd_decode_module(&cursor, &decoded);

    expect_all_read(&cursor);
    cr_assert_eq(decoded.action, TTD_MODULE_LOAD);
    cr_assert_eq(decoded.id, 3);
    cr_assert_eq(decoded.position.sequence, 7);
    cr_assert_eq(decoded.position.steps, 8);
    cr_assert_eq(decoded.path, 9);
    cr_assert_eq(decoded.bias, UINT64_MAX);
    cr_assert_eq(decoded.begin, 1000);
    cr_assert_eq(decoded.end, 2000);
    cr_assert_eq(decoded.build_id_size, 2);
    cr_assert_eq(decoded.build_id[0], 0xAB);
    cr_assert_eq(decoded.build_id[1], 0xCD);
}

Test(records, module_that_is_unloaded_has_no_more_than_its_id)
{
    struct ttd_module module = loaded_module();
    struct ttd_module decoded;
    module.action = TTD_MODULE_UNLOAD;
    ttd_encode_module(&buffer, &module);
    struct ttd_cursor cursor = encoded();

    ttd_decode_module(&cursor, &decoded);

    expect_all_read(&cursor);
    cr_assert_eq(decoded.action, TTD_MODULE_UNLOAD);
    cr_assert_eq(decoded.id, 3);
    cr_assert_eq(decoded.bias, 0);
    cr_assert_eq(decoded.build_id_size, 0);
}

Test(records, thread_that_begins)
{
    const struct ttd_thread thread = {
        .action = TTD_THREAD_BEGIN, .id = 2, .position = {5, 6}, .os_id = 4711, .name = 8};
    struct ttd_thread decoded;
    ttd_encode_thread(&buffer, &thread);
    struct ttd_cursor cursor = encoded();

    ttd_decode_thread(&cursor, &decoded);

    expect_all_read(&cursor);
    cr_assert_eq(decoded.action, TTD_THREAD_BEGIN);
    cr_assert_eq(decoded.id, 2);
    cr_assert_eq(decoded.position.sequence, 5);
    cr_assert_eq(decoded.position.steps, 6);
    cr_assert_eq(decoded.os_id, 4711);
    cr_assert_eq(decoded.name, 8);
}

Test(records, thread_that_ends_has_no_number_of_the_system)
{
    const struct ttd_thread thread = {
        .action = TTD_THREAD_END, .id = 2, .position = {5, 6}, .os_id = 4711, .name = 8};
    struct ttd_thread decoded;
    ttd_encode_thread(&buffer, &thread);
    struct ttd_cursor cursor = encoded();

    ttd_decode_thread(&cursor, &decoded);

    expect_all_read(&cursor);
    cr_assert_eq(decoded.action, TTD_THREAD_END);
    cr_assert_eq(decoded.os_id, 0);
    cr_assert_eq(decoded.name, 8);
}

Test(records, heap)
{
    const struct ttd_heap heap = {.handle = 0x7f00, .name = 3};
    struct ttd_heap decoded = {.id = 0};
    ttd_encode_heap(&buffer, &heap);
    struct ttd_cursor cursor = encoded();

    ttd_decode_heap(&cursor, &decoded);

    expect_all_read(&cursor);
    cr_assert_eq(decoded.handle, 0x7f00);
    cr_assert_eq(decoded.name, 3);
}

Test(records, heap_parent)
{
    const struct ttd_heap_parent parent = {.heap = UINT32_MAX, .parent = 3};
    struct ttd_heap_parent decoded = {.heap = 0};
    ttd_encode_heap_parent(&buffer, &parent);
    struct ttd_cursor cursor = encoded();

    ttd_decode_heap_parent(&cursor, &decoded);

    expect_all_read(&cursor);
    cr_assert_eq(decoded.heap, UINT32_MAX);
    cr_assert_eq(decoded.parent, 3);
}

Test(records, heap_parent_is_another_heap_of_a_lower_id)
{
    cr_assert_null(ttd_check_heap_parent(&(struct ttd_heap_parent){.heap = 2, .parent = 1}));
    cr_assert_not_null(ttd_check_heap_parent(&(struct ttd_heap_parent){.heap = 2, .parent = 2}));
    cr_assert_not_null(ttd_check_heap_parent(&(struct ttd_heap_parent){.heap = 2, .parent = 3}));
    cr_assert_not_null(ttd_check_heap_parent(&(struct ttd_heap_parent){.heap = 2, .parent = 0}));
    cr_assert_not_null(ttd_check_heap_parent(&(struct ttd_heap_parent){.heap = 0, .parent = 0}));
}

static void encode_symbol(uint64_t offset, uint64_t *last_offset)
{
    const struct ttd_symbol_frame frames[] = {{.function = 1, .file = 2, .line = 3},
                                              {.function = 4, .file = 5, .line = UINT32_MAX}};
    const struct ttd_symbol symbol = {
        .module = 6, .offset = offset, .frames = frames, .frame_count = 2};
    ttd_encode_symbol(&buffer, &symbol, last_offset);
}

static void expect_symbol(struct ttd_cursor *cursor, uint64_t offset, uint64_t *last_offset)
{
    struct ttd_symbol decoded;
    struct ttd_symbol_frame frames[2];
    ttd_decode_symbol(cursor, &decoded, last_offset);
    cr_assert_eq(decoded.module, 6);
    cr_assert_eq(decoded.offset, offset);
    cr_assert_eq(decoded.frame_count, 2);
    ttd_decode_symbol_frame(cursor, &frames[0]);
    ttd_decode_symbol_frame(cursor, &frames[1]);
    cr_assert_eq(frames[0].function, 1);
    cr_assert_eq(frames[0].file, 2);
    cr_assert_eq(frames[0].line, 3);
    cr_assert_eq(frames[1].function, 4);
    cr_assert_eq(frames[1].line, UINT32_MAX);
}

Test(records, symbols_whose_offsets_go_up_and_down)
{
    uint64_t last_offset = 0;
    encode_symbol(1000, &last_offset);
    encode_symbol(10, &last_offset);
    encode_symbol(UINT64_MAX, &last_offset);
    struct ttd_cursor cursor = encoded();

    last_offset = 0;
    expect_symbol(&cursor, 1000, &last_offset);
    expect_symbol(&cursor, 10, &last_offset);
    expect_symbol(&cursor, UINT64_MAX, &last_offset);
    expect_all_read(&cursor);
}

Test(records, user_event)
{
    const struct ttd_user_event event = {.client = {1, [15] = 16},
                                         .position = {5, 6},
                                         .wall_time = 7,
                                         .thread = 8,
                                         .flags = TTD_USER_EVENT_KEYFRAME,
                                         .data = (const uint8_t *)"abc",
                                         .size = 3};
    struct ttd_user_event decoded;
    ttd_encode_user_event(&buffer, &event);
    struct ttd_cursor cursor = encoded();

    ttd_decode_user_event(&cursor, &decoded);

    expect_all_read(&cursor);
    cr_assert_eq(memcmp(decoded.client, event.client, sizeof event.client), 0);
    cr_assert_eq(decoded.position.sequence, 5);
    cr_assert_eq(decoded.position.steps, 6);
    cr_assert_eq(decoded.wall_time, 7);
    cr_assert_eq(decoded.thread, 8);
    cr_assert_eq(decoded.flags, TTD_USER_EVENT_KEYFRAME);
    expect_string((struct ttd_string){(const char *)decoded.data, decoded.size}, "abc");
}

static void expect_loss(struct ttd_loss loss)
{
    struct ttd_loss decoded;
    ttd_buffer_clear(&buffer);
    ttd_encode_loss(&buffer, &loss);
    struct ttd_cursor cursor = encoded();
    ttd_decode_loss(&cursor, &decoded);
    expect_all_read(&cursor);
    cr_assert_eq(decoded.reason, loss.reason);
    cr_assert_eq(decoded.thread, loss.thread);
    cr_assert_eq(decoded.count, loss.count);
    cr_assert_eq(ttd_position_compare(decoded.last_good, loss.last_good), 0);
    cr_assert_eq(ttd_position_compare(decoded.first_good, loss.first_good), 0);
}

Test(records, loss)
{
    expect_loss((struct ttd_loss){.reason = TTD_LOSS_OVERFLOW,
                                  .thread = 3,
                                  .count = 7,
                                  .last_good = {1, 2},
                                  .first_good = {3, 4}});
}

Test(records, loss_whose_count_or_end_is_unknown)
{
    expect_loss((struct ttd_loss){.count = TTD_UNKNOWN, .first_good = {3, 4}});
    expect_loss((struct ttd_loss){.count = 0, .first_good = ttd_position_invalid()});
}

Test(records, metadata)
{
    const struct ttd_metadata metadata = {.key = string_of("key"), .value = string_of("")};
    struct ttd_metadata decoded;
    ttd_encode_metadata(&buffer, &metadata);
    struct ttd_cursor cursor = encoded();

    ttd_decode_metadata(&cursor, &decoded);

    expect_all_read(&cursor);
    expect_string(decoded.key, "key");
    expect_string(decoded.value, "");
}

Test(records, string_as_long_as_its_limit)
{
    static char text[TTD_STRING_MAX];
    ttd_encode_string(&buffer, (struct ttd_string){text, sizeof text});
    struct ttd_cursor cursor = encoded();
    cr_assert_eq(ttd_decode_string(&cursor).size, sizeof text);
    expect_all_read(&cursor);
}

/* Counts of lost events. */

Test(counts, are_added)
{
    cr_assert_eq(ttd_add_count(3, 4), 7);
}

Test(counts, that_are_unknown_add_nothing)
{
    cr_assert_eq(ttd_add_count(3, UINT64_MAX), 3);
}

Test(counts, stop_at_the_largest_number)
{
    cr_assert_eq(ttd_add_count(UINT64_MAX - 1, 5), UINT64_MAX);
    cr_assert_eq(ttd_add_count(5, UINT64_MAX - 1), UINT64_MAX);
}
