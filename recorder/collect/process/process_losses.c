/* SPDX-License-Identifier: MIT */
#include "collect/process/processes.h"

void losses_of_thread(struct process *process, struct thread_stream *thread,
                      const struct host *host)
{
    static const enum ttd_loss_reason reasons[LOSS_OFF] = {
        [LOSS_OVERFLOW] = TTD_LOSS_OVERFLOW,
        [LOSS_REENTRANT] = TTD_LOSS_REENTRANT,
    };
    const struct thread_slot *slot = thread->shared;
    for (int i = 0; i < LOSS_OFF; i++) {
        uint64_t lost = atomic_load_explicit(&slot->lost[i], memory_order_acquire);
        if (lost == thread->lost[i])
            continue;
        uint64_t newest = atomic_load(&host->channel->sequence);
        struct ttd_position first_good = ttd_position_max();
        if (newest < TTD_SEQUENCE_MAX)
            first_good = (struct ttd_position){newest + 1, 0};
        trace_loss(process->trace, reasons[i], thread->id, lost - thread->lost[i], thread->checked,
                   first_good);
        thread->lost[i] = lost;
    }
    thread->checked = process->trace->last;
}

void losses_of_gap(struct process *process, struct thread_stream *thread, bool is_off,
                   struct ttd_position position, uint64_t skipped)
{
    if (is_off && !thread->is_off)
        thread->off = position;
    if (trace_is_stopped(process->trace)) {
        process->trace->lost += skipped;
    } else if (skipped != 0 && ttd_position_compare(thread->off, position) <= 0) {
        trace_loss(process->trace, TTD_LOSS_NOT_RECORDING, thread->id, TTD_UNKNOWN, thread->off,
                   position);
        process->gaps++;
    }
    if (skipped != 0)
        thread->off = position;
    thread->is_off = is_off;
    thread->lost[LOSS_OFF] += skipped;
}

void losses_of_last_gap(struct process *process, struct thread_stream *thread,
                        const struct host *host)
{
    uint64_t newest = atomic_load(&host->channel->sequence);
    uint64_t lost = atomic_load_explicit(&thread->shared->lost[LOSS_OFF], memory_order_acquire);
    if (!thread->outer && lost != thread->lost[LOSS_OFF] && newest < TTD_SEQUENCE_MAX)
        losses_of_gap(process, thread, true, (struct ttd_position){newest + 1, 0},
                      lost - thread->lost[LOSS_OFF]);
}

void losses_of_process(struct process *process, struct host *host)
{
    static const struct {
        uint32_t note;
        const char *text;
    } reasons[] = {
        {NOTE_FOREIGN_MALLOC,
         "calls of malloc, free or operator new that the program defines itself"},
        {NOTE_PATCHED, "calls of malloc, free or operator new that the program defines itself, "
                       "before its start or inlined"},
        {NOTE_NAMESPACE, "calls of modules loaded with dlmopen(), which have a heap of their own"},
        {NOTE_ALLOCATOR, "calls of mallocx() and its like, by modules that were loaded later"},
        {NOTE_WITHIN,
         "calls of an allocator that is linked in under other names, such as je_malloc()"},
        {NOTE_ARENAS, "calls that release all blocks of an allocator's arena or heap at once"},
    };
    uint32_t notes = atomic_load(&channel_process(&host->view, process->slot)->notes);
    bool may_be_patched = !process->is_dead && (notes & NOTE_STARTED) == 0;
    if ((notes & (NOTE_OF_PROGRAM | NOTE_PATCHED_WITHIN)) == NOTE_OF_PROGRAM && !may_be_patched)
        notes |= NOTE_WITHIN;
    uint32_t fresh = notes & ~process->notes & NOTES_UNRECORDED;
    for (size_t i = 0; fresh != 0 && i < sizeof reasons / sizeof *reasons; i++)
        if (fresh & reasons[i].note)
            trace_metadata(process->trace, "unrecorded", reasons[i].text);
    /* Another allocator, and calls before the start, release none of the blocks that are known. */
    if (fresh != 0)
        trace_loss(process->trace, TTD_LOSS_NOT_RECORDING, TTD_NONE, TTD_UNKNOWN, process->checked,
                   (fresh & ~(NOTE_WITHIN | NOTE_PATCHED)) == 0 ? ttd_position_invalid()
                                                                : ttd_position_max());
    process->notes |= fresh;
    process->checked = process->trace->last;
}
