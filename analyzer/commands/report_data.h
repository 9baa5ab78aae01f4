/* SPDX-License-Identifier: MIT */
/** The data of one trace in a page. */
#ifndef ANALYZER_COMMANDS_REPORT_DATA_H
#define ANALYZER_COMMANDS_REPORT_DATA_H

#include "cli/session/session.h"
#include "report/page/model.h"

/** Groups at most in parts that list stacks with all their frames. */
#define REPORT_GROUPS_MAX 200

/**
 * Finds what the page shows of a trace, and writes it into memory: see page_begin().
 *
 * @param facts  of the page; has_snapshot is set
 * @return an exit status; on failure the data may have been begun
 */
int report_data_write(struct session *session, struct page_facts *facts);

#endif
