/* SPDX-License-Identifier: MIT */
/**
 * The report of `errors`: its data, and the function of each format that writes it. Nothing is
 * owned.
 */
#ifndef ANALYZER_REPORT_ERRORS_REPORTS_H
#define ANALYZER_REPORT_ERRORS_REPORTS_H

#include "analyses/errors/errors.h"
#include "analyses/errors/fatal.h"
#include "report/sections/sections.h"

/** The findings of `errors`. */
struct report_errors {
    const struct heap_errors *errors;
    /** The signal that the program died of, or NULL. */
    const struct heap_fatal *fatal;
    /** Findings to show. */
    size_t limit;
};

void text_errors(struct report *report, const struct report_errors *data);
void json_errors(struct report *report, const struct report_errors *data);
void csv_errors(struct report *report, const struct report_errors *data);

/** Writes the signal that the program died of, and what it points at; nothing for NULL. */
void report_fatal_text(struct report *report, const struct heap_fatal *fatal);
/** Writes the same as the member `fatal_signal`; null for NULL. */
void report_fatal_json(struct report *report, struct json *json, const struct heap_fatal *fatal);

#endif
