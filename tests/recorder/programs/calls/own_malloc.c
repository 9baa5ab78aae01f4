/* SPDX-License-Identifier: MIT */
/* A program with a malloc of its own, as programs have it that an allocator is linked into. */
#include <stddef.h>
#include <string.h>

void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *block, size_t size);
void free(void *block);

static _Alignas(64) char memory[1 << 20];
static size_t used;

void *malloc(size_t size)
{
    size_t place = __atomic_fetch_add(&used, (size + 79) / 64 * 64, __ATOMIC_RELAXED);
    if (place + size > sizeof memory - 16)
        return NULL;
    memcpy(memory + place, &size, sizeof size);
    return memory + place + 16;
}

void *calloc(size_t count, size_t size)
{
    return malloc(count * size); /* memory is used once */
}

void *realloc(void *block, size_t size)
{
    void *moved = malloc(size);
    size_t old = 0;
    if (block)
        memcpy(&old, (char *)block - 16, sizeof old);
    if (moved && block)
        memcpy(moved, block, old < size ? old : size);
    return moved;
}

void free(void *block)
{
    (void)block;
}

int main(void)
{
    for (int i = 0; i < 1000; i++)
        free(malloc(100));
    return !malloc(5);
}
