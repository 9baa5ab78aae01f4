/* SPDX-License-Identifier: MIT */
/* Traces with many records of one kind. */
#include "support/programs/hostile.h"

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
    for (uint64_t i = 0; i < HOSTILE_TAIL_DEPTH; i++)
        tail = stack(tail, i + 1);
    for (uint64_t i = 0; i < count; i++)
        release(next_address + i * HOSTILE_STEP, stack(tail, HOSTILE_TAIL_DEPTH + 1 + i));
}

static void moves(uint64_t count)
{
    ttd_id tail = 0;
    for (uint64_t i = 0; i < HOSTILE_TAIL_DEPTH; i++)
        tail = stack(tail, i + 1);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t from = allocate(tail);
        uint64_t to = next_address;
        next_address += HOSTILE_STEP;
        put((struct ttd_event){.action = TTD_ACTION_REALLOC,
                               .api = 3,
                               .base_address = from,
                               .previous_address = from,
                               .address = to,
                               .size = HOSTILE_STEP,
                               .stack = stack(tail, HOSTILE_TAIL_DEPTH + 1 + i)});
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

const struct hostile_shape hostile_list_shapes[] = {
    {"blocks", blocks},     {"churn", churn},
    {"errors", errors},     {"moves", moves},
    {"losses", losses},     {"threads", threads},
    {"heaps", heaps},       {"modules", modules},
    {"metadata", metadata}, {"user-events", user_events},
    {NULL, NULL},
};
