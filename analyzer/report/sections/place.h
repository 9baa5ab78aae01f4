/* SPDX-License-Identifier: MIT */
/** Labels of places: what a person calls a word of memory that holds a block. Internal to report/.
 */
#ifndef ANALYZER_REPORT_SECTIONS_PLACE_H
#define ANALYZER_REPORT_SECTIONS_PLACE_H

#include "analyses/reachability/places.h"
#include "report/sections/report.h"
#include "report/writers/csv.h"
#include "report/writers/json.h"

/**
 * Writes a label such as "redis-server .bss: server+0x1f8", "thread 3, stack, main (redis.c:7012)
 * +0x48", "thread 1, rdi", "libc.so.6 TLS of thread 1 +0x40", "mapping 0x7f0000 (anonymous, 2 MB)
 * +0x10".
 *
 * @param has_offset  otherwise the label is of the whole variable, frame or mapping, of a stack
 *                    whose frames are not known, or of all registers of the thread
 */
void report_place_text(struct report *report, const struct heap_place *place, bool has_offset);
void report_place_csv(struct report *report, struct csv *csv, const struct heap_place *place,
                      bool has_offset);
/** Writes the label and its parts as an object. */
void report_place_json(struct report *report, struct json *json, const char *key,
                       const struct heap_place *place, bool has_offset);

#endif
