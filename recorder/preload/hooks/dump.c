/* SPDX-License-Identifier: MIT */
/*
 * Dumps: the functions of ttdtrace/live_dump.h. A dump is asked for by a record in the stream of
 * the thread, so that any number of threads can ask at once; the collector answers one that waits
 * in the slot of the stream.
 */
#include <linux/futex.h>
#include <string.h>

#include <ttdtrace/live.h>

#include "preload/end/exit_end.h"
#include "preload/system/sys.h"
#include "preload/hooks/live_hooks.h"

/* A thread looks around so often while it waits, and gives up after so long. */
#define WAIT_ONCE_NS 20000000
#define WAIT_NS      UINT64_C(60000000000)
/* The same in looks, where no system call may be made. */
#define WAIT_SPINS (UINT64_C(1) << 31)

struct ask {
    enum dump_kind kind;
    uintptr_t begin, end;
    bool waits;
};

static void sleep_until_answered(_Atomic uint32_t *answered, uint32_t answer)
{
    struct timespec once = {.tv_nsec = WAIT_ONCE_NS};
    if (process_is_confined)
        __builtin_ia32_pause();
    else
        sys_call6(SYS_futex, (long)answered, FUTEX_WAIT, answer, (long)&once, 0, 0);
}

/* Waits for the answer to a dump. Returns whether it was taken. */
static bool dump_await(struct thread_slot *slot, uint32_t serial)
{
    uint64_t spins = 0, begin = process_is_confined ? 0 : sys_clock();
    for (;;) {
        uint32_t answer = atomic_load_explicit(&slot->answered, memory_order_acquire);
        if (answer >> 1 == serial)
            return (answer & 1) != 0;
        bool is_over = target_on->on == 0 || atomic_load(&target_channel->stopped) != 0;
        if (process_is_confined)
            is_over |= ++spins == WAIT_SPINS;
        else
            is_over |= collector_is_gone() || sys_clock() - begin > WAIT_NS;
        if (is_over)
            return false;
        sleep_until_answered(&slot->answered, answer);
    }
}

static bool dump_ask(const struct ttd_live *client, const struct ask *asked)
{
    static _Atomic uint32_t serials;
    if (!live_client_is_open(client))
        return false;
    struct thread *level = live_enter();
    if (!level)
        return false;
    /* The call around this one does not return before the answer, which waits for its record. */
    if (asked->waits && level->outer) {
        live_leave(level);
        return false;
    }
    uint32_t serial = 0;
    while (asked->waits && serial == 0)
        serial = (atomic_fetch_add(&serials, 1) + 1) & (UINT32_MAX >> 1);
    const uint64_t fields[DUMP_FIELDS] = {asked->kind, serial};
    struct thread_slot *slot = level->slot;
    bool is_asked = live_append(level, (const uint64_t[2]){asked->begin, asked->end}, EVENT_OF_DUMP,
                                &(struct event_data){.fields = fields, .field_count = DUMP_FIELDS});
    live_leave(level);
    if (!is_asked || !asked->waits)
        return is_asked;
    collector_wake();
    return dump_await(slot, serial);
}

static bool dump_heaps(struct ttd_live *client)
{
    return dump_ask(client, &(struct ask){.kind = DUMP_HEAPS, .waits = true});
}

static bool dump_range(struct ttd_live *client, const void *begin, const void *end,
                       bool synchronous)
{
    if ((uintptr_t)begin >= (uintptr_t)end)
        return false;
    return dump_ask(client, &(struct ask){.kind = DUMP_RANGE,
                                          .begin = (uintptr_t)begin,
                                          .end = (uintptr_t)end,
                                          .waits = synchronous});
}

static bool dump_module(struct ttd_live *client, const void *address, bool writable_only)
{
    return dump_ask(client,
                    &(struct ask){.kind = writable_only ? DUMP_MODULE_WRITABLE : DUMP_MODULE,
                                  .begin = (uintptr_t)address,
                                  .waits = true});
}

static size_t dump_file_name(struct ttd_live *client, char *name, size_t size)
{
    if (!dump_ask(client, &(struct ask){.kind = DUMP_NAME, .waits = true}))
        return 0;
    const struct trace_name *trace_name = channel_trace_name(&target_view, process_index());
    size_t known_size = trace_name ? atomic_load(&trace_name->size) : 0;
    if (name && known_size < size && known_size < TRACE_NAME_SIZE) {
        memcpy(name, trace_name->text, known_size);
        name[known_size] = '\0';
    }
    return known_size;
}

const struct ttd_live_dump_functions live_dump_functions = {
    .size = sizeof live_dump_functions,
    .heaps = dump_heaps,
    .range = dump_range,
    .module = dump_module,
    .file_name = dump_file_name,
};
