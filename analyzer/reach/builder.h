/* SPDX-License-Identifier: MIT */
/** Collecting edges and roots from the references of a snapshot. Private to reach/. */
#ifndef ANALYZER_REACH_BUILDER_H
#define ANALYZER_REACH_BUILDER_H

#include <ttdtrace/reader.h>

#include "base/hash_map.h"
#include "base/task.h"
#include "graph/graph.h"
#include "heap/replay.h"
#include "reach/nodes.h"
#include "reach/reach.h"

/** Facts about the source of the previous edge, kept for the next edge of the same source. */
struct reach_ages {
    /** False if no edge can be stale; then nothing is looked up. */
    bool is_asked;
    /** HEAP_NO_NODE before the first edge. */
    uint32_t source;
    /** Words in it may be older than the block itself. */
    bool has_old_words;
};

static inline void reach_ages_init(struct reach_ages *ages, bool is_asked)
{
    *ages = (struct reach_ages){.is_asked = is_asked, .source = HEAP_NO_NODE};
}

/** Returns GRAPH_STALE for an edge whose word may be older than its block; otherwise 0. Edges of
 * one source come one after the other. */
static inline unsigned reach_ages_flag(struct reach_ages *ages, const struct heap_nodes *nodes,
                                       uint32_t source, uint32_t target)
{
    if (!ages->is_asked)
        return 0;
    if (source != ages->source) {
        ages->source = source;
        ages->has_old_words = !heap_nodes_is_cleared(nodes, source);
    }
    /* The edge from a block to the one it lies in stands for no word in memory. */
    return ages->has_old_words && heap_nodes_outer(nodes, source) != target ? GRAPH_STALE : 0;
}

/** An edge that was put off: its source comes before the source of an edge that was added already,
 * or it was itself added before such edges. */
struct reach_late_edge {
    uint32_t source;
    uint32_t target;
    uint32_t target_offset;
    uint64_t offset;
};

/** A word of a block, not its first one, that points at a table of virtual functions. */
struct reach_class_word {
    uint32_t node;
    uint32_t offset;
};

static inline bool reach_is_from_new_array(const struct heap_nodes *nodes, uint32_t node)
{
    uint64_t api = heap_nodes_get(nodes, node, HEAP_NODE_API);
    return api >= TTD_API_NEW_ARRAY && api <= TTD_API_NEW_ARRAY_ALIGNED_NOTHROW;
}

struct reach_builder {
    struct heap_reach *reach;
    /** References of the snapshot that were read. */
    uint64_t seen;
    /** The node that the last word lay in: words come in the order of addresses. */
    uint32_t near;
    /** The source of the edge that was added last. */
    uint32_t source;
    struct reach_ages ages;
    struct reach_late_edge *late;
    size_t late_count;
    size_t late_capacity;
    /** How often all edges were put off. */
    unsigned late_rounds;
    /** Index in reach->classes by address. */
    struct hash_map class_index;
    uint64_t class_min;
    uint64_t class_max;
    struct reach_class_word *class_words;
    size_t class_word_count;
    size_t class_word_capacity;
    /** A word that may be the first of two links of the allocator, and the node that it points at.
     * Its region is 0 if there is none. */
    struct ttd_reference link;
    uint32_t link_target;
    /** Some block may be an array of no elements; pointers to it point behind the block. */
    bool has_empty_arrays;
    /** Words of heaps that lie in no live block and point at one: see builder.h. Only if
     * `keeps_between`. */
    struct ttd_reference *between;
    size_t between_count;
    size_t between_capacity;
    bool keeps_between;
    /** Only words that may point at tables of virtual functions are taken. */
    bool finds_classes_only;
};

/** Takes a reach with nodes, regions and classes. @return TTD_OK, TTD_ERROR_NO_MEMORY; release with
 * reach_builder_free() also on failure. */
enum ttd_status reach_builder_init(struct reach_builder *builder, struct heap_reach *reach,
                                   const struct heap_reach_options *options);
void reach_builder_free(struct reach_builder *builder);

/** Whether a reference lies in a region. Counts it as misplaced if not. */
static inline bool reach_builder_lies_in_region(struct reach_builder *builder,
                                                const struct ttd_reference *reference)
{
    const struct ttd_region *region = heap_reach_region(builder->reach, reference->region);
    bool lies_in_region = region && region->size >= sizeof reference->value &&
                          reference->offset <= region->size - sizeof reference->value;
    builder->reach->misplaced += !lies_in_region;
    return lies_in_region;
}

/** Whether a word may point at a table of virtual functions. */
static inline bool reach_builder_may_be_class(const struct reach_builder *builder, uint64_t value)
{
    return value >= builder->class_min && value <= builder->class_max;
}

/**
 * Takes a reference that lies in a region.
 *
 * @param target  the innermost node that its value lies in; HEAP_NO_NODE if there is none
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status reach_builder_add(struct reach_builder *builder,
                                  const struct ttd_reference *reference, uint32_t target);

/** Adds the word that was kept, after the last reference. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status reach_builder_add_kept(struct reach_builder *builder);

/** Adds a root: a reference that points at a block, and lies in a region but in no block.
 * @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status reach_builder_add_root(struct reach_builder *builder,
                                       const struct ttd_reference *reference, unsigned flags);

/** Appends an edge behind the others. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status reach_builder_append(struct reach_builder *builder,
                                     const struct reach_late_edge *edge);

/**
 * Takes an edge whose source comes before the newest edge's. Regions are not in the order of
 * addresses: those that are no heap come first, among them the memory of single large blocks. So if
 * few edges were added so far, these are put off, and not the many that may follow.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status reach_builder_put_off(struct reach_builder *builder,
                                      const struct reach_late_edge *edge);

/** Makes the graph anew, with the edges that were put off. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status reach_builder_merge_late(struct reach_builder *builder);

/** Finishes the graph. Its edges have no flags but GRAPH_STALE. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY. */
enum ttd_status reach_builder_finish(struct reach_builder *builder);

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
    /** The slots of the ring; the thread fills them, the caller empties them. */
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

/*
 * Words of heap memory that lie in no live block, and point at one. Such a word may be
 *
 * - a relic of a block that had this memory before: no root;
 * - a record of the allocator: it knows its blocks: no root;
 * - a variable of the program: this may have taken memory from the program break, or beside the
 *   blocks of another allocator: a root.
 *
 * Where a block was before, and the memory is the allocator's still, it is one of the first two:
 * see stale.c. Elsewhere the last two look alike. So all other words are doubtful roots: what only
 * they hold is possibly lost.
 *
 * If the process began with blocks that the trace does not list, its words are classified once the
 * replay has shown them (reach_inherited_apply()).
 *
 * Private to reach/.
 */

/** The flags of a root that is to be removed; and of one that was found to be a relic. */
#define REACH_ROOT_DROPPED UINT8_MAX
#define REACH_ROOT_RELIC   (UINT8_MAX - 1)

/** Takes a word: as a root with the flag GRAPH_STALE for stale.h, or, in a process that began with
 * unlisted blocks, for reach_inherited_apply(). @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status reach_between_add(struct reach_builder *builder,
                                  const struct ttd_reference *reference, uint64_t word,
                                  uint32_t target);

/** Whether a node has a byte from `first` to `last`. */
bool reach_between_has_nodes(const struct heap_reach *reach, uint64_t first, uint64_t last);

/** Whether a block is live in a region of heap memory: then all of that is the allocator's still.
 * Memory of an allocator that was given back may be the program's meanwhile. */
static inline bool reach_between_has_blocks(const struct heap_reach *reach,
                                            const struct ttd_region *region)
{
    return reach_between_has_nodes(reach, region->begin, region->begin + (region->size - 1));
}

/**
 * Removes the roots that were dropped, and lists the relics if `options` ask for them. Roots that
 * are left with the flag GRAPH_STALE own nothing: they get GRAPH_INTERIOR instead, or as well with
 * options->tells_doubtful.
 *
 * @param are_changed  set to whether there were any of these
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status reach_between_settle(struct heap_reach *reach,
                                     const struct heap_reach_options *options, bool *are_changed);

/*
 * Blocks that a reallocation was moving when a snapshot was taken. At its position they are not
 * live: the old block has ended, and the new one comes later. But the memory of one or both of them
 * has the block's words, so they are nodes of the graph nevertheless. Private to reach/.
 */

/**
 * Finds the blocks in flight, and makes them live until reach_in_flight_end(). A block that
 * overlaps a live one is left out: its memory belongs to the other. So the old block is, when it
 * was released within the call, and the new one, before the allocator had its memory.
 *
 * @param reach   its member in_flight is set, and the snapshot is marked as incomplete where the
 *                words of a block are in no node
 * @param replay  at the position of the snapshot
 * @return TTD_OK, TTD_ERROR_NO_MEMORY; reach_in_flight_end() also on failure.
 */
enum ttd_status reach_in_flight_begin(struct heap_reach *reach, struct heap_replay *replay);
void reach_in_flight_end(struct heap_reach *reach, struct heap_live *live);

/** Adds the holders of the blocks in flight: an edge from the old one to the new one, and a root,
 * the registers of the thread whose call it is. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status reach_in_flight_apply(struct reach_builder *builder);

#endif
