/* SPDX-License-Identifier: MIT */
/* Intact traces can be redacted, and no others; a redacted trace is intact, has the events of the
 * trace that it was made of, and no pages. */
#include "../target.h"

#include <stdlib.h>

#include <ttdtrace/redact.h>

/** Kinds with contents of memory. */
#define CONTENTS (TTD_KIND_BIT(TTD_KIND_PAGES) | TTD_KIND_BIT(TTD_KIND_MEMORY_MAP))

static struct target_digest digest_of(const uint8_t *bytes, size_t size)
{
    struct target_digest digest = {0};
    struct ttd_reader *reader = target_open(bytes, size, 0);
    target_require(reader && target_read(reader, &digest) == TTD_END, "an intact trace is read");
    ttd_reader_close(reader);
    return digest;
}

static void check_redacted(const uint8_t *bytes, size_t size)
{
    struct ttd_batch batch;
    struct ttd_reader *reader = target_open(bytes, size, 0);
    target_require(target_is_intact(bytes, size), "a redacted trace is intact");
    target_require(reader && ttd_reader_rewind(reader, CONTENTS) == TTD_OK &&
                       ttd_reader_next(reader, &batch, NULL) == TTD_END,
                   "a redacted trace has no contents of memory");
    ttd_reader_close(reader);
}

static void redact(const uint8_t *bytes, size_t size, unsigned parts, int is_intact)
{
    struct ttd_input input = target_input(bytes, size);
    struct ttd_memory_output redacted;
    struct ttd_output output;
    struct ttd_redaction removed;
    target_require(ttd_output_memory(&redacted, NULL, &output) == TTD_OK, "output of memory");
    enum ttd_status status = ttd_redact(&input, &output, &target_allocator, parts, &removed, NULL);
    target_require((status == TTD_OK) == is_intact, "what is intact is redacted");
    if (status == TTD_OK) {
        struct target_digest before = digest_of(bytes, size);
        struct target_digest after = digest_of(redacted.data, redacted.size);
        check_redacted(redacted.data, redacted.size);
        target_require(before.events == after.events && before.events_hash == after.events_hash,
                       "events stay as they are");
    }
    ttd_memory_output_free(&redacted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = target_copy(data, size);
    int is_intact = target_is_intact(bytes, size);
    redact(bytes, size, 0, is_intact);
    redact(bytes, size, TTD_REDACT_STRINGS, is_intact);
    free(bytes);
    return 0;
}
