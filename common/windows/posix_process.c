/* SPDX-License-Identifier: MIT */
/* The process for posix.h: its limits, signals, environment and console; and the functions on
 * strings. */
#include "common/windows/posix.h"

#include <errno.h>
#include <stdarg.h>

#include "common/windows/posix_wide.h"

#include <ntsecapi.h>

/* ---- Limits ---- */

static HANDLE process_job;

int getrlimit(int resource, struct rlimit *limit)
{
    (void)resource;
    *limit = (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
    return 0;
}

int setrlimit(int resource, const struct rlimit *limit)
{
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION facts = {.ProcessMemoryLimit = (SIZE_T)limit->rlim_cur};
    (void)resource;
    if (limit->rlim_cur != RLIM_INFINITY)
        facts.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_PROCESS_MEMORY;
    if (!process_job) {
        process_job = CreateJobObjectW(NULL, NULL);
        if (!process_job || !AssignProcessToJobObject(process_job, GetCurrentProcess()))
            return windows_fail();
    }
    return SetInformationJobObject(process_job, JobObjectExtendedLimitInformation, &facts,
                                   sizeof facts)
               ? 0
               : windows_fail();
}

long sysconf(int name)
{
    enum { PAGE = 4096 };
    MEMORYSTATUSEX memory = {.dwLength = sizeof memory};
    if (name == _SC_PAGESIZE)
        return PAGE;
    return GlobalMemoryStatusEx(&memory) ? (long)(memory.ullTotalPhys / PAGE) : -1;
}

int sched_getaffinity(int process, size_t size, cpu_set_t *set)
{
    DWORD_PTR own, all;
    (void)process;
    (void)size;
    set->count = 0;
    if (!GetProcessAffinityMask(GetCurrentProcess(), &own, &all))
        return windows_fail();
    for (; own; own &= own - 1)
        set->count++;
    return 0;
}

/* ---- Randomness ---- */

int getentropy(void *data, size_t size)
{
    return RtlGenRandom(data, (ULONG)size) ? 0 : windows_fail();
}

ssize_t getrandom(void *data, size_t size, unsigned flags)
{
    (void)flags;
    return getentropy(data, size) == 0 ? (ssize_t)size : -1;
}

/* ---- The environment ---- */

char *windows_utf8(const wchar_t *wide)
{
    int size = WideCharToMultiByte(CP_UTF8, 0, wide, -1, NULL, 0, NULL, NULL);
    char *text = malloc((size_t)size + 1);
    if (text)
        WideCharToMultiByte(CP_UTF8, 0, wide, -1, text, size, NULL, NULL);
    return text;
}

/* Values that were asked for, since a caller may keep several. */
struct variable {
    char *name, *value;
};

static char *process_temporary(void)
{
    static char text[WIDE_MAX];
    wchar_t wide[WIDE_MAX];
    DWORD size = GetTempPathW(WIDE_MAX, wide);
    if (!size || size >= WIDE_MAX ||
        !WideCharToMultiByte(CP_UTF8, 0, wide, -1, text, sizeof text, NULL, NULL))
        return NULL;
    return text;
}

/* Returns a value that stays until the process ends: few variables are asked for, each a few times.
 */
char *posix_getenv(const char *name)
{
    enum { VARIABLES_MAX = 64 };
    static struct variable variables[VARIABLES_MAX];
    wchar_t wide_name[WIDE_MAX];
    if (!windows_wide(name, wide_name))
        return NULL;
    const wchar_t *wide = _wgetenv(wide_name);
    if (!wide)
        return strcmp(name, "TMPDIR") == 0 ? process_temporary() : NULL;
    char *value = windows_utf8(wide);
    for (size_t i = 0; value && i < VARIABLES_MAX; i++) {
        if (variables[i].name && strcmp(variables[i].name, name) != 0)
            continue;
        if (variables[i].name && strcmp(variables[i].value, value) == 0) {
            free(value);
            return variables[i].value;
        }
        if (!variables[i].name)
            variables[i] = (struct variable){strdup(name), value};
        break;
    }
    return value;
}

const char *nl_langinfo_l(int item, locale_t locale)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    (void)item;
    (void)locale;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = posix_getenv(names[i]);
        if (value && *value)
            return strstr(value, "UTF-8") || strstr(value, "utf8") ? "UTF-8" : "ANSI";
    }
    return "UTF-8";
}

/* ---- The console and other processes ---- */

int ioctl(int descriptor, int request, struct winsize *size)
{
    CONSOLE_SCREEN_BUFFER_INFO screen;
    (void)request;
    if (!GetConsoleScreenBufferInfo((HANDLE)_get_osfhandle(descriptor), &screen))
        return windows_fail();
    size->ws_col = (unsigned short)(screen.srWindow.Right - screen.srWindow.Left + 1);
    size->ws_row = (unsigned short)(screen.srWindow.Bottom - screen.srWindow.Top + 1);
    return 0;
}

static int process_refuse(void)
{
    errno = ENOSYS;
    return -1;
}

pid_t posix_fork(void)
{
    return process_refuse();
}

pid_t waitpid(pid_t process, int *status, int options)
{
    (void)process;
    (void)status;
    (void)options;
    return process_refuse();
}

int execl(const char *path, const char *argument, ...)
{
    (void)path;
    (void)argument;
    return process_refuse();
}

int pipe(int ends[2])
{
    (void)ends;
    return process_refuse();
}

/* ---- Signals ---- */

static struct sigaction process_key, process_alarm;
static HANDLE process_timer;

static BOOL WINAPI process_on_key(DWORD kind)
{
    void (*handler)(int) = process_key.sa_handler;
    if (kind != CTRL_C_EVENT || handler == SIG_DFL)
        return FALSE;
    if (handler != SIG_IGN)
        handler(SIGINT);
    return TRUE;
}

static void CALLBACK process_on_timer(void *context, BOOLEAN is_timer)
{
    (void)context;
    (void)is_timer;
    if (process_alarm.sa_handler)
        process_alarm.sa_handler(SIGALRM);
}

int sigaction(int signal, const struct sigaction *action, struct sigaction *before)
{
    struct sigaction *place = signal == SIGINT ? &process_key : &process_alarm;
    struct sigaction old = *place;
    /* The system's own default ends the process. */
    if (signal == SIGINT && !old.sa_handler && action->sa_handler)
        SetConsoleCtrlHandler(process_on_key, TRUE);
    if (signal == SIGINT && old.sa_handler && !action->sa_handler)
        SetConsoleCtrlHandler(process_on_key, FALSE);
    *place = *action;
    if (before)
        *before = old;
    return 0;
}

static DWORD process_milliseconds(struct posix_interval time)
{
    uint64_t value = (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_usec / 1000;
    return value < UINT32_MAX ? (DWORD)value : UINT32_MAX - 1;
}

int setitimer(int which, const struct itimerval *timer, struct itimerval *before)
{
    (void)which;
    (void)before;
    if (process_timer)
        (void)DeleteTimerQueueTimer(NULL, process_timer, NULL);
    process_timer = NULL;
    DWORD first = process_milliseconds(timer->it_value);
    if (first && !CreateTimerQueueTimer(&process_timer, NULL, process_on_timer, NULL, first,
                                        process_milliseconds(timer->it_interval), 0))
        return windows_fail();
    return 0;
}

/* ---- Streams and time ---- */

struct tm *gmtime_r(const time_t *time, struct tm *parts)
{
    return gmtime_s(parts, time) == 0 ? parts : NULL;
}

ssize_t getline(char **line, size_t *capacity, FILE *stream)
{
    size_t size = 0;
    for (int next = 0; next != '\n' && (next = getc(stream)) != EOF;) {
        if (size + 2 > *capacity) {
            size_t room = *capacity ? 2 * *capacity : BUFSIZ;
            char *grown = realloc(*line, room);
            if (!grown)
                return -1;
            *line = grown;
            *capacity = room;
        }
        (*line)[size++] = (char)next;
        (*line)[size] = '\0';
    }
    return size ? (ssize_t)size : -1;
}

/* ---- Strings ---- */

void *mempcpy(void *target, const void *source, size_t size)
{
    memcpy(target, source, size);
    return (char *)target + size;
}

char *stpcpy(char *target, const char *source)
{
    size_t size = strlen(source);
    memcpy(target, source, size + 1);
    return target + size;
}

void *memmem(const void *data, size_t size, const void *part, size_t part_size)
{
    const char *next = data, *end = next + size, *wanted = part;
    if (!part_size)
        return (void *)(uintptr_t)data;
    while ((size_t)(end - next) >= part_size &&
           (next = memchr(next, *wanted, (size_t)(end - next) - part_size + 1))) {
        if (memcmp(next, part, part_size) == 0)
            return (void *)(uintptr_t)next;
        next++;
    }
    return NULL;
}

void *memrchr(const void *data, int byte, size_t size)
{
    const unsigned char *bytes = data;
    while (size) {
        if (bytes[--size] == (unsigned char)byte)
            return (void *)(uintptr_t)(bytes + size);
    }
    return NULL;
}

char *strndup(const char *text, size_t size)
{
    size_t length = strnlen(text, size);
    char *copy = malloc(length + 1);
    if (copy) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}
