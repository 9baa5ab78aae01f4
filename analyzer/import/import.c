/* SPDX-License-Identifier: MIT */
#include "import/import.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "common/search.h"

const struct import_format import_formats[] = {
    {"heaptrack", "raw data of heaptrack (heaptrack --raw)", import_heaptrack},
    {"windbg", "heap objects of a TTD trace, printed by dx in WinDbg", import_windbg},
    {"mtrace", "a log of glibc's mtrace()", import_mtrace},
    {"lttng", "events of LTTng's wrapper of the C library, printed by babeltrace2", import_lttng},
    {"xperf", "heap events in the text of xperf -a dumper (experimental)", import_xperf},
    {NULL, NULL, NULL}};

const struct import_format *import_find(const char *name)
{
    for (const struct import_format *format = import_formats; format->name; format++) {
        if (!strcmp(format->name, name))
            return format;
    }
    return NULL;
}

/* Reads the text. One without a single line of the format makes no trace. */
static enum ttd_status import_read(const struct import_format *format, struct import_text *text,
                                   struct import_builder *builder)
{
    enum ttd_status status = format->read(text, builder);
    if (status != TTD_OK || builder->writer)
        return status;
    text->line = 0;
    return import_text_fail(text, TTD_ERROR_UNSUPPORTED, "nothing in it is %s", format->summary);
}

enum ttd_status import_trace(const struct import_format *format, const struct ttd_input *input,
                             const struct ttd_output *output, struct import_result *result,
                             struct ttd_error *error)
{
    struct import_text text;
    struct import_builder builder;
    *result = (struct import_result){.events = 0};
    enum ttd_status status = import_text_open(&text, input, result, error);
    import_builder_open(&builder, output, &text);
    if (status == TTD_OK)
        status = import_read(format, &text, &builder);
    status = import_builder_close(&builder, status);
    result->lines = text.line;
    import_text_close(&text);
    if (input->close)
        input->close(input->context);
    return status;
}

/* Bytes that are read at once; a line of the maximal length always fits behind a part of one. */
#define IMPORT_BUFFER ((size_t)1 << 20)

enum ttd_status import_text_open(struct import_text *text, const struct ttd_input *input,
                                 struct import_result *result, struct ttd_error *error)
{
    *text = (struct import_text){.input = input, .result = result, .error = error};
    text->buffer = malloc(IMPORT_BUFFER);
    return text->buffer ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

void import_text_close(struct import_text *text)
{
    free(text->buffer);
    text->buffer = NULL;
}

enum ttd_status import_text_fail(struct import_text *text, enum ttd_status status,
                                 const char *format, ...)
{
    va_list arguments;
    char *reason = text->result->reason;
    int used = 0;
    if (text->line)
        used = snprintf(reason, IMPORT_REASON_SIZE,
                        "line %llu, offset 0x%llx: ", (unsigned long long)text->line,
                        (unsigned long long)text->line_offset);
    va_start(arguments, format);
    vsnprintf(reason + used, IMPORT_REASON_SIZE - (size_t)used, format, arguments);
    va_end(arguments);
    return status;
}

/* Reads more bytes behind those in the buffer. */
static enum ttd_status import_text_fill(struct import_text *text)
{
    size_t got = 0;
    memmove(text->buffer, text->buffer + text->begin, text->end - text->begin);
    text->end -= text->begin;
    text->begin = 0;
    int failure = text->input->read_at(text->input->context, text->offset, text->buffer + text->end,
                                       IMPORT_BUFFER - text->end, &got);
    if (failure) {
        *text->error = (struct ttd_error){.status = TTD_ERROR_IO,
                                          .system_error = failure,
                                          .offset = text->offset,
                                          .chunk = TTD_NOWHERE,
                                          .what = ""};
        return TTD_ERROR_IO;
    }
    text->is_at_end = got < IMPORT_BUFFER - text->end;
    text->end += got;
    text->offset += got;
    return TTD_OK;
}

/* Refuses a file that is no text of bytes, by how it begins. */
static enum ttd_status import_text_begin(struct import_text *text)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *reason;
    } refused[] = {
        {"\x28\xB5\x2F\xFD", 4, "the file is compressed: zstd -dc FILE | ttdanalyze import ... -"},
        {"\x1F\x8B", 2, "the file is compressed: gzip -dc FILE | ttdanalyze import ... -"},
        {"\xFF\xFE", 2, "the text is UTF-16: convert it with iconv -f UTF-16 -t UTF-8"},
        {"\xFE\xFF", 2, "the text is UTF-16: convert it with iconv -f UTF-16 -t UTF-8"},
        {"heap profile:", 13,
         "a heap profile has sums of samples and no calls: no block can be followed in it"},
        {"heap_v2/", 8,
         "a heap profile has sums of samples and no calls: no block can be followed in it"},
        {"\x89TTD", 4, "this is a trace already"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (text->end >= refused[i].size &&
            memcmp(text->buffer, refused[i].bytes, refused[i].size) == 0)
            return import_text_fail(text, TTD_ERROR_UNSUPPORTED, "%s", refused[i].reason);
    }
    if (text->end >= 3 && memcmp(text->buffer, "\xEF\xBB\xBF", 3) == 0)
        text->begin = 3;
    return TTD_OK;
}

enum ttd_status import_text_line(struct import_text *text, struct ttd_string *line)
{
    const char *end = text->end > text->begin
                          ? memchr(text->buffer + text->begin, '\n', text->end - text->begin)
                          : NULL;
    if (!end && !text->is_at_end) {
        bool is_first = !text->offset;
        enum ttd_status status = import_text_fill(text);
        if (status == TTD_OK && is_first)
            status = import_text_begin(text);
        if (status != TTD_OK)
            return status;
        end = text->end > text->begin
                  ? memchr(text->buffer + text->begin, '\n', text->end - text->begin)
                  : NULL;
    }
    if (text->begin == text->end)
        return TTD_END;
    const char *begin = text->buffer + text->begin;
    size_t size = end ? (size_t)(end - begin) : text->end - text->begin;
    text->line++;
    text->line_offset = text->offset - (text->end - text->begin);
    if (size > IMPORT_LINE_MAX)
        return import_text_fail(text, TTD_ERROR_CORRUPT, "the line is longer than %d bytes",
                                IMPORT_LINE_MAX);
    text->begin += size + (end ? 1 : 0);
    if (size && begin[size - 1] == '\r')
        size--;
    *line = (struct ttd_string){begin, size};
    return TTD_OK;
}

/* Values of hexadecimal digits plus 1; 0 for no digit. */
static const uint8_t import_digits[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16};

bool import_take_hex(struct ttd_string *rest, uint64_t *number)
{
    uint64_t value = 0;
    size_t i = 0;
    for (; i < rest->size; i++) {
        uint8_t digit = import_digits[(unsigned char)rest->data[i]];
        if (!digit)
            break;
        if (value >> 60)
            return false;
        value = value << 4 | (digit - 1u);
    }
    if (!i)
        return false;
    import_drop(rest, i);
    *number = value;
    return true;
}

bool import_take_decimal(struct ttd_string *rest, uint64_t *number)
{
    uint64_t value = 0;
    size_t i = 0;
    for (; i < rest->size && rest->data[i] >= '0' && rest->data[i] <= '9'; i++) {
        uint64_t digit = (uint64_t)(rest->data[i] - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    if (!i)
        return false;
    import_drop(rest, i);
    *number = value;
    return true;
}

bool import_take_number(struct ttd_string *rest, uint64_t *number)
{
    struct ttd_string digits = *rest;
    if (!import_take(&digits, "0x"))
        return import_take_decimal(rest, number);
    if (!import_take_hex(&digits, number))
        return false;
    *rest = digits;
    return true;
}

void import_builder_open(struct import_builder *builder, const struct ttd_output *output,
                         struct import_text *text)
{
    *builder = (struct import_builder){.output = output, .text = text};
    builder->trace.trace_id = hash_key_new().add | 1;
    builder->trace.parent_position = ttd_position_invalid();
    builder->trace.time_unit = IMPORT_NO_TIMES;
    builder->trace.pointer_size = 8;
    map_init(&builder->threads);
    map_init(&builder->heaps);
}

static void import_free_modules(struct import_module *modules, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(modules[i].path);
    free(modules);
}

enum ttd_status import_builder_close(struct import_builder *builder, enum ttd_status status)
{
    struct ttd_end end = {.reason = TTD_END_REASON_NOT_RECORDED, .wall_time = builder->wall_time};
    if (!builder->writer) {
        if (builder->output->close)
            builder->output->close(builder->output->context);
    } else if (status == TTD_OK) {
        status = ttd_writer_close(builder->writer, &end, builder->text->error);
    } else {
        if (!builder->text->result->reason[0] && builder->text->error->status != status)
            *builder->text->error = ttd_writer_error(builder->writer);
        ttd_writer_close(builder->writer, NULL, NULL);
    }
    map_free(&builder->threads);
    map_free(&builder->heaps);
    import_free_modules(builder->modules, builder->module_count);
    import_free_modules(builder->files, builder->file_count);
    return status;
}

enum ttd_status import_fact(struct import_builder *builder, const char *key,
                            struct ttd_string value)
{
    struct ttd_metadata fact = {{key, strlen(key)}, value};
    return ttd_writer_metadata(builder->writer, &fact);
}

enum ttd_status import_loss(struct import_builder *builder, struct ttd_position last_good,
                            struct ttd_position first_good, uint64_t count)
{
    struct ttd_loss loss = {TTD_LOSS_NOT_RECORDING, TTD_NONE, count, last_good, first_good};
    return ttd_writer_loss(builder->writer, &loss);
}

/* No source says that it has all calls of the process: the loss never ends. */
enum ttd_status import_source(struct import_builder *builder, const char *source)
{
    enum ttd_status status = ttd_writer_open(builder->output, &builder->trace, NULL, NULL,
                                             &builder->writer, builder->text->error);
    if (status != TTD_OK) {
        /* The writer has closed the output. */
        static const struct ttd_output closed = {NULL, NULL, NULL};
        builder->output = &closed;
        return status;
    }
    status = import_fact(builder, "imported", (struct ttd_string){source, strlen(source)});
    if (status == TTD_OK)
        status = import_loss(builder, ttd_position_min(), ttd_position_invalid(), TTD_UNKNOWN);
    return status;
}

enum ttd_status import_thread(struct import_builder *builder, uint64_t os_id, ttd_id *id)
{
    uint32_t known = map_get(&builder->threads, os_id, 1);
    if (known != MAP_NONE) {
        *id = known;
        return TTD_OK;
    }
    struct ttd_thread thread = {.action = TTD_THREAD_BEGIN, .os_id = os_id};
    enum ttd_status status = ttd_writer_thread(builder->writer, &thread, id);
    return status == TTD_OK ? map_set(&builder->threads, os_id, 1, *id) : status;
}

enum ttd_status import_heap(struct import_builder *builder, uint64_t handle, ttd_id *id)
{
    uint32_t known = handle ? map_get(&builder->heaps, handle, 1) : TTD_NONE;
    if (known != MAP_NONE) {
        *id = known;
        return TTD_OK;
    }
    struct ttd_heap heap = {.handle = handle};
    enum ttd_status status = ttd_writer_heap(builder->writer, &heap, id);
    return status == TTD_OK ? map_set(&builder->heaps, handle, 1, *id) : status;
}

/* Modules. */

void import_modules_begin(struct import_builder *builder)
{
    for (size_t i = 0; i < builder->module_count; i++)
        builder->modules[i].is_absent = true;
}

static struct ttd_position import_now(const struct import_builder *builder)
{
    return (struct ttd_position){builder->sequence, 0};
}

static enum ttd_status import_module_unload(struct import_builder *builder, size_t index)
{
    struct import_module *module = &builder->modules[index];
    struct ttd_module record = {.action = TTD_MODULE_UNLOAD, .id = module->id};
    record.position = import_now(builder);
    enum ttd_status status = ttd_writer_module(builder->writer, &record, NULL);
    free(module->path);
    memmove(module, module + 1, (--builder->module_count - index) * sizeof *module);
    return status;
}

enum ttd_status import_modules_end(struct import_builder *builder)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = builder->module_count; i-- > 0 && status == TTD_OK;) {
        if (builder->modules[i].is_absent)
            status = import_module_unload(builder, i);
    }
    return status;
}

/* Defines a module, and adds it to a list that has room. */
static enum ttd_status import_module_define(struct import_builder *builder,
                                            struct import_module *modules, size_t *count,
                                            size_t index, const struct import_module *module)
{
    struct ttd_module record = {.action = TTD_MODULE_LOAD,
                                .position = import_now(builder),
                                .bias = module->bias,
                                .begin = module->begin,
                                .end = module->end};
    enum ttd_status status =
        ttd_writer_string(builder->writer, module->path, module->path_size, &record.path);
    struct import_module *added = &modules[index];
    char *path = malloc(module->path_size + 1);
    if (status == TTD_OK && !path)
        status = TTD_ERROR_NO_MEMORY;
    ttd_id id = TTD_NONE;
    if (status == TTD_OK)
        status = ttd_writer_module(builder->writer, &record, &id);
    if (status != TTD_OK) {
        free(path);
        return status;
    }
    memcpy(path, module->path, module->path_size);
    memmove(added + 1, added, ((*count)++ - index) * sizeof *added);
    *added = *module;
    added->path = path;
    added->id = id;
    return TTD_OK;
}

/* Returns the index of the first module that ends behind an address. */
static size_t import_module_index(const struct import_builder *builder, uint64_t address)
{
    size_t low = 0;
    size_t high = builder->module_count;
    SEARCH_SORTED(low, high, middle, builder->modules[middle].end <= address);
    return low;
}

enum ttd_status import_module_load(struct import_builder *builder, struct ttd_string path,
                                   uint64_t bias, uint64_t begin, uint64_t end)
{
    size_t index = import_module_index(builder, begin);
    struct import_module module = {.bias = bias,
                                   .begin = begin,
                                   .end = end,
                                   .path = (char *)(uintptr_t)path.data,
                                   .path_size = path.size};
    while (index < builder->module_count && builder->modules[index].begin < end) {
        struct import_module *other = &builder->modules[index];
        if (other->begin == begin && other->end == end && other->bias == bias &&
            other->path_size == path.size && memcmp(other->path, path.data, path.size) == 0)
            other->is_absent = false;
        if (!other->is_absent)
            return TTD_OK;
        enum ttd_status status = import_module_unload(builder, index);
        if (status != TTD_OK)
            return status;
    }
    enum ttd_status status = grow_array((void **)&builder->modules, &builder->module_capacity,
                                        builder->module_count + 1, sizeof *builder->modules);
    return status == TTD_OK ? import_module_define(builder, builder->modules,
                                                   &builder->module_count, index, &module)
                            : status;
}

enum ttd_status import_file(struct import_builder *builder, struct ttd_string path, ttd_id *id)
{
    for (size_t i = builder->file_count; i-- > 0;) {
        const struct import_module *file = &builder->files[i];
        if (file->path_size == path.size && memcmp(file->path, path.data, path.size) == 0) {
            *id = file->id;
            return TTD_OK;
        }
    }
    struct import_module module = {.path = (char *)(uintptr_t)path.data, .path_size = path.size};
    enum ttd_status status = grow_array((void **)&builder->files, &builder->file_capacity,
                                        builder->file_count + 1, sizeof *builder->files);
    if (status == TTD_OK)
        status = import_module_define(builder, builder->files, &builder->file_count,
                                      builder->file_count, &module);
    if (status == TTD_OK)
        *id = builder->files[builder->file_count - 1].id;
    return status;
}

enum ttd_status import_frame(struct import_builder *builder, ttd_id parent, uint64_t address,
                             ttd_id *id)
{
    size_t index = import_module_index(builder, address - 1);
    if (index < builder->module_count && builder->modules[index].begin < address)
        return ttd_writer_stack(builder->writer, parent, builder->modules[index].id,
                                address - builder->modules[index].bias, id);
    return ttd_writer_stack(builder->writer, parent, TTD_NONE,
                            TTD_FRAMES_LEFT_OUT_COUNT(address) ? 0 : address, id);
}

enum ttd_status import_symbol(struct import_builder *builder, ttd_id module, uint64_t offset,
                              struct ttd_string function)
{
    struct ttd_symbol_frame frame = {.function = TTD_NONE};
    enum ttd_status status =
        ttd_writer_string(builder->writer, function.data, function.size, &frame.function);
    struct ttd_symbol symbol = {module, offset, &frame, 1};
    return status == TTD_OK ? ttd_writer_symbol(builder->writer, &symbol) : status;
}

/* Calls. */

void import_place(struct import_builder *builder, struct ttd_event *event)
{
    event->time_start = (struct ttd_position){++builder->sequence, 0};
    event->time_end = (struct ttd_position){builder->sequence, 1};
}

enum ttd_status import_event(struct import_builder *builder, const struct ttd_event *event)
{
    enum ttd_status status = ttd_writer_event(builder->writer, event);
    if (status == TTD_OK) {
        builder->text->result->events++;
        builder->wall_time =
            event->wall_time > builder->wall_time ? event->wall_time : builder->wall_time;
    }
    return status;
}
