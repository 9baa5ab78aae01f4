/* SPDX-License-Identifier: MIT */
/** Additions of an exact page: the trace, and the engine that answers questions about it. */
#ifndef ANALYZER_CLI_PAGE_PAGE_EXACT_H
#define ANALYZER_CLI_PAGE_PAGE_EXACT_H

#include "cli/page/page_compress.h"
#include "cli/session/session.h"

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
