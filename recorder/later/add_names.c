/* SPDX-License-Identifier: MIT */
#include "later/add_names.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect/trace/trace_modules.h"
#include "common/visible.h"
#include "messages.h"

/* The temporary file; NULL if there is none. Read by the handler of signals. */
static char *volatile unfinished;

static void add_names_replace_on_signal(int number)
{
    char *path = unfinished;
    if (path)
        unlink(path);
    (void)signal(number, SIG_DFL);
    raise(number);
}

static void add_names_catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction action;
        if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            (void)signal(numbers[i], add_names_replace_on_signal);
    }
}

static int add_names_make_temporary(struct replacement *replacement)
{
    if (asprintf(&replacement->temporary, "%s.XXXXXX", replacement->destination.path) < 0) {
        replacement->temporary = NULL;
        return ENOMEM;
    }
    replacement->descriptor = mkostemp(replacement->temporary, O_CLOEXEC);
    if (replacement->descriptor < 0)
        return errno;
    unfinished = replacement->temporary;
    add_names_catch_signals();
    return 0;
}

int replacement_begin(struct replacement *replacement, const char *path)
{
    *replacement = (struct replacement){.descriptor = -1};
    int reason = output_path_resolve(path, &replacement->destination);
    if (reason != 0)
        return reason;
    if (!replacement->destination.path) {
        replacement->descriptor = replacement->destination.descriptor;
        return 0;
    }
    reason = add_names_make_temporary(replacement);
    if (reason != 0) {
        free(replacement->temporary);
        output_path_free(&replacement->destination);
    }
    return reason;
}

static void add_names_release(struct replacement *replacement)
{
    unfinished = NULL;
    close(replacement->descriptor);
    free(replacement->temporary);
    output_path_free(&replacement->destination);
}

/* The owner of a trace keeps it when root replaces it. Any other file that has the name may have
 * been put there by somebody who must not read this trace. */
static int add_names_replacement_keep_owner(const struct replacement *replacement,
                                            const char *source)
{
    struct stat old, trace;
    if (stat(source, &trace) != 0 || lstat(replacement->destination.path, &old) != 0 ||
        old.st_dev != trace.st_dev || old.st_ino != trace.st_ino || trace.st_uid == geteuid())
        return 0;
    return fchown(replacement->descriptor, trace.st_uid, trace.st_gid) != 0 ? errno : 0;
}

int replacement_publish(struct replacement *replacement, const char *source)
{
    const char *path = replacement->destination.path;
    if (!path) {
        add_names_release(replacement);
        return 0;
    }
    int reason = add_names_replacement_keep_owner(replacement, source);
    if (reason == 0 && fsync(replacement->descriptor) != 0)
        reason = errno;
    if (reason == 0 && rename(replacement->temporary, path) != 0)
        reason = errno;
    if (reason != 0)
        unlink(replacement->temporary);
    add_names_release(replacement);
    return reason;
}

void replacement_discard(struct replacement *replacement)
{
    if (replacement->temporary)
        unlink(replacement->temporary);
    add_names_release(replacement);
}

enum { MODULES_SHOWN = 20 };

static const char *add_names_path_of(const struct wanted_module *module)
{
    return module->path ? module->path : "a module without a path";
}

void report_progress(const struct wanted_module *module, size_t index, size_t count)
{
    enum { PATH_SHOWN = 60 };
    char escaped[PATH_SHOWN + 1];
    const char *path = add_names_path_of(module);
    visible_escape(path, strlen(path), escaped, sizeof escaped);
    fprintf(stderr, "\r\033[Kttdrecord: %zu of %zu: %s", index + 1, count, escaped);
    fflush(stderr);
}

void report_progress_end(void)
{
    fputs("\r\033[K", stderr);
}

/* How many of a module's frames have no names. */
struct tally {
    size_t improved, kept, unnamed;
    size_t outside; /* of the unnamed: in no module */
    size_t *by_module;
};

static void add_names_count_frames(const struct wanted *wanted, struct tally *tally)
{
    for (size_t i = 0; i < wanted->address_count; i++) {
        const struct wanted_address *address = &wanted->addresses[i];
        if (!address->is_in_stack)
            continue;
        bool is_unnamed = address->quality == NAME_NONE;
        tally->improved += address->is_improved;
        tally->kept += !address->is_improved && !is_unnamed;
        tally->unnamed += is_unnamed;
        tally->outside += is_unnamed && address->module == 0;
        if (is_unnamed && address->module != 0 && tally->by_module)
            tally->by_module[address->module - 1]++;
    }
}

static const char *add_names_plural(size_t count)
{
    return count == 1 ? "" : "s";
}

static bool add_names_has_file(const struct wanted_module *module)
{
    struct stat status;
    return module->path && module->path[0] == '/' && stat(module->path, &status) == 0;
}

static const char *later_reason(const struct wanted_module *module, enum symbolize_result result)
{
    if (module->build_id_size == 0)
        return "it has no build-id";
    switch (result) {
    case SYMBOLIZE_READ:
        return "no debug information with its build-id names them";
    case SYMBOLIZE_REDUCED:
        return "its debug information is damaged, and its symbols do not name them";
    case SYMBOLIZE_FAILED:
        return "its file, or its debug file, is damaged";
    case SYMBOLIZE_ABSENT:
        return add_names_has_file(module)
                   ? "the file there is another build, and no debug file has its "
                     "build-id"
                   : "no file has its build-id";
    default:
        return "there was not enough time";
    }
}

/* Whether a module with the same path and build-id was reported before: modules that are loaded
 * again are defined again. */
static bool later_is_reported(const struct names_to_add *adding, const size_t *unnamed,
                              size_t index)
{
    const struct wanted_module *module = &adding->wanted->modules[index];
    for (size_t i = 0; i < index; i++) {
        const struct wanted_module *earlier = &adding->wanted->modules[i];
        if (unnamed[i] != 0 && adding->results[i] == adding->results[index] &&
            earlier->path_id == module->path_id &&
            earlier->build_id_size == module->build_id_size &&
            memcmp(earlier->build_id, module->build_id, module->build_id_size) == 0)
            return true;
    }
    return false;
}

static void later_report_modules(const struct names_to_add *adding, const size_t *unnamed)
{
    size_t told_count = 0;
    for (size_t i = 0; i < adding->wanted->module_count; i++) {
        const struct wanted_module *module = &adding->wanted->modules[i];
        if (unnamed[i] == 0 || told_count > MODULES_SHOWN || later_is_reported(adding, unnamed, i))
            continue;
        if (told_count++ == MODULES_SHOWN)
            message("there are more modules without names");
        else
            message("%s: %zu frame%s without names: %s", add_names_path_of(module), unnamed[i],
                    add_names_plural(unnamed[i]), later_reason(module, adding->results[i]));
    }
}

void report_names(const struct names_to_add *adding, const char *path)
{
    const struct wanted *wanted = adding->wanted;
    struct tally tally = {.by_module = calloc(wanted->module_count + 1, sizeof(size_t))};
    add_names_count_frames(wanted, &tally);
    message("'%s': %zu frame%s got names or better ones, %zu kept those they had, %zu ha%s none; "
            "%zu variable%s got names",
            path, tally.improved, add_names_plural(tally.improved), tally.kept, tally.unnamed,
            tally.unnamed == 1 ? "s" : "ve", adding->variables,
            add_names_plural(adding->variables));
    if (tally.by_module)
        later_report_modules(adding, tally.by_module);
    if (tally.outside != 0)
        message("%zu frame%s in no module of the trace", tally.outside,
                tally.outside == 1 ? " is" : "s are");
    if (wanted->is_partial)
        message("warning: the trace refers to so many addresses that some were left out");
    free(tally.by_module);
}

/* Limits in milliseconds. The user waits for the names, and servers take their time. */
enum {
    MODULE_TIME = 60 * 1000,
    MODULE_TIME_OF_SERVERS = 11 * 60 * 1000, /* two downloads, each of five minutes at most */
    TOTAL_TIME = 60 * 60 * 1000
};

void names_free(struct names_to_add *adding)
{
    free(adding->modules);
    free(adding->results);
    free(adding->offsets);
}

/* Whether names of an address are asked for. A module without a build-id is not asked about: the
 * file at its path may be any other. */
static bool add_names_is_asked(const struct wanted *wanted, const struct wanted_address *address)
{
    return address->is_in_stack && address->module != 0 && address->quality != NAME_SOURCE &&
           wanted->modules[address->module - 1].build_id_size != 0;
}

static void add_names_describe_modules(struct names_to_add *adding)
{
    size_t count = adding->wanted->module_count;
    for (size_t i = 0; i < 2 * count; i++) {
        const struct wanted_module *module = &adding->wanted->modules[i % count];
        adding->modules[i] = (struct symbolize_module){.path = module->path,
                                                       .build_id = module->build_id,
                                                       .build_id_size = module->build_id_size,
                                                       .is_data = i >= count};
    }
}

/* Sorts the offsets of code by module. Returns how many there are. */
static size_t add_names_sort_offsets(struct names_to_add *adding)
{
    const struct wanted *wanted = adding->wanted;
    size_t next = 0;
    for (size_t i = 0; i < wanted->address_count; i++)
        if (add_names_is_asked(wanted, &wanted->addresses[i]))
            adding->modules[wanted->addresses[i].module - 1].offset_count++;
    for (size_t i = 0; i < wanted->module_count; i++) {
        adding->modules[i].offsets = adding->offsets + next;
        next += adding->modules[i].offset_count;
        adding->modules[i].offset_count = 0;
    }
    for (size_t i = 0; i < wanted->address_count; i++) {
        if (!add_names_is_asked(wanted, &wanted->addresses[i]))
            continue;
        struct symbolize_module *module = &adding->modules[wanted->addresses[i].module - 1];
        size_t index = (size_t)(module->offsets - adding->offsets) + module->offset_count++;
        adding->offsets[index] = wanted->addresses[i].offset;
    }
    return next;
}

/* Adds the words of data, sorted by module and offset. */
static void add_words(struct names_to_add *adding, size_t next)
{
    const struct variables *variables = &adding->wanted->variables;
    struct symbolize_module *of_data = adding->modules + adding->wanted->module_count;
    for (size_t i = 0; i < variables->count; i++, next++) {
        struct symbolize_module *module = &of_data[variables->words[i].module - 1];
        if (module->build_id_size == 0)
            continue;
        if (module->offset_count++ == 0)
            module->offsets = adding->offsets + next;
        adding->offsets[next] = variables->words[i].offset;
    }
}

/* False without memory. */
static bool add_names_make_request(struct names_to_add *adding)
{
    struct wanted *wanted = adding->wanted;
    size_t count = 2 * wanted->module_count + 1;
    variables_sort(&wanted->variables);
    adding->modules = calloc(count, sizeof *adding->modules);
    adding->results = calloc(count, sizeof *adding->results);
    adding->offsets =
        calloc(wanted->address_count + wanted->variables.count + 1, sizeof *adding->offsets);
    if (!adding->modules || !adding->results || !adding->offsets)
        return false;
    add_names_describe_modules(adding);
    add_words(adding, add_names_sort_offsets(adding));
    return true;
}

/* Notes the first failure to write, and ends the lookup then. */
static void add_names_note(struct names_to_add *adding, enum ttd_status status)
{
    if (status == TTD_OK || adding->status != TTD_OK)
        return;
    adding->status = status;
    symbolize_stop();
}

static enum name_quality add_names_quality_of(const struct symbolize_frame *frames, size_t count)
{
    enum name_quality quality = NAME_NONE;
    for (size_t i = 0; i < count; i++) {
        if (frames[i].file)
            return NAME_SOURCE;
        quality = frames[i].function ? NAME_FUNCTION : quality;
    }
    return quality;
}

static void adding_take_variable(struct names_to_add *adding, const struct wanted_module *module,
                                 const struct symbolize_frame *frame)
{
    /* Parts of sections are in the trace, as names of its regions. */
    if (frame->function_size == 0 || frame->function[0] == '.')
        return;
    struct ttd_variable variable = {
        .module = module->id, .offset = frame->begin, .size = frame->size};
    add_names_note(adding,
                   ttd_names_string(adding->names,
                                    (struct ttd_string){frame->function, frame->function_size},
                                    &variable.name));
    if (adding->status == TTD_OK)
        add_names_note(adding, ttd_writer_variable(adding->writer, &variable));
    adding->variables++;
}

static void adding_take_answer(void *context, size_t index, uint64_t offset,
                               const struct symbolize_frame *frames, size_t count)
{
    struct names_to_add *adding = context;
    size_t modules = adding->wanted->module_count;
    const struct wanted_module *module = &adding->wanted->modules[index % modules];
    if (count == 0 || adding->status != TTD_OK)
        return;
    if (index >= modules) {
        adding_take_variable(adding, module, frames);
        return;
    }
    struct wanted_address *address = wanted_find(adding->wanted, (ttd_id)(index + 1), offset);
    enum name_quality quality = add_names_quality_of(frames, count);
    if (!address || quality <= address->quality)
        return;
    address->quality = quality;
    address->is_improved = true;
    add_names_note(adding, frame_names_write(adding->names, module->id, offset, frames, count));
}

static void add_names_begin_module(void *context, size_t index)
{
    struct names_to_add *adding = context;
    size_t modules = adding->wanted->module_count;
    if (adding->shows_progress)
        report_progress(&adding->wanted->modules[index % modules], index, 2 * modules);
}

enum ttd_status names_add(void *context, struct ttd_writer *writer)
{
    struct names_to_add *adding = context;
    const char *servers = getenv("DEBUGINFOD_URLS");
    const struct symbolize_options options = {
        .module_time = servers && *servers != '\0' ? MODULE_TIME_OF_SERVERS : MODULE_TIME,
        .total_time = TOTAL_TIME,
        .results = NULL,
        .begin = add_names_begin_module,
    };
    if (!add_names_make_request(adding))
        return TTD_ERROR_NO_MEMORY;
    struct symbolize_options request_options = options;
    request_options.results = adding->results;
    adding->writer = writer;
    adding->status = ttd_names_open(writer, NULL, NULL, NULL, &adding->names);
    if (adding->status != TTD_OK)
        return adding->status;
    adding->reason =
        symbolize_with(&request_options, adding->modules, 2 * adding->wanted->module_count,
                       adding_take_answer, adding, NULL);
    if (adding->shows_progress)
        report_progress_end();
    ttd_names_close(adding->names);
    if (adding->status != TTD_OK)
        return adding->status;
    return adding->reason == 0 ? TTD_OK : TTD_ERROR_IO;
}
