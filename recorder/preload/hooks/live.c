/* SPDX-License-Identifier: MIT */
/*
 * The live API: the functions of ttdtrace/live.h. A client is never freed or used again, so a
 * closed one differs from an open one as long as the program runs.
 */
#include <ttdtrace/live.h>
#include <ttdtrace/trace.h>

#include <linux/futex.h>
#include <string.h>

#include "preload/system/real.h"
#include "preload/hooks/live_hooks.h"
#include "preload/end/exit_end.h"
#include "preload/system/sys.h"

/*
 * Dumps: the functions of ttdtrace/live_dump.h. A dump is asked for by a record in the stream of
 * the thread, so that any number of threads can ask at once; the collector answers one that waits
 * in the slot of the stream.
 */

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

static void live_sleep_until_answered(_Atomic uint32_t *answered, uint32_t answer)
{
    struct timespec once = {.tv_nsec = WAIT_ONCE_NS};
    if (process_is_confined)
        __builtin_ia32_pause();
    else
        sys_call6(SYS_futex, (long)answered, FUTEX_WAIT, answer, (long)&once, 0, 0);
}

/* Waits for the answer to a dump. Returns whether it was taken. */
static bool live_dump_await(struct thread_slot *slot, uint32_t serial)
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
        live_sleep_until_answered(&slot->answered, answer);
    }
}

static bool live_dump_ask(const struct ttd_live *client, const struct ask *asked)
{
    static _Atomic uint32_t serials;
    if (!live_client_is_open(client))
        return false;
    struct thread *level = live_enter(client);
    if (!level)
        return false;
    /* The call around this one does not return before the answer; the answer waits for its
     * record. */
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
    return live_dump_await(slot, serial);
}

static bool live_dump_heaps(struct ttd_live *client)
{
    return live_dump_ask(client, &(struct ask){.kind = DUMP_HEAPS, .waits = true});
}

static bool live_dump_range(struct ttd_live *client, const void *begin, const void *end,
                            bool synchronous)
{
    if ((uintptr_t)begin >= (uintptr_t)end)
        return false;
    return live_dump_ask(client, &(struct ask){.kind = DUMP_RANGE,
                                               .begin = (uintptr_t)begin,
                                               .end = (uintptr_t)end,
                                               .waits = synchronous});
}

static bool live_dump_module(struct ttd_live *client, const void *address, bool writable_only)
{
    return live_dump_ask(client,
                         &(struct ask){.kind = writable_only ? DUMP_MODULE_WRITABLE : DUMP_MODULE,
                                       .begin = (uintptr_t)address,
                                       .waits = true});
}

static size_t live_dump_file_name(struct ttd_live *client, char *name, size_t size)
{
    if (!live_dump_ask(client, &(struct ask){.kind = DUMP_NAME, .waits = true}))
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
    .heaps = live_dump_heaps,
    .range = live_dump_range,
    .module = live_dump_module,
    .file_name = live_dump_file_name,
};

#ifdef TTD_ATTACHED
static inline bool live_is_ready(void)
{
    return true;
}

static inline uint64_t live_recording(void)
{
    return attached.key;
}

static inline const struct ttd_live_functions *live_table(void)
{
    return live_clients()->functions;
}
#else
static inline bool live_is_ready(void)
{
    return real_ready();
}

static inline uint64_t live_recording(void)
{
    return 0;
}

static inline const struct ttd_live_functions *live_table(void)
{
    return &live_functions;
}

struct live_clients *live_clients(void)
{
    static struct live_clients clients;
    return &clients;
}
#endif

static struct live_client *live_client_of(const struct ttd_live *live)
{
    return (struct live_client *)(uintptr_t)live;
}

static void live_append_client(struct thread *level, enum ttd_client_event kind,
                               const struct live_client *client, const void *data, size_t size)
{
    const uint64_t fields[] = {kind, client->guid[0], client->guid[1]};
    uint64_t own[2];
    memcpy(own, TTD_CLIENT_CLIENTS, sizeof own);
    live_append(level, own, 0,
                &(struct event_data){fields, sizeof fields / sizeof *fields, data, size});
}

#ifdef TTD_ATTACHED
void live_announce(struct thread *level, const struct ttd_live *live)
{
    struct live_client *client = live_client_of(live);
    uint64_t recording = live_recording();
    if (atomic_load_explicit(&client->recording, memory_order_relaxed) != recording &&
        atomic_exchange(&client->recording, recording) != recording)
        live_append_client(level, TTD_CLIENT_OPENED, client, NULL, 0);
}
#endif

bool live_client_is_open(const struct ttd_live *live)
{
    return atomic_load(&live_client_of(live)->is_open);
}

static bool live_is_valid(const void *data, size_t size)
{
    return size <= TTD_LIVE_DATA_MAX && (data || size == 0);
}

static bool live_is_open(const struct ttd_live *live)
{
    return live_client_is_open(live) && target_on->on != 0 &&
           atomic_load(&target_channel->stopped) == 0;
}

static void live_close_client(struct ttd_live *live, const void *data, size_t size)
{
    struct live_client *client = live_client_of(live);
    if (!live_is_valid(data, size) || !atomic_exchange(&client->is_open, false))
        return;
    struct thread *level = live_enter(live);
    if (!level)
        return;
    live_append_client(level, TTD_CLIENT_CLOSED, client, data, size);
    live_leave(level);
}

static bool live_add_event(struct ttd_live *live, enum ttd_live_scope scope, uint32_t flags,
                           const void *data, size_t size)
{
    bool is_known = (flags & ~TTD_LIVE_KEYFRAME) == 0 && (unsigned)scope <= TTD_LIVE_THREAD;
    if (!is_known || !live_is_valid(data, size) || !live_client_is_open(live))
        return false;
    struct thread *level = live_enter(live);
    if (!level)
        return false;
    flags |= scope == TTD_LIVE_THREAD ? EVENT_OF_THREAD : 0;
    bool is_added = live_append(level, live_client_of(live)->guid, flags,
                                &(struct event_data){.data = data, .size = size});
    live_leave(level);
    return is_added;
}

static bool live_start_activity(struct ttd_live *live, uint64_t activity, uint64_t maximum,
                                const void *data, size_t size)
{
    const struct live_client *client = live_client_of(live);
    if (maximum == 0 || !live_is_valid(data, size) || !atomic_load(&client->is_open))
        return false;
    struct thread *level = live_enter(live);
    if (!level)
        return false;
    struct island *island = &island_thread(level)->island;
    if (island->is_open) {
        island->is_open = false;
        island_changed(level, TTD_THREAD_STOPPED, client->guid, NULL, 0);
    }
    island_open(island, client->guid, activity, maximum);
    island_changed(level, TTD_THREAD_STARTED, client->guid, data, size);
    live_leave(level);
    return true;
}

static bool live_stop_activity(struct ttd_live *live, const void *data, size_t size)
{
    const struct live_client *client = live_client_of(live);
    if (!live_is_valid(data, size) || !atomic_load(&client->is_open))
        return false;
    struct thread *level = live_enter(live);
    if (!level)
        return false;
    struct island *island = &island_thread(level)->island;
    bool was_open = island->is_open;
    island->is_open = false;
    if (was_open)
        island_changed(level, TTD_THREAD_STOPPED, client->guid, data, size);
    live_leave(level);
    return was_open;
}

/* Changes the island of the calling thread, and says so in the trace. */
static bool live_change(struct ttd_live *live, bool (*apply)(struct island *),
                        enum ttd_thread_event kind)
{
    const struct live_client *client = live_client_of(live);
    if (!atomic_load(&client->is_open))
        return false;
    struct thread *level = live_enter(live);
    if (!level)
        return false;
    bool is_changed = apply(&island_thread(level)->island);
    if (is_changed)
        island_changed(level, kind, client->guid, NULL, 0);
    live_leave(level);
    return is_changed;
}

static bool live_apply_pause(struct island *island)
{
    if (!island->is_open || island->remaining == 0 || island->pauses == UINT32_MAX)
        return false;
    island->pauses++;
    return true;
}

static bool live_apply_resume(struct island *island)
{
    if (island->pauses == 0)
        return false;
    island->pauses--;
    return true;
}

static bool live_apply_reset(struct island *island)
{
    island->remaining = island->is_open ? island->maximum : island->remaining;
    return island->is_open;
}

static bool live_try_pause(struct ttd_live *live)
{
    return live_change(live, live_apply_pause, TTD_THREAD_PAUSED);
}

static bool live_resume(struct ttd_live *live)
{
    return live_change(live, live_apply_resume, TTD_THREAD_RESUMED);
}

static bool live_reset_throttle(struct ttd_live *live)
{
    return live_change(live, live_apply_reset, TTD_THREAD_RESET);
}

/* Returns the calling thread; NULL if the process does not record. */
static const struct thread *live_own_thread(const struct ttd_live *live)
{
    if (!live_is_open(live))
        return NULL;
    struct thread *thread = island_suspended();
    if (!thread)
        thread = target_self;
    return thread;
}

static enum ttd_live_state live_state(const struct ttd_live *live)
{
    const struct thread *thread = live_own_thread(live);
    if (thread)
        return (enum ttd_live_state)island_state(thread);
    return live_is_open(live) ? TTD_LIVE_RECORDING : TTD_LIVE_NOT_STARTED;
}

static bool live_throttle(const struct ttd_live *live, uint64_t *executed, uint64_t *remaining)
{
    static const struct island fresh = {
        .is_open = true, .maximum = TTD_LIVE_NO_LIMIT, .remaining = TTD_LIVE_NO_LIMIT};
    const struct thread *thread = live_own_thread(live);
    const struct island *island = thread ? &thread->island : &fresh;
    bool is_known = live_is_open(live) && island->is_open;
    bool is_limited = island->maximum != TTD_LIVE_NO_LIMIT;
    *executed = is_known ? island->maximum - island->remaining : 0;
    *remaining = is_known ? (is_limited ? island->remaining : TTD_LIVE_NO_LIMIT) : 0;
    return is_known;
}

const struct ttd_live_functions live_functions = {
    .version = TTD_LIVE_VERSION,
    .size = sizeof live_functions,
    .close = live_close_client,
    .is_open = live_is_open,
    .add_event = live_add_event,
    .start = live_start_activity,
    .stop = live_stop_activity,
    .try_pause = live_try_pause,
    .resume = live_resume,
    .state = live_state,
    .reset_throttle = live_reset_throttle,
    .throttle = live_throttle,
    .heaps = &live_heap_functions,
    .dumps = &live_dump_functions,
};

EXPORT struct ttd_live *ttd_live_factory(uint32_t version, const struct ttd_live_guid *guid,
                                         const void *data, size_t size);

EXPORT struct ttd_live *ttd_live_factory(uint32_t version, const struct ttd_live_guid *guid,
                                         const void *data, size_t size)
{
    if (version != TTD_LIVE_VERSION || !guid || !live_is_valid(data, size) || !live_is_ready())
        return NULL;
    struct thread *level = live_enter(NULL);
    if (!level)
        return NULL;
    uint32_t index = atomic_fetch_add(&live_clients()->used, 1);
    if (index >= LIVE_CLIENTS) {
        atomic_store(&live_clients()->used, LIVE_CLIENTS);
        live_leave(level);
        return NULL;
    }
    struct live_client *client = &live_clients()->items[index];
    client->live.functions = live_table();
    memcpy(client->guid, guid, sizeof client->guid);
    atomic_store(&client->recording, live_recording());
    atomic_store(&client->is_open, true);
    live_append_client(level, TTD_CLIENT_OPENED, client, data, size);
    live_leave(level);
    return &client->live;
}
