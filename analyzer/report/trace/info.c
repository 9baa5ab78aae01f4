/* SPDX-License-Identifier: MIT */
/* The values of `info` that its formats share. */
#include "report/trace/info.h"

#include <time.h>

const char *info_end_reason(const struct report_info *data)
{
    static const char *const names[] = {"unknown", "exited", "killed", "detached", "not recorded"};
    size_t reason = (size_t)data->end->reason;
    return reason < sizeof names / sizeof names[0] ? names[reason] : names[0];
}

bool info_has_end_code(const struct report_info *data)
{
    return data->is_closed && (data->end->reason == TTD_END_REASON_EXITED ||
                               data->end->reason == TTD_END_REASON_SIGNALED);
}

const char *info_architecture(uint32_t architecture)
{
    static const char *const names[] = {"unknown", "x86_64", "aarch64", "x86", "arm", "riscv64"};
    return architecture < sizeof names / sizeof names[0] ? names[architecture] : names[0];
}

void info_start_time(const struct report_info *data, char text[INFO_TIME_SIZE])
{
    time_t seconds = (time_t)(data->trace->start_time / 1000000000);
    struct tm parts;
    if (!gmtime_r(&seconds, &parts) ||
        !strftime(text, INFO_TIME_SIZE, "%Y-%m-%dT%H:%M:%SZ", &parts))
        text[0] = '\0';
}

uint64_t info_memory_bytes(const struct heap_trace_stats *stats)
{
    const struct heap_trace_stats_chunks *pages = &stats->kinds[TTD_KIND_PAGES];
    uint64_t headers = pages->chunks * INFO_PAGES_HEADER;
    return pages->raw_bytes > headers ? pages->raw_bytes - headers : 0;
}

double info_bytes_per_event(const struct heap_trace_stats *stats)
{
    /* Stacks, names and indexes are not counted: they depend on the program, not on its number of
     * calls. */
    double stored = (double)stats->kinds[TTD_KIND_EVENTS].stored_bytes;
    return stats->events ? stored / (double)stats->events : 0;
}
