/* SPDX-License-Identifier: MIT */
/** The certainty of an answer: the reasons why it may be wrong. */
#ifndef ANALYZER_TRAVEL_CERTAINTY_H
#define ANALYZER_TRAVEL_CERTAINTY_H

#include <stdbool.h>
#include <ttdtrace/snapshot.h>

#include "travel/heap_trace.h"
#include "travel/replay_to.h"

#define CERTAINTY_REASONS_MAX 8
#define CERTAINTY_REASON_SIZE 240

/** Reasons for uncertainty, as text. Without any the report is certain. */
struct certainty {
    char reasons[CERTAINTY_REASONS_MAX][CERTAINTY_REASON_SIZE];
    size_t count;
};

/** Whether the calls up to the program's end are known, and with them the fate of the blocks that
 * are live at the end of the trace. A later value says less. */
enum certainty_ending {
    ENDING_KNOWN,
    /** The program has ended by itself, but the snapshot that it was to take at its end is missing.
     */
    ENDING_UNSHOWN,
    /** The process is over, but not how it ended: it may have been killed. */
    ENDING_UNTOLD,
    /** A signal ended the process: it had no chance to release its blocks. */
    ENDING_KILLED,
    /** The recorder let the process go. */
    ENDING_DETACHED,
    /** The recording ended, and the program went on, or may have. */
    ENDING_CUT,
    /** Calls up to the end were not recorded. */
    ENDING_UNSEEN,
    /** No allocation of the last program was recorded, and not all calls were. */
    ENDING_NO_CALLS
};

/** The facts that certainty is judged by. */
struct certainty_facts {
    const struct ttd_trace *trace;
    bool is_closed;
    /** How the recording ended. Undefined unless `is_closed`. */
    struct ttd_end end;
    /** The recorder has chosen blocks: that others are missing is no doubt about the end. */
    bool has_choice;
    /** The snapshot of the program's end is missing: see struct heap_choice. */
    bool lacks_end_snapshot;
    bool is_truncated;
    bool is_given_up;
    /** The whole trace was read, and is intact. */
    bool is_intact;
    /** The trace was recovered, and parts of it are missing. */
    bool is_patched;
    /** An index stands for a part of the trace that was not read. */
    bool rests_on_index;
    /** A part of the trace was read, and the rest was not checked. */
    bool rests_on_part;
    /** The findings depend on wall times. */
    bool uses_times;
    /** The outcome of the replay that the findings rest on. */
    const struct heap_outcome *outcome;
    /** Position that the report is about; ttd_position_max() for the end. */
    struct ttd_position at;
    /** Number of readable events, if the position was given in percent of that number; else 0. */
    uint64_t part_of;
};

/** Adds a reason that is known as text. */
void certainty_add_reason(struct certainty *certainty, const char *reason);

/** Sets the reasons that follow from the facts. */
void certainty_judge(struct certainty *certainty, const struct certainty_facts *facts);

/** Finds out about the end of the trace; ENDING_KNOWN if the answer is about
 * a position before it. */
enum certainty_ending certainty_find_ending(const struct certainty_facts *facts);

/** Whether all calls up to the program's end are in the trace: a block that none of them releases
 * was never released, lost or not. */
bool certainty_knows_calls(enum certainty_ending ending);

/** Adds the reason why blocks are missing that the recorder has not chosen; none if it did not
 * choose. */
void certainty_add_choice(struct certainty *certainty, const struct heap_choice *choice);

/** Adds the reasons why a snapshot may be incomplete; none for a snapshot with number 0.
 * @param misplaced  number of references that lie in none of its regions */
void certainty_add_snapshot(struct certainty *certainty, const struct ttd_snapshot *snapshot,
                            uint64_t misplaced);

/** Adds the reason why pointers to blocks are not known, for a snapshot with number 0. */
void certainty_add_missing_snapshot(struct certainty *certainty,
                                    const struct ttd_snapshot *snapshot);

/** Add the reason why the contents of memory in a snapshot may come from different moments, or be
 * missing. */
void certainty_add_torn(struct certainty *certainty, const struct ttd_snapshot *snapshot);
void certainty_add_missing(struct certainty *certainty, const struct ttd_snapshot *snapshot);

/** Adds the reasons why a search of memory may have missed matches: see struct heap_search. */
void certainty_add_search(struct certainty *certainty, uint64_t searched, uint64_t unreadable);

/* The condition of a trace, which a certain answer needs. */

/**
 * Reads and checks all chunks of a trace: ttd_reader_is_intact() then has the result.
 *
 * @param trace  its hook sees each loss
 * @param ended  set to the reason if the trace ends within a chunk or cannot be read to its end;
 * else its status is TTD_OK
 * @return TTD_OK, the hook's status, TTD_ERROR_NO_MEMORY, and others of a reader.
 */
enum ttd_status certainty_check_all(const struct heap_trace *trace, struct ttd_error *ended);

/**
 * Sets `is_patched` to whether a trace was recovered, and something was missing then: it may have
 * been a list of losses, or of whatever a verdict rests on, since a loss in its place counts events
 * only. True on failure.
 *
 * @return as ttd_reader_next(), without its ends.
 */
enum ttd_status certainty_find_patch(struct ttd_reader *reader, bool *is_patched);

#endif
