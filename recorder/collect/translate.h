/* SPDX-License-Identifier: MIT */
/* From a recorded call to the normalized event that the trace has. */
#ifndef TTD_COLLECT_TRANSLATE_H
#define TTD_COLLECT_TRANSLATE_H

#include <stdbool.h>
#include <stdint.h>

#include <ttdtrace/model.h>

/* The call is over before it is seen, takes effect when it begins, or has a record of its own for
 * its end. */
enum call_kind { CALL_UNKNOWN, CALL_ACQUISITION, CALL_RELEASE, CALL_REALLOCATION };

enum { CALL_OPERANDS_MAX = 8 };

enum call_kind translate_kind(unsigned operation);

/*
 * Sets action, api, addresses, size, result and parameters of `event` from the record's operands
 * (record_operands() of them). `event->parameters` points into `operands`. What else only other
 * actions have is left alone.
 */
void translate_call(unsigned operation, const uint64_t *operands, ttd_event *event);

/* The end of a reallocation: what it returned. */
void translate_reallocation_end(uint64_t address, ttd_event *event);

#endif
