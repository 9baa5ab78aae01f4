/* SPDX-License-Identifier: MIT */
/**
 * The report of `errors`: its data, and the function that writes it in all forms. Nothing is
 * owned.
 */
#ifndef ANALYZER_REPORT_ERRORS_ERROR_REPORTS_H
#define ANALYZER_REPORT_ERRORS_ERROR_REPORTS_H

#include "analyses/errors/errors.h"
#include "analyses/errors/fatal.h"
#include "report/sections/sections.h"

/** The findings of `errors`. */
struct report_errors {
    const struct heap_errors *errors;
    /** The signal that the program died of, or NULL. */
    const struct heap_fatal *fatal;
    /** Places of addresses that lie in no block; NULL if no snapshot has them, or none is asked
     * for. */
    const struct heap_places *places;
};

void report_errors(struct report *report, const struct report_errors *data);

/** Writes the header of a finding of damage, and the block behind it. */
void report_damage_text(struct report *report, const struct heap_finding *finding);
/** Writes the member `damage`; null for another finding. */
void row_damage(struct row *row, const struct heap_finding *finding);

/** Writes the signal that the program died of, and the place of its address; nothing without one.
 */
void report_fatal_text(struct report *report, const struct report_errors *data);
/** Writes the registers that pointed at blocks then. */
void report_registers_text(struct report *report, const struct report_errors *data);
/** Writes the same as the member `fatal_signal`; null without one. */
void row_fatal(struct row *row, const struct report_errors *data);

#endif
