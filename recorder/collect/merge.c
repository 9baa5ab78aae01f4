/* SPDX-License-Identifier: MIT */
/* Merging the threads of a process: fragments in the order of their sequences. */
#include <stdio.h>
#include <string.h>

#include "../channel_record.h"
#include "log.h"
#include "losses.h"
#include "process.h"

enum { RECORDS_PER_TICK = 4096 };

#define PRESSED_NS UINT64_C(100000000)

/* A record, checked. */
struct parsed {
    const struct call_shape *shape;
    const volatile uint64_t *operands; /* the added frames are behind them */
    uint64_t sequence;                 /* if it begins a new fragment */
    bool is_new;
};

/* What has changed since the thread's last record. */
static bool parse_changes(const struct process *process, struct reader *reader,
                          const struct record *record, struct parsed *parsed)
{
    unsigned flags = record_flags(record->head);
    if (flags & RECORD_SEQUENCE) {
        parsed->is_new = true;
        parsed->sequence = *parsed->operands++;
        if (parsed->sequence < reader->sequence || parsed->sequence > TTD_SEQUENCE_MAX)
            return false;
    }
    if (flags & RECORD_CLOCK)
        reader->wall_time = process_time(process, *parsed->operands++);
    return true;
}

static inline bool parse(const struct process *process, struct reader *reader,
                         const struct record *record, struct parsed *parsed)
{
    uint64_t head = record->head;
    unsigned added = record_added(head), kept = record_kept(head);
    unsigned changes = record_changes(head);
    const struct call_shape *shape = &call_shapes[record_operation(head)];
    *parsed = (struct parsed){.shape = shape, .operands = record->words + 1};
    return shape->kind != CALL_UNKNOWN && kept <= reader->depth &&
           kept + added <= STACK_DEPTH_MAX &&
           record->count == 1u + changes + shape->operands + added &&
           (changes == 0 || parse_changes(process, reader, record, parsed));
}

/* A step that the thread only counted. */
static struct ttd_position count_step(struct reader *reader)
{
    return (struct ttd_position){reader->sequence, ++reader->steps};
}

/* The step that the record's stamp stands for. */
static struct ttd_position stamped_step(struct reader *reader, const struct parsed *parsed)
{
    if (!parsed->is_new)
        return count_step(reader);
    reader->sequence = parsed->sequence;
    reader->steps = 0;
    return (struct ttd_position){reader->sequence, 0};
}

static ttd_id update_stack(struct process *process, struct reader *reader,
                           const struct record *record, const struct parsed *parsed)
{
    uint32_t depth = record_kept(record->head);
    uint32_t added = record_added(record->head);
    const volatile uint64_t *frames = parsed->operands + parsed->shape->operands;
    ttd_id stack = depth != 0 ? reader->path[depth - 1] : TTD_NONE;
    for (uint32_t i = 0; i < added; i++)
        reader->path[depth++] = stack = trace_stack(process->trace, stack, frames[i]);
    reader->depth = depth;
    return stack;
}

static void peek(struct reader *reader, struct host *host)
{
    if (!reader->has_next)
        reader->has_next =
            stream_peek(&reader->stream, host, &reader->shared->first, &reader->next);
}

static void consume(struct reader *reader)
{
    stream_consume(&reader->stream, &reader->next);
    reader->has_next = false;
}

/* Whatever is in the stream now makes no sense: the program has written over it. */
static void give_up(struct process *process, struct reader *reader)
{
    stream_break(&reader->stream);
    reader->has_next = false;
    reader->holds = false;
    trace_loss(process->trace, TTD_LOSS_DAMAGE, reader->thread, TTD_UNKNOWN, process->trace->last,
               ttd_position_max());
}

static inline void begin_call(struct process *process, struct reader *reader,
                              const struct parsed *parsed)
{
    struct ttd_event *event = &reader->held;
    for (unsigned i = 0; i < parsed->shape->operands; i++)
        reader->operands[i] = parsed->operands[i];
    translate_call(parsed->shape, reader->operands, event);
    event->api = (uint8_t)record_operation(reader->next.head);
    event->thread = reader->thread;
    event->heap = process->trace->heap;
}

/* Writes a call that is over, or that never will be. */
static void release_held(struct process *process, struct reader *reader)
{
    if (!ttd_event_returned(&reader->held))
        reader->held.result = 0;
    reader->held.wall_time = reader->wall_time;
    reader->holds = false;
    trace_event(process->trace, &reader->held, reader->held.time_start);
}

/*
 * Whether the call that is under way has to be written as it is: much is waiting behind it, and has
 * for a while. Its thread may just not have been running, and others wait for memory by now; but it
 * may wait for memory itself.
 */
static bool is_pressed(struct reader *reader, const struct host *host)
{
    if (atomic_load_explicit(&host->channel->backlog, memory_order_relaxed) <=
        CHANNEL_BACKLOG / 2) {
        reader->pressed_since = 0;
        return false;
    }
    uint64_t now = host_now(host);
    if (reader->pressed_since == 0)
        reader->pressed_since = now;
    return now - reader->pressed_since > PRESSED_NS;
}

/* The reallocation that is held has returned, as the next record says. */
static void end_reallocation(struct process *process, struct reader *reader)
{
    struct parsed parsed;
    if (!parse(process, reader, &reader->next, &parsed)) {
        give_up(process, reader);
        return;
    }
    reader->held.time_end = stamped_step(reader, &parsed);
    translate_reallocation_end(parsed.operands[0], &reader->held);
    consume(reader);
    release_held(process, reader);
}

/* Writes the call that is held, if it can be; else it is still under way. */
static bool resolve_held(struct process *process, struct reader *reader, struct host *host)
{
    struct ttd_event *event = &reader->held;
    peek(reader, host);
    if (event->action == TTD_ACTION_FREE) {
        bool running = !reader->has_next && atomic_load(&reader->shared->in_release) != 0;
        if (running && !process->dead && !is_pressed(reader, host))
            return false;
        if (!running || !process->dead)
            event->time_end = count_step(reader);
    } else if (reader->has_next && record_operation(reader->next.head) == OP_REALLOC_END) {
        end_reallocation(process, reader);
        return true;
    } else if (!reader->has_next && !process->dead && !is_pressed(reader, host)) {
        return false;
    }
    release_held(process, reader);
    return true;
}

static void define_own_thread(struct process *process, struct reader *reader)
{
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/%u/task/%u/comm", process->pid, reader->tid);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        if (fgets(name, sizeof name, file) != NULL)
            name[strcspn(name, "\n")] = '\0';
        fclose(file);
    }
    struct ttd_position position = {reader->shared->sequence, 0};
    reader->thread = trace_thread_begin(process->trace, position, reader->tid, name);
    reader->is_defined = true;
}

static void define_thread(struct process *process, struct reader *reader)
{
    struct reader *outer = reader->outer != NULL ? reader->outer : reader;
    if (!outer->is_defined)
        define_own_thread(process, outer);
    reader->thread = outer->thread;
    reader->is_defined = true;
}

/* The end of a reallocation that was written as if it had none. */
static void lose_late(struct process *process, struct reader *reader, struct ttd_position position)
{
    struct ttd_position last = process->trace->last;
    bool is_behind = ttd_position_compare(position, last) > 0;
    trace_loss(process->trace, TTD_LOSS_LATE, reader->thread, 1, last, is_behind ? position : last);
}

/* Begins with the reader's next record: writes it, or holds it until it is known how it ended. */
static inline void begin(struct process *process, struct reader *reader)
{
    struct parsed parsed;
    if (!parse(process, reader, &reader->next, &parsed)) {
        give_up(process, reader);
        return;
    }
    if (!reader->is_defined)
        define_thread(process, reader);
    unsigned kind = parsed.shape->kind;
    if (kind == CALL_END) { /* of a reallocation that was not waited for */
        lose_late(process, reader, stamped_step(reader, &parsed));
        consume(reader);
        return;
    }
    struct ttd_event *event = &reader->held;
    begin_call(process, reader, &parsed);
    if (kind == CALL_ACQUISITION) {
        event->time_start = count_step(reader);
        event->time_end = stamped_step(reader, &parsed);
    } else {
        event->time_start = stamped_step(reader, &parsed);
        event->time_end = ttd_position_invalid();
    }
    event->stack = update_stack(process, reader, &reader->next, &parsed);
    consume(reader);
    if (kind == CALL_ACQUISITION) {
        event->wall_time = reader->wall_time;
        trace_event(process->trace, event, event->time_end);
    } else {
        reader->holds = true;
        reader->pressed_since = 0;
    }
}

/* Takes the reader's next record. False when that cannot be done yet. */
static inline bool take(struct process *process, struct reader *reader, struct host *host)
{
    if (!reader->holds)
        begin(process, reader);
    return !reader->holds || resolve_held(process, reader, host);
}

/* The sequence of what the reader has next; UINT64_MAX if it has nothing. */
static uint64_t next_sequence(struct reader *reader, struct host *host)
{
    if (reader->holds)
        return reader->held.time_start.sequence;
    peek(reader, host);
    if (!reader->has_next)
        return UINT64_MAX;
    if (record_flags(reader->next.head) & RECORD_SEQUENCE && reader->next.count > 1)
        return reader->next.words[1];
    return reader->sequence;
}

/* A heap of readers by the sequence of what they have next. */
struct queue {
    struct queued *items;
    size_t count;
};

static void sift_down(struct queue *queue, size_t at)
{
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < queue->count; child++)
            if (queue->items[child].sequence < queue->items[least].sequence)
                least = child;
        if (least == at)
            return;
        struct queued swap = queue->items[at];
        queue->items[at] = queue->items[least];
        queue->items[least] = swap;
        at = least;
    }
}

static void fill_queue(struct queue *queue, struct process *process, struct host *host)
{
    for (size_t i = 0; i < process->reader_count; i++) {
        uint64_t sequence = next_sequence(process->readers[i], host);
        if (sequence != UINT64_MAX)
            queue->items[queue->count++] = (struct queued){sequence, process->readers[i]};
    }
    for (size_t i = queue->count / 2; i-- > 0;)
        sift_down(queue, i);
}

size_t process_merge(struct process *process, struct host *host, uint64_t bound)
{
    size_t taken = 0;
    struct queue queue = {process->queue, 0};
    losses_of_process(process, host);
    for (size_t i = 0; i < process->reader_count; i++)
        losses_of_reader(process, process->readers[i], host);
    fill_queue(&queue, process, host);
    while (queue.count > 0 && queue.items[0].sequence <= bound) {
        struct queued *first = &queue.items[0];
        if (log_is_due(process, host))
            log_apply(process, host, first->sequence);
        if (!take(process, first->reader, host))
            break;
        if (++taken % RECORDS_PER_TICK == 0)
            host_tick(host);
        uint64_t sequence = next_sequence(first->reader, host);
        if (sequence == first->sequence)
            continue;
        first->sequence = sequence;
        if (sequence == UINT64_MAX)
            *first = queue.items[--queue.count];
        sift_down(&queue, 0);
    }
    log_apply(process, host, bound);
    return taken;
}
