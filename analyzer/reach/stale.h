/* SPDX-License-Identifier: MIT */
/**
 * Words that may be older than the blocks that they point at. Memory from malloc() has its old
 * contents. So a word of block A that points at block B may be a relic, and A never had a pointer
 * to B, if another block had this memory before A, and was released when B, or an earlier block at
 * the same address, had been allocated: it may have pointed at that. Otherwise A itself has written
 * the word. It does not matter whether A or B was allocated first.
 *
 * Not so in memory from calloc(). Words that realloc() has copied are as old as in the block
 * before: see struct copied_words. Words that the program itself copies, as by memcpy(), count as
 * written.
 *
 * Private to reach/.
 */
#ifndef ANALYZER_REACH_STALE_H
#define ANALYZER_REACH_STALE_H

#include <ttdtrace/model.h>

#include "reach/address_index.h"
#include "reach/nodes.h"
#include "reach/reach.h"
#include "travel/heap_trace.h"

/** Notes that are looked up together. */
#define ADDRESS_MARKS_PENDING 32

struct address_note {
    uint64_t address;
    uint64_t size;
    struct ttd_position position;
};

/** All zero when empty. */
struct address_marks {
    uint32_t count;
    /** The addresses, in their order: field 0; and further fields of the owner's. */
    struct packed_table table;
    struct address_index index;
    /**
     * A tree above the addresses, its leaves from `count` on; node n is the parent of 2n and 2n +
     * 1. Holds the position that was noted for all addresses below a node at once: an address has
     * the latest one from its leaf up to the root.
     */
    struct ttd_position *latest;
    /** A bit for each granule of memory, and for others whose number ends alike: whether an address
     * may lie there. Most notes are of memory without any. */
    uint64_t *granules;
    uint64_t granule_mask;
    /** Notes that are not in `latest` yet. */
    struct address_note pending[ADDRESS_MARKS_PENDING];
    size_t pending_count;
};

/** A range of rows. */
struct address_span {
    uint32_t first;
    uint32_t end;
};

/** Begins the noting, once the table is filled. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status address_marks_begin(struct address_marks *marks);
void address_marks_free(struct address_marks *marks);

/** The addresses in a range of memory. */
struct address_span address_marks_find(struct address_marks *marks, uint64_t address,
                                       uint64_t size);

/** Whether an address may be among `size` bytes (at least 1) from `address` on: false is certain.
 */
bool address_marks_may_have(const struct address_marks *marks, uint64_t address, uint64_t size);

/** Notes a position for the addresses in a range of memory. Notes are kept and entered many
 * together: memory is slower than all else. */
void address_marks_note(struct address_marks *marks, struct address_note note);

/** The latest position that was noted so far for the address of a row. */
struct ttd_position address_marks_now(struct address_marks *marks, uint32_t row);

/** Ends the noting: brings each note of many addresses to each of them. */
void address_marks_settle(struct address_marks *marks);

/** The latest position that was noted for an address, by its row; 0:0 if none was. After
 * address_marks_settle(). */
static inline struct ttd_position address_marks_latest(const struct address_marks *marks,
                                                       uint32_t row)
{
    return marks->latest[(size_t)row + marks->count];
}

/** Whether a word of an edge may be older than its block. */
enum word_age {
    WORD_AGE_OF_MEMORY, /* decided by the last release of its memory */
    WORD_AGE_WRITTEN,   /* realloc() has copied it, and it was written before */
    WORD_AGE_RELIC      /* realloc() has copied it, and it may have been a relic before */
};

/** All zero when empty. */
struct stale_words {
    /** The words, by address: see enum stale_field. Marked with the releases of their memory. */
    struct address_marks words;
    /** By word, an enum word_age. */
    uint8_t *ages;
    /** The first addresses of the nodes that edges among the words lead to. Marked with the births
     * of blocks that had them earlier, each as its complement: the latest is the earliest. */
    struct address_marks targets;
    /** The notes of births, by a few bits of the address: of those at one address, mostly the first
     * one is the earliest. Allocated. */
    struct address_note *births;
    /** By node: whether it is among `targets`; and by 64 nodes, how many are before these. */
    uint64_t *is_target;
    uint32_t *targets_before;
};

/** The edge or root of a word, and whether it is a root. */
enum stale_field { STALE_ADDRESS, STALE_EDGE, STALE_IS_ROOT, STALE_FIELDS };

/**
 * Takes the words of edges and of roots that have GRAPH_STALE, but for REACH_ROOT_DROPPED.
 *
 * @param reach  has offsets of edges
 * @param words  release with stale_words_free(), also on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status stale_words_take(struct stale_words *words, const struct heap_reach *reach);
/** Begins the noting of releases, and takes most of its memory for it. Offsets of edges are not
 * needed any more. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status stale_words_begin(struct stale_words *words, const struct heap_reach *reach);
void stale_words_free(struct stale_words *words);

/** Whether a word, or the first address of a target, may be among `size` bytes from `address` on;
 * at least 1. After stale_words_begin(). `context`: the words. */
bool stale_words_meet(void *context, uint64_t address, uint64_t size);

/** Notes that a block was released. */
void stale_words_release(struct stale_words *words, const struct heap_block *block,
                         struct ttd_position position);

/** Finds the words of a node in a part of it, as edges have them. */
struct address_span stale_words_of_node(struct stale_words *words, const struct graph *graph,
                                        uint32_t node, uint64_t address, uint64_t size);

/** Ends the noting. */
void stale_words_settle(struct stale_words *words);

/** The node that a word points at. */
uint32_t stale_words_target(const struct stale_words *words, const struct graph *graph,
                            uint32_t word);

/** The position where the memory of a word was last released; 0:0 if never. After
 * stale_words_settle(). */
static inline struct ttd_position stale_words_last_release(const struct stale_words *words,
                                                           uint32_t word)
{
    return address_marks_latest(&words->words, word);
}

/** The birth of the first block (perhaps the target itself) that had the first address of a target
 * of an edge. After stale_words_settle(). */
struct ttd_position stale_words_first_birth(const struct stale_words *words,
                                            const struct heap_nodes *nodes, uint32_t target);

/**
 * Clears the flag GRAPH_STALE (the edge's word may be older than its block) where nothing hangs by
 * the edge, since its target is held by others, and where the word cannot be a relic. Then
 * classifies the nodes. For that the calls about the memory of such words are replayed, unless
 * nothing hangs by them: all calls where realloc() may have copied some, and these words once more.
 *
 * With options.omits_verdicts it only drops doubtful roots that something hangs by, and that are
 * relics: see builder.h.
 *
 * Memory is bounded by the nodes, a byte for each; by the edges: some 10 bytes for each of those,
 * and 64 for when its word was last released and the address of its target first used; and by the
 * blocks that are live at once and do not live until the snapshot: those that do are nodes. Time is
 * logarithmic in the number of words for each release.
 *
 * @param reach    has offsets of edges, unless options.omits_verdicts
 * @param options  without keeps_offsets they are freed before the replay
 * @return as heap_replay_to().
 */
enum ttd_status reach_stale_apply(struct heap_reach *reach, const struct heap_trace *trace,
                                  const struct heap_reach_options *options,
                                  struct ttd_error *error);

/*
 * Words that realloc() copied into their block. Such a word is as old as it was in the block
 * before, and so on back to its *origin*, the block that brought its memory into this chain. It may
 * be a relic of the memory of its origin. The replay of stale.c finds the origins; another one, the
 * last release of that memory before each origin was allocated.
 *
 * Private to reach/.
 */

/** A block that a reallocation ended. */
struct copied_step {
    uint64_t address;
    uint64_t size;
    uint64_t event;
    struct ttd_position allocated;
    /** The index of the step that led to this block; 0 for none. Of an unused one, the next. */
    uint32_t before;
    /** Steps up to this one. */
    uint32_t depth;
    /** All words count as written: they are from calloc(), or the steps before were dropped. */
    bool is_written;
};

/** Words of a node that have one origin. */
struct copied_origin {
    uint64_t event;
    struct ttd_position allocated;
    struct address_span rows;
    /** The address of a word in the origin, minus that in the node, modulo 2^64. */
    uint64_t shift;
};

/** All zero when empty. */
struct copied_words {
    /** Index 0 is not used. */
    struct copied_step *steps;
    size_t step_count;
    size_t step_capacity;
    uint32_t unused;
    struct copied_origin *origins;
    size_t origin_count;
    size_t origin_capacity;
};

/**
 * Follows the reallocations of each block, by heap_block.user, and notes the origins of a node's
 * words. Takes at most 32 steps of 56 bytes for a block.
 *
 * @param words   the words of an origin get WORD_AGE_WRITTEN
 * @param effect  has a block before; or ends a block whose `user` is not 0
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status copied_words_see(struct copied_words *copied, struct stale_words *words,
                                 struct heap_reach *reach, const struct heap_effect *effect);
void copied_words_free(struct copied_words *copied);

/**
 * Gives WORD_AGE_RELIC to the words that may be relics. Replays the trace up to the last origin,
 * unless the address of each word's target was first used when the origin was there.
 *
 * @param words  settled
 * @return as heap_replay_to().
 */
enum ttd_status copied_words_decide(const struct copied_words *copied, struct stale_words *words,
                                    const struct heap_reach *reach,
                                    const struct reach_survivors *survivors,
                                    const struct heap_trace *trace, struct ttd_error *error);

#endif
