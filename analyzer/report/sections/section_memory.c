/* SPDX-License-Identifier: MIT */
/* How much of the process's memory is heap at all. */
#include "report/sections/sections.h"

void report_memory_samples_text(struct report *report, const struct heap_memory_samples *samples,
                                uint64_t heap_peak, size_t column)
{
    struct text_output *output = report->output;
    if (!samples->most_resident)
        return;
    say(output, tab(column), rounded(samples->most_resident), " resident at most");
    /* The system keeps the most resident memory, but the samples may have missed mappings. */
    if (samples->most_mapped >= samples->most_resident)
        say(output, ", ", rounded(samples->most_mapped), " mapped");
    out_text(output, ", by samples\n");
    /* Memory that was resident once need not have been so at the heap's peak: there is no share. */
    if (heap_peak < samples->most_resident / 2)
        say(output, tab(column), "the heap had ", rounded(heap_peak),
            " at most: most is code, stacks and mappings, or kept free\n");
}
