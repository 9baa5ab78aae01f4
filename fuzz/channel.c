/* SPDX-License-Identifier: MIT */
/*
 * Whatever recorded programs write into the shared memory, and whenever: the collector ends, and
 * each trace is closed, intact, and has the events that were counted. An input is a script of
 * writes in rounds, between which the collector runs.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collect/collector.h"
#include "collect/messages.h"
#include "target.h"

/* Numbers of slots, chunks and processes that the script writes to. */
enum { SLOTS = 4, CHUNKS = 6, CHILDREN = 2, PIDS = CHILDREN + 3, ROUNDS_MAX = 64 };

enum { STEP_ROUND, STEP_PROCESS, STEP_THREAD, STEP_CHUNK, STEP_RECORD, STEP_WORD, STEP_END, STEPS };

struct script {
    const uint8_t *at;
    const uint8_t *end;
};

static char directory[PATH_MAX];
static char output[PATH_MAX + 16];
static pid_t children[CHILDREN];

/* State of the present run. */
static struct script script;
static struct collector collector;
static volatile sig_atomic_t is_over;
static unsigned rounds;
static uint64_t events_closed;

/* ---- Replacements for messages.c and trace_closers.c ---- */

void message(const char *format, ...)
{
    (void)format;
}

void messages_share(void)
{
}

bool message_is_first(enum message_kind kind, int reason)
{
    (void)kind;
    (void)reason;
    return false;
}

void message_error(const char *path, const struct ttd_error *error)
{
    (void)path;
    (void)error;
}

void trace_closers_init(struct trace_closers *closers)
{
    *closers = (struct trace_closers){.names = NULL};
}

void trace_closers_free(struct trace_closers *closers)
{
    (void)closers;
}

void trace_closers_prepare(struct trace_closers *closers, struct trace *trace)
{
    (void)closers;
    (void)trace;
}

bool trace_closers_have_room(struct trace_closers *closers)
{
    (void)closers;
    return true;
}

/* Closes the trace at once, without names: a script may name any file as a module. */
void trace_closers_add(struct trace_closers *closers, struct trace *trace,
                       const struct ttd_end *end)
{
    (void)closers;
    if (trace->created) {
        target_require(trace->writer != NULL, trace->error.what ? trace->error.what : "a writer");
        enum ttd_status status = ttd_writer_close(trace->writer, end, &trace->error);
        target_require(status == TTD_OK, "a trace is closed");
        trace->writer = NULL;
        events_closed += trace->events;
    }
    trace_free(trace);
}

void trace_closers_wait(struct trace_closers *closers, const volatile sig_atomic_t *interrupts)
{
    (void)closers;
    (void)interrupts;
}

/* ---- The script ---- */

static uint64_t take_byte(void)
{
    return script.at < script.end ? *script.at++ : 0;
}

/* Reads a number: one byte or, if its first byte is large, up to eight more. */
static uint64_t take_number(void)
{
    uint64_t first = take_byte(), number = 0;
    if (first < 0xF0)
        return first;
    if (first == 0xFF)
        return UINT64_MAX - take_byte();
    for (uint64_t i = 0; i <= (first & 7); i++)
        number = number << 8 | take_byte();
    return number;
}

static struct channel_view *view(void)
{
    return &collector.host.view;
}

/* Maps a number to a chunk; every other one is large. */
static uint32_t chunk_index(uint64_t number)
{
    uint32_t entry = (uint32_t)(number % CHUNKS);
    return entry == 0 ? CHANNEL_NONE : entry % 2 ? entry : CHANNEL_SMALL_CHUNKS + entry;
}

/* Maps a number to a process: a running child, the launched process, an older process, or none. */
static uint32_t choose_pid(uint64_t number)
{
    number %= PIDS;
    if (number < CHILDREN)
        return (uint32_t)children[number];
    return number == CHILDREN       ? (uint32_t)collector.launched
           : number == CHILDREN + 1 ? 1
                                    : 0x3FFFFF;
}

static void write_process(void)
{
    uint64_t number = take_byte() % (2 * SLOTS);
    uint32_t index = 1 + (uint32_t)(number % SLOTS);
    struct process_slot *slot =
        channel_process(view(), number < SLOTS ? index : channel_copy(index));
    slot->pid = choose_pid(take_byte());
    slot->parent_pid = choose_pid(take_byte());
    slot->parent = (uint32_t)take_number();
    slot->flags = (uint32_t)take_byte();
    slot->notes = (uint32_t)take_byte();
    slot->sequence = take_number();
    slot->clock = take_number();
    slot->parent_sequence = take_number();
    slot->parent_steps = take_number();
    slot->log = chunk_index(take_byte());
    slot->lost = take_number();
    slot->command_size = (uint32_t)take_number();
    slot->directory_size = (uint32_t)take_number();
    for (unsigned i = 0; i < 16; i++)
        slot->command[i] = (char)take_byte();
    slot->state = (uint32_t)take_number();
    collector.host.channel->free_processes.used = (uint32_t)(take_byte() + 1);
}

static void write_thread(void)
{
    struct thread_slot *slot = channel_thread(view(), 1 + (uint32_t)(take_byte() % SLOTS));
    slot->tid = (uint32_t)take_number();
    slot->within = (uint32_t)take_byte();
    slot->first = chunk_index(take_byte());
    slot->sequence = take_number();
    slot->pending = take_number();
    slot->in_release = (uint32_t)take_byte();
    slot->lost[take_byte() % LOSS_COUNTERS] = take_number();
    slot->state = (uint32_t)(take_byte() % 8 | take_byte() << SLOT_PROCESS);
    collector.host.channel->free_threads.used = (uint32_t)(take_byte() + 1);
}

static void write_chunk(void)
{
    uint32_t index = chunk_index(take_byte());
    if (index == CHANNEL_NONE)
        return;
    struct chunk *chunk = channel_chunk(view(), index);
    chunk->committed = (uint32_t)take_number();
    chunk->next = chunk_index(take_byte());
    chunk->counts = (uint32_t)take_byte();
}

/* Appends a record, mostly a consistent one. */
static void write_record(void)
{
    uint32_t index = chunk_index(take_byte());
    if (index == CHANNEL_NONE)
        return;
    struct chunk *chunk = channel_chunk(view(), index);
    unsigned operation = (unsigned)take_byte(), flags = (unsigned)take_byte();
    unsigned kept = (unsigned)take_byte(), added = (unsigned)take_byte() % 16;
    const struct call_shape *shape = &call_shapes[operation];
    uint32_t at = chunk->committed / 8 % (channel_chunk_words(index) - 64);
    unsigned words = 1 + (flags & RECORD_SEQUENCE ? 1 : 0) + (flags & RECORD_CLOCK ? 1 : 0) +
                     (shape->kind == CALL_UNKNOWN ? 9 : shape->operands) + added;
    chunk->data[at] = record_head(operation, flags & 3, kept, added, words + (flags >> 6));
    for (unsigned i = 1; i < words; i++)
        chunk->data[at + i] = take_number();
    chunk->committed = 8 * (at + words);
}

/* Writes a word anywhere in the header or in a chunk. */
static void write_word(void)
{
    uint64_t where = take_byte(), at = take_number(), value = take_number();
    uint32_t index = chunk_index(where);
    if (index != CHANNEL_NONE) {
        channel_chunk(view(), index)->data[at % channel_chunk_words(index)] = value;
        return;
    }
    uint32_t *header = (uint32_t *)collector.host.channel;
    size_t words = sizeof *collector.host.channel / sizeof *header;
    header[at % words] = (uint32_t)value;
}

/* Executes the script up to the end of the round. */
static void write_round(void)
{
    while (script.at < script.end && !collector.launched_has_ended) {
        switch (take_byte() % STEPS) {
        case STEP_PROCESS:
            write_process();
            break;
        case STEP_THREAD:
            write_thread();
            break;
        case STEP_CHUNK:
            write_chunk();
            break;
        case STEP_RECORD:
            write_record();
            break;
        case STEP_WORD:
            write_word();
            break;
        case STEP_END:
            collector.launched_has_ended = take_byte() % 4 == 0;
            break;
        default:
            return;
        }
    }
}

/* The collector calls this between two rounds. */
bool trace_closers_step(struct trace_closers *closers)
{
    (void)closers;
    write_round();
    collector.host.channel->attention++;
    is_over = is_over || script.at == script.end || ++rounds == ROUNDS_MAX;
    return true;
}

/* ---- A run ---- */

static void end_children(void)
{
    for (int i = 0; i < CHILDREN; i++)
        kill(children[i], SIGKILL);
    rmdir(directory);
}

static void prepare(void)
{
    static const char *const places[] = {"/dev/shm", "/tmp"};
    for (unsigned i = 0; i < 2 && !*output; i++) {
        snprintf(directory, sizeof directory, "%s/fuzz_channel.XXXXXX", places[i]);
        if (mkdtemp(directory))
            snprintf(output, sizeof output, "%s/trace", directory);
    }
    target_require(*output, "a directory");
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = fork();
        target_require(children[i] >= 0, "a process");
        if (children[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;)
                pause();
        }
    }
    atexit(end_children);
}

static void close_host(struct host *host)
{
    for (size_t i = 0; i < CHANNEL_WINDOWS; i++) {
        char *window = atomic_load(&host->view.windows[i]);
        if (window)
            munmap(window, CHANNEL_WINDOW);
    }
    if (host->probe >= 0)
        close(host->probe);
    close(host->memfd);
}

static bool wants_stop(void)
{
    return false;
}

static void stop(int number)
{
    (void)number;
}

static void collect(void)
{
    static volatile sig_atomic_t done;
    struct ttd_error error;
    collector = (struct collector){.launched = getpid(), .command = "program"};
    target_require(host_open(&collector.host, 0) == 0, "a channel");
    target_require(collector_open(&collector, output, &error), "a collector");
    collector.done = &done;
    collector.wants_stop = wants_stop;
    collector.stop = stop;
    rounds = 0;
    events_closed = 0;
    is_over = 0;
    write_round();
    collector_run(&collector, &is_over);
    target_require(collector.processes.count == 0, "all processes are ended");
    collector_close(&collector);
    close_host(&collector.host);
}

static uint64_t check_file(const char *path)
{
    struct ttd_input input;
    struct ttd_verdict verdict;
    target_require(ttd_input_file(path, NULL, &input, NULL) == TTD_OK, "a file");
    enum ttd_status status = ttd_verify(&input, NULL, NULL, NULL, &verdict, NULL);
    target_require(status == TTD_OK && verdict.ok, "a trace is intact");
    return verdict.events;
}

/* Checks that all files are intact traces with the events counted, and removes them. */
static void check_files(void)
{
    uint64_t events = 0;
    DIR *files = opendir(directory);
    struct dirent *entry;
    target_require(files != NULL, "the directory");
    while ((entry = readdir(files))) {
        char path[PATH_MAX + 300];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        events += check_file(path);
        unlink(path);
    }
    closedir(files);
    target_require(events == events_closed, "the events that were counted");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!*output)
        prepare();
    script = (struct script){data, data + size};
    collect();
    check_files();
    return 0;
}
