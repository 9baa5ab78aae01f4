/* SPDX-License-Identifier: MIT */
#include <ttdtrace/redact.h>

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "codec/records.h"
#include "codec/snapshots/snapshots.h"
#include "layout.h"
#include "read/read_internal.h"

/** The new file in the making. */
struct redaction {
    struct ttd_copy copy;
    bool has_strings;
    struct ttd_redaction removed;
    /** Metadata records written. */
    uint64_t metadata;
    /** The first problem of the input; its status is TTD_OK if there is none. */
    struct ttd_error problem;
};

static bool redact_see_problem(void *context, const struct ttd_problem *problem)
{
    struct redaction *r = context;
    r->problem = problem->error;
    return false;
}

/** Writes the payload in place of the payload of a chunk with this header. */
static enum ttd_status redact_put(struct redaction *r, const struct ttd_header *header)
{
    struct ttd_emission emission = {header->kind, header->first_record, header->record_count,
                                    header->first_position, header->last_position};
    return ttd_copy_put(&r->copy, &emission);
}

/** Writes a name made from the id of the string only; empty ones stay empty. */
static void redact_string(struct redaction *r, struct ttd_cursor *cursor, uint64_t id)
{
    char name[32];
    struct ttd_string string = ttd_decode_string(cursor);
    if (string.size != 0) {
        /* With the id, so that different names stay different. */
        string.data = name;
        string.size = (size_t)snprintf(name, sizeof name, "redacted-%llu", (unsigned long long)id);
        r->removed.strings++;
    }
    ttd_encode_string(&r->copy.payload, string);
}

static void redact_module(struct redaction *r, struct ttd_cursor *cursor, uint64_t ordinal)
{
    (void)ordinal;
    struct ttd_module module;
    ttd_decode_module(cursor, &module);
    r->removed.build_ids += module.build_id_size != 0;
    module.build_id_size = 0;
    ttd_encode_module(&r->copy.payload, &module);
}

static void redact_user_event(struct redaction *r, struct ttd_cursor *cursor, uint64_t ordinal)
{
    (void)ordinal;
    struct ttd_user_event event;
    ttd_decode_user_event(cursor, &event);
    r->removed.user_events += event.size != 0;
    event.size = 0;
    ttd_encode_user_event(&r->copy.payload, &event);
}

/** A snapshot whose contents of memory are gone still has the blocks: they come from events. */
static void redact_snapshot(struct redaction *r, struct ttd_cursor *cursor, uint64_t ordinal)
{
    (void)ordinal;
    struct ttd_snapshot snapshot;
    ttd_decode_snapshot(cursor, &snapshot);
    r->removed.memory_snapshots += (snapshot.contents & TTD_SNAPSHOT_MEMORY) != 0;
    snapshot.contents &= ~(uint32_t)TTD_SNAPSHOT_MEMORY;
    if (snapshot.contents == 0)
        snapshot.contents = TTD_SNAPSHOT_BLOCKS;
    ttd_encode_snapshot(&r->copy.payload, &snapshot);
}

static void redact_fatal_signal(struct redaction *r, struct ttd_cursor *cursor, uint64_t ordinal)
{
    (void)ordinal;
    struct ttd_register registers[TTD_REGISTERS_MAX];
    struct ttd_fatal_signal signal;
    ttd_decode_fatal_signal(cursor, &signal);
    ttd_decode_registers(cursor, registers, signal.count);
    r->removed.registers += signal.count;
    signal.count = 0;
    ttd_encode_fatal_signal(&r->copy.payload, &signal);
}

/** Writes the next record of a payload without its private contents. `ordinal` is its number among
 * the records of its kind in the trace, for strings the id. */
typedef void redact_function(struct redaction *r, struct ttd_cursor *in, uint64_t ordinal);

/** Writes all records of a chunk. */
static enum ttd_status redact_put_redacted(struct redaction *r, const struct ttd_header *header,
                                           struct ttd_cursor *cursor, redact_function *redact)
{
    for (uint32_t i = 0; i < header->record_count; i++)
        redact(r, cursor, header->first_record + i);
    return redact_put(r, header);
}

/** Whether a metadata record says nothing of the program, its user or the machine. */
static bool redact_is_harmless(const struct ttd_metadata *metadata)
{
    static const char *const keys[] = {"writer", "unrecorded", "chosen",
                                       "before", "stacks",     TTD_REDACTED_KEY};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (metadata->key.size == strlen(keys[i]) &&
            memcmp(metadata->key.data, keys[i], metadata->key.size) == 0)
            return true;
    }
    return false;
}

static enum ttd_status redact_put_metadata(struct redaction *r, const struct ttd_header *header,
                                           struct ttd_cursor *cursor)
{
    struct ttd_header copy = *header;
    copy.first_record = r->metadata;
    copy.record_count = 0;
    for (uint32_t i = 0; i < header->record_count; i++) {
        struct ttd_metadata metadata;
        ttd_decode_metadata(cursor, &metadata);
        if (!redact_is_harmless(&metadata))
            continue;
        ttd_encode_metadata(&r->copy.payload, &metadata);
        copy.record_count++;
    }
    r->metadata += copy.record_count;
    r->removed.metadata += header->record_count - copy.record_count;
    return copy.record_count ? redact_put(r, &copy) : TTD_OK;
}

/** Writes a chunk that has strings; `cursor` is at its payload. */
static enum ttd_status redact_put_without_strings(struct redaction *r,
                                                  const struct ttd_header *header,
                                                  struct ttd_cursor cursor, const uint8_t *stored)
{
    switch (header->kind) {
    case TTD_KIND_STRINGS:
        return redact_put_redacted(r, header, &cursor, redact_string);
    case TTD_KIND_MODULES:
        return redact_put_redacted(r, header, &cursor, redact_module);
    case TTD_KIND_USER_EVENTS:
        return redact_put_redacted(r, header, &cursor, redact_user_event);
    case TTD_KIND_METADATA:
        return redact_put_metadata(r, header, &cursor);
    default:
        return ttd_copy_stored(&r->copy, header, stored);
    }
}

/** Writes a chunk that is not left out; `cursor` is at its payload. */
static enum ttd_status redact_put_chunk(struct redaction *r, const struct ttd_header *header,
                                        struct ttd_cursor cursor, const uint8_t *stored)
{
    if (header->kind == TTD_KIND_SNAPSHOTS)
        return redact_put_redacted(r, header, &cursor, redact_snapshot);
    if (header->kind == TTD_KIND_FATAL_SIGNALS)
        return redact_put_redacted(r, header, &cursor, redact_fatal_signal);
    if (r->has_strings)
        return redact_put_without_strings(r, header, cursor, stored);
    if (header->kind == TTD_KIND_METADATA)
        r->metadata += header->record_count;
    return ttd_copy_stored(&r->copy, header, stored);
}

/** Counts a chunk that is left out; returns whether it is. */
static bool redact_is_left_out(struct redaction *r, const struct ttd_header *header)
{
    if (header->kind == TTD_KIND_PAGES)
        r->removed.page_bytes += header->raw_size - TTD_PAGES_DATA;
    bool is_unknown = header->kind > TTD_KIND_LAST;
    r->removed.unknown_chunks += is_unknown;
    return is_unknown || ttd_kind_has(header->kind, TTD_KIND_IS_CONTENT);
}

static enum ttd_status redact_copy_chunk(void *context, struct ttd_reader *reader,
                                         const struct ttd_header *header, const uint8_t *stored,
                                         bool redefines)
{
    struct redaction *r = context;
    enum ttd_status status = ttd_copy_begin(&r->copy, reader);
    (void)redefines;
    if (status != TTD_OK || ttd_copy_is_made(&r->copy, reader, header))
        return status;
    if (redact_is_left_out(r, header))
        return TTD_OK;
    const uint8_t *raw = ttd_source_raw(&reader->source, header);
    return redact_put_chunk(r, header, ttd_cursor_of(raw, header->raw_size), stored);
}

/** Writes the record that lists the removed contents. */
static enum ttd_status redact_put_note(void *context)
{
    struct redaction *r = context;
    const char *text = r->has_strings ? "contents of memory, strings" : "contents of memory";
    struct ttd_metadata note = {{TTD_REDACTED_KEY, strlen(TTD_REDACTED_KEY)}, {text, strlen(text)}};
    ttd_encode_metadata(&r->copy.payload, &note);
    struct ttd_emission emission = {TTD_KIND_METADATA, r->metadata, 1, r->copy.emitter.position,
                                    r->copy.emitter.position};
    return ttd_copy_put(&r->copy, &emission);
}

enum ttd_status ttd_redact(const struct ttd_input *input, const struct ttd_output *output,
                           const struct ttd_allocator *allocator, unsigned parts,
                           struct ttd_redaction *removed, struct ttd_error *error)
{
    struct redaction r = {.copy = {.error = error, .before_end = redact_put_note},
                          .has_strings = (parts & TTD_REDACT_STRINGS) != 0};
    struct ttd_check check = {
        .observer = {redact_see_problem, &r}, .chunk = redact_copy_chunk, .context = &r};
    struct ttd_verdict verdict;
    bool is_known = removed && !(parts & ~TTD_REDACT_STRINGS);
    enum ttd_status status =
        ttd_copy_run(&r.copy, &check, input, output, allocator, is_known ? &verdict : NULL);
    if (r.problem.status != TTD_OK) {
        if (error)
            *error = r.problem;
        return r.problem.status;
    }
    if (status == TTD_OK)
        *removed = r.removed;
    return status;
}
