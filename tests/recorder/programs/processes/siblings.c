/* SPDX-License-Identifier: MIT */
/* Forks a few children that allocate from the same many places, of which the parent knows none.
 * Each prints how many shared anonymous mappings it has before and after. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile kept;

#define PLACE(n)                                                                                   \
    __attribute__((noinline)) static void place_##n(void)                                          \
    {                                                                                              \
        kept = malloc(n);                                                                          \
        free(kept);                                                                                \
        __asm__ volatile("");                                                                      \
    }
#define TEN(call, n)                                                                               \
    call(1##n##0) call(1##n##1) call(1##n##2) call(1##n##3) call(1##n##4) call(1##n##5)            \
        call(1##n##6) call(1##n##7) call(1##n##8) call(1##n##9)
#define HUNDRED(call, n)                                                                           \
    TEN(call, n##0)                                                                                \
    TEN(call, n##1)                                                                                \
    TEN(call, n##2)                                                                                \
    TEN(call, n##3)                                                                                \
    TEN(call, n##4) TEN(call, n##5) TEN(call, n##6) TEN(call, n##7) TEN(call, n##8) TEN(call, n##9)
#define CALL(n) place_##n();

HUNDRED(PLACE, 1)
HUNDRED(PLACE, 2)

static int count_shared(void)
{
    char line[512];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        count += strstr(line, "/dev/zero (deleted)") != NULL;
    fclose(maps);
    return count;
}

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int i = 0; i < 5; i++) {
        if (fork() == 0) {
            int before = count_shared();
            HUNDRED(CALL, 1)
            HUNDRED(CALL, 2)
            printf("%d %d\n", before, count_shared());
            _exit(0);
        }
        wait(NULL);
    }
    return 0;
}
