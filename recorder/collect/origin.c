/* SPDX-License-Identifier: MIT */
#include "origin.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Arguments are separated by NULs there; by spaces for people. */
static bool command_of(uint32_t pid, char *command, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    size_t got = fread(command, 1, size - 1, file);
    fclose(file);
    while (got > 0 && command[got - 1] == '\0')
        got--;
    for (size_t i = 0; i < got; i++)
        if (command[i] == '\0')
            command[i] = ' ';
    command[got] = '\0';
    return got > 0;
}

void origin_describe(struct trace *trace, uint32_t pid, const char *command)
{
    char found[4096], path[64], directory[4096];
    struct utsname system;
    if (command == NULL && command_of(pid, found, sizeof found))
        command = found;
    if (command != NULL)
        trace_metadata(trace, "command", command);
    snprintf(path, sizeof path, "/proc/%u/cwd", pid);
    ssize_t size = readlink(path, directory, sizeof directory - 1);
    if (size > 0) {
        directory[size] = '\0';
        trace_metadata(trace, "directory", directory);
    }
    if (uname(&system) == 0) {
        trace_metadata(trace, "host", system.nodename);
        snprintf(found, sizeof found, "%s %s %s", system.sysname, system.release, system.machine);
        trace_metadata(trace, "system", found);
    }
    trace_metadata(trace, "writer", "ttdrecord " TTD_VERSION_STRING);
}

/* As Linux 6.15 has it; older headers do not. */
struct exit_info {
    uint64_t mask;
    uint64_t cgroup;
    uint32_t ids[11];
    int32_t exit_code;
};

#define EXIT_INFO     _IOWR(0xff, 11, struct exit_info)
#define EXIT_INFO_BIT (UINT64_C(1) << 3)

static bool status_of_reaped(int pidfd, int *status)
{
    struct exit_info info = {.mask = EXIT_INFO_BIT};
    if (pidfd < 0 || ioctl(pidfd, EXIT_INFO, &info) != 0 || !(info.mask & EXIT_INFO_BIT))
        return false;
    *status = info.exit_code;
    return true;
}

static bool status_of_zombie(uint32_t pid, int *status)
{
    enum { FIELDS_BEFORE_EXIT_CODE = 48 }; /* after the state, which follows the name */
    char path[64], line[2048];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    size_t got = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[got] = '\0';
    /* The name may contain anything, also parentheses. */
    const char *at = strrchr(line, ')');
    if (at == NULL || strlen(at) < 4 || (at[2] != 'Z' && at[2] != 'X'))
        return false;
    at += 3;
    for (int i = 0; i < FIELDS_BEFORE_EXIT_CODE && at != NULL; i++)
        at = strchr(at + 1, ' ');
    return at != NULL && sscanf(at, "%d", status) == 1;
}

bool origin_exit_status(uint32_t pid, int pidfd, int *status)
{
    return status_of_zombie(pid, status) || status_of_reaped(pidfd, status);
}
