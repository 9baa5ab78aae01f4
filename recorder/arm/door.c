/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arm/arm.h"

/* The ids by which a process opens files. */
struct door_user {
    uid_t user;
    gid_t group;
};

static bool find_user(uint32_t pid, struct door_user *user)
{
    char path[64], line[256];
    bool has_user = false, has_group = false;
    snprintf(path, sizeof path, "/proc/%u/status", pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        has_user = has_user || sscanf(line, "Uid: %*u %u", &user->user) == 1;
        has_group = has_group || sscanf(line, "Gid: %*u %u", &user->group) == 1;
    }
    if (file != NULL)
        fclose(file);
    return has_user && has_group;
}

/* Whether the process finds the same file at a path as this one: it may have another root. */
static bool sees_file(uint32_t pid, const char *path)
{
    char there[4096 + 64];
    struct stat own, other;
    snprintf(there, sizeof there, "/proc/%u/root%s", pid, path);
    return stat(path, &own) == 0 && stat(there, &other) == 0 && own.st_ino == other.st_ino &&
           own.st_dev == other.st_dev;
}

/* The door itself: has the channel open, as the user, until the recorder ends. */
static _Noreturn void keep_open(const struct door_user *user, const char *preload, int file,
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
    if (!find_user(pid, &user))
        return "its user is not known";
    if (!sees_file(pid, preload))
        return "it has another root directory, in which the recorder's library is not";
    if (!sees_file(pid, path))
        return "it is in another namespace, such as a container's; run ttdrecord there";
    if (user.user == geteuid())
        return NULL;
    if (fchown(file, user.user, user.group) != 0 || pipe2(report, O_CLOEXEC) != 0)
        return "the channel cannot be given to its user";
    pid_t recorder = getpid();
    door->pid = fork();
    if (door->pid == 0)
        keep_open(&user, preload, file, report[1], recorder);
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
