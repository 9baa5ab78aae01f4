/* SPDX-License-Identifier: MIT */
#include "preload/process/program.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "loader.h"
#include "preload/channel/target.h"
#include "preload/system/sys.h"

static const char preload_name[] = "LD_PRELOAD=";
static const char channel_name[] = CHANNEL_ENV "=";

static bool program_is_preload(const char *variable)
{
    return strncmp(variable, preload_name, sizeof preload_name - 1) == 0;
}

/* Returns the value of LD_PRELOAD, or NULL. The loader takes the last one of several. */
static const char *program_find_preload(char *const *environment)
{
    const char *last = NULL;
    for (; environment && *environment; environment++)
        if (program_is_preload(*environment))
            last = *environment + sizeof preload_name - 1;
    return last;
}

static bool program_has_variable(char *const *environment, const char *variable)
{
    for (; environment && *environment; environment++)
        if (strcmp(*environment, variable) == 0)
            return true;
    return false;
}

size_t environment_count(char *const *environment)
{
    size_t count = 0;
    while (environment && environment[count])
        count++;
    return count;
}

bool environment_is_ours(char *const *environment)
{
    const char *preload = process_preload(), *channel = process_channel();
    if (!preload || !channel)
        return true;
    const char *value = program_find_preload(environment);
    return value && strstr(value, preload + sizeof preload_name - 1) &&
           program_has_variable(environment, channel);
}

bool environment_is_of_sanitizer(char *const *environment)
{
    const char *value = program_find_preload(environment);
    return value && sanitizer_preloaded(value);
}

bool environment_is_of_valgrind(char *const *environment)
{
    static const char launcher[] = "VALGRIND_LAUNCHER=";
    for (; environment && *environment; environment++)
        if (strncmp(*environment, launcher, sizeof launcher - 1) == 0)
            return true;
    return false;
}

size_t environment_joined_size(char *const *environment)
{
    const char *value = program_find_preload(environment);
    return strlen(process_preload()) + 2 + (value ? strlen(value) : 0);
}

void environment_name_channel(char channel[ENVIRONMENT_CHANNEL_MAX], int descriptor)
{
    char digits[12];
    size_t count = 0;
    char *end = strcpy(channel, process_channel()) + strlen(process_channel());
    if (descriptor < 0)
        return;
    *end++ = '=';
    do
        digits[count++] = (char)('0' + descriptor % 10);
    while ((descriptor /= 10) != 0);
    while (count > 0)
        *end++ = digits[--count];
    *end = '\0';
}

void environment_extend(char *const *environment, char **copy, char *joined, char *channel)
{
    const char *value = program_find_preload(environment);
    for (; environment && *environment; environment++)
        if (!program_is_preload(*environment) &&
            strncmp(*environment, channel_name, sizeof channel_name - 1) != 0)
            *copy++ = *environment;
    strcpy(joined, process_preload());
    if (value)
        strcat(strcat(joined, ":"), value);
    *copy++ = joined;
    *copy++ = channel;
    *copy = NULL;
}

/* Writes the variable without this library. False if nothing is left of it. */
static bool program_write_stripped(const char *value, char *joined)
{
    const char *preload = process_preload() + sizeof preload_name - 1;
    size_t size = strlen(preload);
    char *end = strcpy(joined, preload_name) + sizeof preload_name - 1;
    while (*value != '\0') {
        size_t length = strcspn(value, ": ");
        if (length != 0 && (length != size || memcmp(value, preload, size) != 0)) {
            if (end[-1] != '=')
                *end++ = ':';
            memcpy(end, value, length);
            end += length;
        }
        value += length + (value[length] != '\0');
    }
    *end = '\0';
    return end[-1] != '=';
}

void environment_strip(char *const *environment, char **copy, char *joined)
{
    const char *value = program_find_preload(environment);
    for (; *environment; environment++)
        if (!program_is_preload(*environment))
            *copy++ = *environment;
    if (value && program_write_stripped(value, joined))
        *copy++ = joined;
    *copy = NULL;
}

/* Where the C library looks without PATH. */
#define DEFAULT_PATH "/bin:/usr/bin"

enum { PATH_SIZE = 4096, INTERPRETERS_MAX = 5, LINE_SIZE = 256 };

static bool program_read(int file, void *buffer, size_t size, uint64_t offset)
{
    return sys_call6(SYS_pread64, file, (long)buffer, (long)size, (long)offset, 0, 0) == (long)size;
}

static long program_open_file(int directory, const char *path)
{
    return sys_call6(SYS_openat, directory, (long)path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0, 0, 0);
}

static bool program_loader_is_suitable(const char *path)
{
    struct elf_file elf;
    long file = program_open_file(AT_FDCWD, path);
    if (file < 0)
        return true; /* the program cannot be executed */
    bool is_suitable = elf_open(&elf, (int)file, program_read) && loader_is_suitable(&elf);
    sys_call3(SYS_close, file, 0, 0);
    return is_suitable;
}

static enum program_kind program_kind_of_elf(struct elf_file *elf)
{
    char path[LOADER_PATH_MAX], name[32];
    switch (loader_find(elf, path)) {
    case LOADER_NONE:
        return PROGRAM_UNRECORDED;
    case LOADER_OTHER_MACHINE:
    case LOADER_UNREADABLE:
        return PROGRAM_REFUSES_US;
    case LOADER_ANOTHER:
        if (!program_loader_is_suitable(path))
            return PROGRAM_REFUSES_US;
        break;
    case LOADER_USUAL_ONE:
        break;
    }
    return sanitizer_needed(elf, name) ? PROGRAM_REFUSES_US : PROGRAM_RECORDED;
}

/* Reads the interpreter that a script names. Returns false if the file is no script. */
static bool program_interpreter(int file, char line[LINE_SIZE], const char **interpreter)
{
    long size = sys_call6(SYS_pread64, file, (long)line, LINE_SIZE - 1, 0, 0, 0);
    if (size < 2 || line[0] != '#' || line[1] != '!')
        return false;
    line[size] = '\0';
    line[strcspn(line, "\n")] = '\0';
    char *begin = line + 2 + strspn(line + 2, " \t");
    begin[strcspn(begin, " \t")] = '\0';
    *interpreter = begin;
    return true;
}

/* Whether this process gains privileges when it executes a program, whose loader then ignores
 * LD_PRELOAD. */
static bool program_is_privileged(const char *path)
{
    struct stat status;
    struct statfs system;
    if (sys_call6(SYS_newfstatat, AT_FDCWD, (long)path, (long)&status, 0, 0, 0) != 0)
        return false;
    uid_t user = (uid_t)sys_call3(SYS_getuid, 0, 0, 0);
    bool is_setuid = (status.st_mode & S_ISUID) != 0 && status.st_uid != user;
    bool is_setgid = (status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0 &&
                     status.st_gid != (gid_t)sys_call3(SYS_getgid, 0, 0, 0);
    bool has_capabilities = user != 0 && sys_call6(SYS_getxattr, (long)path,
                                                   (long)"security.capability", 0, 0, 0, 0) > 0;
    return (is_setuid || is_setgid || has_capabilities) &&
           sys_call6(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0, 0) == 0 &&
           sys_call3(SYS_statfs, (long)path, (long)&system, 0) == 0 &&
           (system.f_flags & ST_NOSUID) == 0;
}

/* Returns the kind of the program in a file, or of the interpreter of the script in it. */
static enum program_kind program_kind_of_file(int file)
{
    struct elf_file elf;
    char line[LINE_SIZE];
    const char *interpreter;
    enum program_kind kind = PROGRAM_RECORDED;
    long opened = -1;
    for (int i = 0; i < INTERPRETERS_MAX; i++) {
        if (elf_open(&elf, file, program_read)) {
            kind = program_kind_of_elf(&elf);
            break;
        }
        if (!program_interpreter(file, line, &interpreter))
            break;
        if (opened >= 0)
            sys_call3(SYS_close, opened, 0, 0);
        opened = program_open_file(AT_FDCWD, interpreter);
        if (opened < 0)
            break;
        file = (int)opened;
    }
    if (opened >= 0)
        sys_call3(SYS_close, opened, 0, 0);
    return kind;
}

enum program_kind program_kind(int directory, const char *path)
{
    if (!process_preload() || process_is_confined)
        return PROGRAM_RECORDED;
    /* The loader would complain in a program that cannot see this library. */
    if (sys_call3(SYS_access, (long)process_library(), R_OK, 0) != 0)
        return PROGRAM_REFUSES_US;
    if (directory == AT_FDCWD && program_is_privileged(path))
        return PROGRAM_UNRECORDED;
    long file = *path == '\0' ? directory : program_open_file(directory, path);
    if (file < 0)
        return PROGRAM_RECORDED;
    enum program_kind kind = program_kind_of_file((int)file);
    if (*path != '\0')
        sys_call3(SYS_close, file, 0, 0);
    return kind == PROGRAM_RECORDED && !channel_is_reachable() ? PROGRAM_CUT_OFF : kind;
}

enum program_kind program_kind_found(const char *name)
{
    char path[PATH_SIZE];
    const char *directories = getenv("PATH");
    size_t size = strlen(name);
    if (!directories)
        directories = DEFAULT_PATH;
    if (strchr(name, '/'))
        return program_kind(AT_FDCWD, name);
    for (; directories; directories = *directories == ':' ? directories + 1 : NULL) {
        size_t length = strcspn(directories, ":");
        if (length + size + 2 <= sizeof path) {
            memcpy(path, directories, length);
            path[length] = '/';
            memcpy(path + length + (length != 0), name, size + 1);
            if (access(path, X_OK) == 0)
                return program_kind(AT_FDCWD, path);
        }
        directories += length;
    }
    return PROGRAM_RECORDED;
}

void program_count(enum program_kind kind, int count)
{
    if (kind != PROGRAM_RECORDED && !(target_channel->flags & CHANNEL_NO_CHILDREN))
        atomic_fetch_add(&target_channel->refused, (unsigned)count);
}
