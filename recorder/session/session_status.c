/* SPDX-License-Identifier: MIT */
#include "session/client.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/visible.h"

#include "arrays.h"
#include "control.h"
#include "launch.h"
#include "messages.h"

enum { REFRESH_SECONDS = 1, ROWS_MAX = 100000, PATH_SIZE = 4096 + 256, PROGRAM_WIDTH = 12 };
enum { DOUBT_BOUND = 1, DOUBT_UNKNOWN = 2 };

/* A process: one of the session's, or one that it has started. */
struct status_row {
    uint32_t pid, collector;
    uint32_t state, status; /* see struct session_entry */
    bool has_counts, is_paused;
    uint64_t events, acquisitions, releases, live, live_bytes, lost, bytes;
    unsigned doubt; /* DOUBT_BOUND or DOUBT_UNKNOWN: `live_bytes` is a lower bound, or unknown */
    char reason[80];
    uint64_t age; /* nanoseconds since its recording began */
    double rate;  /* events in a second */
    char path[PATH_SIZE];
};

struct status_rows {
    struct status_row *items;
    size_t count, capacity;
};

static struct status_row *session_status_add_row(struct status_rows *rows)
{
    if (rows->count == ROWS_MAX)
        return NULL;
    void *items = array_grow(rows->items, rows->count, &rows->capacity, sizeof *rows->items);
    if (!items)
        return NULL;
    rows->items = items;
    rows->items[rows->count] = (struct status_row){0};
    return &rows->items[rows->count++];
}

/* Reads the counts that a recorder has sent. */
static bool session_status_parse_counts(const char *text, struct status_row *row)
{
    unsigned paused;
    int at = 0;
    const char *tab = strchr(text, '\t');
    bool is_read =
        sscanf(text,
               "%" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
               " %u %" SCNu64 " %u%n",
               &row->pid, &row->events, &row->acquisitions, &row->releases, &row->live, &row->lost,
               &row->age, &paused, &row->live_bytes, &row->doubt, &at) == 10 &&
        tab && tab > text + at;
    row->is_paused = is_read && paused != 0;
    row->has_counts = is_read;
    if (!is_read)
        return false;
    snprintf(row->reason, sizeof row->reason, "%.*s", (int)(tab - text) - at - 1, text + at + 1);
    snprintf(row->path, sizeof row->path, "%s", tab + 1);
    return true;
}

/* Asks a recorder for the counts of its process of an index. */
static bool session_status_ask_counts(uint32_t collector, uint32_t index, struct status_row *row)
{
    struct control_request request = {
        .magic = CONTROL_MAGIC, .command = CONTROL_COUNTS, .pid = index};
    struct control_answer answer;
    char text[CONTROL_TEXT_MAX + 1];
    if (control_ask_collector(collector, &request, &answer) != CONTROL_DONE)
        return false;
    memcpy(text, answer.text, answer.size);
    text[answer.size] = '\0';
    return session_status_parse_counts(text, row);
}

static uint64_t session_status_trace_size(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) ? (uint64_t)status.st_size : 0;
}

/* Adds the processes of a recorder: the session's, then its children's. */
static void session_status_add_entry(struct status_rows *rows, const struct session_entry *entry,
                                     const char *folder)
{
    struct status_row counts = {0};
    bool is_added = false;
    uint32_t count = 0;
    while (entry->state == SESSION_RECORDING &&
           session_status_ask_counts(entry->collector, count, &counts)) {
        struct status_row *row = session_status_add_row(rows);
        if (!row)
            return;
        *row = counts;
        row->state = SESSION_RECORDING;
        row->collector = entry->collector;
        row->bytes = session_status_trace_size(row->path);
        row->rate = row->age > 0 ? (double)row->events * 1e9 / (double)row->age : 0;
        is_added = is_added || row->pid == entry->pid;
        count++;
        counts = (struct status_row){0};
    }
    struct status_row *row = is_added ? NULL : session_status_add_row(rows);
    if (!row)
        return;
    row->pid = entry->pid;
    row->collector = entry->collector;
    row->state = entry->state;
    row->status = entry->status;
    snprintf(row->path, sizeof row->path, "%.4096s/%.*s", folder, (int)sizeof entry->file,
             entry->file);
    row->bytes = session_status_trace_size(row->path);
}

static const char *session_status_name_state(const struct status_row *row)
{
    static const char *const names[] = {
        [SESSION_STARTING] = "starting",
        [SESSION_RECORDING] = "recording",
        [SESSION_ENDED] = "ended",
        [SESSION_REFUSED] = "refused",
    };
    if (row->state == SESSION_RECORDING && !row->has_counts)
        return "waiting"; /* it has not called anything yet */
    if (row->is_paused)
        return "paused";
    return row->state <= SESSION_REFUSED ? names[row->state] : "unknown";
}

/* Prints a string of JSON, of bytes that may be anything. */
static void session_status_print_quoted(const char *text)
{
    char visible[4 * PATH_SIZE];
    visible_escape(text, strlen(text), visible, sizeof visible);
    putchar('"');
    for (const char *c = visible; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            putchar('\\');
        putchar(*c);
    }
    putchar('"');
}

static void session_status_print_json(const char *session, const struct client_list *list,
                                      const struct status_rows *rows)
{
    printf("{\n  \"session\": \"%s\",\n  \"folder\": ", session);
    session_status_print_quoted(list->text);
    printf(",\n  \"names\": [");
    const char *word = list->text + strlen(list->text) + 1;
    for (bool is_first = true; word < list->text + list->text_size; word += strlen(word) + 1) {
        printf(is_first ? "" : ", ");
        session_status_print_quoted(word);
        is_first = false;
    }
    printf("],\n  \"processes\": [");
    for (size_t i = 0; i < rows->count; i++) {
        const struct status_row *row = &rows->items[i];
        printf("%s\n    {\"pid\": %" PRIu32 ", \"state\": \"%s\", \"file\": ", i > 0 ? "," : "",
               row->pid, session_status_name_state(row));
        session_status_print_quoted(row->path);
        printf(", \"file_bytes\": %" PRIu64, row->bytes);
        if (row->has_counts)
            printf(",\n     \"events\": %" PRIu64 ", \"acquisitions\": %" PRIu64
                   ", \"releases\": %" PRIu64 ", \"live_blocks\": %" PRIu64 ", \"lost\": %" PRIu64
                   ", \"events_per_second\": %.1f",
                   row->events, row->acquisitions, row->releases, row->live, row->lost, row->rate);
        if (row->has_counts && row->doubt < DOUBT_UNKNOWN)
            printf(", \"live_bytes\": %" PRIu64, row->live_bytes);
        if (row->has_counts && row->doubt != 0)
            printf(", \"live_bytes_%s\": \"%s\"",
                   row->doubt < DOUBT_UNKNOWN ? "at_least" : "unknown", row->reason);
        if (row->state == SESSION_ENDED || row->state == SESSION_REFUSED)
            printf(", \"status\": %" PRIu32, row->status);
        putchar('}');
    }
    printf("%s]\n}\n", rows->count > 0 ? "\n  " : "");
}

/* Copies the name of the program from the trace's name: PROGRAM.PID.bin, or of a child
 * TRACE.PID.PROGRAM. */
static void session_status_program_of(const struct status_row *row, char *name, size_t size)
{
    char middle[16], visible[4 * PATH_SIZE];
    const char *slash = strrchr(row->path, '/'), *file = slash ? slash + 1 : row->path;
    snprintf(middle, sizeof middle, ".%" PRIu32, row->pid);
    const char *at = strstr(file, middle), *rest = at ? strchr(at + 1, '.') : NULL;
    bool is_child = rest && strcmp(rest, ".bin") != 0;
    const char *from = is_child ? rest + 1 : file;
    size_t length = is_child || !at ? strlen(from) : (size_t)(at - file);
    visible_escape(from, length, visible, sizeof visible);
    snprintf(name, size, "%.*s", (int)size - 1, visible);
}

/* Writes a size in a few characters, after a prefix. */
static void status_size(uint64_t bytes, const char *prefix, char text[16])
{
    static const char units[] = "BkMGTPE";
    double size = (double)bytes;
    size_t unit = 0;
    for (; size >= 999.5; unit++)
        size /= 1000;
    snprintf(text, 16, unit > 0 && size < 99.95 ? "%s%.1f%c" : "%s%.0f%c", prefix, size,
             units[unit]);
}

static void session_status_print_row(const struct status_row *row)
{
    char program[PROGRAM_WIDTH + 1], live[16] = "?", size[16];
    session_status_program_of(row, program, sizeof program);
    status_size(row->bytes, "", size);
    if (row->doubt < DOUBT_UNKNOWN)
        status_size(row->live_bytes, row->doubt == 0 ? "" : ">", live);
    printf("%7" PRIu32 " %-9s", row->pid, session_status_name_state(row));
    if (row->has_counts)
        printf("%11" PRIu64 "%8.0f%7" PRIu64 "%9" PRIu64 "%8s", row->events, row->rate, row->lost,
               row->live, live);
    else
        printf("%11s%8s%7s%9s%8s", "-", "-", "-", "-", "-");
    printf("%7s %s\n", size, program);
}

/* Explains the marks at numbers of live bytes, each reason once. */
static void session_status_print_doubts(const struct status_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        const struct status_row *row = &rows->items[i];
        size_t first = 0;
        while (strcmp(rows->items[first].reason, row->reason) != 0)
            first++;
        if (row->doubt != 0 && first == i)
            printf("Live bytes %s: %s\n",
                   row->doubt < DOUBT_UNKNOWN ? "> are more" : "? are unknown", row->reason);
    }
}

static void session_status_print_text(const char *session, const struct client_list *list,
                                      const struct status_rows *rows)
{
    char text[4 * PATH_SIZE];
    uint64_t lost = 0;
    size_t live = 0;
    for (size_t i = 0; i < rows->count; i++) {
        live += rows->items[i].state == SESSION_RECORDING;
        lost += rows->items[i].lost;
    }
    visible_escape(list->text, strlen(list->text), text, sizeof text);
    printf("Session %s: %zu process%s recorded, %" PRIu64 " calls lost, in '%s'\n", session, live,
           live == 1 ? "" : "es", lost, text);
    const char *word = list->text + strlen(list->text) + 1;
    for (; word < list->text + list->text_size; word += strlen(word) + 1) {
        visible_escape(word, strlen(word), text, sizeof text);
        printf("New processes of %s are recorded\n", text);
    }
    if (rows->count > 0)
        printf("\n%7s %-9s%11s%8s%7s%9s%8s%7s %s\n", "Process", "State", "Events", "per s", "Lost",
               "Blocks", "Live", "Trace", "Program");
    for (size_t i = 0; i < rows->count; i++)
        session_status_print_row(&rows->items[i]);
    session_status_print_doubts(rows);
}

/* Rates since the last time, where there was one. */
static void session_status_set_rates(struct status_rows *rows, const struct status_rows *before)
{
    for (size_t i = 0; i < rows->count; i++)
        for (size_t k = 0; k < before->count; k++) {
            struct status_row *row = &rows->items[i];
            const struct status_row *old = &before->items[k];
            if (row->pid == old->pid && row->collector == old->collector && old->has_counts &&
                row->has_counts && row->age > old->age && row->events >= old->events)
                row->rate =
                    (double)(row->events - old->events) * 1e9 / (double)(row->age - old->age);
        }
}

static int session_status_read_rows(const char *session, struct client_list *list,
                                    struct status_rows *rows)
{
    int connected = client_connect(session);
    if (connected < 0)
        return EXIT_NO_SESSION;
    int status = client_read(connected, list);
    close(connected);
    *rows = (struct status_rows){0};
    for (size_t i = 0; status == EXIT_SUCCESS && i < list->count; i++)
        session_status_add_entry(rows, &list->entries[i], list->text);
    return status;
}

int status_print(const char *session, bool watches, bool is_json)
{
    struct status_rows before = {0}, rows;
    struct client_list list;
    bool is_terminal = isatty(STDOUT_FILENO);
    int status;
    while ((status = session_status_read_rows(session, &list, &rows)) == EXIT_SUCCESS) {
        session_status_set_rates(&rows, &before);
        if (watches && is_terminal)
            fputs("\033[H\033[J", stdout);
        if (is_json)
            session_status_print_json(session, &list, &rows);
        else
            session_status_print_text(session, &list, &rows);
        free(list.entries);
        free(before.items);
        before = rows;
        if (fflush(stdout) != 0)
            status = EXIT_RECORDER;
        if (!watches || status != EXIT_SUCCESS)
            break;
        sleep(REFRESH_SECONDS);
    }
    free(before.items);
    return status;
}

int status_each(const char *session, enum control_command command, const uint64_t *interval)
{
    struct client_list list;
    struct status_rows rows;
    int status = session_status_read_rows(session, &list, &rows);
    if (status != EXIT_SUCCESS)
        return status;
    for (size_t i = 0; i < rows.count; i++) {
        struct control_request request = {
            .magic = CONTROL_MAGIC, .command = command, .pid = rows.items[i].pid};
        struct control_answer answer;
        char text[4 * CONTROL_TEXT_MAX + 1];
        if (!rows.items[i].has_counts)
            continue;
        if (interval) {
            memcpy(request.text, interval, sizeof *interval);
            request.size = sizeof *interval;
        }
        enum control_result result =
            control_ask_collector(rows.items[i].collector, &request, &answer);
        if (result == CONTROL_UNKNOWN)
            continue; /* it has ended meanwhile */
        visible_escape(answer.text, answer.size, text, sizeof text);
        if (result == CONTROL_DONE)
            puts(text);
        else
            message("process %u: %s", request.pid, text);
        status = result == CONTROL_DONE ? status : EXIT_RECORDER;
    }
    free(list.entries);
    free(rows.items);
    return fflush(stdout) == 0 ? status : EXIT_RECORDER;
}
