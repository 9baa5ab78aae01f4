/* SPDX-License-Identifier: MIT */
#include "collect/upkeep.h"

#include <inttypes.h>

#include "collect/process/user_events.h"
#include "collect/requests.h"
#include "messages.h"

#define FLUSH_NS         UINT64_C(1000000000)
#define REAP_NS          UINT64_C(500000000)
#define CONTROL_NS       UINT64_C(20000000)
#define PREPARE_NS       UINT64_C(50000000)
#define PREPARE_AGAIN_NS UINT64_C(1000000000)
/* Names are written into one trace at a time: nothing is collected during those milliseconds. */
#define NAMES_NS      UINT64_C(10000000)
#define NAMES_EACH_NS UINT64_C(250000000)

/* Starts a lookup of the names that a process lacks. A process that has just begun waits: most end
 * soon. */
static void upkeep_prepare_names(struct collector *collector, struct process *process, uint64_t now)
{
    bool is_old = now > process->start && now - process->start >= PREPARE_NS;
    if (process->trace->writer == NULL || !is_old)
        return;
    trace_closers_prepare(&collector->closers, process->trace);
    process->next_prepare = now + PREPARE_AGAIN_NS;
}

/* Does so at once when the number of its addresses has doubled since the last time, otherwise once
 * in a while if it has grown. */
static void prepare_if_due(struct collector *collector, struct process *process, uint64_t now)
{
    size_t count = process->trace->modules.frame_count, prepared = process->trace->frames_prepared;
    if (count > 2 * prepared || (count > prepared && now >= process->next_prepare))
        upkeep_prepare_names(collector, process, now);
}

void upkeep_at_end(struct collector *collector, struct process *process)
{
    if (process->trace->modules.frame_count > process->trace->frames_prepared)
        upkeep_prepare_names(collector, process, host_now(&collector->host));
}

void upkeep_after_snapshot(struct collector *collector, struct process *process)
{
    if (process->trace->variables.count > 0)
        upkeep_prepare_names(collector, process, host_now(&collector->host));
}

/* Writes cached names into the next trace that is due. */
static void upkeep_write_names(struct collector *collector, uint64_t now)
{
    size_t count = collector->processes.count;
    for (size_t i = 0; i < count; i++) {
        size_t index = (collector->names_turn + i) % count;
        struct process *process = collector->processes.items[index];
        if (process->next_names > now)
            continue;
        process->next_names = now + NAMES_EACH_NS;
        trace_write_known_names(process->trace, collector->closers.names);
        collector->names_turn = index + 1;
        return;
    }
}

/* Says that calls are lost as soon as they are, and again when their number has doubled. */
static void tell_losses(struct trace *trace)
{
    if (trace->lost == 0 || trace->lost < 2 * trace->lost_told)
        return;
    trace->lost_told = trace->lost;
    message("warning: '%s': %" PRIu64 " call%s lost so far", trace->path, trace->lost,
            trace->lost == 1 ? "" : "s");
}

void upkeep(struct collector *collector, uint64_t now)
{
    if (now >= collector->next_control) {
        control_step(&collector->control, now, requests_answer, collector);
        collector->next_control = now + CONTROL_NS;
    }
    if (now >= collector->next_prepare) {
        for (size_t i = 0; i < collector->processes.count; i++)
            prepare_if_due(collector, collector->processes.items[i], now);
        collector->next_prepare = now + PREPARE_NS;
    }
    if (now >= collector->next_names) {
        upkeep_write_names(collector, now);
        collector->next_names = now + NAMES_NS;
    }
    if (now >= collector->next_flush) {
        for (size_t i = 0; i < collector->processes.count; i++) {
            user_events_memory(collector->processes.items[i], &collector->host);
            trace_flush(collector->processes.items[i]->trace);
            tell_losses(collector->processes.items[i]->trace);
            host_tick(&collector->host); /* there may be thousands */
        }
        collector->next_flush = now + FLUSH_NS;
    }
    if (now >= collector->next_reap) {
        for (size_t i = 0; i < collector->processes.count; i++)
            process_reap_threads(collector->processes.items[i], &collector->host);
        collector->next_reap = now + REAP_NS;
    }
}
