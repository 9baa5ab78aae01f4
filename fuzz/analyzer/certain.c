/* SPDX-License-Identifier: MIT */
/*
 * A verdict is certain only if verify calls the trace intact and the trace did not change while it
 * was read. This holds also for a verdict at a position in the middle, and for a file that is cut
 * short between two passes.
 */
#include "../target.h"

#include <stdlib.h>
#include <string.h>

#include "analyses/errors/errors.h"
#include "analyses/reachability/leaks.h"

/* A file that has the size `later` during its next `calls` calls, and `size` otherwise. */
struct shrinking {
    const uint8_t *bytes;
    size_t size;
    size_t later;
    unsigned calls;
};

static size_t size_now(struct shrinking *file)
{
    size_t size = file->calls ? file->size : file->later;
    file->calls -= file->calls != 0;
    return size;
}

static int read_at(void *context, uint64_t offset, void *data, size_t size, size_t *got)
{
    struct shrinking *file = context;
    size_t whole = size_now(file);
    *got = offset < whole ? whole - (size_t)offset : 0;
    if (*got > size)
        *got = size;
    if (*got)
        memcpy(data, file->bytes + offset, *got);
    return 0;
}

static int size_of(void *context, uint64_t *size)
{
    *size = size_now(context);
    return 0;
}

static struct ttd_reader *open_file(struct shrinking *file)
{
    struct ttd_input input = {file, read_at, size_of, NULL};
    struct ttd_reader_options options = ttd_reader_options_default();
    options.tolerant = true;
    options.lazy_stacks = true;
    struct ttd_reader *reader = NULL;
    return ttd_reader_open(&input, &options, &target_allocator, &reader, NULL) == TTD_OK ? reader
                                                                                         : NULL;
}

/* The analyses return whether they completed without damage. */
static bool find_leaks(struct ttd_reader *reader, struct ttd_position at)
{
    struct heap_leaks leaks;
    struct ttd_error error;
    struct heap_trace trace = {.reader = reader};
    struct heap_leaks_options options = {.at = at};
    if (heap_leaks_find(&trace, &options, &leaks, &error) != TTD_OK)
        return false;
    bool is_complete = !leaks.outcome.losses.damaged && !leaks.outcome.truncated;
    heap_leaks_free(&leaks);
    return is_complete;
}

static bool find_errors(struct ttd_reader *reader)
{
    struct heap_errors errors;
    struct ttd_error error;
    struct heap_trace trace = {.reader = reader};
    struct heap_errors_options options = {.remembered = 64};
    if (heap_errors_find(&trace, &options, &errors, &error) != TTD_OK)
        return false;
    bool is_complete = !errors.outcome.losses.damaged && !errors.outcome.truncated;
    heap_errors_free(&errors);
    return is_complete;
}

/* Whether the trace itself records that a part of a file was damaged, as one does that was
 * recovered: the analyses say so, of an intact file as well. */
static bool records_damage(struct shrinking *file)
{
    struct ttd_batch batch;
    struct ttd_reader *reader = open_file(file);
    bool has_damage = false;
    if (!reader)
        return false;
    ttd_reader_rewind(reader, TTD_KIND_BIT(TTD_KIND_LOSSES));
    while (ttd_reader_next(reader, &batch, NULL) == TTD_OK)
        for (size_t i = 0; batch.kind == TTD_KIND_LOSSES && !batch.synthetic && i < batch.count;
             i++)
            has_damage |= batch.u.losses[i].reason == TTD_LOSS_DAMAGE;
    ttd_reader_close(reader);
    return has_damage;
}

/* The facts about the unchanged file: whether verify says that it is intact, and records_damage().
 */
struct whole_file {
    bool is_intact;
    bool records_damage;
};

/* Checks the verdicts on a file. */
static void check(struct shrinking *file, const struct whole_file *whole, bool is_changed)
{
    bool is_intact = whole->is_intact;
    struct ttd_reader *reader = open_file(file);
    if (!reader)
        return;
    bool is_complete = find_leaks(reader, ttd_position_max());
    bool is_certain = ttd_reader_is_intact(reader);
    target_require(!is_certain || is_intact, "certain only if verify says intact: leaks");
    target_require(!is_certain || is_complete || whole->records_damage,
                   "certain only if nothing is damaged: leaks");
    target_require(is_certain || !is_intact || is_changed, "what is intact is certain: leaks");
    file->calls = 0;
    is_complete = find_errors(reader);
    is_certain = ttd_reader_is_intact(reader);
    target_require(!is_certain || (is_intact && !is_changed),
                   "certain only if verify says intact: errors");
    target_require(!is_certain || is_complete || whole->records_damage,
                   "certain only if nothing is damaged: errors");
    find_leaks(reader, ttd_position_min());
    is_certain = ttd_reader_is_intact(reader);
    target_require(!is_certain || (is_intact && !is_changed),
                   "certain only if verify says intact: a position in the middle");
    ttd_reader_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = target_copy(data, size);
    struct shrinking file = {.bytes = bytes, .size = size, .later = size};
    const struct whole_file whole = {target_is_intact(bytes, size), records_damage(&file)};
    check(&file, &whole, false);
    /* The size changes while the file is read; the last byte chooses the sizes. */
    size_t hint = size ? bytes[size - 1] : 0;
    for (unsigned i = 0; i < 4 && size; i++) {
        file.later = size - 1 - (hint * 61 + i * size / 4) % size;
        file.calls = 4 + 7 * i;
        check(&file, &whole, true);
    }
    free(bytes);
    return 0;
}
