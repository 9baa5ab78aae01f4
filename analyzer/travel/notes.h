/* SPDX-License-Identifier: MIT */
/**
 * Notes: the effects and calls that a replay told, kept for observers that are told of them later,
 * one observer after the other. What an observer reads then stays in the cache, and it can prefetch
 * what it will need, since it knows what comes next.
 */
#ifndef ANALYZER_TRAVEL_NOTES_H
#define ANALYZER_TRAVEL_NOTES_H

#include "heap/replay.h"

/** Effects in a set of notes: more than a batch of events mostly has. */
#define HEAP_NOTES_MAX 256

struct heap_note {
    /** Its pointers lead to the copies in the notes. */
    struct heap_effect effect;
    struct heap_block block;
    /** Number of the calls in heap_notes.calls that were told before the effect. */
    size_t call_count;
};

/** See heap_notes_clear(); must not be moved. */
struct heap_notes {
    struct heap_note notes[HEAP_NOTES_MAX];
    size_t count;
    /** Where the effect is to be built that is added next: see heap_observer.place. */
    struct heap_effect *place;
    struct heap_block previous[HEAP_NOTES_MAX];
    size_t previous_count;
    /** The calls, in the batch that they are of, and valid as long. Those that the replay did not
     * tell are among them. */
    const struct ttd_event *calls;
    size_t call_count;
};

/** Forgets all notes; also prepares for the first ones. */
static inline void heap_notes_clear(struct heap_notes *notes)
{
    notes->count = notes->previous_count = notes->call_count = 0;
    notes->place = &notes->notes[0].effect;
}

/** Adds a call, which is of the same batch as those before. */
static inline void heap_notes_add_call(struct heap_notes *notes, const struct ttd_event *event)
{
    if (!notes->call_count)
        notes->calls = event;
    notes->call_count = (size_t)(event - notes->calls) + 1;
}

/** Adds the effect that was built at notes->place. Returns whether the notes are full: then they
 * are to be told and cleared before the next effect is built. */
static inline bool heap_notes_add(struct heap_notes *notes)
{
    struct heap_note *note = &notes->notes[notes->count++];
    struct heap_effect *effect = &note->effect;
    note->call_count = notes->call_count;
    if (effect->block) {
        note->block = *effect->block;
        effect->block = &note->block;
    }
    if (effect->previous) {
        struct heap_block *previous = &notes->previous[notes->previous_count++];
        *previous = *effect->previous;
        effect->previous = previous;
    }
    notes->place = &note[1].effect;
    return notes->count == HEAP_NOTES_MAX;
}

/** Tells an observer of all notes, in order. Returns its first status that is not TTD_OK; else
 * TTD_OK. */
enum ttd_status heap_notes_tell(const struct heap_notes *notes,
                                const struct heap_observer *observer);

#endif
