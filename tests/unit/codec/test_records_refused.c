/* SPDX-License-Identifier: MIT */
/* Records that are truncated, or whose values the format does not allow, are refused. */
#include "layout.h"
#include "support/fixtures/record.h"

TestSuite(records_refused, .init = buffer_begin, .fini = buffer_finish);

/* Decodes a record, whatever it is. */
typedef void (*decode_function)(struct ttd_cursor *cursor);

static void decode_module(struct ttd_cursor *cursor)
{
    struct ttd_module module;
    ttd_decode_module(cursor, &module);
}

static void decode_thread(struct ttd_cursor *cursor)
{
    struct ttd_thread thread;
    ttd_decode_thread(cursor, &thread);
}

static void decode_symbol(struct ttd_cursor *cursor)
{
    struct ttd_symbol symbol;
    uint64_t offset = 0;
    ttd_decode_symbol(cursor, &symbol, &offset);
}

static void decode_user_event(struct ttd_cursor *cursor)
{
    struct ttd_user_event event;
    ttd_decode_user_event(cursor, &event);
}

static void decode_loss(struct ttd_cursor *cursor)
{
    struct ttd_loss loss;
    ttd_decode_loss(cursor, &loss);
}

static void decode_string(struct ttd_cursor *cursor)
{
    struct ttd_string string = ttd_decode_string(cursor);
    cr_assert(!cursor->error || string.size == 0);
}

static void expect_refused(decode_function decode, const char *error)
{
    struct ttd_cursor cursor = encoded();
    decode(&cursor);
    expect_error(&cursor, error);
}

static void expect_refused_where_truncated(decode_function decode)
{
    for (size_t size = 0; size < buffer.size; size++) {
        struct ttd_cursor cursor = ttd_cursor_of(buffer.data, size);
        decode(&cursor);
        cr_assert_not_null(cursor.error);
    }
}

static void expect_module_refused(struct ttd_module module, const char *error)
{
    ttd_encode_module(&buffer, &module);
    expect_refused(decode_module, error);
}

Test(records_refused, module_is_refused_where_it_is_truncated)
{
    struct ttd_module module = loaded_module();
    ttd_encode_module(&buffer, &module);
    expect_refused_where_truncated(decode_module);
}

Test(records_refused, module_must_have_a_known_action)
{
    struct ttd_module module = loaded_module();
    module.action = 3;
    expect_module_refused(module, "action of a module");
}

Test(records_refused, module_must_have_an_id)
{
    struct ttd_module module = loaded_module();
    module.id = TTD_NONE;
    expect_module_refused(module, "id of a module");
}

Test(records_refused, module_must_have_a_position)
{
    struct ttd_module module = loaded_module();
    module.position = ttd_position_invalid();
    expect_module_refused(module, "invalid position");
}

Test(records_refused, module_must_not_end_before_it_begins)
{
    struct ttd_module module = loaded_module();
    module.end = module.begin - 1;
    expect_module_refused(module, "range of a module");
}

Test(records_refused, module_must_keep_the_limit_of_build_ids)
{
    struct ttd_module module = loaded_module();
    module.build_id_size = 0;
    ttd_encode_module(&buffer, &module);
    buffer.size--;
    ttd_buffer_put_varint(&buffer, TTD_BUILD_ID_MAX + 1);
    expect_refused(decode_module, "value out of range");
}

static void expect_thread_refused(struct ttd_thread thread, const char *error)
{
    ttd_encode_thread(&buffer, &thread);
    expect_refused(decode_thread, error);
}

Test(records_refused, thread_is_refused_where_it_is_truncated)
{
    const struct ttd_thread thread = {.action = TTD_THREAD_BEGIN, .id = 1};
    ttd_encode_thread(&buffer, &thread);
    expect_refused_where_truncated(decode_thread);
}

Test(records_refused, thread_must_have_a_known_action)
{
    expect_thread_refused((struct ttd_thread){.action = 3, .id = 1}, "action of a thread");
}

Test(records_refused, thread_must_have_an_id)
{
    expect_thread_refused((struct ttd_thread){.action = TTD_THREAD_BEGIN}, "id of a thread");
}

Test(records_refused, thread_must_have_a_position)
{
    expect_thread_refused((struct ttd_thread){.action = TTD_THREAD_BEGIN,
                                              .id = 1,
                                              .position = ttd_position_invalid()},
                          "invalid position");
}

Test(records_refused, symbol_must_keep_the_limit_of_frames)
{
    uint64_t offset = 0;
    const struct ttd_symbol symbol = {.module = 1};
    ttd_encode_symbol(&buffer, &symbol, &offset);
    buffer.size--;
    ttd_buffer_put_varint(&buffer, TTD_SYMBOL_FRAME_MAX + 1);
    expect_refused(decode_symbol, "value out of range");
}

Test(records_refused, user_event_is_refused_where_it_is_truncated)
{
    const struct ttd_user_event event = {.data = (const uint8_t *)"abc", .size = 3};
    ttd_encode_user_event(&buffer, &event);
    expect_refused_where_truncated(decode_user_event);
}

Test(records_refused, user_event_must_not_have_unknown_flags)
{
    const struct ttd_user_event event = {.flags = TTD_USER_EVENT_KEYFRAME << 1};
    ttd_encode_user_event(&buffer, &event);
    expect_refused(decode_user_event, "unknown flags of a user event");
}

static void expect_loss_refused(struct ttd_loss loss, const char *error)
{
    ttd_encode_loss(&buffer, &loss);
    expect_refused(decode_loss, error);
}

Test(records_refused, loss_must_begin_somewhere)
{
    expect_loss_refused((struct ttd_loss){.last_good = ttd_position_invalid()}, "invalid position");
}

Test(records_refused, loss_must_not_end_before_it_begins)
{
    expect_loss_refused((struct ttd_loss){.last_good = {3, 4}, .first_good = {3, 3}},
                        "range of a loss");
}

Test(records_refused, loss_must_have_the_one_form_of_the_invalid_position)
{
    expect_loss_refused((struct ttd_loss){.first_good = {TTD_SEQUENCE_INVALID, 0}},
                        "invalid position");
}

Test(records_refused, string_is_refused_beyond_its_limit)
{
    static char text[TTD_STRING_MAX + 1];
    ttd_encode_string(&buffer, (struct ttd_string){text, sizeof text});
    expect_refused(decode_string, "value out of range");
}

Test(records_refused, string_is_refused_where_it_is_truncated)
{
    ttd_encode_string(&buffer, string_of("abc"));
    expect_refused_where_truncated(decode_string);
}
