/* SPDX-License-Identifier: MIT */
#include "cli/page/page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ttdtrace/redact.h>
#include <ttdtrace/verify.h>

#include "cli/process/limits.h"
#include "cli/process/message.h"
#include "cli/traces/source.h"
#include "report/page/page_model.h"

#ifdef HAS_VIEWER
#include <libdeflate.h>
#endif

/* Packing data for a page. */

#ifdef HAS_VIEWER

/* From 1 to 12. Beside QUICK, GOOD makes the page of 4.4 million events of Python 8 % smaller, and
 * takes 0.15 s more; 12 makes it hardly smaller still. */
#define QUICK 7
#define GOOD  10

/* Larger data, of programs with thousands of call sites, are only compressed quickly: otherwise
 * that would take as long as all else. */
#define LARGE ((size_t)2 << 20)

static bool page_compress(const void *data, size_t size, int level, struct page_packed *packed)
{
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(level);
    packed->size = 0;
    if (!compressor)
        return false;
    size_t bound = libdeflate_deflate_compress_bound(compressor, size);
    packed->data = malloc(bound);
    packed->size =
        packed->data ? libdeflate_deflate_compress(compressor, data, size, packed->data, bound) : 0;
    libdeflate_free_compressor(compressor);
    if (!packed->size)
        free(packed->data);
    return packed->size;
}

bool page_pack(const void *data, size_t size, size_t goal, struct page_packed *packed)
{
    bool is_large = size > LARGE;
    if (!goal && !is_large)
        return page_compress(data, size, GOOD, packed);
    if (!page_compress(data, size, QUICK, packed) || packed->size <= goal || is_large)
        return packed->size;
    free(packed->data);
    return page_compress(data, size, GOOD, packed);
}

#else

/* A build without the viewer has no page, and nothing to compress with. */
const struct page_piece page_frame[PAGE_PIECES];

bool page_pack(const void *data, size_t size, size_t goal, struct page_packed *packed)
{
    (void)data;
    (void)size;
    (void)goal;
    (void)packed;
    return false;
}

#endif

#ifndef HAS_ENGINE
const struct page_engine page_engine = {.size = 0};
#endif

/* Making a page. */

bool page_is_built(void)
{
    return page_frame[0].size;
}

int page_begin(struct session *session)
{
    int descriptor = memfd_create("page", MFD_CLOEXEC);
    if (descriptor < 0) {
        message("a file in memory: %s", strerror(errno));
        return STATUS_INTERNAL;
    }
    session->output = (struct output_file){.path = NULL};
    out_init(&session->output.text, descriptor, false);
    session->output.text.room = limits_output();
    session->has_output = true;
    return STATUS_OK;
}

void page_drop(struct session *session)
{
    if (session->has_output)
        close(session->output.text.descriptor);
    session->has_output = false;
}

static int page_fail(const struct session *session, int error)
{
    message("%s: %s", session->options.output ? session->options.output : "standard output",
            strerror(error));
    return STATUS_INTERNAL;
}

/* How many bytes of packed data a page has room for within page_size_goal(). */
static size_t page_room_for_data(const struct session *session)
{
    uint64_t size = page_size_goal(session->source.size);
    for (size_t i = 0; i < PAGE_PIECES; i++)
        size -= size > page_frame[i].size ? page_frame[i].size : size;
    return page_packed_size((size_t)size);
}

int page_end(struct session *session, struct page_packed *packed)
{
    int descriptor = session->output.text.descriptor;
    struct stat file;
    bool is_written = out_flush(&session->output.text);
    if (session->output.text.is_full) {
        page_drop(session);
        return message_output(session->options.output);
    }
    if (!is_written || fstat(descriptor, &file) != 0) {
        int error = is_written ? errno : session->output.text.error;
        page_drop(session);
        return page_fail(session, error);
    }
    size_t size = (size_t)file.st_size;
    unsigned char *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    int error = errno;
    page_drop(session);
    if (data == MAP_FAILED)
        return page_fail(session, error);
    bool is_packed = page_pack(data, size, page_room_for_data(session), packed);
    munmap(data, size);
    return is_packed ? STATUS_OK : message_status(session->source.path, TTD_ERROR_NO_MEMORY);
}

void page_free(struct page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        free(page->blocks[i].data.data);
        free(page->blocks[i].trace.data);
    }
    free(page->blocks);
    free(page->comparison.data);
    free(page->engine.data);
}

static void page_write_piece(struct text_output *output, size_t i)
{
    out_write(output, (const char *)page_frame[i].text, page_frame[i].size);
}

/* Writes an element, unless it would be empty. The number of the trace stands behind the names of
 * all but the first one's. */
static void page_write_element(struct text_output *output, const char *name, size_t number,
                               const struct page_packed *packed)
{
    if (!packed->data)
        return;
    out_text(output, "\n<script type=\"text/plain\" id=\"");
    out_text(output, name);
    if (number > 1)
        out_format(output, "-%zu", number);
    out_text(output, "\">");
    page_write_packed(output, packed);
    out_text(output, "</script>");
}

static void page_write_html(struct text_output *output, const struct page *page)
{
    page_write_piece(output, 0);
    if (page->engine.data)
        out_text(output, " 'wasm-unsafe-eval'; worker-src blob:");
    page_write_piece(output, 1);
    for (size_t i = 0; i < page->count; i++)
        page_write_element(output, "data", i + 1, &page->blocks[i].data);
    page_write_element(output, "comparison", 1, &page->comparison);
    page_write_element(output, "engine", 1, &page->engine);
    for (size_t i = 0; i < page->count; i++)
        page_write_element(output, "trace", i + 1, &page->blocks[i].trace);
    page_write_piece(output, 2);
}

int page_write(const struct common_options *options, const struct page *page)
{
    struct output_file file = {.path = NULL};
    bool fits = page_fits(page->comparison.size);
    for (size_t i = 0; i < page->count; i++)
        fits = fits && page_fits(page->blocks[i].data.size);
    if (!fits) {
        message("the page would be too large for browsers: --from and --to, --include and "
                "--exclude make it smaller");
        return STATUS_INTERNAL;
    }
    int status = STATUS_OK;
    for (size_t i = 0; i < options->other_count && status == STATUS_OK; i++)
        status = output_spare(options->output, options->others[i]);
    if (status == STATUS_OK)
        status = output_open(&file, options->output, options->trace, false);
    if (status != STATUS_OK)
        return status;
    file.text.room = limits_output();
    page_write_html(&file.text, page);
    return output_close(&file, STATUS_OK, true);
}

void page_begin_report(struct session *session, const char *part)
{
    page_begin_part(&session->output.text, part);
    session->uses_times = false;
    session->report.runtime = (struct report_runtime){.groups = NULL};
    session->report.certainty.count = 0;
}

int page_run_part(struct session *session, const struct command *command)
{
    uint64_t room = session->output.text.room;
    page_begin_report(session, command->name);
    int status = command->execute(session, command->own.defaults);
    session->output.text.room = room < session->output.text.room ? room : session->output.text.room;
    session->has_reasons = true;
    return status;
}

/* Some browsers take a longer text of a script element for an empty one. */
#define TEXT_MAX ((size_t)480 << 20)

/* Two digits of so many characters stand for so many bits. */
#define RADIX 91
#define BITS  13

/* The first digit. One of them would begin a tag, and is replaced by the character that no other
 * digit is. */
#define FIRST  '#'
#define TAG    '<'
#define NO_TAG '!'

size_t page_packed_size(size_t text_size)
{
    return text_size / 16 * BITS;
}

bool page_fits(size_t size)
{
    return size <= page_packed_size(TEXT_MAX);
}

static char page_digit(unsigned value)
{
    char character = (char)(FIRST + value);
    return character == TAG ? NO_TAG : character;
}

static void page_write_pair(struct text_output *output, uint32_t value)
{
    const char pair[] = {page_digit(value % RADIX), page_digit(value / RADIX)};
    out_write(output, pair, sizeof pair);
}

void page_write_packed(struct text_output *output, const struct page_packed *packed)
{
    char size[32];
    out_write(output, size, (size_t)snprintf(size, sizeof size, "%zu ", packed->size));
    uint32_t bits = 0;
    unsigned count = 0;
    for (size_t i = 0; i < packed->size; i++) {
        bits |= (uint32_t)packed->data[i] << count;
        count += 8;
        if (count < BITS)
            continue;
        page_write_pair(output, bits & ((1u << BITS) - 1));
        bits >>= BITS;
        count -= BITS;
    }
    if (count)
        page_write_pair(output, bits);
}

/* The bytes of a trace. */
struct bytes {
    uint8_t *data;
    size_t size;
};

bool page_has_engine(void)
{
    return page_engine.size;
}

/* Reads as much of the file as there was when it was opened: a recording may go on. */
static enum ttd_status page_read_input(const struct session *session, struct bytes *trace,
                                       struct ttd_error *error)
{
    struct ttd_input input;
    enum ttd_status status = input_open(session->source.path, &input, error);
    if (status != TTD_OK)
        return status;
    trace->size = (size_t)session->source.size;
    trace->data = malloc(trace->size + 1);
    size_t read_size = 0;
    int reason = ENOMEM;
    if (trace->data)
        reason = input.read_at(input.context, 0, trace->data, trace->size, &read_size);
    if (input.close)
        input.close(input.context);
    if (!reason && read_size == trace->size)
        return TTD_OK;
    *error =
        (struct ttd_error){TTD_ERROR_IO, reason ? reason : EIO, TTD_NOWHERE, TTD_NOWHERE, "read"};
    return TTD_ERROR_IO;
}

/* Copies a trace from memory to memory: its intact parts, or all but contents. */
typedef enum ttd_status copy_function(const struct ttd_input *input,
                                      const struct ttd_output *output, bool *is_changed,
                                      struct ttd_error *error);

static enum ttd_status page_recover(const struct ttd_input *input, const struct ttd_output *output,
                                    bool *is_changed, struct ttd_error *error)
{
    struct ttd_verdict verdict;
    *is_changed = true;
    return ttd_recover(input, output, NULL, NULL, &verdict, error);
}

static enum ttd_status page_redact(const struct ttd_input *input, const struct ttd_output *output,
                                   bool *is_changed, struct ttd_error *error)
{
    static const struct ttd_redaction nothing;
    struct ttd_redaction removed = nothing;
    enum ttd_status status = ttd_redact(input, output, NULL, 0, &removed, error);
    *is_changed = memcmp(&removed, &nothing, sizeof removed) != 0;
    return status;
}

/* Replaces a trace by a copy, if that differs. */
static enum ttd_status page_replace(struct bytes *trace, copy_function *copy,
                                    struct ttd_error *error)
{
    struct ttd_memory_output memory;
    struct ttd_output output;
    struct ttd_input input;
    bool is_changed = false;
    enum ttd_status status = ttd_output_memory(&memory, NULL, &output);
    if (status == TTD_OK)
        status = ttd_input_memory(trace->data, trace->size, NULL, &input);
    if (status == TTD_OK)
        status = copy(&input, &output, &is_changed, error);
    if (status == TTD_OK && is_changed) {
        uint8_t *data = malloc(memory.size + 1);
        status = data ? TTD_OK : TTD_ERROR_NO_MEMORY;
        if (data) {
            memcpy(data, memory.data, memory.size);
            free(trace->data);
            *trace = (struct bytes){data, memory.size};
        }
    }
    ttd_memory_output_free(&memory);
    return status;
}

static enum ttd_status page_remove_contents(struct bytes *trace, struct ttd_error *error)
{
    enum ttd_status status = page_replace(trace, page_redact, error);
    if (exit_for(status) != STATUS_DAMAGED)
        return status;
    status = page_replace(trace, page_recover, error);
    return status == TTD_OK ? page_replace(trace, page_redact, error) : status;
}

int page_trace_read(struct session *session, bool has_contents, struct page_packed *trace)
{
    struct ttd_error error = {.offset = TTD_NOWHERE, .chunk = TTD_NOWHERE, .what = ""};
    struct bytes bytes = {NULL, 0};
    if (session->source.size > SIZE_MAX / 2 || !page_fits((size_t)session->source.size)) {
        message("the trace is too large for an exact page: leave out --exact");
        return STATUS_USAGE;
    }
    enum ttd_status status = page_read_input(session, &bytes, &error);
    if (status == TTD_OK && !has_contents)
        status = page_remove_contents(&bytes, &error);
    if (status == TTD_OK && !page_pack(bytes.data, bytes.size, 0, trace))
        status = TTD_ERROR_NO_MEMORY;
    free(bytes.data);
    return status == TTD_OK ? STATUS_OK : input_fail(session->source.path, status, &error);
}

bool page_pack_engine(struct page_packed *engine)
{
    return page_pack(page_engine.data, page_engine.size, 0, engine);
}
