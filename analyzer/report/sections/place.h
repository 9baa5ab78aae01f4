/* SPDX-License-Identifier: MIT */
/** Labels of places: a person's name for a word of memory that holds a block. Internal to report/.
 */
#ifndef ANALYZER_REPORT_SECTIONS_PLACE_H
#define ANALYZER_REPORT_SECTIONS_PLACE_H

#include "analyses/reachability/places.h"
#include "report/sections/report.h"
#include "report/writers/row.h"

/**
 * Writes a label such as "redis-server .bss: server+0x1f8", "thread 3, stack, main (redis.c:7012)
 * +0x48", "thread 1, rdi", "libc.so.6 TLS of thread 1 +0x40", "mapping 0x7f0000 (anonymous, 2 MB)
 * +0x10".
 *
 * @param has_offset  otherwise the label is of the whole variable, frame or mapping, of a stack
 *                    whose frames are not known, or of all registers of the thread
 */
void report_place_text(struct report *report, const struct heap_place *place, bool has_offset);
/** Writes the label and its parts as an object; in CSV the label. */
void row_place(struct row *row, const char *key, const struct heap_place *place, bool has_offset);

/**
 * Writes what an address is that lies in no block, such as "prog .data: table+0x10", "prog+0x2010,
 * code or constants" or "a null pointer, or a member of an object at one".
 *
 * @param label   written before it
 * @param places  of a snapshot near the time when the address was used, or NULL
 * @return false, with nothing written, if that is not known, or the address is one of the heap's
 */
bool report_address_text(struct report *report, const char *label, const struct heap_places *places,
                         uint64_t address);
/** Writes the place of the address as the member `place`; null if no snapshot shows it. */
void row_address(struct row *row, const struct heap_places *places, uint64_t address);

#endif
