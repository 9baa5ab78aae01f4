/* SPDX-License-Identifier: MIT */
/* Merges the threads of a process: writes fragments in the order of their sequences. */
#include <string.h>

#include "channel_record.h"
#include "collect/process/heaps.h"
#include "collect/process/origin.h"
#include "collect/process/processes.h"
#include "collect/trace/trace_modules.h"
#include "collect/trace/ring.h"

/* The log of a process: its modules, as they are loaded and unloaded. */

/*
 * Whether the log may have new records. A record with an address in a module is published after the
 * load of the module, so the log is read only if some stream has been read since.
 */
static inline bool merge_log_is_due(const struct process *process, const struct host *host)
{
    return process->has_log_next || process->log_looks != host->looks;
}

/* A binary heap of threads, the one whose next record has the least sequence first. */

struct merge_queue {
    struct merge_entry *entries;
    size_t count;
};

/* Restores the order below index `at`, whose sequence may have grown. */
static inline void merge_queue_sift(struct merge_queue *queue, size_t index)
{
    for (;;) {
        size_t least = index;
        for (size_t child = 2 * index + 1; child <= 2 * index + 2 && child < queue->count; child++)
            if (queue->entries[child].sequence < queue->entries[least].sequence)
                least = child;
        if (least == index)
            return;
        struct merge_entry swap = queue->entries[index];
        queue->entries[index] = queue->entries[least];
        queue->entries[least] = swap;
        index = least;
    }
}

static void merge_copy_bytes(void *bytes, const volatile uint64_t *words, size_t size)
{
    uint64_t word;
    for (size_t i = 0; i < size; i += 8) {
        word = words[i / 8];
        memcpy((char *)bytes + i, &word, size - i < 8 ? size - i : 8);
    }
}

static struct logged_file merge_logged_file_of(const volatile uint64_t *facts)
{
    bool is_there = facts[MODULE_FILE_STATE] == MODULE_FILE_THERE;
    return (struct logged_file){
        .is_there = is_there,
        .begin = facts[MODULE_FILE_BEGIN],
        .end = facts[MODULE_FILE_END],
        .file =
            {
                .device = facts[MODULE_FILE_DEVICE],
                .inode = is_there || facts[MODULE_FILE_STATE] == MODULE_FILE_GONE
                             ? facts[MODULE_FILE_INODE]
                             : 0,
                .size = facts[MODULE_FILE_SIZE],
                .modified = facts[MODULE_FILE_MODIFIED],
                .changed = facts[MODULE_FILE_CHANGED],
            },
    };
}

/* Notes that the module has an allocator of its own, whose calls are not seen, unless the module is
 * the program, the first one, and its allocator is patched. */
static void merge_note_allocator(struct process *process, struct host *host,
                                 const struct module *module)
{
    bool is_program = !process->has_modules;
    process->has_modules = true;
    if (allocators_find(module))
        atomic_fetch_or(&channel_process(&host->view, process->slot)->notes,
                        is_program ? NOTE_OF_PROGRAM : NOTE_WITHIN);
}

static void merge_apply_load(struct process *process, struct host *host,
                             const struct record *record, struct ttd_position position)
{
    enum { FACTS = 8 + MODULE_FILE_FACTS };
    char path[MODULE_PATH_MAX + 1];
    if (record->count < FACTS)
        return;
    uint64_t id_size = record->words[6], path_size = record->words[7];
    if (id_size > TTD_BUILD_ID_MAX || path_size > MODULE_PATH_MAX ||
        FACTS + (id_size + 7) / 8 + (path_size + 7) / 8 > record->count)
        return;
    struct module module = {
        .path = path,
        .bias = record->words[3],
        .begin = record->words[4],
        .end = record->words[5],
        .build_id_size = (uint32_t)id_size,
    };
    merge_copy_bytes(module.build_id, record->words + FACTS, id_size);
    merge_copy_bytes(path, record->words + FACTS + (id_size + 7) / 8, path_size);
    path[path_size] = '\0';
    struct logged_file file = merge_logged_file_of(record->words + FACTS - MODULE_FILE_FACTS);
    module_files_keep(&module, &file, process->pid);
    trace_module_load(process->trace, position, &module);
    const struct symbolize_file unknown = {.inode = 0};
    origin_pools(process->trace, process->pid, path, file.is_there ? &file.file : &unknown,
                 &process->pools);
    merge_note_allocator(process, host, &module);
}

/* Writes the loads and unloads of modules up to `sequence`. */
static void merge_log_apply(struct process *process, struct host *host, uint64_t sequence)
{
    for (;;) {
        if (!process->has_log_next)
            process->has_log_next =
                stream_peek(&process->log, host, &channel_process(&host->view, process->slot)->log,
                            &process->log_next);
        const struct record *record = &process->log_next;
        if (!process->has_log_next || record->count < 4 || record->words[1] > sequence)
            break;
        struct ttd_position position = {record->words[1], record->words[2]};
        if (record_operation(record->head) == OP_MODULE_LOAD)
            merge_apply_load(process, host, record, position);
        else if (record_operation(record->head) == OP_MODULE_UNLOAD)
            trace_module_unload(process->trace, position, record->words[3]);
        stream_consume(&process->log, record);
        process->has_log_next = false;
    }
    process->log_looks = host->looks;
}

enum { RECORDS_PER_TICK = 4096 };
/* Times for which the channel may fill up behind a held call. The return of a release is a step of
 * its thread, and nothing is lost without it; the end of a reallocation is the address of a block.
 */
#define PRESSED_NS              UINT64_C(100000000)
#define PRESSED_REALLOCATION_NS UINT64_C(2000000000)

/* A validated record. */
struct parsed_record {
    const struct call_shape *shape;
    const volatile uint64_t *operands; /* followed by the added frames */
    uint64_t sequence;                 /* if it begins a new fragment */
    bool is_new;
};

/* Decodes the optional fields: a new sequence and a new time. */
static bool merge_parse_changes(const struct process *process, struct thread_stream *thread,
                                const struct record *record, struct parsed_record *parsed)
{
    unsigned flags = record_flags(record->head);
    if (flags & RECORD_SEQUENCE) {
        parsed->is_new = true;
        parsed->sequence = *parsed->operands++;
        if (parsed->sequence < thread->sequence || parsed->sequence > TTD_SEQUENCE_MAX)
            return false;
    }
    if (flags & RECORD_CLOCK)
        thread->wall_time = process_time(process, *parsed->operands++);
    return true;
}

static inline bool merge_parse(const struct process *process, struct thread_stream *thread,
                               const struct record *record, struct parsed_record *parsed)
{
    uint64_t head = record->head;
    unsigned added_frames = record_added(head), kept_frames = record_kept(head);
    unsigned changes = record_changes(head);
    const struct call_shape *shape = &call_shapes[record_operation(head)];
    *parsed = (struct parsed_record){.shape = shape, .operands = record->words + 1};
    return shape->kind != CALL_UNKNOWN && kept_frames <= thread->depth &&
           kept_frames + added_frames <= STACK_DEPTH_MAX &&
           record->count == 1u + changes + shape->operands + added_frames &&
           (changes == 0 || merge_parse_changes(process, thread, record, parsed));
}

/* Returns the position of a step that the thread counted without a stamp. */
static struct ttd_position merge_count_step(struct thread_stream *thread)
{
    return (struct ttd_position){thread->sequence, ++thread->steps};
}

/* Returns the position of the record's stamp. */
static struct ttd_position merge_stamped_step(struct thread_stream *thread,
                                              const struct parsed_record *parsed)
{
    if (!parsed->is_new)
        return merge_count_step(thread);
    thread->sequence = parsed->sequence;
    thread->steps = 0;
    return (struct ttd_position){thread->sequence, 0};
}

/* Returns the position of the record's stamp, or one step before it. */
static struct ttd_position merge_next_stamp(const struct thread_stream *thread,
                                            const struct parsed_record *parsed)
{
    if (parsed->is_new)
        return (struct ttd_position){parsed->sequence, 0};
    return (struct ttd_position){thread->sequence, thread->steps + 1};
}

static ttd_id merge_update_stack(struct process *process, struct thread_stream *thread,
                                 const struct record *record, const struct parsed_record *parsed)
{
    uint32_t depth = record_kept(record->head);
    uint32_t added_frames = record_added(record->head);
    /* Without a stack: the last one stays known. */
    if (depth + added_frames == 0)
        return TTD_NONE;
    const volatile uint64_t *frames = parsed->operands + parsed->shape->operands;
    ttd_id stack = depth != 0 ? thread->path[depth - 1] : TTD_NONE;
    uint32_t hash = depth != 0 ? thread->hashes[depth - 1] : 0;
    for (uint32_t i = 0; i < added_frames; i++, depth++) {
        uint64_t pc = frames[i]; /* the program may change it meanwhile */
        thread->hashes[depth] = hash = stacks_hash(&process->trace->stacks, hash, pc);
        thread->path[depth] = stack = trace_stack(process->trace, hash, stack, pc);
    }
    thread->depth = depth;
    return stack;
}

static void merge_peek(struct thread_stream *thread, struct host *host)
{
    if (!thread->has_next)
        thread->has_next =
            stream_peek(&thread->stream, host, &thread->shared->first, &thread->next);
}

static void merge_consume(struct thread_stream *thread)
{
    stream_consume(&thread->stream, &thread->next);
    thread->has_next = false;
}

/* Gives the stream up, since its content is invalid: the program has overwritten it. */
static void merge_abandon_stream(struct process *process, struct thread_stream *thread)
{
    stream_break(&thread->stream);
    thread->has_next = false;
    thread->has_held = false;
    trace_loss(process->trace, TTD_LOSS_DAMAGE, thread->id, TTD_UNKNOWN, process->trace->last,
               ttd_position_max());
}

static inline void merge_begin_call(struct process *process, struct thread_stream *thread,
                                    const struct parsed_record *parsed)
{
    struct ttd_event *event = &thread->held;
    for (unsigned i = 0; i < parsed->shape->operands; i++)
        thread->operands[i] = parsed->operands[i];
    translate_call(parsed->shape, thread->operands, event);
    event->api = (uint8_t)record_operation(thread->next.head);
    event->thread = thread->id;
    event->heap = process->trace->heap;
    event->flags = event->reserve_size = event->commit_size = event->make_read_only = 0;
}

/* Writes the held call: it has returned, or its return will never be seen. */
static void merge_release_held(struct process *process, struct thread_stream *thread)
{
    if (!ttd_event_returned(&thread->held))
        thread->held.result = 0;
    thread->held.wall_time = thread->wall_time;
    thread->has_held = false;
    trace_event(process->trace, &thread->held, thread->held.time_start);
}

/* Returns for how long the held call may press: not for long if threads lose calls instead of
 * waiting. */
static uint64_t merge_patience(const struct thread_stream *thread, const struct host *host)
{
    bool is_lossy = host->channel->flags & CHANNEL_LOSES;
    return thread->held.action == TTD_ACTION_REALLOC && !is_lossy ? PRESSED_REALLOCATION_NS
                                                                  : PRESSED_NS;
}

/*
 * Whether the held call must be written without its end, since the channel has been filling up
 * behind it for some time. Its thread may not have been scheduled, or copies a large block, and has
 * room for the end. But waiting for ever could deadlock: a call within the held one may wait for a
 * free chunk, or for a lock that a waiting thread has.
 */
static bool merge_is_pressed(struct thread_stream *thread, const struct host *host)
{
    if (atomic_load_explicit(&host->channel->backlog, memory_order_relaxed) <=
        CHANNEL_BACKLOG / 2) {
        thread->pressed_since = 0;
        return false;
    }
    uint64_t now = host_now(host);
    if (thread->pressed_since == 0)
        thread->pressed_since = now;
    return now - thread->pressed_since > merge_patience(thread, host);
}

/* Completes the held reallocation with its end, the next record. */
static void merge_end_reallocation(struct process *process, struct thread_stream *thread)
{
    struct parsed_record parsed;
    if (!merge_parse(process, thread, &thread->next, &parsed)) {
        merge_abandon_stream(process, thread);
        return;
    }
    thread->held.time_end = merge_stamped_step(thread, &parsed);
    translate_reallocation_end(record_operation(thread->next.head), parsed.operands[0],
                               &thread->held);
    merge_consume(thread);
    merge_release_held(process, thread);
}

/* Returns the sequence of the next record, which is there. */
static uint64_t merge_next_record_sequence(const struct thread_stream *thread)
{
    if (record_flags(thread->next.head) & RECORD_SEQUENCE && thread->next.count > 1)
        return thread->next.words[1];
    return thread->sequence;
}

/* Writes the held call if it has returned or cannot be waited for. Returns false if it is under
 * way. */
static bool merge_resolve_held(struct process *process, struct thread_stream *thread,
                               struct host *host)
{
    struct ttd_event *event = &thread->held;
    merge_peek(thread, host);
    if (event->action != TTD_ACTION_REALLOC) {
        bool running = !thread->has_next && atomic_load(&thread->shared->in_release) != 0;
        if (running && !process->is_dead && !merge_is_pressed(thread, host))
            return false;
        if (!running || !process->is_dead)
            event->time_end = merge_count_step(thread);
    } else if (thread->has_next && merge_next_record_sequence(thread) <= process->last_sequence &&
               call_shapes[record_operation(thread->next.head)].kind == CALL_END) {
        merge_end_reallocation(process, thread);
        return true;
    } else if (!thread->has_next && !process->is_dead && !merge_is_pressed(thread, host)) {
        return false;
    }
    merge_release_held(process, thread);
    return true;
}

/* Reports the end of a reallocation that was written before its end was known. */
static void merge_report_late_end(struct process *process, struct thread_stream *thread,
                                  struct ttd_position position)
{
    struct ttd_position last = process->trace->last;
    bool is_behind = ttd_position_compare(position, last) > 0;
    trace_loss(process->trace, TTD_LOSS_LATE, thread->id, 1, last, is_behind ? position : last);
}

/* Begins with the thread's next record: writes it, or holds it until its end is known. */
static inline void merge_begin_record(struct process *process, struct thread_stream *thread)
{
    struct parsed_record parsed;
    if (!merge_parse(process, thread, &thread->next, &parsed)) {
        merge_abandon_stream(process, thread);
        return;
    }
    if (!thread->is_defined) {
        thread_stream_define(thread, process->trace, process->pid);
        process_end_unreturned(process, thread->tid, merge_next_stamp(thread, &parsed));
    }
    unsigned kind = parsed.shape->kind;
    if (kind == CALL_END) { /* of a reallocation that was written without it */
        merge_report_late_end(process, thread, merge_stamped_step(thread, &parsed));
        merge_consume(thread);
        return;
    }
    if (kind == CALL_EVENT) {
        if (user_events_write(process, thread, merge_stamped_step(thread, &parsed), parsed.operands,
                              record_added(thread->next.head)))
            merge_consume(thread);
        else
            merge_abandon_stream(process, thread);
        return;
    }
    struct ttd_event *event = &thread->held;
    merge_begin_call(process, thread, &parsed);
    if (kind == CALL_ACQUISITION) {
        event->time_start = merge_count_step(thread);
        event->time_end = merge_stamped_step(thread, &parsed);
    } else {
        event->time_start = merge_stamped_step(thread, &parsed);
        event->time_end = ttd_position_invalid();
    }
    event->stack = merge_update_stack(process, thread, &thread->next, &parsed);
    if (event->api >= TTD_API_LIVE_HEAP_CREATE && event->api <= TTD_API_LIVE_HEAP_DESTROY)
        heaps_complete(process, thread, event);
    merge_consume(thread);
    if (kind == CALL_ACQUISITION) {
        event->wall_time = thread->wall_time;
        trace_event(process->trace, event, event->time_end);
    } else {
        thread->has_held = true;
        thread->pressed_since = 0;
    }
}

/* Takes the thread's next record. False when that cannot be done yet. */
static inline bool merge_record(struct process *process, struct thread_stream *thread,
                                struct host *host)
{
    if (!thread->has_held)
        merge_begin_record(process, thread);
    return !thread->has_held || merge_resolve_held(process, thread, host);
}

/* Returns the sequence of the thread's next record or held call; UINT64_MAX if it has none. */
static uint64_t merge_next_sequence(struct thread_stream *thread, struct host *host)
{
    if (thread->has_held)
        return thread->held.time_start.sequence;
    merge_peek(thread, host);
    return thread->has_next ? merge_next_record_sequence(thread) : UINT64_MAX;
}

static void merge_fill_queue(struct merge_queue *queue, struct process *process, struct host *host)
{
    for (size_t i = 0; i < process->thread_count; i++) {
        uint64_t sequence = merge_next_sequence(process->threads[i], host);
        if (sequence != UINT64_MAX)
            queue->entries[queue->count++] = (struct merge_entry){sequence, process->threads[i]};
    }
    for (size_t i = queue->count / 2; i-- > 0;)
        merge_queue_sift(queue, i);
}

/* Ends the recording of a process whose trace has the size that was asked for. */
static void merge_stop_if_full(struct process *process, struct host *host)
{
    if (!trace_is_full(process->trace))
        return;
    trace_stop(process->trace);
    user_events_stop(process, host);
}

size_t process_merge(struct process *process, struct host *host, uint64_t bound)
{
    size_t merged = 0;
    struct merge_queue queue = {process->queue, 0};
    bound = bound < process->last_sequence ? bound : process->last_sequence;
    losses_of_process(process, host);
    for (size_t i = 0; i < process->thread_count; i++)
        losses_of_thread(process, process->threads[i], host);
    merge_fill_queue(&queue, process, host);
    while (queue.count > 0 && queue.entries[0].sequence <= bound) {
        struct merge_entry *first = &queue.entries[0];
        if (merge_log_is_due(process, host))
            merge_log_apply(process, host, first->sequence);
        user_events_reach(process, first->sequence);
        size_t run_count = run_merge(process, first->thread);
        if (run_count == 0 && !merge_record(process, first->thread, host))
            break;
        run_count += run_count == 0;
        if (merged % RECORDS_PER_TICK + run_count >= RECORDS_PER_TICK) {
            ring_step(process->trace, host_tick(host));
            merge_stop_if_full(process, host);
        }
        merged += run_count;
        uint64_t sequence = merge_next_sequence(first->thread, host);
        if (sequence == first->sequence)
            continue;
        first->sequence = sequence;
        if (sequence == UINT64_MAX)
            *first = queue.entries[--queue.count];
        merge_queue_sift(&queue, 0);
    }
    merge_log_apply(process, host, bound);
    if (queue.count == 0 || queue.entries[0].sequence > bound)
        user_events_reach(process, process->reached = bound);
    merge_stop_if_full(process, host);
    return merged;
}
