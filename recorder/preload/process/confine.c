/* SPDX-License-Identifier: MIT */
/*
 * Programs that confine themselves to some system calls (hooks/confine.c). From then on any other
 * call may kill the process, so the recorder makes none: it maps memory beforehand and spins where
 * it would wait for the collector. Records that would need a system call are lost and counted.
 */
#include "preload/end/fatal.h"
#include "preload/channel/target.h"
#include "preload/system/memory.h"

/* Memory for threads that start later, and for stacks that get deeper. Pages that are never touched
 * cost only addresses. */
enum { RESERVE_BYTES = 8 * 1024 * 1024 };

bool process_is_confined;

/* Ends system calls for good, even if the attempt to confine fails: its result is not seen. */
void process_confine(void)
{
    if (process_is_confined)
        return;
    if (target_channel != NULL)
        channel_map_ahead();
    fatal_unwatch();
    unwind_confine(RESERVE_BYTES);
    process_is_confined = true;
}
