/* SPDX-License-Identifier: MIT */
/* Confines itself to the system calls that it makes, loses three blocks of 50 bytes, keeps one of
 * 70, then forks; 0 if nobody was killed. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILL(number)                                                                               \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),                                             \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static int confine(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        KILL(SYS_openat),
        KILL(SYS_newfstatat),
        KILL(SYS_readlinkat),
        KILL(SYS_getcwd),
        KILL(SYS_membarrier),
        KILL(SYS_clock_gettime),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void *volatile kept;

static __attribute__((noinline)) void lose(void)
{
    for (int i = 0; i < 3; i++) {
        void *volatile lost = malloc(50);
        (void)lost;
    }
}

int main(void)
{
    int status;
    void *volatile before = malloc(100);
    if (!confine())
        return 77;
    lose();
    kept = malloc(70);
    pid_t pid = fork();
    for (int i = 0; i < 1000; i++)
        free(malloc(100 + (size_t)i));
    if (pid == 0)
        _exit(0);
    free(before);
    return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 1;
}
