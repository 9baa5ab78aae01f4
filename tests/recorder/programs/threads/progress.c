/* SPDX-License-Identifier: MIT */
/*
 * Allocates and frees until it is killed. After each completed call its number is in the shared
 * file argv[1]; with argv[2] it stops by itself after that many.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    int file = count > 1 ? open(arguments[1], O_RDWR | O_CREAT, 0600) : -1;
    uint64_t limit = count > 2 ? strtoull(arguments[2], NULL, 10) : UINT64_MAX;
    if (file < 0 || ftruncate(file, 4096) != 0)
        return 2;
    volatile uint64_t *done = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (done == MAP_FAILED)
        return 2;
    while (*done < limit) {
        void *volatile block = malloc(*done % 1000 + 1);
        *done += 1;
        free(block);
        *done += 1;
    }
    return 0;
}
