/* SPDX-License-Identifier: MIT */
/* The names of an address, from the form in which they are looked up to that in which they are
 * written. */
#ifndef RECORDER_COLLECT_TRACE_FRAME_NAMES_H
#define RECORDER_COLLECT_TRACE_FRAME_NAMES_H

#include <ttdtrace/names.h>

#include "symbolize/symbolize.h"

/* Writes the names of an address. `count` is at most SYMBOLIZE_FRAMES_MAX. */
static inline enum ttd_status frame_names_write(struct ttd_names *names, ttd_id module,
                                                uint64_t offset,
                                                const struct symbolize_frame *frames, size_t count)
{
    struct ttd_name named[SYMBOLIZE_FRAMES_MAX];
    for (size_t i = 0; i < count; i++)
        named[i] = (struct ttd_name){
            .function = {frames[i].function, frames[i].function_size},
            .file = {frames[i].file, frames[i].file_size},
            .line = frames[i].line,
        };
    return ttd_names_symbol(names, module, offset, named, count);
}

#endif
