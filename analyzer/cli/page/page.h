/* SPDX-License-Identifier: MIT */
/** Making a page: a file of HTML that has everything it needs in it. Its data are what commands
 * print; they are collected in a memory file, and compressed when the page is written. */
#ifndef ANALYZER_CLI_PAGE_PAGE_H
#define ANALYZER_CLI_PAGE_PAGE_H

#include "cli/session/session.h"

/** A piece of the page around what the program puts into it, made from the sources in viewer/. */
struct page_piece {
    const unsigned char *text;
    size_t size;
};

/** Pieces: between them are what else the policy allows, the data, and what an exact page has
 * besides. */
#define PAGE_PIECES 4

/** Sizes are 0 if the viewer was not built. */
extern const struct page_piece page_frame[PAGE_PIECES];

/** Whether this build can make pages. */
bool page_is_built(void);

/** Makes all output of the session go into the data of a page. Returns an exit status. */
int page_begin(struct session *session);

/** Drops the data of a page after a failure. */
void page_drop(struct session *session);

struct page_trace;

/** Writes the page with the data to the output that the options name; with a trace, unless that is
 * NULL. Returns an exit status. */
int page_write(struct session *session, const struct page_trace *trace);

/** Begins the part of a page that has the report of a command, with a certainty of its own. */
void page_begin_report(struct session *session, const struct command *command);

/** Makes such a part by running the command, with its defaults. Returns an exit status. */
int page_run_part(struct session *session, const struct command *command);

#endif
