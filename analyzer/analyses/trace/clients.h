/* SPDX-License-Identifier: MIT */
/** The clients and the activities that the marks of a trace name. */
#ifndef ANALYZER_ANALYSES_TRACE_CLIENTS_H
#define ANALYZER_ANALYSES_TRACE_CLIENTS_H

#include <ttdtrace/reader.h>

#include "travel/marks.h"

/** Number of clients, and of activities, that are kept: a trace may name any number. */
#define HEAP_CLIENTS_MAX 4096

/** A client; or an activity of a client, or of none. */
struct heap_client {
    /** Zeros for none. */
    uint8_t client[16];
    /** 0 for a client. */
    uint64_t activity;
    /** Number of marks of a client, or of islands that an activity began. */
    uint64_t count;
    /** Positions of the first and the last of these. */
    struct ttd_position first;
    struct ttd_position last;
};

/** Sorted by client, then by activity. */
struct heap_client_list {
    struct heap_client *items;
    size_t count;
    size_t capacity;
    /** There are more, which did not fit. */
    bool is_cut;
};

/** All zero when empty; release with heap_clients_free(). */
struct heap_clients {
    struct heap_client_list clients;
    /** Islands of activity 0 as well. */
    struct heap_client_list activities;
};

/** Adds what a mark names. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_clients_add(struct heap_clients *clients, const struct heap_mark *mark);
void heap_clients_free(struct heap_clients *clients);

#endif
