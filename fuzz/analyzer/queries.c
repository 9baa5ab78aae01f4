/* SPDX-License-Identifier: MIT */
/*
 * Whatever SQL an input contains, `query` over a small trace ends with a documented status, its
 * output is well-formed, no descriptor stays open, and nothing was written: the trace has its bytes
 * as before, and no other file was made. The first byte of an input chooses the format, the rest is
 * the query.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../capture.h"
#include "../target.h"
#include "cli/options/command.h"
#include "cli/process/limits.h"
#include "cli/process/message.h"
#include "well_formed.h"

#define QUERIES_SQL_MAX 4096
#define QUERIES_PATH    256

/* Memory of SQLite in bytes: too little for a text on which a function of it spends a second. */
#define QUERIES_MEMORY (INT64_C(4) << 20)

static char queries_trace[QUERIES_PATH];
static uint8_t queries_bytes[65536];
static size_t queries_size;

/* Reads the trace; it was made by hand, and has events, marks, losses and a snapshot. */
static void queries_prepare(void)
{
    int source = open(QUERIES_TRACE, O_RDONLY | O_CLOEXEC);
    ssize_t size = source < 0 ? -1 : read(source, queries_bytes, sizeof queries_bytes);
    target_require(size > 0 && size < (ssize_t)sizeof queries_bytes, "a trace");
    close(source);
    queries_size = (size_t)size;
    snprintf(queries_trace, sizeof queries_trace, "%s/trace", capture_directory());
    sqlite3_hard_heap_limit64(QUERIES_MEMORY);
}

static void queries_write_trace(void)
{
    int file = open(queries_trace, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    target_require(file >= 0 && write(file, queries_bytes, queries_size) == (ssize_t)queries_size,
                   "a file");
    close(file);
}

static void queries_check_trace(void)
{
    static uint8_t now[sizeof queries_bytes];
    int file = open(queries_trace, O_RDONLY | O_CLOEXEC);
    target_require(file >= 0 && read(file, now, sizeof now) == (ssize_t)queries_size &&
                       memcmp(now, queries_bytes, queries_size) == 0,
                   "a query changes no trace");
    close(file);
    unlink(queries_trace);
}

/* The files that the capture uses are there before and after. */
static size_t queries_count_files(void)
{
    size_t count = 0;
    DIR *directory = opendir(capture_directory());
    target_require(directory != NULL, "a directory");
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

static int queries_next_descriptor(void)
{
    int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(descriptor);
    return descriptor;
}

static void queries_check_output(int descriptor, const char *format, bool is_whole)
{
    size_t size;
    char *data = capture_take(descriptor, &size);
    const char *wrong = well_formed_text(data, size);
    if (!wrong && is_whole && strcmp(format, "json") == 0)
        wrong = well_formed_json(data, size);
    if (!wrong && is_whole && strcmp(format, "csv") == 0)
        wrong = well_formed_csv(data, size);
    if (wrong)
        fwrite(data, 1, size < 2000 ? size : 2000, stderr);
    target_require(!wrong, wrong ? wrong : "");
    free(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const formats[] = {"text", "json", "csv"};
    char sql[QUERIES_SQL_MAX] = "";
    if (!queries_size)
        queries_prepare();
    size_t length = size > 1 ? size - 1 : 0;
    if (length > sizeof sql - 1)
        length = sizeof sql - 1;
    if (length)
        memcpy(sql, data + 1, length);
    char name[] = "query", format[8], option[] = "-f", timeout[] = "--timeout", seconds[] = "1";
    snprintf(format, sizeof format, "%s", formats[size ? data[0] % 3 : 0]);
    char separator[] = "--";
    char *arguments[] = {name,      option, format,        timeout, seconds,
                         separator, sql,    queries_trace, NULL};
    queries_write_trace();
    capture_begin();
    int before = queries_next_descriptor();
    size_t files = queries_count_files();
    int status = command_query.run(&command_query, 8, arguments);
    capture_end();
    limits_lift();
    target_require(queries_count_files() == files, "no file is made");
    target_require(status >= STATUS_OK && status <= STATUS_INTERNAL && status != STATUS_FINDINGS,
                   "a documented status");
    queries_check_trace();
    queries_check_output(STDOUT_FILENO, format, status == STATUS_OK);
    queries_check_output(STDERR_FILENO, "text", true);
    target_require(queries_next_descriptor() == before, "nothing is left open");
    return 0;
}
