/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "case.h"

extern const struct reach_case __start_reach_cases[], __stop_reach_cases[];

void *volatile kept[16];

void *block(size_t size)
{
    void *memory = malloc(size);

    if (!memory)
        abort();
    memset(memory, 0, size);
    return memory;
}

void put(void *memory, size_t offset, const void *value)
{
    memcpy((char *)memory + offset, &value, sizeof value);
}

void *get(const void *memory, size_t offset)
{
    void *value;

    memcpy(&value, (const char *)memory + offset, sizeof value);
    return value;
}

void *map(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        abort();
    return memory;
}

uintptr_t hidden;

void NOINLINE hide_block(void)
{
    hidden = ~(uintptr_t)block(40);
}

void NOINLINE lose(const void *memory)
{
    __asm__ volatile("" : : "r"(memory) : "memory");
}

void NOINLINE clear_stack(void)
{
    char area[192 << 10];

    memset(area, 0, sizeof area);
    __asm__ volatile("" : : "r"(area) : "memory");
}

void NOINLINE call_deep(int depth, void (*function)(void *), void *argument)
{
    if (depth > 0)
        call_deep(depth - 1, function, argument);
    else
        function(argument);
    __asm__ volatile("" : : : "memory"); /* no tail call */
}

struct start {
    void (*function)(void *);
    void *argument;
    sem_t ready;
};

static void *wait_for_ever(void *context)
{
    struct start *start = context;

    start->function(start->argument);
    clear_stack();
    sem_post(&start->ready);
    for (;;)
        pause();
    return NULL;
}

void run_thread(void (*function)(void *), void *argument)
{
    struct start start = {function, argument, {{0}}};
    pthread_t thread;

    sem_init(&start.ready, 0, 0);
    if (pthread_create(&thread, NULL, wait_for_ever, &start) != 0)
        abort();
    sem_wait(&start.ready);
}

int main(int count, char **arguments)
{
    const struct reach_case *found = __start_reach_cases;

    while (count == 2 && found < __stop_reach_cases && strcmp(found->name, arguments[1]) != 0)
        found++;
    if (count != 2 || found == __stop_reach_cases) {
        for (found = __start_reach_cases; found < __stop_reach_cases; found++)
            printf("%s\n", found->name);
        return 2;
    }
    found->run();
    clear_stack();
    return 0;
}
