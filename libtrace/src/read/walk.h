/* SPDX-License-Identifier: MIT */
/** Going through all of a file, checking everything; verify and recover share it. */
#ifndef TTD_READ_WALK_H
#define TTD_READ_WALK_H

#include "read/internal.h"

/**
 * Walks through the input, which is closed in any case.
 *
 * @param check    its functions are called on the way
 * @param verdict  set on TTD_OK
 * @return as ttd_verify(), and what the functions return
 */
enum ttd_status ttd_walk_run(const struct ttd_check *check, const struct ttd_input *input,
                             const struct ttd_allocator *allocator, struct ttd_verdict *verdict,
                             struct ttd_error *error);

#endif
