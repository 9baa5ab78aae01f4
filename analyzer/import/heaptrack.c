/* SPDX-License-Identifier: MIT */
/*
 * Raw data of heaptrack: the letter of a record in front of each line, numbers in hexadecimal.
 *
 *     v VERSION FILE_VERSION      x PATH          X COMMAND        A (attached)
 *     I PAGE_SIZE PAGES           the system, right behind the command
 *     m PATH BIAS [OFFSET SIZE]... a loaded module; m - begins another list of them
 *     t ADDRESS PARENT            the next stack, from 1: an address in its call instruction
 *     + SIZE STACK ADDRESS        an allocation
 *     - ADDRESS                   a release
 *     c MILLISECONDS              time since the start
 *
 * From file version 3 on, strings follow their length. The command has none, and its arguments may
 * have line breaks. A realloc is a release and an allocation, so that no move is known; calls have
 * no thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "import/import.h"

/* heaptrack writes 4,096 bytes of a command, and blanks between its arguments. */
#define HEAPTRACK_COMMAND_MAX 8192

struct heaptrack {
    struct import_text *text;
    struct import_builder *builder;
    bool has_sized_strings;
    /** The command so far; it ends with the line of the system. */
    char command[HEAPTRACK_COMMAND_MAX];
    size_t command_size;
    bool is_in_command;
    bool has_command;
    bool is_in_modules;
    /** Path of the program; lists of modules do not have it. */
    char program[4096];
    size_t program_size;
    /** Ids of the stacks, by their number in the file less 1. */
    ttd_id *stacks;
    size_t stack_count;
    size_t stack_capacity;
    uint64_t wall_time;
};

#define HEAPTRACK_MILLISECOND UINT64_C(1000000)

static enum ttd_status heaptrack_fail(const struct heaptrack *source, const char *reason)
{
    return import_text_fail(source->text, TTD_ERROR_CORRUPT, "%s", reason);
}

/* Takes the blank in front of a number, and the number. */
static bool heaptrack_number(struct ttd_string *rest, uint64_t *number)
{
    struct ttd_string number_rest = *rest;
    if (!import_take(&number_rest, " ") || !import_take_hex(&number_rest, number))
        return false;
    *rest = number_rest;
    return true;
}

/* Takes a string with the blank in front of it. */
static bool heaptrack_string(const struct heaptrack *source, struct ttd_string *rest,
                             struct ttd_string *string)
{
    uint64_t size = 0;
    if (source->has_sized_strings) {
        if (!heaptrack_number(rest, &size) || !import_take(rest, " ") || size > rest->size)
            return false;
    } else {
        if (!import_take(rest, " "))
            return false;
        while (size < rest->size && rest->data[size] != ' ')
            size++;
    }
    *string = (struct ttd_string){rest->data, (size_t)size};
    rest->data += string->size;
    rest->size -= string->size;
    return true;
}

/* The version says that the file is of heaptrack. */
static enum ttd_status heaptrack_version(struct heaptrack *source, struct ttd_string rest)
{
    uint64_t version = 0;
    uint64_t file_version = 0;
    char name[64];
    if (source->builder->writer)
        return heaptrack_fail(source, "a second version");
    if (!heaptrack_number(&rest, &version))
        return heaptrack_fail(source, "a version was expected");
    heaptrack_number(&rest, &file_version);
    source->has_sized_strings = file_version >= 3;
    source->builder->trace.time_unit = HEAPTRACK_MILLISECOND;
    snprintf(name, sizeof name, "from heaptrack %llu.%llu.%llu",
             (unsigned long long)(version >> 16 & 0xFF), (unsigned long long)(version >> 8 & 0xFF),
             (unsigned long long)(version & 0xFF));
    return import_source(source->builder, name);
}

/* The program has no path in the lists of modules. */
static enum ttd_status heaptrack_program(struct heaptrack *source, struct ttd_string rest)
{
    struct ttd_string path;
    if (!heaptrack_string(source, &rest, &path) || path.size >= sizeof source->program)
        return heaptrack_fail(source, "the path of the program was expected");
    snprintf(source->program, sizeof source->program, "%.*s", (int)path.size, path.data);
    source->program_size = path.size;
    return TTD_OK;
}

static enum ttd_status heaptrack_add_command(struct heaptrack *source, struct ttd_string text)
{
    if (text.size > sizeof source->command - source->command_size)
        return heaptrack_fail(source, "the line of the system was expected behind the command");
    if (text.size)
        memcpy(source->command + source->command_size, text.data, text.size);
    source->command_size += text.size;
    return TTD_OK;
}

/* Begins a command. In earlier versions of the file it is taken for one line. */
static enum ttd_status heaptrack_command(struct heaptrack *source, struct ttd_string rest)
{
    if (!source->has_sized_strings)
        return import_fact(source->builder, "command", import_trim(rest));
    if (source->has_command)
        return heaptrack_fail(source, "a second command");
    source->is_in_command = true;
    source->has_command = true;
    return heaptrack_add_command(source, rest);
}

static bool heaptrack_is_system(struct ttd_string line)
{
    uint64_t number;
    return import_take(&line, "I") && heaptrack_number(&line, &number) &&
           heaptrack_number(&line, &number) && !line.size;
}

/* Takes a line behind the first one of the command: another one of it, or its end. */
static enum ttd_status heaptrack_go_on_command(struct heaptrack *source, struct ttd_string line)
{
    struct ttd_string command = {source->command, source->command_size};
    if (heaptrack_is_system(line)) {
        source->is_in_command = false;
        source->text->result->ignored++;
        return import_fact(source->builder, "command", import_trim(command));
    }
    enum ttd_status status = heaptrack_add_command(source, (struct ttd_string){"\n", 1});
    return status == TTD_OK ? heaptrack_add_command(source, line) : status;
}

/* A second line of the system was written by the program, in an argument: the command ended too
 * early, and its rest was taken for records. */
static enum ttd_status heaptrack_system(struct heaptrack *source, struct ttd_string line)
{
    if (source->has_command && heaptrack_is_system(line))
        return heaptrack_fail(source, "a second line of the system: the command has one as well");
    source->text->result->ignored++;
    return TTD_OK;
}

static enum ttd_status heaptrack_module(struct heaptrack *source, struct ttd_string rest)
{
    struct ttd_string path;
    uint64_t bias = 0;
    uint64_t offset = 0;
    uint64_t size = 0;
    if (!heaptrack_string(source, &rest, &path))
        return heaptrack_fail(source, "the path of a module was expected");
    if (import_is(path, "-")) {
        import_modules_begin(source->builder);
        source->is_in_modules = true;
        return TTD_OK;
    }
    if (import_is(path, "x"))
        path = (struct ttd_string){source->program, source->program_size};
    if (!heaptrack_number(&rest, &bias))
        return heaptrack_fail(source, "the address of a module was expected");
    uint64_t begin = UINT64_MAX;
    uint64_t end = 0;
    while (heaptrack_number(&rest, &offset) && heaptrack_number(&rest, &size)) {
        uint64_t segment = bias + offset;
        if (size > UINT64_MAX - segment)
            return heaptrack_fail(source, "a module reaches beyond the last address");
        begin = segment < begin ? segment : begin;
        end = segment + size > end ? segment + size : end;
    }
    if (begin >= end)
        return TTD_OK;
    return import_module_load(source->builder, path, bias, begin, end);
}

/* Defines the next stack. The format's address is one before the return address. */
static enum ttd_status heaptrack_stack(struct heaptrack *source, struct ttd_string rest)
{
    uint64_t address = 0;
    uint64_t parent = 0;
    if (!heaptrack_number(&rest, &address) || !heaptrack_number(&rest, &parent))
        return heaptrack_fail(source, "an address and a parent were expected");
    if (parent > source->stack_count)
        return heaptrack_fail(source, "the parent of a stack is not there yet");
    enum ttd_status status = grow_array((void **)&source->stacks, &source->stack_capacity,
                                        source->stack_count + 1, sizeof *source->stacks);
    if (status == TTD_OK)
        status = import_frame(source->builder, parent ? source->stacks[parent - 1] : TTD_NONE,
                              address + 1, &source->stacks[source->stack_count]);
    if (status == TTD_ERROR_LIMIT || status == TTD_ERROR_ARGUMENT)
        return heaptrack_fail(source, "the stack is deeper, or there are more, than a trace holds");
    source->stack_count++;
    return status;
}

static enum ttd_status heaptrack_allocation(struct heaptrack *source, struct ttd_string rest)
{
    uint64_t stack = 0;
    struct ttd_event event = {
        .action = TTD_ACTION_ALLOC, .result = 1, .wall_time = source->wall_time};
    if (!heaptrack_number(&rest, &event.size) || !heaptrack_number(&rest, &stack) ||
        !heaptrack_number(&rest, &event.address) || rest.size)
        return heaptrack_fail(source, "a size, a stack and an address were expected");
    if (stack > source->stack_count)
        return heaptrack_fail(source, "the stack of an allocation is not there yet");
    event.stack = stack ? source->stacks[stack - 1] : TTD_NONE;
    import_place(source->builder, &event);
    return import_event(source->builder, &event);
}

static enum ttd_status heaptrack_release(struct heaptrack *source, struct ttd_string rest)
{
    struct ttd_event event = {
        .action = TTD_ACTION_FREE, .result = 1, .wall_time = source->wall_time};
    if (!heaptrack_number(&rest, &event.base_address) || rest.size)
        return heaptrack_fail(source, "an address was expected");
    import_place(source->builder, &event);
    return import_event(source->builder, &event);
}

static enum ttd_status heaptrack_time(struct heaptrack *source, struct ttd_string rest)
{
    uint64_t time = 0;
    if (!heaptrack_number(&rest, &time) || time > UINT64_MAX / HEAPTRACK_MILLISECOND / 2)
        return heaptrack_fail(source, "a time in milliseconds was expected");
    source->wall_time = time * HEAPTRACK_MILLISECOND;
    return TTD_OK;
}

static enum ttd_status heaptrack_line(struct heaptrack *source, struct ttd_string line)
{
    struct ttd_string rest = {line.data + 1, line.size - 1};
    enum ttd_status status = TTD_OK;
    if (*line.data == 'v')
        return heaptrack_version(source, rest);
    if (!source->builder->writer)
        return import_text_fail(source->text, TTD_ERROR_UNSUPPORTED,
                                "raw data of heaptrack begin with its version");
    if (source->is_in_modules && *line.data != 'm') {
        source->is_in_modules = false;
        status = import_modules_end(source->builder);
        if (status != TTD_OK)
            return status;
    }
    switch (*line.data) {
    case '+':
        return heaptrack_allocation(source, rest);
    case '-':
        return heaptrack_release(source, rest);
    case 't':
        return heaptrack_stack(source, rest);
    case 'c':
        return heaptrack_time(source, rest);
    case 'm':
        return heaptrack_module(source, rest);
    case 'x':
        return heaptrack_program(source, rest);
    case 'X':
        return heaptrack_command(source, rest);
    case 'I':
        return heaptrack_system(source, line);
    case 'i':
    case 'a':
        return import_text_fail(source->text, TTD_ERROR_UNSUPPORTED,
                                "interpreted data of heaptrack have no addresses: record with "
                                "heaptrack --raw");
    default:
        source->text->result->ignored++;
        return TTD_OK;
    }
}

enum ttd_status import_heaptrack(struct import_text *text, struct import_builder *builder)
{
    struct heaptrack source = {.text = text, .builder = builder};
    struct ttd_string line;
    enum ttd_status status = import_text_line(text, &line);
    for (; status == TTD_OK; status = import_text_line(text, &line)) {
        if (source.is_in_command)
            status = heaptrack_go_on_command(&source, line);
        else if (line.size)
            status = heaptrack_line(&source, line);
        if (status != TTD_OK)
            break;
    }
    if (status == TTD_END && source.is_in_command)
        status = heaptrack_fail(&source, "the command has no end");
    free(source.stacks);
    return status == TTD_END ? TTD_OK : status;
}
