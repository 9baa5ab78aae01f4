/* SPDX-License-Identifier: MIT */
/* Names can be added to whatever can be recovered: the result is intact, and has the events of the
 * recovered trace and the names. */
#include "../target.h"

#include <stdlib.h>

#include <ttdtrace/amend.h>

enum { SYMBOLS = 3 };

static enum ttd_status add(void *context, struct ttd_writer *writer)
{
    struct ttd_names *names;
    (void)context;
    enum ttd_status status = ttd_names_open(writer, NULL, NULL, &target_allocator, &names);
    for (uint64_t i = 0; status == TTD_OK && i < SYMBOLS; i++) {
        struct ttd_name name = {.function = {"function", 8}, .line = (uint32_t)i};
        status = ttd_names_symbol(names, TTD_NONE, i, &name, 1);
    }
    ttd_names_close(names);
    return status;
}

static uint64_t count_symbols(const uint8_t *bytes, size_t size)
{
    struct ttd_batch batch;
    uint64_t count = 0;
    struct ttd_reader *reader = target_open(bytes, size, 1);
    target_require(reader && ttd_reader_rewind(reader, TTD_KIND_BIT(TTD_KIND_SYMBOLS)) == TTD_OK,
                   "symbols are read");
    while (ttd_reader_next(reader, &batch, NULL) == TTD_OK)
        count += batch.kind == TTD_KIND_SYMBOLS ? batch.count : 0;
    ttd_reader_close(reader);
    return count;
}

static struct target_digest digest_of(const struct ttd_memory_output *trace)
{
    struct target_digest digest = {0};
    struct ttd_reader *reader = target_open(trace->data, trace->size, 0);
    target_require(reader && target_read(reader, &digest) == TTD_END, "an intact trace is read");
    ttd_reader_close(reader);
    return digest;
}

static void check(const struct ttd_memory_output *amended,
                  const struct ttd_memory_output *recovered)
{
    struct target_digest before = digest_of(recovered);
    struct target_digest after = digest_of(amended);
    target_require(target_is_intact(amended->data, amended->size), "an amended trace is intact");
    target_require(before.events == after.events && before.events_hash == after.events_hash,
                   "events stay as they are");
    target_require(count_symbols(amended->data, amended->size) ==
                       count_symbols(recovered->data, recovered->size) + SYMBOLS,
                   "names are added");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = target_copy(data, size);
    struct ttd_memory_output amended, recovered;
    struct ttd_output output;
    struct ttd_verdict verdict;
    struct ttd_input input = target_input(bytes, size);
    target_require(ttd_output_memory(&recovered, NULL, &output) == TTD_OK, "output of memory");
    enum ttd_status expected =
        ttd_recover(&input, &output, &target_allocator, NULL, &verdict, NULL);
    input = target_input(bytes, size);
    target_require(ttd_output_memory(&amended, NULL, &output) == TTD_OK, "output of memory");
    const struct ttd_amendment amendment = {add, NULL};
    enum ttd_status status =
        ttd_amend(&input, &output, &target_allocator, &amendment, &verdict, NULL);
    /* A derived file is refused, and so is one in which no id of a string is left. */
    if (status != TTD_ERROR_ARGUMENT && status != TTD_ERROR_LIMIT) {
        target_require(status == expected, "what can be recovered can get names");
        if (status == TTD_OK)
            check(&amended, &recovered);
    }
    ttd_memory_output_free(&amended);
    ttd_memory_output_free(&recovered);
    free(bytes);
    return 0;
}
