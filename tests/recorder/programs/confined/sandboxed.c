/* SPDX-License-Identifier: MIT */
/* sandboxed THREADS: starts so many threads; then allows itself only what it needs from there on,
 * which is no memory from the system and no question about itself. Each thread then makes its first
 * calls, from deep down; a child makes some, too. 0 if nobody was killed. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ALLOW(number)                                                                              \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

enum { DEPTH = 300, PAIRS = 500 };

static pthread_barrier_t all;

static int confine(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_read),
        ALLOW(SYS_write),
        ALLOW(SYS_futex),
        ALLOW(SYS_brk),
        ALLOW(SYS_clone),
        ALLOW(SYS_wait4),
        ALLOW(SYS_set_robust_list),
        ALLOW(SYS_rseq),
        ALLOW(SYS_rt_sigprocmask),
        ALLOW(SYS_madvise),
        ALLOW(SYS_munmap),
        ALLOW(SYS_exit),
        ALLOW(SYS_exit_group),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

static void churn(void)
{
    for (int i = 0; i < PAIRS; i++) {
        void *volatile block = malloc(100);
        free(block);
    }
}

__attribute__((noinline)) static void descend(int levels)
{
    if (levels > 0)
        descend(levels - 1);
    else
        churn();
    __asm__ volatile("" ::: "memory");
}

static void *work(void *unused)
{
    pthread_barrier_wait(&all);
    descend(DEPTH);
    return unused;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 0, status = 1;
    pthread_t threads[64];
    if (count > 64)
        return 1;
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    pthread_barrier_init(&all, NULL, (unsigned)count + 1);
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, work, NULL) != 0)
            return 1;
    if (!confine())
        return 77;
    pthread_barrier_wait(&all);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    pid_t child = fork();
    if (child == 0) {
        churn();
        _exit(0);
    }
    return wait4(child, &status, 0, NULL) == child && status == 0 ? 0 : 1;
}
