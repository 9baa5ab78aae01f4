/* SPDX-License-Identifier: MIT */
/* Files with damage in more than one place, for what is made of it together. */
#include "vectors/edit.h"

#include "support/chunk_edit.h"

/* Flips a bit of a payload. */
static void spoil(vector_file *file, size_t number)
{
    vector_chunk(file, number)[TTD_HEADER_SIZE] ^= 1;
}

static void payloads(vector_file *file)
{
    spoil(file, EVENTS);
    spoil(file, MORE_EVENTS);
}

static void names_and_events(vector_file *file)
{
    spoil(file, STRINGS);
    spoil(file, EVENTS);
}

#define BAD(name_, purpose_, requirements_, damage_, chunk_, what_)                                \
    {                                                                                              \
        .name = "bad-" name_, .purpose = purpose_, .requirements = requirements_,                  \
        .damage = damage_, .status = TTD_ERROR_CORRUPT, .chunk = chunk_, .what = what_             \
    }

const vector vectors_bad_damage[] = {
    BAD("payloads", "two chunks of events, one after the other, both bad: one loss", "R-29 R-75",
        payloads, EVENTS, "payload checksum"),
    BAD("payloads-apart", "bad strings, and bad events behind them: one loss, of the events",
        "R-29 R-75", names_and_events, STRINGS, "payload checksum"),
    {.name = NULL},
};
