/* SPDX-License-Identifier: MIT */
#include "travel/notes.h"

/* Tells of the calls from `*next` up to `end`. */
static enum ttd_status tell_calls(const struct heap_notes *notes,
                                  const struct heap_observer *observer, size_t *next, size_t end)
{
    enum ttd_status status = TTD_OK;
    for (; *next < end && status == TTD_OK; ++*next) {
        const struct ttd_event *event = &notes->calls[*next];
        if (observer->call && !(observer->unwanted_calls & HEAP_CALL_BIT(event->action)))
            status = observer->call(observer->context, event);
    }
    return status;
}

enum ttd_status heap_notes_tell(const struct heap_notes *notes,
                                const struct heap_observer *observer)
{
    size_t next = 0;
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < notes->count && status == TTD_OK; i++) {
        const struct heap_note *note = &notes->notes[i];
        status = tell_calls(notes, observer, &next, note->call_count);
        if (status == TTD_OK && observer->effect &&
            !(observer->unwanted & HEAP_EFFECT_BIT(note->effect.kind)))
            status = observer->effect(observer->context, &note->effect);
    }
    return status == TTD_OK ? tell_calls(notes, observer, &next, notes->call_count) : status;
}
