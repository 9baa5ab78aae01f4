/* SPDX-License-Identifier: MIT */
/* Small programs with known answers: what of their blocks is lost, and what can be reached.

   Each source file is a program of cases, and `PROGRAM NAME` runs one of them. A case acquires
   blocks and leaves pointers to them in exactly the places that its name says. When it returns,
   main zeroes the stack that it used, so that no stale pointer is left anywhere else. table.py has
   the answers. */
#ifndef REACH_CASE_H
#define REACH_CASE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NOINLINE __attribute__((noinline))

struct reach_case {
    const char *name;
    void (*run)(void);
};

/* Defines a case, and enters it in the list that main looks it up in. */
#define CASE(name)                                                                                 \
    static void NOINLINE name(void);                                                               \
    static const struct reach_case case_##name                                                     \
        __attribute__((section("reach_cases"), used)) = {#name, name};                             \
    static void NOINLINE name(void)

/* Roots: zeroed memory in .bss, which only the running case uses. */
extern void *volatile kept[16];

/* A zeroed block of malloc's. */
void *block(size_t size);

/* Stores a value in the 8 bytes at an offset into memory, at any alignment, and reads one. */
void put(void *memory, size_t offset, const void *value);
void *get(const void *memory, size_t offset);

/* Zeroed memory that is mapped for the case. */
void *map(size_t size);

/* Acquires a block of 40 bytes, and leaves the complement of its address as the only trace. */
void hide_block(void);
extern uintptr_t hidden;

/* Does nothing with a pointer, of which the compiler does not know that. */
void lose(const void *memory);

/* Overwrites the stack below the caller with zeros, as deep as any case goes. */
void clear_stack(void);

/* Calls a function with the stack that `depth` calls further down have. */
void call_deep(int depth, void (*function)(void *), void *argument);

/* Starts a thread that calls the function and then waits for ever; returns once it waits. */
void run_thread(void (*function)(void *), void *argument);

#ifdef __cplusplus
}
#endif

#endif
