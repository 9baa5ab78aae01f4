/* SPDX-License-Identifier: MIT */
/* filled MEGABYTES STATUS: fills as much memory with pointers to one block, of which the last word
 * alone points to another one, and ends with that status. */
#include <stdio.h>
#include <stdlib.h>

static void **volatile kept;

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    size_t count = ((size_t)atoi(argv[1]) << 20) / sizeof(void *);
    void *one = malloc(40), **words = malloc(count * sizeof *words);
    if (!words)
        return 1;
    for (size_t i = 0; i + 1 < count; i++)
        words[i] = one;
    words[count - 1] = malloc(48);
    kept = words;
    puts("filled");
    return atoi(argv[2]);
}
