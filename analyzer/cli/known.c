/* SPDX-License-Identifier: MIT */
#include "cli/known.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "cli/exit.h"
#include "cli/message.h"
#include "cli/output.h"
#include "report/escape.h"
#include "symbols/runtime.h"
#include "view/allocators.h"

/* Functions that a line of a baseline shows. */
#define FUNCTIONS_SHOWN 4

/* Frames among which these are looked for. */
#define FRAMES_READ 64

const struct option known_options[] = {
    {"suppressions", required_argument, NULL, OPTION_SUPPRESSIONS},
    {"baseline", required_argument, NULL, OPTION_BASELINE},
    {"write-baseline", required_argument, NULL, OPTION_WRITE_BASELINE},
    {"fail-on-growth", no_argument, NULL, OPTION_FAIL_ON_GROWTH},
    {NULL, 0, NULL, 0}};

bool known_take(struct known_files *files, int option, const char *argument)
{
    switch (option) {
    case OPTION_SUPPRESSIONS:
        if (files->count == KNOWN_FILES)
            return false;
        files->suppressions[files->count++] = argument;
        return true;
    case OPTION_BASELINE:
        files->baseline = argument;
        return true;
    case OPTION_FAIL_ON_GROWTH:
        files->fails_on_growth = true;
        return true;
    default:
        files->written = argument;
        return strcmp(argument, "-") != 0;
    }
}

const char *known_check(const struct known_files *files)
{
    if (files->fails_on_growth && !files->baseline)
        return "--fail-on-growth needs --baseline: it compares with what that has";
    return NULL;
}

/* What a file has, at most so many bytes and one; NULL, with errno set, if it cannot be read. */
static char *read_file(const char *path, size_t max, size_t *size)
{
    FILE *file = fopen(path, "re");
    char *text = file ? malloc(max + 1) : NULL;
    if (!text) {
        if (file)
            fclose(file);
        return NULL;
    }
    *size = fread(text, 1, max + 1, file);
    int error = ferror(file) ? errno : 0;
    fclose(file);
    if (!error)
        return text;
    free(text);
    errno = error;
    return NULL;
}

/* Reads a file of suppressions, or of a baseline if `old` is not NULL. */
static int read_known(const char *path, struct suppressions *rules, struct baseline *old)
{
    size_t size;
    char *text = read_file(path, SUPPRESS_FILE_MAX, &size);
    if (!text) {
        message("%s: %s", path, strerror(errno));
        return STATUS_USAGE;
    }
    struct suppress_error error = {.line = 0};
    enum ttd_status status = TTD_ERROR_LIMIT;
    if (size <= SUPPRESS_FILE_MAX)
        status = old ? baseline_read(old, (struct ttd_string){text, size}, &error)
                     : suppress_read(rules, path, (struct ttd_string){text, size}, &error);
    free(text);
    if (status == TTD_ERROR_ARGUMENT)
        message("%s:%zu: %s", path, error.line, error.reason);
    else if (status == TTD_ERROR_LIMIT)
        message("%s: more than %u bytes", path, SUPPRESS_FILE_MAX);
    else if (status != TTD_OK)
        return message_status(path, status);
    return status == TTD_OK ? STATUS_OK : STATUS_USAGE;
}

int known_open(struct known *known, const struct known_files *files)
{
    *known = (struct known){.files = files};
    suppress_init(&known->rules);
    baseline_init(&known->old);
    baseline_init(&known->found);
    known->summary.rules = &known->rules;
    known->summary.has_suppressions = files->count;
    known->summary.has_baseline = files->baseline;
    int status = STATUS_OK;
    for (size_t i = 0; i < files->count && status == STATUS_OK; i++)
        status = read_known(files->suppressions[i], &known->rules, NULL);
    if (files->baseline && status == STATUS_OK)
        status = read_known(files->baseline, NULL, &known->old);
    if (status != STATUS_OK)
        known_close(known);
    return status;
}

void known_close(struct known *known)
{
    suppress_free(&known->rules);
    baseline_free(&known->old);
    baseline_free(&known->found);
    fingerprinter_free(&known->work);
    free(known->growths);
}

bool known_has_work(const struct known *known)
{
    return known->files->count || known->files->baseline || known->files->written;
}

enum ttd_status known_judge(struct known *known, struct definitions *definitions,
                            const struct known_finding *finding, bool *is_new)
{
    struct report_known *summary = &known->summary;
    struct suppression *rule;
    struct baseline_entry entry;
    *is_new = false;
    enum ttd_status status = suppress_find(&known->rules, definitions, finding->kind, finding->api,
                                           finding->stacks[0], &rule);
    if (status != TTD_OK)
        return status;
    if (rule) {
        rule->matched = heap_add(rule->matched, finding->count);
        rule->amount = heap_add(rule->amount, finding->amount);
        summary->suppressed = heap_add(summary->suppressed, finding->count);
        summary->suppressed_amount = heap_add(summary->suppressed_amount, finding->amount);
        return TTD_OK;
    }
    *is_new = true;
    if (!known->files->baseline && !known->files->written)
        return TTD_OK;
    status = baseline_entry_of(&known->work, definitions, finding->kind, finding->stacks, &entry);
    entry.count = finding->kind == SUPPRESS_LEAK ? finding->count : finding->amount;
    if (status == TTD_OK)
        status = baseline_add(&known->found, &entry);
    if (status == TTD_OK && baseline_find(&known->old, &entry)) {
        *is_new = false;
        summary->old = heap_add(summary->old, finding->count);
        summary->old_amount = heap_add(summary->old_amount, finding->amount);
    }
    return status;
}

enum ttd_status known_find_growth(struct known *known)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < known->found.count && status == TTD_OK; i++) {
        const struct baseline_entry *entry = &known->found.entries[i];
        const struct baseline_entry *old = baseline_find(&known->old, entry);
        if (!old || entry->count <= old->count)
            continue;
        size_t count = known->summary.growth_count;
        status = grow_array((void **)&known->growths, &known->growth_capacity, count + 1,
                            sizeof *known->growths);
        if (status == TTD_OK)
            known->growths[known->summary.growth_count++] =
                (struct report_growth){entry->kind, entry->stack, old->count, entry->count};
    }
    known->summary.growths = known->growths;
    return status;
}

int known_exit(const struct known *known, bool has_findings, uint64_t status)
{
    if (known->files->fails_on_growth && known->summary.growth_count)
        return status ? (int)status : 1;
    return has_findings ? (int)status : STATUS_OK;
}

/* The functions called last, for people; frames without names, allocators and what leads to main()
 * are left out. */
static void write_functions(struct out *to, const struct frame_list *frames)
{
    size_t shown = 0;
    size_t end = runtime_main_of(frames);
    end += end < frames->count;
    for (size_t i = 0; i < end && shown < FUNCTIONS_SHOWN; i++) {
        struct ttd_string name = frames->items[i].function;
        if (!name.size || allocators_have(name))
            continue;
        out_text(to, shown++ ? " < " : " ");
        escape_text(to, name);
    }
}

static enum ttd_status write_entries(struct known *known, struct definitions *definitions,
                                     struct out *to)
{
    struct frame_list frames = {0};
    enum ttd_status status = TTD_OK;
    baseline_sort(&known->found);
    out_text(to, BASELINE_HEADER "\n");
    for (size_t i = 0; i < known->found.count && status == TTD_OK; i++) {
        const struct baseline_entry *entry = &known->found.entries[i];
        char text[FINGERPRINT_TEXT];
        fingerprint_format(entry->print, text);
        out_format(to, "%s %s %llu", baseline_kind_name(entry->kind), text,
                   (unsigned long long)entry->count);
        status = frame_list_begin(&frames, definitions, entry->stack, FRAMES_READ);
        write_functions(to, &frames);
        out_char(to, '\n');
    }
    frame_list_free(&frames);
    return status;
}

int known_write(struct known *known, struct definitions *definitions, const char *trace)
{
    if (!known->files->written)
        return STATUS_OK;
    struct output output;
    int opened = output_open(&output, known->files->written, trace, false);
    if (opened != STATUS_OK)
        return opened;
    enum ttd_status status = write_entries(known, definitions, &output.out);
    int result = status == TTD_OK ? STATUS_OK : message_status(known->files->written, status);
    return output_close(&output, result, status == TTD_OK);
}
