/* SPDX-License-Identifier: MIT */
#include "cli/options/known_findings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "cli/process/message.h"
#include "cli/process/output.h"
#include "report/writers/out.h"
#include "symbols/frames.h"
#include "view/function_names.h"

/* Functions shown in a line of a baseline. */
#define FUNCTIONS_SHOWN 4

/* Innermost frames that are searched for these functions. */
#define FRAMES_READ 64

const struct option known_findings_long_options[] = {
    {"suppressions", required_argument, NULL, OPTION_SUPPRESSIONS},
    {"baseline", required_argument, NULL, OPTION_BASELINE},
    {"write-baseline", required_argument, NULL, OPTION_WRITE_BASELINE},
    {"fail-on-growth", no_argument, NULL, OPTION_FAIL_ON_GROWTH},
    {NULL, 0, NULL, 0}};

bool known_findings_parse_option(struct known_findings_options *options, int option,
                                 const char *argument)
{
    switch (option) {
    case OPTION_SUPPRESSIONS:
        if (options->suppression_count == KNOWN_FINDINGS_FILES_MAX)
            return false;
        options->suppressions[options->suppression_count++] = argument;
        return true;
    case OPTION_BASELINE:
        options->baseline = argument;
        return true;
    case OPTION_FAIL_ON_GROWTH:
        options->fails_on_growth = true;
        return true;
    default:
        options->written_baseline = argument;
        return strcmp(argument, "-") != 0;
    }
}

const char *known_findings_check(const struct known_findings_options *options)
{
    if (options->fails_on_growth && !options->baseline)
        return "--fail-on-growth needs --baseline, to compare with";
    return NULL;
}

/* Reads a file, at most `max` + 1 bytes: one more shows that it is too long. NULL, with errno set,
 * on failure. */
static char *findings_read_file(const char *path, size_t max, size_t *size)
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

/* Reads a file of suppressions, or a baseline if that is not NULL. */
static int read_known_findings(const char *path, struct suppressions *suppressions,
                               struct baseline *baseline)
{
    size_t size;
    char *text = findings_read_file(path, SUPPRESS_FILE_MAX, &size);
    if (!text) {
        message("%s: %s", path, strerror(errno));
        return STATUS_USAGE;
    }
    struct suppress_error error = {.line = 0};
    enum ttd_status status = TTD_ERROR_LIMIT;
    if (size <= SUPPRESS_FILE_MAX)
        status = baseline
                     ? baseline_read(baseline, (struct ttd_string){text, size}, &error)
                     : suppress_read(suppressions, path, (struct ttd_string){text, size}, &error);
    free(text);
    if (status == TTD_ERROR_ARGUMENT)
        message("%s:%zu: %s", path, error.line, error.reason);
    else if (status == TTD_ERROR_LIMIT)
        message("%s: more than %u bytes", path, SUPPRESS_FILE_MAX);
    else if (status != TTD_OK)
        return message_status(path, status);
    return status == TTD_OK ? STATUS_OK : STATUS_USAGE;
}

int known_findings_open(struct known_findings *findings,
                        const struct known_findings_options *options)
{
    *findings = (struct known_findings){.options = options};
    suppress_init(&findings->suppressions);
    baseline_init(&findings->baseline);
    baseline_init(&findings->current);
    findings->summary.suppressions = &findings->suppressions;
    findings->summary.has_suppressions = options->suppression_count;
    findings->summary.has_baseline = options->baseline;
    findings->summary.fails_on_growth = options->fails_on_growth;
    int status = STATUS_OK;
    for (size_t i = 0; i < options->suppression_count && status == STATUS_OK; i++)
        status = read_known_findings(options->suppressions[i], &findings->suppressions, NULL);
    if (options->baseline && status == STATUS_OK)
        status = read_known_findings(options->baseline, NULL, &findings->baseline);
    if (status != STATUS_OK)
        known_findings_close(findings);
    return status;
}

void known_findings_close(struct known_findings *findings)
{
    suppress_free(&findings->suppressions);
    baseline_free(&findings->baseline);
    baseline_free(&findings->current);
    fingerprinter_free(&findings->fingerprinter);
    free(findings->growths);
}

bool known_findings_are_needed(const struct known_findings *findings)
{
    return findings->options->suppression_count || findings->options->baseline ||
           findings->options->written_baseline;
}

enum ttd_status known_findings_judge(struct known_findings *findings,
                                     struct definitions *definitions, const struct finding *finding,
                                     bool *is_new)
{
    struct report_known_findings *report = &findings->summary;
    struct suppression *rule;
    struct baseline_record record;
    bool is_leak = finding->kind >= SUPPRESS_LEAK;
    *is_new = false;
    enum ttd_status status = suppress_find(&findings->suppressions, definitions, finding->kind,
                                           finding->api, finding->stacks[0], &rule);
    if (status != TTD_OK)
        return status;
    if (rule) {
        rule->matched = heap_add(rule->matched, finding->count);
        rule->amount = heap_add(rule->amount, finding->amount);
        report->suppressed = heap_add(report->suppressed, finding->count);
        report->suppressed_amount = heap_add(report->suppressed_amount, finding->amount);
        return TTD_OK;
    }
    *is_new = true;
    if (!findings->options->baseline && !findings->options->written_baseline)
        return TTD_OK;
    status = baseline_record_of(&findings->fingerprinter, definitions,
                                is_leak ? SUPPRESS_LEAK : finding->kind, finding->stacks, &record);
    record.count = is_leak ? finding->count : finding->amount;
    if (status == TTD_OK)
        status = baseline_add(&findings->current, &record);
    if (status == TTD_OK && baseline_find(&findings->baseline, &record)) {
        *is_new = false;
        report->in_baseline = heap_add(report->in_baseline, finding->count);
        report->in_baseline_amount = heap_add(report->in_baseline_amount, finding->amount);
    }
    return status;
}

enum ttd_status known_findings_find_growth(struct known_findings *findings)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < findings->current.count && status == TTD_OK; i++) {
        const struct baseline_record *record = &findings->current.records[i];
        const struct baseline_record *before = baseline_find(&findings->baseline, record);
        if (!before || record->count <= before->count)
            continue;
        size_t count = findings->summary.growth_count;
        status = grow_array((void **)&findings->growths, &findings->growth_capacity, count + 1,
                            sizeof *findings->growths);
        if (status == TTD_OK)
            findings->growths[findings->summary.growth_count++] =
                (struct report_growth){record->kind, record->stack, before->count, record->count};
    }
    findings->summary.growths = findings->growths;
    return status;
}

int known_findings_exit(const struct known_findings *findings, bool has_findings, uint64_t status)
{
    if (findings->options->fails_on_growth && findings->summary.growth_count)
        return status ? (int)status : 1;
    return has_findings ? (int)status : STATUS_OK;
}

/* Writes the innermost functions of the program, for people: without frames that have no name,
 * allocators, and frames below main(). */
static void known_findings_write_functions(struct text_output *output,
                                           const struct frame_list *frames)
{
    size_t shown_count = 0;
    size_t end = runtime_main_of(frames);
    end += end < frames->count;
    for (size_t i = 0; i < end && shown_count < FUNCTIONS_SHOWN; i++) {
        struct ttd_string name = frames->frames[i].function;
        if (!name.size || allocators_have(name))
            continue;
        out_text(output, shown_count++ ? " < " : " ");
        escape_text(output, name);
    }
}

static enum ttd_status findings_write_entries(struct known_findings *findings,
                                              struct definitions *definitions,
                                              struct text_output *output)
{
    struct frame_list frames = {0};
    enum ttd_status status = TTD_OK;
    baseline_sort(&findings->current);
    out_text(output, BASELINE_HEADER "\n");
    for (size_t i = 0; i < findings->current.count && status == TTD_OK; i++) {
        const struct baseline_record *record = &findings->current.records[i];
        char text[FINGERPRINT_TEXT];
        fingerprint_format(record->fingerprint, text);
        out_format(output, "%s %s %llu", baseline_kind_name(record->kind), text,
                   (unsigned long long)record->count);
        status = frame_list_begin(&frames, definitions, record->stack, FRAMES_READ);
        known_findings_write_functions(output, &frames);
        out_char(output, '\n');
    }
    frame_list_free(&frames);
    return status;
}

int known_findings_write(struct known_findings *findings, struct definitions *definitions,
                         const char *trace)
{
    if (!findings->options->written_baseline)
        return STATUS_OK;
    struct output_file output;
    int opened = output_open(&output, findings->options->written_baseline, trace, false);
    if (opened != STATUS_OK)
        return opened;
    enum ttd_status status = findings_write_entries(findings, definitions, &output.text);
    int result =
        status == TTD_OK ? STATUS_OK : message_status(findings->options->written_baseline, status);
    return output_close(&output, result, status == TTD_OK);
}
