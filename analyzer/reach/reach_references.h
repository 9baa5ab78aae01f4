/* SPDX-License-Identifier: MIT */
/**
 * The references of a snapshot, with the nodes that their values may lie in. If the snapshot is
 * large, another thread reads and looks up references while those before are taken.
 *
 * Private to reach/.
 */
#ifndef ANALYZER_REACH_REACH_REFERENCES_H
#define ANALYZER_REACH_REACH_REFERENCES_H

#include <ttdtrace/reader.h>

#include "base/ring.h"
#include "reach/builder.h"

/** Groups that are in memory: some that were read, and one that is being read. */
#define REACH_GROUPS 8

/** References that were read together. */
struct reach_reference_group {
    struct ttd_reference *references;
    /** By reference: the innermost node that its value lies in; HEAP_NO_NODE if there is none. */
    uint32_t *targets;
    size_t count;
};

/** See reach_references_begin(). All zero when empty. */
struct reach_references {
    struct reach_builder *builder;
    struct ttd_reader *reader;
    struct ttd_error *error;
    /** The index of the nodes, for the thread. */
    struct address_index index;
    /** The batch that is being read, the next of its records, and the next reference of that. */
    struct ttd_batch batch;
    size_t next_record;
    size_t next_reference;
    /** The slots of the ring, which the thread fills and the caller empties. */
    struct reach_reference_group groups[REACH_GROUPS];
    struct ring ring;
    bool is_running;
    pthread_t thread;
    /** The caller still uses the slot at `tail`: it is emptied when the next group is asked for. */
    bool holds;
    /** Status of the reading: TTD_OK while there may be more groups, then the reason for its end.
     */
    enum ttd_status status;
};

/**
 * Begins to read the references of the builder's snapshot.
 *
 * @param builder     its members `seen` and `reach->misplaced` count meanwhile
 * @param reader      nobody else may call it before reach_references_end()
 * @param error       set on failure; not NULL
 * @param references  must not be moved; release with reach_references_end(), also on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status reach_references_begin(struct reach_references *references,
                                       struct reach_builder *builder, struct ttd_reader *reader,
                                       struct ttd_error *error);
void reach_references_end(struct reach_references *references);

/**
 * Gives the next references, without those that lie in no region; of a builder that finds classes
 * only those that may point at one.
 *
 * @param group  set on TTD_OK; valid until the next call
 * @return TTD_OK, or as ttd_reader_next().
 */
enum ttd_status reach_references_next(struct reach_references *references,
                                      const struct reach_reference_group **group);

#endif
