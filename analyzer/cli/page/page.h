/* SPDX-License-Identifier: MIT */
/** Making a page of a report. */
#ifndef ANALYZER_CLI_PAGE_PAGE_H
#define ANALYZER_CLI_PAGE_PAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/session/session.h"
#include "report/writers/out.h"

/* Packing data for a page: compressing them, and writing them as text. */

/** Data compressed as raw deflate. */
struct page_packed {
    /** Release with free(). */
    unsigned char *data;
    size_t size;
};

/** Compresses data: quickly if they have at most `goal` bytes then, else better and much more
 * slowly. Returns false without memory. */
bool page_pack(const void *data, size_t size, size_t goal, struct page_packed *packed);

/** Returns how many bytes of packed data take at most so many of text. */
size_t page_packed_size(size_t text_size);

/** Whether browsers take so much packed data in one element. */
bool page_fits(size_t size);

/**
 * Writes packed data as text: their size, a space, and digits of 91 characters without a meaning in
 * HTML. Two digits stand for 13 bits, lowest first: 8 % less room than base64.
 */
void page_write_packed(struct text_output *output, const struct page_packed *packed);

/* Making a page: a file of HTML that has everything it needs in it. Its data are the output of
 * commands; the data of each trace are collected in a memory file, and compressed. */

/** A constant piece of the page, made from the sources in viewer/. */
struct page_piece {
    const unsigned char *text;
    size_t size;
};

/** Pieces: between them stand the rest of the policy, and the data. */
#define PAGE_PIECES 3

/** Sizes are 0 if the viewer was not built. */
extern const struct page_piece page_frame[PAGE_PIECES];

/** Whether this build can make pages. */
bool page_is_built(void);

/** Returns how many bytes a page of the sums of a trace is to have at most: 300 kB and 3 % of the
 * trace. */
static inline uint64_t page_size_goal(uint64_t trace_size)
{
    return 300000 + trace_size / 100 * 3;
}

/** Makes all output of the session go into the data of a page. Returns an exit status. */
int page_begin(struct session *session);

/** Completes the data of the session and packs them. Returns an exit status; on success, `packed`
 * belongs to the caller. */
int page_end(struct session *session, struct page_packed *packed);

/** Drops the data of a page after a failure. */
void page_drop(struct session *session);

/** The packed parts of a page that are of one trace. */
struct page_block {
    struct page_packed data;
    /** The trace itself, in an exact page; otherwise empty. */
    struct page_packed trace;
};

/** A page before it is written. All zero when empty. */
struct page {
    struct page_block *blocks;
    size_t count;
    /** The comparison of two traces; empty if there is none. */
    struct page_packed comparison;
    /** The engine of an exact page; otherwise empty. */
    struct page_packed engine;
};

void page_free(struct page *page);

/** Writes the page to the output that the options name; it must be none of their traces. Returns an
 * exit status. */
int page_write(const struct common_options *options, const struct page *page);

/** Begins a part of a page that has the report of a command, with a certainty of its own. */
void page_begin_report(struct session *session, const char *part);

/** Makes such a part by running the command, with its defaults. Returns an exit status. */
int page_run_part(struct session *session, const struct command *command);

/* Additions of an exact page: the trace, and the engine that answers questions about it. */

/** The engine, a program of WebAssembly; size 0 if it was not built. */
struct page_engine {
    const unsigned char *data;
    size_t size;
};

extern const struct page_engine page_engine;

/** Whether this build can make exact pages. */
bool page_has_engine(void);

/**
 * Reads the session's trace once more, and packs it. Without `has_contents`, leaves out the
 * contents of memory, and also the damaged parts of a trace, since these may be contents.
 *
 * @param trace  set on STATUS_OK; belongs to the caller
 * @return an exit status; on failure a message was printed
 */
int page_trace_read(struct session *session, bool has_contents, struct page_packed *trace);

/** Packs the engine. Returns false without memory. */
bool page_pack_engine(struct page_packed *engine);

#endif
