/* SPDX-License-Identifier: MIT */
/** Making a page: a file of HTML that has everything it needs in it. Its data are what commands
 * print; they are collected in a memory file, and compressed when the page is written. */
#ifndef ANALYZER_CLI_PAGE_PAGE_H
#define ANALYZER_CLI_PAGE_PAGE_H

#include "cli/session/session.h"

/** The page around the data, made from the sources in viewer/; sizes 0 if it was not built. */
struct page_frame_text {
    const unsigned char *begin;
    size_t begin_size;
    const unsigned char *end;
    size_t end_size;
};

extern const struct page_frame_text page_frame_text;

/** Whether this build can make pages. */
bool page_is_built(void);

/** Makes all output of the session go into the data of a page. Returns an exit status. */
int page_begin(struct session *session);

/** Drops the data of a page after a failure. */
void page_drop(struct session *session);

/** Writes the page with the data to the output that the options name. Returns an exit status. */
int page_write(struct session *session);

/** Begins the part of a page that has the report of a command, with a certainty of its own. */
void page_begin_report(struct session *session, const struct command *command);

/** Makes such a part by running the command, with its defaults. Returns an exit status. */
int page_run_part(struct session *session, const struct command *command);

#endif
