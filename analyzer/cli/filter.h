/* SPDX-License-Identifier: MIT */
/** Which events are wanted. */
#ifndef ANALYZER_CLI_FILTER_H
#define ANALYZER_CLI_FILTER_H

#include "base/map.h"
#include "cli/position_spec.h"
#include "cli/numbers.h"
#include "symbols/definitions.h"
#include "symbols/memo.h"

#define FILTER_ADDRESSES 16

/** Start from filter_init(). What is not given lets everything pass. */
struct filter {
    /** A bit for each ttd_action. */
    uint32_t actions;
    /** As given: a number, or "os:" and a number. */
    bool has_thread;
    bool is_os_thread;
    uint64_t thread;
    /** As given: a handle, or a name. */
    const char *heap_name;
    bool has_heap;
    uint64_t heap;
    struct number_range addresses[FILTER_ADDRESSES];
    size_t address_count;
    struct number_range size;
    bool has_size;
    /** As given: a pattern, or an identifier. */
    const char *stack_pattern;
    bool has_stack;
    uint64_t stack;
    /** Whether the pattern matches. */
    struct stack_memo stack_matches;
    enum ttd_status status;
};

void filter_init(struct filter *filter);
void filter_free(struct filter *filter);

/* Read an option's argument; false if it is invalid. */
bool filter_add_actions(struct filter *filter, const char *text);
bool filter_set_thread(struct filter *filter, const char *text);
bool filter_set_heap(struct filter *filter, const char *text);
bool filter_add_address(struct filter *filter, const char *text);
bool filter_set_size(struct filter *filter, const char *text);
bool filter_set_stack(struct filter *filter, const char *text);

/** Kinds of definitions that the filter needs. */
uint32_t filter_kinds(const struct filter *filter);

/** Parts of a filter that name something of the trace, and can be misspelled. */
enum filter_name { FILTER_THREAD, FILTER_HEAP, FILTER_STACK, FILTER_NAMES };

/** The option of a part, such as "--thread". Static. */
const char *filter_option(enum filter_name part);

/** Kinds of definitions that filter_knows() needs. */
uint32_t filter_known_kinds(const struct filter *filter);

/** Sets `is_known` to whether there is in the trace what a part names, if it does. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY. */
enum ttd_status filter_knows(const struct filter *filter, struct definitions *definitions,
                             enum filter_name part, bool *is_known);

/** Whether the event is wanted. A lack of memory is kept in wanted->status. */
bool filter_passes(struct filter *filter, struct definitions *definitions,
                   const struct ttd_event *event);

#endif
