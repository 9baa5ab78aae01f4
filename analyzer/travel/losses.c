/* SPDX-License-Identifier: MIT */
#include "travel/losses.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "common/search.h"
#include "heap/site_table.h"
#include "travel/heap_trace.h"

void heap_losses_add(struct heap_losses *losses, const struct ttd_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct ttd_loss *loss = &batch->u.losses[i];
        losses->records++;
        if (batch->synthetic || loss->reason == TTD_LOSS_DAMAGE)
            losses->damaged++;
        if (loss->count == TTD_UNKNOWN)
            losses->unknown++;
        else
            losses->events = heap_add(losses->events, loss->count);
        if (losses->kept_count == HEAP_LOSSES_KEPT)
            continue;
        struct ttd_loss *added_loss = &losses->kept[losses->kept_count++];
        *added_loss = *loss;
        if ((unsigned)added_loss->reason > HEAP_LOSS_LAST)
            added_loss->reason = TTD_LOSS_UNKNOWN;
    }
}

enum ttd_status heap_losses_read(struct ttd_reader *reader,
                                 enum ttd_status (*add)(void *context,
                                                        const struct ttd_batch *batch),
                                 void *context, struct ttd_error *error)
{
    enum ttd_status status = ttd_reader_rewind(reader, TTD_KIND_BIT(TTD_KIND_LOSSES));
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(reader, &batch, error);
        if (status == TTD_OK && batch.kind == TTD_KIND_LOSSES && !batch.synthetic)
            status = add(context, &batch);
    }
    return heap_is_over(status) ? TTD_OK : status;
}

uint64_t heap_losses_between(const struct heap_losses *losses, struct ttd_position from,
                             struct ttd_position to)
{
    uint64_t count = losses->records - losses->kept_count;
    for (size_t i = 0; i < losses->kept_count; i++) {
        const struct ttd_loss *loss = &losses->kept[i];
        if (loss->count != 0 && ttd_position_compare(loss->last_good, to) < 0 &&
            ttd_position_compare(loss->first_good, from) > 0)
            count++;
    }
    return count;
}

uint64_t heap_losses_before(const struct heap_losses *losses, struct ttd_position position)
{
    uint64_t count = heap_losses_between(losses, ttd_position_min(), position);
    for (size_t i = 0; i < losses->kept_count && count; i++)
        count -= losses->kept[i].count != 0 && heap_loss_is_past(&losses->kept[i], position);
    return count;
}

const char *heap_loss_text(enum ttd_loss_reason reason)
{
    switch (reason) {
    case TTD_LOSS_OVERFLOW:
        return "the recorder's buffers were full";
    case TTD_LOSS_REENTRANT:
        return "a signal handler interrupted the recorder";
    case TTD_LOSS_NOT_RECORDING:
        return "not all calls are recorded";
    case TTD_LOSS_DAMAGE:
        return "a part of the file is damaged or missing";
    case TTD_LOSS_LATE:
        return "the recorder could not put events in order";
    case TTD_LOSS_LIMIT:
        return "they were left out to bound the trace";
    case TTD_LOSS_UNKNOWN:
        break;
    }
    return "for an unknown reason";
}

static bool losses_is_gap(const struct ttd_loss *loss)
{
    return loss->reason == TTD_LOSS_NOT_RECORDING && loss->count &&
           ttd_position_is_valid(loss->first_good);
}

bool heap_losses_have_gap(const struct heap_losses *losses, struct ttd_position position)
{
    for (size_t i = 0; i < losses->kept_count; i++) {
        if (losses_is_gap(&losses->kept[i]) &&
            ttd_position_compare(losses->kept[i].last_good, position) < 0)
            return true;
    }
    return false;
}

enum ttd_status heap_gaps_add(struct heap_gaps *gaps, const struct ttd_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct ttd_loss *loss = &batch->u.losses[i];
        if (!losses_is_gap(loss))
            continue;
        enum ttd_status status = grow_array((void **)&gaps->items, &gaps->capacity, gaps->count + 1,
                                            sizeof *gaps->items);
        if (status != TTD_OK)
            return status;
        gaps->items[gaps->count++] = (struct heap_gap){loss->last_good, loss->first_good};
        gaps->is_sorted = false;
    }
    return TTD_OK;
}

static enum ttd_status losses_gaps_add_batch(void *context, const struct ttd_batch *batch)
{
    return heap_gaps_add(context, batch);
}

enum ttd_status heap_gaps_read(struct heap_gaps *gaps, struct ttd_reader *reader,
                               struct ttd_error *error)
{
    return heap_losses_read(reader, losses_gaps_add_batch, gaps, error);
}

void heap_gaps_free(struct heap_gaps *gaps)
{
    free(gaps->items);
    *gaps = (struct heap_gaps){.items = NULL};
}

static int losses_gaps_compare(const void *a, const void *b)
{
    const struct heap_gap *x = a;
    const struct heap_gap *y = b;
    return ttd_position_compare(x->begin, y->begin);
}

static void losses_gaps_sort(struct heap_gaps *gaps)
{
    if (gaps->count)
        qsort(gaps->items, gaps->count, sizeof *gaps->items, losses_gaps_compare);
    for (size_t i = 1; i < gaps->count; i++) {
        struct heap_gap *gap = &gaps->items[i];
        if (ttd_position_compare(gap->end, gap[-1].end) < 0)
            gap->end = gap[-1].end;
    }
    gaps->is_sorted = true;
}

struct ttd_position heap_gaps_end(struct heap_gaps *gaps, struct ttd_position position)
{
    if (!gaps->is_sorted)
        losses_gaps_sort(gaps);
    size_t after = 0, end = gaps->count;
    SEARCH_SORTED(after, end, middle,
                  ttd_position_compare(gaps->items[middle].begin, position) < 0);
    return after ? gaps->items[after - 1].end : ttd_position_min();
}

/* Metadata, as ttdrecord writes them: spec, "Metadata". */
#define CHOICE_KEY    "chosen"
#define CHOICE_SAMPLE "a sample: one block for every "
#define CHOICE_LEAST  "blocks of at least "
#define CHOICE_LIVE   "blocks that are live"
#define POOLED_KEY    "pooled"
#define EARLIER_KEY   "before"
#define MISSING_KEY   "unrecorded"
#define SNAPSHOT_KEY  "missing_snapshot"
#define MERGED_KEY    "merged"

static bool choice_begins(struct ttd_string text, const char *begin)
{
    return text.size > strlen(begin) && memcmp(text.data, begin, strlen(begin)) == 0;
}

/* Returns the number behind the beginning of a text; 0 if there is none. */
static uint64_t choice_number(struct ttd_string text, const char *begin)
{
    uint64_t number = 0;
    for (size_t i = strlen(begin); i < text.size && text.data[i] >= '0' && text.data[i] <= '9' &&
                                   number <= UINT64_MAX / 10 - 1;
         i++)
        number = 10 * number + (uint64_t)(text.data[i] - '0');
    return number;
}

static bool choice_is_key(struct ttd_string key, const char *name)
{
    return key.size == strlen(name) && memcmp(key.data, name, key.size) == 0;
}

/* Keeps a text of some words, as ttdrecord writes them. */
static void choice_add_pooled(struct heap_choice *choice, struct ttd_string text)
{
    if (choice->pooled_count < HEAP_POOLED_MAX && text.size < HEAP_POOLED_SIZE)
        memcpy(choice->pooled[choice->pooled_count++], text.data, text.size);
}

/* Keeps the calls that are missing. A number begins the texts about some of many calls, or about
 * other processes. */
static void choice_note_unrecorded(struct heap_choice *choice, struct ttd_string text)
{
    bool is_plain = text.size && text.size < HEAP_UNRECORDED_SIZE && text.data[0] > '9';
    for (size_t i = 0; i < text.size; i++)
        is_plain = is_plain && text.data[i] >= ' ' && text.data[i] <= '~';
    if (!is_plain)
        return;
    memcpy(choice->unrecorded, text.data, text.size);
    choice->unrecorded[text.size] = '\0';
}

static void choice_see(struct heap_choice *choice, const struct ttd_metadata *record,
                       bool *has_missing)
{
    choice->has_earlier |= choice_is_key(record->key, EARLIER_KEY);
    choice->is_merged |= choice_is_key(record->key, MERGED_KEY);
    choice->lacks_end_snapshot |= choice_is_key(record->key, SNAPSHOT_KEY);
    if (choice_is_key(record->key, MISSING_KEY)) {
        *has_missing = true;
        choice_note_unrecorded(choice, record->value);
    }
    if (choice_is_key(record->key, POOLED_KEY))
        choice_add_pooled(choice, record->value);
    if (!choice_is_key(record->key, CHOICE_KEY))
        return;
    if (choice_begins(record->value, CHOICE_LIVE)) {
        choice->is_live_only = true;
        return;
    }
    choice->is_made = true;
    if (choice_begins(record->value, CHOICE_SAMPLE))
        choice->sample = choice_number(record->value, CHOICE_SAMPLE);
    if (choice_begins(record->value, CHOICE_LEAST))
        choice->least = choice_number(record->value, CHOICE_LEAST);
}

enum ttd_status heap_choice_read(struct ttd_reader *reader, struct heap_choice *choice,
                                 struct ttd_error *error)
{
    struct heap_choice found = {.is_made = false};
    bool has_missing = false;
    enum ttd_status status = ttd_reader_rewind(reader, TTD_KIND_BIT(TTD_KIND_METADATA));
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(reader, &batch, error);
        for (size_t i = 0; status == TTD_OK && batch.kind == TTD_KIND_METADATA && i < batch.count;
             i++)
            choice_see(&found, &batch.u.metadata[i], &has_missing);
    }
    if (status == TTD_ERROR_NO_MEMORY || status == TTD_ERROR_IO)
        return status;
    found.has_earlier = found.has_earlier && !has_missing;
    *choice = found;
    return TTD_OK;
}
