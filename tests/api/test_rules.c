/* SPDX-License-Identifier: MIT */
/* A writer refuses records that a reader calls corrupt, so that nobody writes what nobody can read.
 */
#include "api/refusals.h"

TestSuite(rules, .init = refusals_begin, .fini = refusals_end);

static enum ttd_status write_loss(struct ttd_position last_good, struct ttd_position first_good)
{
    struct ttd_loss loss = {
        .reason = TTD_LOSS_OVERFLOW, .count = 1, .last_good = last_good, .first_good = first_good};
    return ttd_writer_loss(writer, &loss);
}

Test(rules, loss)
{
    check_refused(write_loss((struct ttd_position){2, 9}, (struct ttd_position){2, 0}),
                  "range of a loss");
    check_refused(write_loss((struct ttd_position){3, 0}, (struct ttd_position){2, 9}),
                  "range of a loss");
    check_refused(write_loss(ttd_position_invalid(), ttd_position_invalid()), "invalid position");
    check_refused(
        write_loss((struct ttd_position){1, 0}, (struct ttd_position){TTD_SEQUENCE_INVALID, 0}),
        "invalid position");
    cr_expect_eq(write_loss((struct ttd_position){2, 9}, (struct ttd_position){2, 9}), TTD_OK);
    cr_expect_eq(write_loss((struct ttd_position){2, 9}, ttd_position_invalid()), TTD_OK);
    cr_expect_eq(write_loss((struct ttd_position){2, 9}, ttd_position_max()), TTD_OK);
}

/* 2^64 - 1 says that a time is unknown. */
Test(rules, wall_time)
{
    struct ttd_event event = {.action = TTD_ACTION_ALLOC,
                              .api = TTD_API_MALLOC,
                              .time_start = {1, 0},
                              .time_end = {1, 1},
                              .wall_time = UINT64_MAX,
                              .result = 1,
                              .address = 0x1000,
                              .size = 8};
    check_refused(ttd_writer_event(writer, &event), "wall_time");
}

Test(rules, module)
{
    ttd_id id;
    struct ttd_module module = {.action = TTD_MODULE_LOAD, .begin = 0x2000, .end = 0x1FFF};
    check_refused(ttd_writer_module(writer, &module, &id), "range of a module");
    module.end = module.begin;
    cr_expect_eq(ttd_writer_module(writer, &module, &id), TTD_OK);
}

Test(rules, user_event)
{
    struct ttd_user_event event = {.flags = 2};
    check_refused(ttd_writer_user_event(writer, &event), "user event");
    event.flags = TTD_USER_EVENT_KEYFRAME;
    cr_expect_eq(ttd_writer_user_event(writer, &event), TTD_OK);
}

Test(rules, list)
{
    struct ttd_block block = {.address = 0x20, .allocated = ttd_position_invalid()};
    struct ttd_live_blocks list = {.list = TTD_BLOCKS_SNAPSHOT, .blocks = &block, .count = 1};
    check_refused(ttd_writer_live_blocks(writer, &list), "number of a list of blocks");
    list.list_id = 1;
    check_refused(ttd_writer_live_blocks(writer, &list), "position of a block");
    block.allocated = ttd_position_min();
    cr_expect_eq(ttd_writer_live_blocks(writer, &list), TTD_OK);
    check_refused(ttd_writer_live_blocks(writer, &list), "order of blocks");
    block.address++;
    list.position = (struct ttd_position){1, 0};
    check_refused(ttd_writer_live_blocks(writer, &list), "continuation of a list of blocks");
    list.position = ttd_position_min();
    list.last = true;
    cr_expect_eq(ttd_writer_live_blocks(writer, &list), TTD_OK);
    block.address++;
    check_refused(ttd_writer_live_blocks(writer, &list), "continuation of a list of blocks");
    list.list_id = 3; /* another list begins anew */
    list.last = false;
    block.address = 1;
    cr_expect_eq(ttd_writer_live_blocks(writer, &list), TTD_OK);
    list.list_id = 2;
    check_refused(ttd_writer_live_blocks(writer, &list), "continuation of a list of blocks");
}

Test(rules, map)
{
    struct ttd_memory_map map = {.last = true, .page_size = 4096};
    check_refused(ttd_writer_memory_map(writer, &map), "number of a snapshot");
    map.snapshot = 1;
    cr_expect_eq(ttd_writer_memory_map(writer, &map), TTD_OK);
}

Test(rules, parent)
{
    struct ttd_output output;
    struct ttd_memory_output other;
    struct ttd_writer *refused = NULL;
    struct ttd_error error;
    struct ttd_trace trace = fixture_trace();
    trace.parent_position = (struct ttd_position){TTD_SEQUENCE_INVALID, 0};
    cr_assert_eq(ttd_output_memory(&other, NULL, &output), TTD_OK);
    cr_expect_eq(ttd_writer_open(&output, &trace, NULL, NULL, &refused, &error),
                 TTD_ERROR_ARGUMENT);
    cr_expect_str_eq(error.what, "parent_position");
    ttd_memory_output_free(&other);
}
