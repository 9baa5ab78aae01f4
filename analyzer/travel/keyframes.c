/* SPDX-License-Identifier: MIT */
#include "travel/keyframes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/grow.h"
#include "common/search.h"

_Static_assert(TTD_STATE_ACTIONS == TTD_ACTION_DESTROY + 1, "counts by action");

/* A group's table is the record's. */
_Static_assert((int)HEAP_BY_STACK == (int)TTD_SUMS_BY_STACK &&
                   (int)HEAP_BY_HEAP == (int)TTD_SUMS_BY_HEAP &&
                   (int)HEAP_BY_THREAD == (int)TTD_SUMS_BY_THREAD &&
                   (int)HEAP_BY_SIZE == (int)TTD_SUMS_BY_SIZE,
               "tables");

/* ---- States ---- */

struct ttd_state heap_state_of_keyframe(const struct heap_keyframe *keyframe)
{
    const struct heap_counts *counts = &keyframe->counts;
    struct ttd_state state = {.form = keyframe->is_summary ? TTD_STATE_SUMMARY : TTD_STATE_KEYFRAME,
                              .position = keyframe->position,
                              .blocks = keyframe->blocks,
                              .next_event = keyframe->next,
                              .events = counts->events,
                              .failed = counts->failed,
                              .unfinished = counts->unfinished,
                              .unknown_releases = counts->unknown_releases,
                              .overlaps = counts->overlaps,
                              .sums = keyframe->sums,
                              .end = keyframe->end};
    memcpy(state.actions, counts->actions, sizeof state.actions);
    return state;
}

struct heap_keyframe heap_keyframe_of_state(const struct ttd_state *state)
{
    struct heap_keyframe keyframe = {.position = state->position,
                                     .counts = {.events = state->events,
                                                .failed = state->failed,
                                                .unfinished = state->unfinished,
                                                .unknown_releases = state->unknown_releases,
                                                .overlaps = state->overlaps},
                                     .next = state->next_event,
                                     .blocks = state->blocks,
                                     .is_summary = state->form == TTD_STATE_SUMMARY,
                                     .sums = state->sums,
                                     .end = state->end};
    memcpy(keyframe.counts.actions, state->actions, sizeof state->actions);
    return keyframe;
}

struct ttd_state heap_state_of_peak(const struct heap_peak *peak)
{
    return (struct ttd_state){.form = TTD_STATE_PEAK,
                              .position = peak->position,
                              .blocks = peak->blocks,
                              .bytes = peak->bytes.low,
                              .bytes_high = peak->bytes.high};
}

struct heap_peak heap_peak_of_state(const struct ttd_state *state)
{
    return (struct heap_peak){state->position, {state->bytes_high, state->bytes}, state->blocks};
}

/* ---- Sums ---- */

struct ttd_sum heap_sum_of_group(size_t table, const struct heap_group *group)
{
    return (struct ttd_sum){.table = (enum ttd_sum_table)table,
                            .key = table == HEAP_BY_STACK ? group->key.stack : group->key.property,
                            .api = group->api,
                            .blocks = group->blocks,
                            .bytes = group->bytes,
                            .first = group->first,
                            .last = group->last};
}

/* Whether blocks of a class of sizes can have so many bytes. */
static bool keyframes_fits_class(const struct heap_group *group)
{
    uint64_t first, last, lowest, highest;
    heap_class_range(group->key.property, &first, &last);
    if (__builtin_mul_overflow(first, group->blocks, &lowest))
        lowest = UINT64_MAX;
    if (__builtin_mul_overflow(last, group->blocks, &highest))
        highest = UINT64_MAX;
    return group->bytes >= lowest && group->bytes <= highest;
}

bool heap_group_of_sum(const struct ttd_sum *sum, struct heap_group *group)
{
    *group = (struct heap_group){.api = sum->api,
                                 .blocks = sum->blocks,
                                 .bytes = sum->bytes,
                                 .first = sum->first,
                                 .last = sum->last};
    if (sum->table == TTD_SUMS_BY_STACK)
        group->key.stack = sum->key;
    else
        group->key.property = sum->key;
    return !heap_group_is_unknown(group) &&
           (sum->table != TTD_SUMS_BY_SIZE || keyframes_fits_class(group));
}

static enum ttd_status add_keyframe(struct heap_keyframes *keyframes, const struct ttd_state *state)
{
    enum ttd_status status = grow_array((void **)&keyframes->keyframes, &keyframes->capacity,
                                        keyframes->count + 1, sizeof *keyframes->keyframes);
    if (status != TTD_OK)
        return status;
    struct heap_keyframe *keyframe = &keyframes->keyframes[keyframes->count];
    *keyframe = heap_keyframe_of_state(state);
    /* A summary may begin where a keyframe is. */
    bool is_summary = keyframe->is_summary;
    bool rises = !keyframes->count ||
                 (ttd_position_compare(keyframe[-1].position, keyframe->position) <= 0 &&
                  keyframe[-1].counts.events < keyframe->counts.events + is_summary &&
                  keyframe[-1].next < keyframe->next + is_summary);
    keyframes->count++;
    return rises ? TTD_OK : TTD_ERROR_CORRUPT;
}

static enum ttd_status keyframes_add_state(struct heap_keyframes *keyframes,
                                           const struct ttd_state *state)
{
    if (state->form != TTD_STATE_PEAK)
        return add_keyframe(keyframes, state);
    keyframes->has_peak = true;
    keyframes->peak = heap_peak_of_state(state);
    return TTD_OK;
}

static void keyframes_add_metadata(struct heap_keyframes *keyframes,
                                   const struct ttd_metadata *record)
{
    struct ttd_string key = record->key;
    struct ttd_string text = record->value;
    if (key.size == strlen(HEAP_SOURCE_KEY) && memcmp(key.data, HEAP_SOURCE_KEY, key.size) == 0 &&
        text.size < sizeof keyframes->source) {
        memcpy(keyframes->source, text.data, text.size);
        keyframes->source[text.size] = '\0';
    }
}

static enum ttd_status keyframes_add_records(struct heap_keyframes *keyframes,
                                             const struct ttd_batch *batch)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < batch->count && status == TTD_OK; i++) {
        if (batch->kind == TTD_KIND_STATES)
            status = keyframes_add_state(keyframes, &batch->u.states[i]);
        else if (batch->kind == TTD_KIND_METADATA)
            keyframes_add_metadata(keyframes, &batch->u.metadata[i]);
    }
    return status;
}

static enum ttd_status keyframes_read_records(struct heap_keyframes *keyframes)
{
    uint32_t kinds = TTD_KIND_BIT(TTD_KIND_METADATA) | TTD_KIND_BIT(TTD_KIND_STATES);
    enum ttd_status status = ttd_reader_rewind(keyframes->sidecar, kinds);
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(keyframes->sidecar, &batch, NULL);
        if (status == TTD_OK)
            status = keyframes_add_records(keyframes, &batch);
    }
    return status == TTD_END ? TTD_OK : status;
}

/* Progress of keyframes_find_lists(). */
struct list_finder {
    struct heap_keyframes *keyframes;
    /** Keyframes whose first chunk was found. */
    size_t count;
    /** Records of the latest one that are still to come. */
    uint64_t blocks_left;
    uint64_t sums_left;
};

static enum ttd_status keyframes_find_in_chunk(struct list_finder *finder,
                                               const struct ttd_chunk *chunk)
{
    if (!finder->blocks_left && !finder->sums_left) {
        if (finder->count == finder->keyframes->count)
            return TTD_ERROR_CORRUPT;
        struct heap_keyframe *next = &finder->keyframes->keyframes[finder->count++];
        next->chunk = chunk->number;
        finder->blocks_left = next->blocks;
        finder->sums_left = next->sums;
    }
    bool has_sums = chunk->kind == TTD_KIND_SUMS;
    uint64_t *remaining = has_sums ? &finder->sums_left : &finder->blocks_left;
    if (chunk->record_count > *remaining)
        return TTD_ERROR_CORRUPT;
    *remaining -= chunk->record_count;
    return TTD_OK;
}

/* Finds the first chunk of each keyframe: lists and sums come in the order of the keyframes. */
static enum ttd_status keyframes_find_lists(struct heap_keyframes *keyframes)
{
    struct list_finder finder = {.keyframes = keyframes};
    enum ttd_status status = ttd_reader_rewind(keyframes->sidecar, 0);
    while (status == TTD_OK) {
        struct ttd_chunk chunk;
        status = ttd_reader_next_chunk(keyframes->sidecar, &chunk, NULL);
        if (status == TTD_OK && (chunk.kind == TTD_KIND_LIVE_BLOCKS || chunk.kind == TTD_KIND_SUMS))
            status = keyframes_find_in_chunk(&finder, &chunk);
    }
    if (status != TTD_END)
        return status;
    bool is_complete = finder.count == keyframes->count && !finder.blocks_left && !finder.sums_left;
    return is_complete ? TTD_OK : TTD_ERROR_CORRUPT;
}

bool heap_index_belongs_to(struct ttd_reader *sidecar, struct ttd_reader *trace)
{
    struct ttd_trace tie;
    struct ttd_end end;
    const struct ttd_trace *has = ttd_reader_trace(sidecar);
    return ttd_reader_tie(trace, &tie) == TTD_OK && ttd_reader_end(sidecar, &end) == TTD_OK &&
           (has->flags & TTD_TRACE_DERIVED) && tie.source_hash &&
           has->source_trace_id == tie.source_trace_id && has->source_size == tie.source_size &&
           has->source_hash == tie.source_hash;
}

enum ttd_status heap_keyframes_open(struct ttd_reader *sidecar, struct ttd_reader *trace,
                                    struct heap_keyframes *keyframes)
{
    *keyframes = (struct heap_keyframes){.sidecar = sidecar};
    enum ttd_status status = heap_index_belongs_to(sidecar, trace) ? TTD_OK : TTD_ERROR_CORRUPT;
    if (status == TTD_OK)
        status = keyframes_read_records(keyframes);
    if (status == TTD_OK)
        status = keyframes_find_lists(keyframes);
    if (status != TTD_OK)
        heap_keyframes_close(keyframes);
    return status;
}

void heap_keyframes_close(struct heap_keyframes *keyframes)
{
    ttd_reader_close(keyframes->sidecar);
    free(keyframes->keyframes);
    *keyframes = (struct heap_keyframes){.sidecar = NULL};
}

/* Counts the keyframes at `position` or before. */
static size_t keyframes_count_before(const struct heap_keyframes *keyframes,
                                     struct ttd_position position)
{
    size_t low = 0;
    size_t high = keyframes->count;
    SEARCH_SORTED(low, high, middle,
                  ttd_position_compare(keyframes->keyframes[middle].position, position) <= 0);
    return low;
}

const struct heap_keyframe *heap_keyframes_before(const struct heap_keyframes *keyframes,
                                                  struct ttd_position position,
                                                  bool takes_summaries)
{
    const struct heap_keyframe *best = NULL;
    for (size_t i = keyframes_count_before(keyframes, position); i > 0; i--) {
        const struct heap_keyframe *keyframe = &keyframes->keyframes[i - 1];
        bool serves = !keyframe->is_summary ||
                      (takes_summaries && ttd_position_compare(position, keyframe->end) < 0);
        /* Reading a block costs about as much as replaying an event. */
        if (serves && (!best || best->counts.events + keyframe->blocks <
                                    keyframe->counts.events + best->blocks))
            best = keyframe;
        if (!keyframe->is_summary)
            break;
    }
    return best;
}

/* Distance of the prefetch of slots, in blocks. */
#define AHEAD 12

/* Kinds of the chunks that hold the blocks and the sums of keyframes. */
#define LIST_KINDS (TTD_KIND_BIT(TTD_KIND_LIVE_BLOCKS) | TTD_KIND_BIT(TTD_KIND_SUMS))

static enum ttd_status keyframes_restore_block(struct heap_live *live,
                                               const struct heap_keyframe *keyframe,
                                               const struct ttd_block *block)
{
    uint32_t record;
    if (block->event >= keyframe->next ||
        ttd_position_compare(block->allocated, keyframe->position) > 0)
        return TTD_ERROR_CORRUPT;
    struct heap_block restored = {.address = block->address,
                                  .size = block->size,
                                  .event = block->event,
                                  .allocated = block->allocated,
                                  .thread = block->thread,
                                  .stack = block->stack,
                                  .heap = block->heap,
                                  .action = TTD_ACTION_ALLOC,
                                  .api = block->api};
    enum ttd_status status =
        heap_live_record(live, block->address, heap_live_hash(live, block->address), &record);
    return status == TTD_OK ? heap_live_restore(live, record, &restored) : status;
}

static enum ttd_status keyframes_restore_blocks(struct heap_live *live,
                                                const struct heap_keyframe *keyframe,
                                                const struct ttd_live_blocks *list)
{
    enum ttd_status status = TTD_OK;
    if (list->list != TTD_BLOCKS_KEYFRAME ||
        ttd_position_compare(list->position, keyframe->position) != 0 ||
        list->count > keyframe->blocks - live->count)
        return TTD_ERROR_CORRUPT;
    for (size_t i = 0; i < list->count && status == TTD_OK; i++) {
        if (i + AHEAD < list->count)
            heap_live_prefetch(live, heap_live_hash(live, list->blocks[i + AHEAD].address));
        status = keyframes_restore_block(live, keyframe, &list->blocks[i]);
    }
    return status;
}

static enum ttd_status keyframes_restore_sums(struct heap_tables *tables,
                                              const struct heap_keyframe *keyframe,
                                              const struct ttd_batch *batch)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < batch->count && status == TTD_OK; i++) {
        const struct ttd_sum *record = &batch->u.sums[i];
        struct heap_groups *groups = &tables->by[record->table];
        struct heap_group group;
        if (!heap_group_of_sum(record, &group) ||
            group.blocks > keyframe->counts.events - groups->blocks ||
            ttd_position_compare(group.last, keyframe->position) > 0)
            return TTD_ERROR_CORRUPT;
        status = heap_groups_add_sum(groups, &group);
    }
    return status;
}

/* Goes to a chunk of the sidecar, and reads only the headers of the chunks before it. */
static enum ttd_status keyframes_go_to(struct ttd_reader *sidecar, uint64_t number)
{
    struct ttd_chunk chunk = {.number = 0};
    enum ttd_status status = ttd_reader_rewind(sidecar, LIST_KINDS);
    while (status == TTD_OK && chunk.number + 1 < number)
        status = ttd_reader_next_chunk(sidecar, &chunk, NULL);
    return status;
}

/* Reads the sums and the list, whose lengths were checked when the sidecar was opened. */
static enum ttd_status keyframes_read_list(const struct heap_keyframes *keyframes,
                                           const struct heap_keyframe *keyframe,
                                           struct heap_live *live, struct heap_tables *sums)
{
    uint64_t sums_read = 0;
    enum ttd_status status = keyframes_go_to(keyframes->sidecar, keyframe->chunk);
    while (status == TTD_OK && (sums_read < keyframe->sums || live->count < keyframe->blocks)) {
        struct ttd_batch batch;
        status = ttd_reader_next(keyframes->sidecar, &batch, NULL);
        if (status != TTD_OK)
            break;
        if (batch.kind == TTD_KIND_SUMS) {
            sums_read += batch.count;
            status = keyframes_restore_sums(sums, keyframe, &batch);
        } else {
            status = keyframes_restore_blocks(live, keyframe, batch.u.live_blocks);
        }
    }
    return status == TTD_END ? TTD_ERROR_CORRUPT : status;
}

/* Whether all tables sum up the same number of blocks and bytes. */
static bool keyframes_agree(const struct heap_tables *tables)
{
    const struct heap_groups *first = &tables->by[0];
    for (size_t i = 1; i < HEAP_TABLES; i++)
        if (tables->by[i].blocks != first->blocks || tables->by[i].bytes != first->bytes)
            return false;
    return true;
}

enum ttd_status heap_keyframes_restore(const struct heap_keyframes *keyframes,
                                       const struct heap_keyframe *keyframe,
                                       struct heap_replay *replay, struct heap_tables *sums)
{
    enum ttd_status status = heap_replay_reset(replay);
    /* A damaged count cannot ask for more room than the file has bytes. */
    uint64_t room = ttd_reader_size(keyframes->sidecar);
    if (status == TTD_OK)
        status =
            heap_live_reserve(&replay->live, keyframe->blocks < room ? keyframe->blocks : room);
    if (status == TTD_OK)
        status = keyframes_read_list(keyframes, keyframe, &replay->live, sums);
    if (status == TTD_OK && keyframe->is_summary && !keyframes_agree(sums))
        status = TTD_ERROR_CORRUPT;
    replay->counts = keyframe->counts;
    replay->next = keyframe->next;
    replay->position = keyframe->position;
    return status;
}

/* Stamps of files. */

struct stamp stamp_of(const char *path)
{
    struct stamp result = {.text = ""};
    struct stat file;
    if (stat(path, &file) == 0 && S_ISREG(file.st_mode))
        snprintf(result.text, sizeof result.text,
                 "%" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 ".%09ld %" PRId64 ".%09ld",
                 (uint64_t)file.st_dev, (uint64_t)file.st_ino, (int64_t)file.st_size,
                 (int64_t)file.st_mtim.tv_sec, file.st_mtim.tv_nsec, (int64_t)file.st_ctim.tv_sec,
                 file.st_ctim.tv_nsec);
    return result;
}

bool stamp_is_same(const struct stamp *before, const struct stamp *after)
{
    return before->text[0] && strcmp(before->text, after->text) == 0;
}
