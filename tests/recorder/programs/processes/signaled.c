/* SPDX-License-Identifier: MIT */
/*
 * Prints each signal that it gets, as "number value", the value -1 if it has none, until one comes
 * whose value is 99. With arguments, the signals of those numbers are left alone.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

static bool is_named(int number, int count, char **names)
{
    for (int i = 1; i < count; i++)
        if (atoi(names[i]) == number)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    sigset_t all;
    siginfo_t info;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigfillset(&all);
    for (int number = 1; number <= SIGRTMAX; number++)
        if (is_named(number, argc, argv))
            sigdelset(&all, number);
    sigprocmask(SIG_SETMASK, &all, NULL);
    /* The handler of a signal that is ignored by default keeps it from being dropped. */
    signal(SIGCHLD, SIG_DFL);
    free(malloc(100));
    puts("ready");
    fflush(stdout);
    for (;;) {
        if (sigwaitinfo(&all, &info) < 0)
            continue;
        int value = info.si_code == SI_QUEUE ? info.si_value.sival_int : -1;
        printf("%d %d\n", info.si_signo, value);
        fflush(stdout);
        if (value == 99)
            return 0;
    }
}
