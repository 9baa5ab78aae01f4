/* SPDX-License-Identifier: MIT */
/** Copying all that is intact; recover and amend share it. */
#ifndef TTD_READ_RECOVER_H
#define TTD_READ_RECOVER_H

#include "read/read_copy.h"

/** The new file in the making. All zero but copy.error, copy.trace_flags and copy.before_end. */
struct ttd_recovery {
    struct ttd_copy copy;
    /** Loss records written. */
    uint64_t losses;
    /** The largest ids in the chunks so far. */
    ttd_id strings;
    ttd_id modules;
    /** Chunks are missing before the last one, so that ids may be in use that are not known. */
    bool has_gaps;
    /** Ordinal of the next record of each kind that has ordinals. */
    uint64_t ordinals[TTD_KIND_LAST + 1];
};

/** Copies as ttd_recover() does. Both files are closed in any case. */
enum ttd_status ttd_recovery_run(struct ttd_recovery *recovery, const struct ttd_input *input,
                                 const struct ttd_output *output,
                                 const struct ttd_allocator *allocator,
                                 const struct ttd_problem_observer *observer,
                                 struct ttd_verdict *verdict);

#endif
