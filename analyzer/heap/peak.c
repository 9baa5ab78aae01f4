/* SPDX-License-Identifier: MIT */
#include "heap/peak.h"

ttd_status heap_peak_find(ttd_reader *reader, const heap_keyframes *keyframes,
                          const heap_batch_hook *hook, heap_peak *peak, heap_outcome *outcome,
                          ttd_error *error)
{
    heap_pass pass;
    bool is_known = keyframes && keyframes->has_peak;
    ttd_status status = heap_pass_run(&pass, reader, is_known ? keyframes : NULL,
                                      ttd_position_max(), NULL, hook, error);
    if (status == TTD_OK)
        *peak = is_known ? keyframes->peak : heap_replay_peak(&pass.cursor.replay);
    heap_pass_end(&pass, outcome);
    return status;
}
