/* SPDX-License-Identifier: MIT */
/* Files, growing files, pipes; and what flushing is worth. */
#include "api/fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORY_SIZE 200
#define PATH_SIZE      256

/** A directory of its own, left empty. */
static void make_directory(char path[DIRECTORY_SIZE])
{
    const char *base = getenv("TMPDIR");
    snprintf(path, DIRECTORY_SIZE, "%s/ttdtrace-XXXXXX", base ? base : "/tmp");
    cr_assert_not_null(mkdtemp(path));
}

static void path_in(char path[PATH_SIZE], const char *directory, const char *name)
{
    cr_assert_lt(snprintf(path, PATH_SIZE, "%s/%s", directory, name), PATH_SIZE);
}

static enum ttd_status add_event(struct ttd_writer *writer, uint64_t step)
{
    struct ttd_event event = {
        .action = TTD_ACTION_LOCK, .time_start = {1, 2 * step}, .time_end = {1, 2 * step + 1}};
    return ttd_writer_event(writer, &event);
}

/** The events that are there, from where the reader is. */
static size_t count_events(struct ttd_reader *reader, enum ttd_status *status)
{
    size_t count = 0;
    struct ttd_batch batch;
    while ((*status = ttd_reader_next(reader, &batch, NULL)) == TTD_OK)
        if (batch.kind == TTD_KIND_EVENTS)
            count += batch.count;
    return count;
}

/* A reader of a file that is being written sees all that was flushed, and goes on later. */
Test(files, growing)
{
    char directory[DIRECTORY_SIZE];
    char path[PATH_SIZE];
    make_directory(directory);
    path_in(path, directory, "growing");
    struct ttd_output output;
    struct ttd_input input;
    struct ttd_writer *writer = NULL;
    struct ttd_reader *reader = NULL;
    struct ttd_trace trace = fixture_trace();
    cr_assert_eq(ttd_output_file(path, NULL, &output, NULL), TTD_OK);
    cr_assert_eq(ttd_writer_open(&output, &trace, NULL, NULL, &writer, NULL), TTD_OK);
    cr_assert_eq(ttd_input_file(path, NULL, &input, NULL), TTD_OK);
    cr_assert_eq(ttd_reader_open(&input, NULL, NULL, &reader, NULL), TTD_OK);
    enum ttd_status status;
    struct ttd_end end;
    for (size_t round = 1; round < 50; round++) {
        for (size_t i = 0; i < round; i++)
            cr_assert_eq(add_event(writer, round * 100 + i), TTD_OK);
        cr_assert_eq(count_events(reader, &status), 0);
        cr_assert_eq(status, TTD_END);
        cr_assert_eq(ttd_writer_flush(writer), TTD_OK);
        cr_assert_eq(count_events(reader, &status), round);
        cr_assert_eq(status, TTD_END);
        cr_assert_eq(ttd_reader_end(reader, &end), TTD_END);
    }
    fixture_close(writer);
    cr_assert_eq(count_events(reader, &status), 0);
    cr_assert_eq(status, TTD_END);
    cr_assert_eq(ttd_reader_end(reader, &end), TTD_OK);
    cr_assert_eq(end.events, 50 * 49 / 2);
    ttd_reader_close(reader);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(rmdir(directory), 0);
}

/* A file that grows by a byte at a time: what is incomplete heals, strictly and tolerantly. */
static void check_growing_bytes(bool tolerant)
{
    struct model m;
    struct ttd_memory_output memory;
    struct ttd_writer_options options = fixture_options(TTD_CODEC_LZ4, 0, 5);
    fixture_write_model(&m, entropy_of_seed(21), MODEL_REALISTIC, &options, 60, &memory);
    struct chaos_input input = {.data = memory.data, .counter = {.fail_at = CHAOS_NEVER}};
    struct ttd_input table = chaos_input_table(&input);
    struct ttd_reader_options reading = ttd_reader_options_default();
    reading.tolerant = tolerant;
    struct ttd_reader *reader = NULL;
    struct text_table found = {0};
    input.size = 224; /* the first chunk */
    cr_assert_eq(ttd_reader_open(&table, &reading, NULL, &reader, NULL), TTD_OK);
    for (; input.size <= memory.size; input.size++) {
        enum ttd_status status = model_read(reader, &found);
        cr_assert(status == TTD_END || status == TTD_ERROR_TRUNCATED, "%zu bytes: %s", input.size,
                  ttd_status_text(status));
    }
    size_t kind = text_table_difference(&m.expected, &found);
    cr_assert_eq(kind, SIZE_MAX, "records of kind %s differ", ttd_kind_name((unsigned)kind));
    ttd_reader_close(reader);
    text_table_free(&found);
    ttd_memory_output_free(&memory);
    model_free(&m);
}

Test(files, growing_by_bytes)
{
    check_growing_bytes(false);
}

Test(files, growing_by_bytes_tolerant)
{
    check_growing_bytes(true);
}

/* A pipe gets the same bytes as memory does. */
Test(files, pipe)
{
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    struct model in_memory;
    struct model in_pipe;
    struct ttd_memory_output memory;
    struct ttd_writer_options options = fixture_options(TTD_CODEC_LZ4, 3, 7);
    fixture_write_model(&in_memory, entropy_of_seed(5), MODEL_REALISTIC, &options, 150, &memory);
    cr_assert_lt(memory.size, 60000, "more than a pipe takes");
    struct ttd_trace trace = model_begin(&in_pipe, entropy_of_seed(5), MODEL_REALISTIC);
    struct ttd_output output;
    struct ttd_writer *writer = NULL;
    cr_assert_eq(ttd_output_descriptor(ends[1], 1, NULL, &output), TTD_OK);
    cr_assert_eq(ttd_writer_open(&output, &trace, &options, NULL, &writer, NULL), TTD_OK);
    for (int i = 0; i < 150; i++)
        cr_assert_eq(model_step(&in_pipe, writer), TTD_OK);
    cr_assert_eq(ttd_writer_bytes(writer) <= memory.size, 1);
    fixture_close(writer);
    uint8_t *data = malloc(memory.size + 1);
    size_t size = 0;
    ssize_t got;
    while ((got = read(ends[0], data + size, memory.size + 1 - size)) > 0)
        size += (size_t)got;
    cr_assert_eq(size, memory.size);
    cr_assert(memcmp(data, memory.data, size) == 0);
    close(ends[0]);
    free(data);
    ttd_memory_output_free(&memory);
    model_free(&in_memory);
    model_free(&in_pipe);
}

/* Output never overwrites, never follows a link, and is for its owner only. */
Test(files, output_is_new)
{
    char directory[DIRECTORY_SIZE];
    char path[PATH_SIZE];
    char link[PATH_SIZE];
    make_directory(directory);
    path_in(path, directory, "file");
    path_in(link, directory, "link");
    struct ttd_output output;
    struct ttd_error error = {.status = TTD_OK};
    umask(0);
    cr_assert_eq(ttd_output_file(path, NULL, &output, NULL), TTD_OK);
    cr_assert_eq(output.close(output.context), 0);
    struct stat status;
    cr_assert_eq(stat(path, &status), 0);
    cr_assert_eq(status.st_mode & 0777, 0600);
    cr_assert_eq(ttd_output_file(path, NULL, &output, &error), TTD_ERROR_IO);
    cr_assert_eq(error.system_error, EEXIST);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(symlink(path, link), 0);
    cr_assert_eq(ttd_output_file(link, NULL, &output, &error), TTD_ERROR_IO);
    cr_assert_eq(access(path, F_OK), -1);
    cr_assert_eq(unlink(link), 0);
    cr_assert_eq(rmdir(directory), 0);
}

Test(files, input_is_a_file)
{
    char directory[DIRECTORY_SIZE];
    char path[PATH_SIZE];
    make_directory(directory);
    path_in(path, directory, "fifo");
    struct ttd_input input;
    struct ttd_error error = {.status = TTD_OK};
    cr_assert_eq(ttd_input_file(path, NULL, &input, &error), TTD_ERROR_IO);
    cr_assert_eq(error.system_error, ENOENT);
    cr_assert_eq(ttd_input_file(directory, NULL, &input, &error), TTD_ERROR_IO);
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_assert_eq(ttd_input_file(path, NULL, &input, &error), TTD_ERROR_IO);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(rmdir(directory), 0);
}

/* An input over a descriptor does not depend on the descriptor's offset, and keeps one that it does
 * not own open. */
Test(files, input_of_a_descriptor)
{
    int ends[2];
    char data[8] = "";
    size_t got = 0;
    struct ttd_input input;
    struct ttd_error error;
    FILE *file = tmpfile();
    cr_assert(file && fputs("abcdefgh", file) >= 0 && fflush(file) == 0);
    cr_assert_eq(ttd_input_descriptor(fileno(file), 0, NULL, &input, &error), TTD_OK);
    cr_assert_eq(input.read_at(input.context, 2, data, 4, &got), 0);
    cr_assert(got == 4 && memcmp(data, "cdef", 4) == 0);
    cr_assert_eq(lseek(fileno(file), 0, SEEK_CUR), 8);
    input.close(input.context);
    cr_assert(fputc('i', file) != EOF && fclose(file) == 0, "was closed");
    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(ttd_input_descriptor(ends[0], 1, NULL, &input, &error), TTD_ERROR_IO);
    cr_assert_eq(error.system_error, ESPIPE);
    cr_assert_eq(close(ends[0]), 0, "on failure it stays open");
    cr_assert_eq(ttd_input_descriptor(-1, 0, NULL, &input, &error), TTD_ERROR_ARGUMENT);
    close(ends[1]);
}

/* A full disk and a closed pipe are errors of the output, with their reason. */
Test(files, output_fails)
{
    struct ttd_trace trace = fixture_trace();
    struct ttd_writer *writer = NULL;
    struct ttd_output output;
    struct ttd_error error = {.status = TTD_OK};
    FILE *full = fopen("/dev/full", "w");
    if (!full)
        cr_skip_test("no /dev/full");
    cr_assert_eq(ttd_output_descriptor(fileno(full), 0, NULL, &output), TTD_OK);
    cr_assert_eq(ttd_writer_open(&output, &trace, NULL, NULL, &writer, &error), TTD_ERROR_IO);
    cr_assert_eq(error.system_error, ENOSPC);
    fclose(full);
}
