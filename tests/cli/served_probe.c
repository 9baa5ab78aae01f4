/* SPDX-License-Identifier: MIT */
/* Prints how it was started, and ends as its first argument says: the program of the test `served`.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void probe_print_descriptors(void)
{
    for (int i = 0; i < 64; i++) {
        if (lseek(i, 0, SEEK_CUR) >= 0 || isatty(i) || dup2(i, i) == i)
            printf("descriptor %d\n", i);
    }
}

static int probe_end(const char *way)
{
    if (strcmp(way, "abort") == 0)
        abort();
    if (strcmp(way, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(way, "sleep") == 0)
        sleep(60);
    if (strcmp(way, "leak") == 0) {
        char *volatile block = malloc(77);
        block[0] = 'x';
        block = NULL;
    }
    return atoi(way);
}

int main(int count, char **arguments)
{
    char directory[4096];
    char line[256];
    for (int i = 0; i < count; i++)
        printf("argument '%s'\n", arguments[i]);
    if (getcwd(directory, sizeof directory))
        printf("directory %s\n", directory);
    const char *variable = getenv("PROBE");
    printf("PROBE %s, HOME %s, LD_PRELOAD %s\n", variable ? variable : "not set",
           getenv("HOME") ? "set" : "not set", getenv("LD_PRELOAD") ? "set" : "not set");
    while (fgets(line, sizeof line, stdin))
        printf("input %s", line);
    probe_print_descriptors();
    fflush(stdout);
    fprintf(stderr, "errors\n");
    return count > 1 ? probe_end(arguments[1]) : 0;
}
