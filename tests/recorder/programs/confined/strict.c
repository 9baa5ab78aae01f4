/* SPDX-License-Identifier: MIT */
/* strict prctl|syscall PAIRS: confines itself to read, write and exit, in one of two ways; then
 * makes more calls than the recorder has memory for, and exits with 7. */
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    void *volatile kept = malloc(10);
    int pairs = argc > 2 ? atoi(argv[2]) : 0;
    long result = strcmp(argv[1], "prctl") == 0
                      ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)
                      : syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    if (result != 0)
        return 77;
    for (int i = 0; i < pairs; i++) {
        void *volatile block = malloc(100);
        free(block);
    }
    free(kept);
    /* The C library would end all threads, which is another system call. */
    syscall(SYS_exit, 7);
    return 1;
}
