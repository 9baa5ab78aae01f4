/* SPDX-License-Identifier: MIT */
#include "arm/arm.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "channel.h"

/* The ids that a process opens files with. */
struct door_user {
    uid_t user;
    gid_t group;
};

static bool arm_find_user(uint32_t pid, struct door_user *user)
{
    char path[64], line[256];
    bool has_user = false, has_group = false;
    snprintf(path, sizeof path, "/proc/%u/status", pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        has_user = has_user || sscanf(line, "Uid: %*u %u", &user->user) == 1;
        has_group = has_group || sscanf(line, "Gid: %*u %u", &user->group) == 1;
    }
    if (file)
        fclose(file);
    return has_user && has_group;
}

/* Whether the process finds the same file at a path as this one: it may have another root. */
static bool arm_sees_file(uint32_t pid, const char *path)
{
    char there[4096 + 64];
    struct stat own, other;
    snprintf(there, sizeof there, "/proc/%u/root%s", pid, path);
    return stat(path, &own) == 0 && stat(there, &other) == 0 && own.st_ino == other.st_ino &&
           own.st_dev == other.st_dev;
}

/* The door itself: has the channel open, as the user, until the recorder ends. */
static _Noreturn void arm_keep_open(const struct door_user *user, const char *preload, int file,
                                    int report, pid_t recorder)
{
    bool is_able = setgroups(0, NULL) == 0 &&
                   setresgid(user->group, user->group, user->group) == 0 &&
                   setresuid(user->user, user->user, user->user) == 0 && access(preload, R_OK) == 0;
    sigset_t none;
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    signal(SIGINT, SIG_IGN); /* of the terminal: the recorder is not over then */
    signal(SIGQUIT, SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (!is_able || prctl(PR_SET_DUMPABLE, 1) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 ||
        getppid() != recorder || write(report, "", 1) != 1)
        _exit(1);
    if (dup2(file, 0) != 0 || close_range(1, ~0U, 0) != 0)
        _exit(1);
    for (;;)
        pause();
}

const char *arm_door_open(struct arm_door *door, uint32_t pid, const char *preload, int file,
                          const char *path)
{
    struct door_user user;
    int report[2];
    char byte;
    door->pid = 0;
    snprintf(door->path, sizeof door->path, "%s", path);
    if (!arm_find_user(pid, &user))
        return "its user is not known";
    if (!arm_sees_file(pid, preload))
        return "it has another root directory, in which the recorder's library is not";
    if (!arm_sees_file(pid, path))
        return "it is in another namespace, such as a container's; run ttdrecord there";
    if (user.user == geteuid())
        return NULL;
    if (fchown(file, user.user, user.group) != 0 || pipe2(report, O_CLOEXEC) != 0)
        return "the channel cannot be given to its user";
    pid_t recorder = getpid();
    door->pid = fork();
    if (door->pid == 0)
        arm_keep_open(&user, preload, file, report[1], recorder);
    close(report[1]);
    bool is_open = door->pid > 0 && read(report[0], &byte, 1) == 1;
    /* Its other descriptors are closed, among them this end's: then its channel is number 0. */
    is_open = is_open && read(report[0], &byte, 1) == 0;
    close(report[0]);
    if (is_open && waitpid(door->pid, NULL, WNOHANG) == 0) {
        snprintf(door->path, sizeof door->path, "/proc/%d/fd/0", (int)door->pid);
        return NULL;
    }
    arm_door_close(door);
    return "its user cannot read the recorder's library";
}

void arm_door_close(struct arm_door *door)
{
    if (door->pid <= 0)
        return;
    kill(door->pid, SIGKILL);
    waitpid(door->pid, NULL, 0);
    door->pid = 0;
}

enum {
    WORDS_MAX =
        1 << 21, /* of arguments, environment and auxiliary vector: more than the system has */
    WORDS_AT_ONCE = 4096,
    PRELOAD_MAX = 1 << 16, /* of an LD_PRELOAD that the process has */
    STACK_ALIGNMENT = 16,
    AUXILIARY_MAX = 64,
    MOMENT_NS = 1000 * 1000,
    MOMENTS = 1000
};

static const char preload_name[] = "LD_PRELOAD=";
static const char channel_name[] = CHANNEL_ENV "=";

/* The words above the stack pointer: count of arguments, arguments, environment, auxiliary vector,
 * the first two each with a null pointer behind them. */
struct arm_stack {
    int memory; /* of the process, as a file */
    uint64_t *words;
    size_t count; /* words up to the end of the auxiliary vector */
    size_t variables, variables_end;
};

static bool arm_read(int memory, uint64_t address, void *data, size_t size)
{
    return pread(memory, data, size, (off_t)address) == (ssize_t)size;
}

static int arm_open_memory(uint32_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/mem", pid);
    return open(path, O_RDWR | O_CLOEXEC);
}

static bool arm_registers(uint32_t pid, struct user_regs_struct *registers)
{
    struct iovec buffer = {registers, sizeof *registers};
    return ptrace(PTRACE_GETREGSET, (pid_t)pid, (void *)NT_PRSTATUS, &buffer) == 0;
}

/* Returns the address of a program's first instruction: its loader's if it has one; 0 if unknown.
 */
static uint64_t arm_first_instruction(uint32_t pid)
{
    char path[64];
    Elf64_auxv_t auxiliary[AUXILIARY_MAX];
    Elf64_Ehdr header;
    uint64_t base = 0, entry = 0;
    snprintf(path, sizeof path, "/proc/%u/auxv", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file >= 0 ? read(file, auxiliary, sizeof auxiliary) : -1;
    if (file >= 0)
        close(file);
    for (ssize_t i = 0; i < size / (ssize_t)sizeof *auxiliary; i++) {
        if (auxiliary[i].a_type == AT_BASE)
            base = auxiliary[i].a_un.a_val;
        if (auxiliary[i].a_type == AT_ENTRY)
            entry = auxiliary[i].a_un.a_val;
    }
    if (base == 0)
        return entry;
    int memory = arm_open_memory(pid);
    bool is_read = memory >= 0 && arm_read(memory, base, &header, sizeof header) &&
                   memcmp(header.e_ident, ELFMAG, SELFMAG) == 0;
    if (memory >= 0)
        close(memory);
    return is_read ? base + header.e_entry : 0;
}

bool arm_is_at_start(uint32_t pid)
{
    struct user_regs_struct registers;
    uint64_t start = arm_first_instruction(pid);
    return start != 0 && arm_registers(pid, &registers) && registers.rip == start;
}

static bool arm_is_suspended(uint32_t pid)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file >= 0 ? read(file, line, sizeof line - 1) : -1;
    if (file >= 0)
        close(file);
    line[size > 0 ? size : 0] = '\0';
    const char *name_end = strrchr(line, ')');
    return name_end && strncmp(name_end, ") T", 3) == 0;
}

enum arm_state arm_seize(uint32_t pid)
{
    int status;
    if (!arm_is_suspended(pid) || ptrace(PTRACE_SEIZE, (pid_t)pid, NULL, NULL) != 0)
        return ARM_ELSEWHERE;
    ptrace(PTRACE_INTERRUPT, (pid_t)pid, NULL, NULL); /* it may just go on */
    if (waitpid((pid_t)pid, &status, __WALL) != (pid_t)pid || !WIFSTOPPED(status))
        return ARM_ELSEWHERE;
    if (arm_is_at_start(pid))
        return ARM_READY;
    arm_release(pid, true);
    return ARM_ELSEWHERE;
}

void arm_release(uint32_t pid, bool is_suspended)
{
    const struct timespec moment = {.tv_nsec = MOMENT_NS};
    ptrace(PTRACE_DETACH, (pid_t)pid, NULL, NULL);
    for (int i = 0; is_suspended && i < MOMENTS && !arm_is_suspended(pid); i++)
        nanosleep(&moment, NULL);
}

/* Appends words until the end of the auxiliary vector. Returns false if there is none. */
static bool arm_read_words(struct arm_stack *stack, uint64_t address)
{
    size_t read = 0, at = 0, zeros = 0;
    stack->words = malloc(WORDS_MAX * sizeof *stack->words);
    if (!stack->words)
        return false;
    for (at = 1;; at++) {
        if (at >= read) {
            size_t room = WORDS_MAX - read < WORDS_AT_ONCE ? WORDS_MAX - read : WORDS_AT_ONCE;
            ssize_t size = pread(stack->memory, stack->words + read, room * sizeof *stack->words,
                                 (off_t)(address + read * sizeof *stack->words));
            if (size < (ssize_t)sizeof *stack->words)
                return false;
            read += (size_t)size / sizeof *stack->words;
        }
        if (zeros < 2 && stack->words[at] == 0) {
            zeros++;
            if (zeros == 1)
                stack->variables = at + 1;
            else
                stack->variables_end = at;
        } else if (zeros == 2) { /* pairs follow */
            bool is_end = (at - stack->variables_end) % 2 == 1 && stack->words[at] == AT_NULL;
            if (is_end)
                break;
        }
        if (at + 2 >= WORDS_MAX)
            return false;
    }
    stack->count = at + 2;
    return stack->words[0] == stack->variables - 2;
}

/* Reads a string as far as it fits. */
static bool arm_read_string(int memory, uint64_t address, char *text, size_t size)
{
    size_t read = 0;
    while (read < size) {
        size_t page = 4096 - (address + read) % 4096;
        size_t part = page < size - read ? page : size - read;
        if (!arm_read(memory, address + read, text + read, part))
            return false;
        if (memchr(text + read, '\0', part))
            return true;
        read += part;
    }
    return false;
}

/* Removes the variables that are to be replaced. Sets `preload` to the value of LD_PRELOAD, if it
 * has one. Returns NULL, or a reason. */
static const char *arm_take_variables(struct arm_stack *stack, char preload[PRELOAD_MAX])
{
    static const char long_one[] = "its LD_PRELOAD is too long";
    size_t kept = stack->variables;
    preload[0] = '\0';
    for (size_t i = stack->variables; i < stack->variables_end; i++) {
        char name[sizeof channel_name + 256] = "";
        size_t size = sizeof preload_name - 1;
        uint64_t address = stack->words[i];
        bool is_short = arm_read_string(stack->memory, address, name, sizeof name);
        if (strncmp(name, channel_name, sizeof channel_name - 1) == 0) {
            const char *channel = name + sizeof channel_name - 1;
            if (is_short && (strchr(channel, '=') || access(channel, F_OK) == 0))
                return "another recorder has started it, and records it already";
            continue;
        }
        if (strncmp(name, preload_name, size) == 0) {
            if (!arm_read_string(stack->memory, address + size, preload, PRELOAD_MAX))
                return long_one;
            continue;
        }
        stack->words[kept++] = address;
    }
    stack->variables_end = kept; /* the rest is moved when it is written */
    return NULL;
}

/* Writes new words and their strings below the stack pointer. Returns NULL, or a reason. */
static const char *arm_write_stack(uint32_t pid, const struct arm_stack *stack, size_t old_end,
                                   const char *preload, const char *channel)
{
    struct user_regs_struct registers;
    size_t sizes[] = {strlen(preload) + 1, strlen(channel) + 1};
    size_t auxiliary = stack->count - old_end - 1;
    size_t count = stack->variables_end + 3 + auxiliary;
    size_t text = (sizes[0] + sizes[1] + STACK_ALIGNMENT - 1) / STACK_ALIGNMENT * STACK_ALIGNMENT;
    uint64_t *words = malloc(count * sizeof *words + text);
    if (!words || !arm_registers(pid, &registers)) {
        free(words);
        return "memory ran out";
    }
    uint64_t begin = (registers.rsp - text - count * sizeof *words) & -(uint64_t)STACK_ALIGNMENT;
    uint64_t strings = begin + count * sizeof *words;
    memcpy(words, stack->words, stack->variables_end * sizeof *words);
    uint64_t *end = words + stack->variables_end;
    *end++ = strings;
    *end++ = strings + sizes[0];
    *end++ = 0;
    memcpy(end, stack->words + old_end + 1, auxiliary * sizeof *words);
    memset(words + count, 0, text);
    memcpy(words + count, preload, sizes[0]);
    memcpy((char *)(words + count) + sizes[0], channel, sizes[1]);
    size_t size = count * sizeof *words + text;
    bool is_written = pwrite(stack->memory, words, size, (off_t)begin) == (ssize_t)size;
    free(words);
    if (!is_written)
        return "its stack has no room: it has too many arguments";
    registers.rsp = begin;
    struct iovec buffer = {&registers, sizeof registers};
    if (ptrace(PTRACE_SETREGSET, (pid_t)pid, (void *)NT_PRSTATUS, &buffer) != 0)
        return "its registers cannot be set";
    return NULL;
}

static bool arm_is_secure(const struct arm_stack *stack)
{
    for (size_t i = stack->variables_end + 1; i + 1 < stack->count; i += 2)
        if (stack->words[i] == AT_SECURE)
            return stack->words[i + 1] != 0;
    return false;
}

/* Plans and writes, with the stack and the strings that the caller frees. */
static const char *arm_change_stack(uint32_t pid, struct arm_stack *stack, const char *preload,
                                    const char *channel, char *before)
{
    struct user_regs_struct registers;
    if (!arm_registers(pid, &registers) || !arm_read_words(stack, registers.rsp))
        return "its stack is not that of a program before its first instruction";
    if (arm_is_secure(stack))
        return "it gains privileges, and the loader of such a program ignores the recorder";
    size_t old_end = stack->variables_end;
    const char *reason = arm_take_variables(stack, before);
    char *joined = NULL, *named = NULL;
    if (!reason && (asprintf(&joined, "%s%s%s%s", preload_name, preload,
                             before[0] != '\0' ? ":" : "", before) < 0 ||
                    asprintf(&named, "%s%s", channel_name, channel) < 0))
        reason = "memory ran out";
    if (!reason)
        reason = arm_write_stack(pid, stack, old_end, joined, named);
    free(joined);
    free(named);
    return reason;
}

const char *arm_environment(uint32_t pid, const char *preload, const char *channel)
{
    struct arm_stack stack = {.memory = arm_open_memory(pid)};
    char *before = malloc(PRELOAD_MAX);
    const char *reason = "its memory cannot be opened";
    if (!before)
        reason = "memory ran out";
    else if (stack.memory >= 0)
        reason = arm_change_stack(pid, &stack, preload, channel, before);
    if (stack.memory >= 0)
        close(stack.memory);
    free(stack.words);
    free(before);
    return reason;
}
