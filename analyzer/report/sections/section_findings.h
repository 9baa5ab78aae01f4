/* SPDX-License-Identifier: MIT */
/** Findings in the formats of services that run tests: SARIF 2.1.0, XML of JUnit, and annotations
 * of GitHub Actions. */
#ifndef ANALYZER_REPORT_SECTIONS_SECTION_FINDINGS_H
#define ANALYZER_REPORT_SECTIONS_SECTION_FINDINGS_H

#include "report/sections/report.h"

#define LISTED_TEXT 160

struct listed_finding {
    /** Its kind, such as "double-free". Static. */
    const char *rule;
    /** The program is to blame, as --error-exitcode counts it. */
    bool is_error;
    bool is_certain;
    ttd_id stack;
    /** The finding in one line, without its place: words and numbers of ours only. */
    char text[LISTED_TEXT];
};

struct listed_findings {
    /** The command, such as "leaks"; and the unit that a baseline counts, such as "block". */
    const char *command;
    const char *unit;
    size_t count;
    /** Sets one of them. It is called several times for each. */
    void (*at)(const void *context, size_t index, struct listed_finding *finding);
    const void *context;
    /** A view by function: only it knows which frames are the program's own. */
    struct view *view;
};

/** Whether a form is one of these formats. */
static inline bool report_form_lists_findings(enum report_form form)
{
    return form >= REPORT_SARIF;
}

/** Writes all findings: these formats have no place to say that some are left out. Paths of files
 * below the current directory are relative to it, as the services expect them. */
void report_findings(struct report *report, const struct listed_findings *findings);

/**
 * Expands a stack from the last call of the program's own functions on.
 *
 * @param view  by function
 * @return the frame of that function, valid until the next stack is expanded; NULL without frames,
 *         and on failure: see report->status
 */
const struct frame *report_own_frame(struct report *report, struct view *view, ttd_id stack);

#endif
