/* SPDX-License-Identifier: MIT */
/** A filter of events, by the options of `events`. */
#ifndef ANALYZER_CLI_FILTER_H
#define ANALYZER_CLI_FILTER_H

#include "base/hash_map.h"
#include "base/numbers.h"
#include "cli/traces/source.h"
#include "symbols/trace_definitions.h"
#include "symbols/memo.h"

#define FILTER_ADDRESSES 16

/** A filter; one of zeros lets every event pass. */
struct filter {
    /** A bit for each ttd_action. */
    uint32_t actions;
    /** The thread: an identifier, or the system's number after "os:". */
    bool has_thread;
    bool is_os_thread;
    uint64_t thread;
    /** The heap: a handle, a name, or an identifier. */
    const char *heap_name;
    bool has_heap;
    bool is_heap_id;
    uint64_t heap;
    struct number_range addresses[FILTER_ADDRESSES];
    size_t address_count;
    struct number_range size;
    bool has_size;
    /** The stack: a pattern, or an identifier. */
    const char *stack_pattern;
    bool has_stack;
    uint64_t stack;
    /** Whether the pattern matches, by stack. */
    struct stack_memo stack_matches;
    enum ttd_status status;
};

void filter_free(struct filter *filter);

/* Parsers of options into a struct filter, like the parsers in command.h. */
bool filter_add_actions(const char *text, void *context);
bool filter_set_thread(const char *text, void *context);
bool filter_set_heap(const char *text, void *context);
bool filter_add_address(const char *text, void *context);
bool filter_set_size(const char *text, void *context);
bool filter_set_stack(const char *text, void *context);

/** Returns the kinds of definitions that the filter needs. */
uint32_t filter_kinds(const struct filter *filter);

/** Parts of a filter that name an object of the trace, and can be misspelled. */
enum filter_name { FILTER_THREAD, FILTER_HEAP, FILTER_STACK, FILTER_NAMES };

/** Returns the option of a part, such as "--thread". Static. */
const char *filter_option(enum filter_name part);

/** Returns the kinds of definitions that filter_knows() needs. */
uint32_t filter_known_kinds(const struct filter *filter);

/** Sets `is_known` to whether the trace has the object that a part names; true for a part that is
 * not given. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status filter_knows(const struct filter *filter, struct definitions *definitions,
                             enum filter_name part, bool *is_known);

/** Whether an event passes. A failure is kept in filter->status. */
bool filter_passes(struct filter *filter, struct definitions *definitions,
                   const struct ttd_event *event);

#endif
