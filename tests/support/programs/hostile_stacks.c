/* SPDX-License-Identifier: MIT */
/* Traces whose stacks, strings or names cost much. */
#include "support/programs/hostile.h"

#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES 65536
#define FRAMES_MAX     1024

/* A chain of stacks at an address into which as many functions are inlined as can be. */
static void inlined(uint64_t count)
{
    static struct ttd_symbol_frame frames[FRAMES_MAX];
    for (size_t i = 0; i < FRAMES_MAX; i++)
        frames[i] = (struct ttd_symbol_frame){.function = 1 + (ttd_id)(i & 1)};
    symbol(1, frames, FRAMES_MAX);
    ttd_id parent = 0;
    for (uint64_t i = 0; i < count; i++)
        allocate(parent = stack(parent, 1));
}

/* One chain, each of whose functions allocates. */
static void deep(uint64_t count)
{
    ttd_id parent = 0;
    for (uint64_t i = 0; i < count; i++)
        allocate(parent = stack(parent, i + 1));
}

/* The same, of one function. */
static void recursive(uint64_t count)
{
    ttd_id parent = 0;
    name(1, "again");
    for (uint64_t i = 0; i < count; i++)
        allocate(parent = stack(parent, 1));
}

/* Many stacks with a common, deep tail. */
static void tails(uint64_t count)
{
    ttd_id tail = 0;
    name(1, "tail");
    for (uint64_t i = 0; i < HOSTILE_TAIL_DEPTH; i++)
        tail = stack(tail, i + 1);
    for (uint64_t i = 0; i < count; i++)
        allocate(stack(tail, (uint64_t)1 << 32 | i));
}

/* Two tails of the same functions, under each of many. */
static void twins(uint64_t count)
{
    ttd_id tail[2] = {0, 0};
    name(1, "same");
    name(2, "same");
    for (uint64_t i = 0; i < HOSTILE_TAIL_DEPTH; i++)
        for (uint64_t k = 0; k < 2; k++)
            tail[k] = stack(tail[k], k + 1);
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t k = 0; k < 2; k++)
            allocate(stack(tail[k], 1000 + i));
}

static void stacks(uint64_t count)
{
    ttd_id id = 0;
    for (uint64_t i = 0; i < count; i++)
        id = stack(i % 2000 ? id : 0, 1);
    allocate(id);
}

static void strings(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        string("", 0);
    allocate(stack(0, 1));
}

/* Long names, in all frames. */
static void names(uint64_t count)
{
    static char long_name[NAME_MAX_BYTES];
    static struct ttd_symbol_frame frames[FRAMES_MAX];
    ttd_id ids[256];
    for (size_t i = 0; i < 256; i++) {
        memset(long_name, 'a', sizeof long_name);
        long_name[0] = (char)i;
        ids[i] = string(long_name, sizeof long_name);
    }
    for (size_t i = 0; i < FRAMES_MAX; i++)
        frames[i] = (struct ttd_symbol_frame){.function = ids[i & 255], .file = ids[i * 7 & 255]};
    for (uint64_t i = 0; i < count; i++) {
        symbol(i + 1, frames, FRAMES_MAX);
        allocate(stack(0, i + 1));
    }
}

static void symbols(uint64_t count)
{
    static struct ttd_symbol_frame frames[FRAMES_MAX];
    for (size_t i = 0; i < FRAMES_MAX; i++)
        frames[i] = (struct ttd_symbol_frame){.function = 1};
    for (uint64_t i = 0; i < count; i++)
        symbol(i + 1, frames, FRAMES_MAX);
    allocate(stack(0, 1));
}

static void mangled(uint64_t count)
{
    static char long_name[8000];
    size_t used = (size_t)snprintf(long_name, sizeof long_name, "_Z1fI");
    while (used + 40 < sizeof long_name - 8)
        used += (size_t)snprintf(long_name + used, sizeof long_name - used, "N1aI");
    for (uint64_t i = 0; i < count; i++) {
        char short_name[200];
        snprintf(short_name, sizeof short_name,
                 "_Z1f%06uI1aIS_S_EIS0_S0_EIS1_S1_EIS2_S2_EIS3_S3_EIS4_S4_EEvT_", (unsigned)i);
        struct ttd_symbol_frame frame = {
            .function = i % 2 ? text(short_name) : string(long_name, used - (size_t)i / 2 % 4000)};
        symbol(i + 1, &frame, 1);
        allocate(stack(0, i + 1));
    }
}

const struct hostile_shape hostile_stack_shapes[] = {
    {"inlined", inlined}, {"deep", deep},   {"recursive", recursive},
    {"tails", tails},     {"twins", twins}, {"stacks", stacks},
    {"strings", strings}, {"names", names}, {"symbols", symbols},
    {"mangled", mangled}, {NULL, NULL},
};
