/* SPDX-License-Identifier: MIT */
/* Its child gives up privileges by prctl() and executes a program; it has been vforked. */
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile kept;

int main(void)
{
    int status = 0;
    kept = malloc(100);
    pid_t child = vfork();
    if (child == 0) {
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    waitpid(child, &status, 0);
    return status != 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0;
}
