/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* syscall, close_range */
#include "symbolize/process/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbolize/child_arrays.h"
#include "symbolize/names/module_names.h"
#include "symbolize/symbolize.h"
#include "symbolize/wire/wire.h"

enum { NUMBER = sizeof(uint64_t), MODULE_NUMBERS = 10 };

static size_t worker_round_up(size_t size)
{
    return (size + NUMBER - 1) / NUMBER * NUMBER;
}

static size_t worker_path_size(const struct symbolize_module *module)
{
    return module->offset_count > 0 && module->path ? strlen(module->path) : 0;
}

static size_t worker_place_size(const struct symbolize_module *module)
{
    return module->offset_count > 0 && module->place ? strlen(module->place) : 0;
}

static size_t worker_text_size(const struct symbolize_module *module)
{
    return worker_round_up(worker_path_size(module) + 1 + worker_place_size(module) + 1 +
                           module->build_id_size);
}

static void worker_request_put(uint8_t **cursor, const void *data, size_t size)
{
    if (size > 0)
        memcpy(*cursor, data, size);
    *cursor += size;
}

static void worker_request_put_number(uint8_t **cursor, uint64_t number)
{
    worker_request_put(cursor, &number, sizeof number);
}

static void worker_put_module(uint8_t **cursor, const struct symbolize_module *module)
{
    worker_request_put_number(cursor, worker_path_size(module));
    worker_request_put_number(cursor, worker_place_size(module));
    worker_request_put_number(cursor, module->build_id_size);
    worker_request_put_number(cursor, module->offset_count);
    worker_request_put_number(cursor, module->is_data);
    worker_request_put_number(cursor, module->file.device);
    worker_request_put_number(cursor, module->file.inode);
    worker_request_put_number(cursor, module->file.size);
    worker_request_put_number(cursor, module->file.modified);
    worker_request_put_number(cursor, module->file.changed);
    uint8_t *text = *cursor;
    worker_request_put(&text, module->path, worker_path_size(module));
    text++;
    worker_request_put(&text, module->place, worker_place_size(module));
    text++;
    worker_request_put(&text, module->build_id, module->build_id_size);
    *cursor += worker_text_size(module);
    worker_request_put(cursor, module->offsets, module->offset_count * NUMBER);
}

uint8_t *lookup_request_pack(const struct symbolize_module *modules, size_t count, size_t *size)
{
    *size = 2 * NUMBER;
    for (size_t i = 0; i < count; i++)
        *size += MODULE_NUMBERS * NUMBER + worker_text_size(&modules[i]) +
                 modules[i].offset_count * NUMBER;
    uint8_t *data = calloc(*size, 1);
    uint8_t *cursor = data;
    if (!data)
        return NULL;
    worker_request_put_number(&cursor, *size - NUMBER);
    worker_request_put_number(&cursor, count);
    for (size_t i = 0; i < count; i++)
        worker_put_module(&cursor, &modules[i]);
    return data;
}

static bool worker_receive(int fd, uint8_t *data, size_t size)
{
    while (size > 0) {
        ssize_t n = read(fd, data, size);
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        if (n > 0) {
            data += n;
            size -= (size_t)n;
        }
    }
    return true;
}

static uint64_t worker_request_take_number(const uint8_t **cursor)
{
    uint64_t number;
    memcpy(&number, *cursor, sizeof number);
    *cursor += sizeof number;
    return number;
}

static void worker_request_take_module(const uint8_t **cursor, struct symbolize_module *module)
{
    size_t length = worker_request_take_number(cursor);
    size_t place_length = worker_request_take_number(cursor);
    module->build_id_size = worker_request_take_number(cursor);
    module->offset_count = worker_request_take_number(cursor);
    module->is_data = worker_request_take_number(cursor) != 0;
    module->file.device = worker_request_take_number(cursor);
    module->file.inode = worker_request_take_number(cursor);
    module->file.size = worker_request_take_number(cursor);
    module->file.modified = worker_request_take_number(cursor);
    module->file.changed = worker_request_take_number(cursor);
    module->path = (const char *)*cursor;
    module->place = place_length > 0 ? module->path + length + 1 : NULL;
    module->build_id = *cursor + length + 1 + place_length + 1;
    *cursor += worker_round_up(length + 1 + place_length + 1 + module->build_id_size);
    module->offsets = (const uint64_t *)(const void *)*cursor;
    *cursor += module->offset_count * NUMBER;
}

bool lookup_request_receive(struct lookup_request *request, int fd)
{
    uint64_t size;
    if (!worker_receive(fd, (uint8_t *)&size, sizeof size))
        return false;
    request->data = grow_new(size, 1);
    if (!worker_receive(fd, request->data, size)) {
        free(request->data);
        return false;
    }
    const uint8_t *cursor = request->data;
    request->count = worker_request_take_number(&cursor);
    request->modules = grow_new(request->count, sizeof *request->modules);
    for (size_t i = 0; i < request->count; i++)
        worker_request_take_module(&cursor, &request->modules[i]);
    return true;
}

void lookup_request_free(struct lookup_request *request)
{
    free(request->data);
    free(request->modules);
}

enum { PIPE_FD = 3 };

/* The image cache is cleared beyond this size: the recorded program needs memory, too. */
#define RESIDENT_MAX (UINT64_C(256) << 20)

/* Ignores signals to the whole process group: the parent acts on them, and kills this process if
 * need be. */
static void worker_set_signals(void)
{
    static const int standard[] = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGTRAP,
                                   SIGSYS,  SIGABRT, SIGCONT, SIGCHLD, SIGXCPU};
    for (int number = 1; number < NSIG; number++)
        (void)signal(number, SIG_IGN);
    for (size_t i = 0; i < sizeof standard / sizeof *standard; i++)
        (void)signal(standard[i], SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
}

static void worker_set_files(int fd)
{
    if (fd != PIPE_FD && dup2(fd, PIPE_FD) < 0)
        _exit(EXIT_FAILURE);
    int null = open("/dev/null", O_RDWR);
    for (int i = 0; i < PIPE_FD; i++) {
        if (null < 0)
            close(i);
        else
            dup2(null, i);
    }
    closefrom(PIPE_FD + 1);
}

/* Limits of one download, unless the user sets others. */
#define DOWNLOAD_MAX          (UINT64_C(4) << 30)
#define DOWNLOAD_MAX_TEXT     "4294967296"
#define DOWNLOAD_SECONDS_TEXT "300"

struct sizes {
    uint64_t mapped;
    uint64_t resident;
};

static struct sizes worker_own_sizes(void)
{
    unsigned long mapped = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file) {
        if (fscanf(file, "%lu %lu", &mapped, &resident) != 2)
            mapped = resident = 0;
        fclose(file);
    }
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    return (struct sizes){mapped * page, resident * page};
}

/* Lowers a limit, both the soft and the hard one. */
static void worker_limit(__rlimit_resource_t resource, uint64_t value)
{
    struct rlimit old;
    if (getrlimit(resource, &old) == 0 && old.rlim_max < value)
        value = old.rlim_max;
    const struct rlimit limits = {value, value};
    (void)setrlimit(resource, &limits);
}

static void worker_allow_many_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return;
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
}

/* Only debuginfod, where the user enables it, writes files. Limits that the user has set count. */
static void worker_limit_downloads(void)
{
    bool has_servers = getenv("DEBUGINFOD_URLS") != NULL;
    worker_limit(RLIMIT_FSIZE, has_servers ? DOWNLOAD_MAX : 0);
    if (has_servers) {
        (void)setenv("DEBUGINFOD_MAXSIZE", DOWNLOAD_MAX_TEXT, 0);
        (void)setenv("DEBUGINFOD_MAXTIME", DOWNLOAD_SECONDS_TEXT, 0);
    }
}

static void worker_set_limits(const struct worker_job *job)
{
    worker_limit(RLIMIT_AS, worker_own_sizes().mapped + job->memory);
    worker_limit(RLIMIT_CPU, job->seconds);
    worker_limit(RLIMIT_CORE, 0);
    worker_allow_many_files();
    worker_limit_downloads();
    /* A core pattern that is a program ignores RLIMIT_CORE. */
    (void)prctl(PR_SET_DUMPABLE, 0);
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* Whether the cached images leave too little memory for the next module or for other processes. */
static bool worker_is_large(const struct image_cache *images)
{
    struct sizes sizes = worker_own_sizes();
    return sizes.resident > RESIDENT_MAX || sizes.mapped > images->mapped_max;
}

static void worker_report_modules(struct wire_encoder *encoder, struct image_cache *images,
                                  const struct worker_job *job)
{
    for (size_t i = job->first; i < job->count; i++) {
        bool is_first = i == job->first;
        if (job->modules[i].offset_count == 0)
            continue;
        wire_encoder_module(encoder, (uint32_t)i);
        wire_encoder_end(encoder, names_look_up(encoder, images, &job->modules[i],
                                                is_first ? job->answered : NULL,
                                                is_first && job->is_reduced));
        if (images && worker_is_large(images))
            image_cache_clear(images);
    }
    wire_encoder_finished(encoder);
}

static void worker_answer_questions(struct wire_encoder *encoder, uint64_t memory)
{
    struct image_cache images = {.mapped_max = worker_own_sizes().mapped + memory / 2};
    struct lookup_request request;
    while (lookup_request_receive(&request, PIPE_FD)) {
        struct worker_job asked = {.modules = request.modules, .count = request.count};
        worker_report_modules(encoder, &images, &asked);
        lookup_request_free(&request);
    }
}

static _Noreturn void worker_run(const struct worker_job *job, pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        _exit(EXIT_FAILURE);
    worker_set_signals();
    worker_set_files(job->fd);
    worker_set_limits(job);
    struct wire_encoder encoder = {.fd = PIPE_FD};
    if (job->modules)
        worker_report_modules(&encoder, NULL, job);
    else
        worker_answer_questions(&encoder, job->memory);
    _exit(EXIT_SUCCESS);
}

/* ECHILD is no error: if the caller ignores SIGCHLD, the kernel has reaped the child. */
void worker_wait(pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

pid_t worker_start(const struct worker_job *job)
{
    /* The caller's handlers must not run in the child. */
    sigset_t all_signals;
    sigset_t before;
    sigfillset(&all_signals);
    pthread_sigmask(SIG_SETMASK, &all_signals, &before);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        worker_run(job, parent);
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return pid;
}

static bool helper_is_kept(int fd, int own_file, const int *files, size_t count)
{
    bool is_kept_file = fd == own_file;
    for (size_t i = 0; i < count; i++)
        is_kept_file |= fd == files[i];
    return is_kept_file;
}

/* Closes inherited descriptors: otherwise this process would keep pipes open, and locks held, whose
 * end others wait for. */
static void helper_close_others(int own_file, const int *files, size_t count)
{
    int highest = own_file;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
    for (size_t i = 0; i < count; i++)
        highest = files[i] > highest ? files[i] : highest;
    for (int fd = STDERR_FILENO + 1; fd < highest; fd++)
        if (!helper_is_kept(fd, own_file, files, count))
            close(fd);
    closefrom(highest + 1);
}

/* Ignores signals to the process group: the parent acts on them, and kills this process. */
static void helper_ignore_signals(void)
{
    static const int standard[] = {SIGSEGV, SIGBUS, SIGFPE,  SIGILL,
                                   SIGTRAP, SIGSYS, SIGABRT, SIGCHLD};
    for (int number = 1; number <= SIGRTMAX; number++)
        (void)signal(number, SIG_IGN);
    for (size_t i = 0; i < sizeof standard / sizeof *standard; i++)
        (void)signal(standard[i], SIG_DFL);
}

static _Noreturn void helper_lookup_answer(int fd, lookup_function *function, void *context)
{
    struct lookup_request request;
    while (lookup_request_receive(&request, fd)) {
        function(context, request.modules, request.count);
        lookup_request_free(&request);
        if (write(fd, "", 1) != 1)
            break;
    }
    _exit(EXIT_SUCCESS);
}

void lookup_process_start(struct lookup_process *process, lookup_function *function, void *context,
                          const int *files, size_t file_count)
{
    int ends[2];
    pid_t parent = getpid();
    *process = (struct lookup_process){.pid = 0};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return;
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    process->pid = fork();
    if (process->pid == 0) {
        helper_ignore_signals();
        helper_close_others(ends[1], files, file_count);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent)
            helper_lookup_answer(ends[1], function, context);
        _exit(EXIT_FAILURE);
    }
    close(ends[1]);
    process->fd = ends[0];
    if (process->pid < 0) {
        close(ends[0]);
        *process = (struct lookup_process){.pid = 0};
    }
}

void lookup_process_stop(struct lookup_process *process)
{
    if (process->pid == 0)
        return;
    kill(process->pid, SIGKILL);
    worker_wait(process->pid);
    close(process->fd);
    free(process->request);
    *process = (struct lookup_process){.pid = 0};
}

/* Sends as much as the socket takes now. Returns false if the process is gone. */
static bool helper_send_more(struct lookup_process *process)
{
    while (process->sent < process->size) {
        ssize_t n = send(process->fd, process->request + process->sent,
                         process->size - process->sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN)
            return true;
        if (n < 0 && errno != EINTR)
            return false;
        process->sent += n > 0 ? (size_t)n : 0;
    }
    free(process->request);
    process->request = NULL;
    return true;
}

bool lookup_process_is_busy(struct lookup_process *process)
{
    if (!process->is_busy)
        return false;
    if (process->request && !helper_send_more(process)) {
        lookup_process_stop(process);
        return false;
    }
    char signal_byte;
    ssize_t size = read(process->fd, &signal_byte, sizeof signal_byte);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    process->is_busy = false;
    if (size != sizeof signal_byte)
        lookup_process_stop(process);
    return false;
}

bool lookup_process_send(struct lookup_process *process, const struct symbolize_module *modules,
                         size_t count)
{
    if (lookup_process_is_busy(process) || process->pid == 0)
        return false;
    process->request = lookup_request_pack(modules, count, &process->size);
    process->sent = 0;
    process->is_busy = process->request != NULL;
    if (process->is_busy && !helper_send_more(process))
        lookup_process_stop(process);
    return process->is_busy;
}

/* Limit of processor time, in case the child loops after all its users are gone. */
enum { SECONDS = 600 };

void helper_start(struct helper *helper, uint64_t memory)
{
    int ends[2];
    *helper = (struct helper){.state = HELPER_NONE};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return;
    struct worker_job job = {.memory = memory, .seconds = SECONDS, .fd = ends[1]};
    pid_t pid = worker_start(&job);
    int pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    close(ends[1]);
    if (pidfd >= 0) {
        (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
        *helper = (struct helper){HELPER_READY, ends[0], pid, pidfd};
        return;
    }
    close(ends[0]); /* it ends the child */
    if (pid > 0)
        worker_wait(pid);
}

void helper_stop(struct helper *helper)
{
    if (helper->pid == 0)
        return;
    helper_give_up(helper);
    close(helper->fd);
    close(helper->pidfd);
    worker_wait(helper->pid);
    helper->pid = 0;
}

void helper_give_up(struct helper *helper)
{
    helper->state = HELPER_NONE;
    (void)syscall(SYS_pidfd_send_signal, helper->pidfd, SIGKILL, NULL, 0);
}

static bool helper_send_all(int fd, const uint8_t *data, size_t size, int64_t until)
{
    while (size > 0) {
        ssize_t n = send(fd, data, size, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) {
            int64_t remaining = until - symbolize_milliseconds();
            struct pollfd event = {.fd = fd, .events = POLLOUT};
            if (remaining <= 0 || symbolize_is_stopped())
                return false;
            (void)poll(&event, 1, remaining < 1000 ? (int)remaining : 1000);
        } else if (n < 0 && errno != EINTR) {
            return false;
        }
        data += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

bool helper_ask(struct helper *helper, const struct symbolize_module *modules, size_t count,
                int64_t until)
{
    if (helper->state == HELPER_NONE)
        return false;
    size_t size;
    uint8_t *request =
        helper->state == HELPER_READY ? lookup_request_pack(modules, count, &size) : NULL;
    helper->state = HELPER_ASKED;
    bool sent = request && helper_send_all(helper->fd, request, size, until);
    free(request);
    if (!sent)
        helper_give_up(helper);
    return sent;
}

void helper_done(struct helper *helper)
{
    helper->state = HELPER_READY;
}
