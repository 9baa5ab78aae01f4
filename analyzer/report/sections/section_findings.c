/* SPDX-License-Identifier: MIT */

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <ttdtrace/version.h>

#include "report/sections/sections.h"
#include "symbols/fingerprint.h"

/* A finding with its place in the program: the frame of the program's own function. */
struct placed_finding {
    struct listed_finding finding;
    /** NULL without one. Valid until the next stack is expanded. */
    const struct frame *frame;
    /** Its file, relative to the current directory if it lies below it. */
    struct ttd_string file;
};

struct findings_writer {
    struct report *report;
    const struct listed_findings *findings;
    char folder[PATH_MAX];
    struct fingerprinter fingerprinter;
};

static const struct report_known_findings *findings_known(const struct findings_writer *writer)
{
    static const struct report_known_findings none;
    const struct report_known_findings *known = writer->report->known_findings;
    return known ? known : &none;
}

/* The findings, and behind them findings of the baseline that have grown. */
static size_t findings_count(const struct findings_writer *writer)
{
    return writer->findings->count + findings_known(writer)->growth_count;
}

static void findings_at(const struct findings_writer *writer, size_t index,
                        struct listed_finding *finding)
{
    const struct listed_findings *findings = writer->findings;
    if (index < findings->count) {
        findings->at(findings->context, index, finding);
        return;
    }
    const struct report_known_findings *known = findings_known(writer);
    const struct report_growth *growth = &known->growths[index - findings->count];
    *finding = (struct listed_finding){.rule = "grown",
                                       .is_error = known->fails_on_growth,
                                       .is_certain = true,
                                       .stack = growth->stack};
    snprintf(finding->text, sizeof finding->text,
             "%" PRIu64 " %s%s where the baseline has %" PRIu64, growth->now, findings->unit,
             growth->now == 1 ? "" : "s", growth->before);
}

static struct ttd_string findings_relative(const struct findings_writer *writer,
                                           struct ttd_string file)
{
    size_t size = strlen(writer->folder);
    if (size > 1 && file.size > size + 1 && memcmp(file.data, writer->folder, size) == 0 &&
        file.data[size] == '/')
        return (struct ttd_string){file.data + size + 1, file.size - size - 1};
    return file;
}

/* Returns how many of the expanded frames come before the program's own call. The frames inlined at
 * its address may begin with an allocation function's. */
static size_t findings_own_index(struct report *report, const struct view_site *site)
{
    size_t count = 0;
    while (count < report->frames.count && report->frames.frames[count].is_inlined)
        count++;
    return count + 1 > site->count ? count + 1 - site->count : 0;
}

const struct frame *report_own_frame(struct report *report, struct view *view, ttd_id stack)
{
    struct ttd_stack caller;
    struct view_site site;
    enum ttd_status status = view_find_own_caller(view, stack, &caller, &site);
    if (status != TTD_OK) {
        report->status = status == TTD_END ? report->status : status;
        return NULL;
    }
    report_expand(report, caller.id);
    size_t own = findings_own_index(report, &site);
    return own < report->frames.count ? &report->frames.frames[own] : NULL;
}

/* Finds the place of a finding: the program's own call. */
static void findings_place(struct findings_writer *writer, size_t index,
                           struct placed_finding *placed)
{
    findings_at(writer, index, &placed->finding);
    placed->frame = report_own_frame(writer->report, writer->findings->view, placed->finding.stack);
    placed->file =
        placed->frame ? findings_relative(writer, placed->frame->file) : (struct ttd_string){"", 0};
}

static bool findings_is_certain(const struct findings_writer *writer,
                                const struct placed_finding *placed)
{
    return placed->finding.is_certain && writer->report->certainty.count == 0;
}

/* SARIF. */

static const char *sarif_level(const struct findings_writer *writer,
                               const struct placed_finding *placed)
{
    if (!placed->finding.is_error)
        return "note";
    return findings_is_certain(writer, placed) ? "error" : "warning";
}

/* The characters that a URI has as they are. */
static bool sarif_is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("-._~/+=@,", c));
}

/* Writes a path as a URI. A longer one than the system allows is left out. */
static void sarif_uri(struct row *row, struct ttd_string path)
{
    static const char digits[] = "0123456789ABCDEF";
    char uri[sizeof "file://" + 3 * PATH_MAX];
    size_t size = 0;
    if (path.size > PATH_MAX)
        return;
    if (path.data[0] == '/')
        size = (size_t)(stpcpy(uri, "file://") - uri);
    for (size_t i = 0; i < path.size; i++) {
        unsigned char c = (unsigned char)path.data[i];
        if (sarif_is_plain(path.data[i])) {
            uri[size++] = path.data[i];
            continue;
        }
        uri[size++] = '%';
        uri[size++] = digits[c >> 4];
        uri[size++] = digits[c & 15];
    }
    row_string(row, "uri", (struct ttd_string){uri, size});
}

static void sarif_message(struct row *row, const char *key, const char *text)
{
    row_begin_object(row, key);
    row_text(row, "text", text);
    row_end_object(row);
}

static void sarif_location(struct row *row, const char *key, const struct frame *frame,
                           struct ttd_string file)
{
    row_begin_object(row, key);
    if (file.size) {
        row_begin_object(row, "physicalLocation");
        row_begin_object(row, "artifactLocation");
        sarif_uri(row, file);
        row_end_object(row);
        if (frame->line) {
            row_begin_object(row, "region");
            row_unsigned(row, "startLine", frame->line);
            row_end_object(row);
        }
        row_end_object(row);
    }
    row_begin_array(row, "logicalLocations");
    row_begin_object(row, NULL);
    row_string(row, "name", frame->function.size ? frame->function : frame->module);
    row_text(row, "kind", frame->function.size ? "function" : "module");
    row_end_object(row);
    row_end_array(row);
    row_end_object(row);
}

static void sarif_stack(struct findings_writer *writer, struct row *row, ttd_id stack)
{
    struct report *report = writer->report;
    report_expand(report, stack);
    row_begin_array(row, "stacks");
    row_begin_object(row, NULL);
    row_begin_array(row, "frames");
    for (size_t i = 0; i < report->frames.count; i++) {
        const struct frame *frame = &report->frames.frames[i];
        row_begin_object(row, NULL);
        sarif_location(row, "location", frame, findings_relative(writer, frame->file));
        if (frame->module.size)
            row_name(row, "module", frame->module);
        row_end_object(row);
    }
    row_end_array(row);
    row_end_object(row);
    row_end_array(row);
}

static void sarif_result(struct findings_writer *writer, struct row *row, size_t index)
{
    struct report *report = writer->report;
    struct placed_finding placed;
    struct fingerprint fingerprint;
    char text[FINGERPRINT_TEXT];
    findings_place(writer, index, &placed);
    row_begin_object(row, NULL);
    row_text(row, "ruleId", placed.finding.rule);
    row_text(row, "level", sarif_level(writer, &placed));
    sarif_message(row, "message", placed.finding.text);
    row_begin_array(row, "locations");
    if (placed.frame)
        sarif_location(row, NULL, placed.frame, placed.file);
    row_end_array(row);
    sarif_stack(writer, row, placed.finding.stack);
    enum ttd_status status = fingerprint_stack(&writer->fingerprinter, report->definitions,
                                               placed.finding.stack, &fingerprint);
    if (status == TTD_OK) {
        fingerprint_format(fingerprint, text);
        row_begin_object(row, "partialFingerprints");
        row_text(row, "stack/v1", text);
        row_end_object(row);
    } else {
        report->status = status;
    }
    row_end_object(row);
}

static void sarif_tool(struct row *row)
{
    row_begin_object(row, "tool");
    row_begin_object(row, "driver");
    row_text(row, "name", "ttdanalyze");
    row_text(row, "version", ttd_version());
    row_end_object(row);
    row_end_object(row);
}

static void findings_sarif(struct findings_writer *writer)
{
    struct report *report = writer->report;
    struct row row;
    row_init_json(&row, report->output, true);
    row_begin_object(&row, NULL);
    row_text(&row, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    row_text(&row, "version", "2.1.0");
    row_begin_array(&row, "runs");
    row_begin_object(&row, NULL);
    sarif_tool(&row);
    row_begin_array(&row, "invocations");
    row_begin_object(&row, NULL);
    row_bool(&row, "executionSuccessful", true);
    row_begin_array(&row, "toolExecutionNotifications");
    for (size_t i = 0; i < report->certainty.count; i++) {
        row_begin_object(&row, NULL);
        row_text(&row, "level", "warning");
        sarif_message(&row, "message", report->certainty.reasons[i]);
        row_end_object(&row);
    }
    row_end_array(&row);
    row_end_object(&row);
    row_end_array(&row);
    row_begin_array(&row, "results");
    for (size_t i = 0; i < findings_count(writer) && report->status == TTD_OK; i++)
        sarif_result(writer, &row, i);
    row_end_array(&row);
    row_end_object(&row);
    row_end_array(&row);
    row_end_object(&row);
}

/* JUnit: each finding is a test. */

/* Writes " (app.cpp:7)"; nothing without a file. */
static void junit_file(struct text_output *output, struct ttd_string file, uint32_t line)
{
    if (!file.size)
        return;
    out_text(output, " (");
    escape_xml(output, file);
    if (line)
        say(output, ":", number(line));
    out_char(output, ')');
}

/* Writes the place of a finding, such as " by handle(int) (app.cpp:7)". */
static void junit_place(struct text_output *output, const struct placed_finding *placed)
{
    const struct frame *frame = placed->frame;
    if (!frame)
        return;
    if (frame->function.size || frame->module.size) {
        out_text(output, " by ");
        escape_xml(output, frame->function.size ? frame->function : frame->module);
    }
    junit_file(output, placed->file, frame->line);
}

static void junit_stack(struct report *report, ttd_id stack)
{
    struct text_output *output = report->output;
    report_expand(report, stack);
    for (size_t i = 0; i < report->frames.count; i++) {
        const struct frame *frame = &report->frames.frames[i];
        say(output, "#", number(i), "  ");
        escape_xml(output, frame->function.size ? frame->function : frame->module);
        if (!frame->function.size)
            say(output, "+", hex(frame->offset));
        junit_file(output, frame->file, frame->line);
        out_char(output, '\n');
    }
}

static void junit_finding(struct findings_writer *writer, const struct placed_finding *placed)
{
    struct text_output *output = writer->report->output;
    const struct listed_finding *finding = &placed->finding;
    say(output, "    <testcase classname=\"", writer->findings->command, "\" name=\"",
        finding->rule);
    if (placed->frame) {
        out_text(output, " in ");
        escape_xml(output,
                   placed->frame->function.size ? placed->frame->function : placed->frame->module);
    }
    out_text(output, "\">\n");
    if (finding->is_error)
        say(output, "      <failure type=\"", finding->rule, "\" message=\"",
            findings_is_certain(writer, placed) ? "" : "uncertain: ", finding->text);
    else
        out_text(output, "      <system-out>");
    if (finding->is_error)
        junit_place(output, placed);
    out_text(output, finding->is_error ? "\">" : finding->text);
    out_char(output, '\n');
    junit_stack(writer->report, finding->stack);
    say(output, finding->is_error ? "</failure>\n" : "</system-out>\n", "    </testcase>\n");
}

static size_t findings_count_errors(const struct findings_writer *writer)
{
    struct listed_finding finding;
    size_t count = 0;
    for (size_t i = 0; i < findings_count(writer); i++) {
        findings_at(writer, i, &finding);
        count += finding.is_error;
    }
    return count;
}

/* The certainty is a test as well: one that is skipped says why nothing is proved. */
static void junit_certainty(struct findings_writer *writer)
{
    const struct certainty *certainty = &writer->report->certainty;
    struct text_output *output = writer->report->output;
    say(output, "    <testcase classname=\"", writer->findings->command, "\" name=\"certainty\"");
    if (certainty->count == 0) {
        out_text(output, "/>\n");
        return;
    }
    out_text(output, ">\n      <skipped message=\"");
    for (size_t i = 0; i < certainty->count; i++) {
        out_text(output, i == 0 ? "uncertain: " : "; ");
        escape_xml(output, escape_string(certainty->reasons[i]));
    }
    out_text(output, "\"/>\n    </testcase>\n");
}

static void findings_junit(struct findings_writer *writer)
{
    struct report *report = writer->report;
    struct text_output *output = report->output;
    say(output, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n",
        "  <testsuite name=\"ttdanalyze ", writer->findings->command, "\" tests=\"",
        number(findings_count(writer) + 1), "\" failures=\"", number(findings_count_errors(writer)),
        "\" errors=\"0\" skipped=\"", number(report->certainty.count != 0), "\">\n");
    for (size_t i = 0; i < findings_count(writer) && report->status == TTD_OK; i++) {
        struct placed_finding placed;
        findings_place(writer, i, &placed);
        junit_finding(writer, &placed);
    }
    junit_certainty(writer);
    out_text(output, "  </testsuite>\n</testsuites>\n");
}

/* Annotations: a line for each finding, which GitHub shows beside the line of the source. */

static void findings_github(struct findings_writer *writer)
{
    struct report *report = writer->report;
    struct text_output *output = report->output;
    for (size_t i = 0; i < findings_count(writer) && report->status == TTD_OK; i++) {
        struct placed_finding placed;
        findings_place(writer, i, &placed);
        bool is_certain = findings_is_certain(writer, &placed);
        const char *level = !placed.finding.is_error ? "notice" : is_certain ? "error" : "warning";
        say(output, "::", level, " title=", placed.finding.rule);
        if (placed.file.size) {
            out_text(output, ",file=");
            escape_property(output, placed.file);
        }
        if (placed.file.size && placed.frame->line)
            say(output, ",line=", number(placed.frame->line));
        say(output, "::", is_certain ? "" : "uncertain: ", placed.finding.text);
        if (placed.frame && placed.frame->function.size) {
            out_text(output, " by ");
            escape_message(output, placed.frame->function);
        }
        out_char(output, '\n');
    }
    for (size_t i = 0; i < report->certainty.count; i++) {
        say(output, "::warning title=uncertain::");
        escape_message(output, escape_string(report->certainty.reasons[i]));
        out_char(output, '\n');
    }
}

void report_findings(struct report *report, const struct listed_findings *findings)
{
    struct findings_writer writer = {.report = report, .findings = findings};
    if (!getcwd(writer.folder, sizeof writer.folder))
        writer.folder[0] = '\0';
    if (report->form == REPORT_SARIF)
        findings_sarif(&writer);
    else if (report->form == REPORT_JUNIT)
        findings_junit(&writer);
    else
        findings_github(&writer);
    fingerprinter_free(&writer.fingerprinter);
}
