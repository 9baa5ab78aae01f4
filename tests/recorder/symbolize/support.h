/* SPDX-License-Identifier: MIT */
/** Programs to name the addresses of, and what was answered. Failures fail the running test. */
#ifndef TESTS_SYMBOLIZE_SUPPORT_H
#define TESTS_SYMBOLIZE_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/symbolize.h"

/** Makes a new working directory, for copies of the fixtures and programs built of them. */
void enter_directory(void);
/** Removes it; called at the end. */
void leave_directory(void);

/** Whether a program can be run. */
bool has_tool(const char *name);
/** Runs a shell command, which must succeed. */
__attribute__((format(printf, 1, 2))) void run(const char *format, ...);

/** A program's id, and every address in its functions, as return addresses. */
struct program {
    char path[4096];
    uint8_t build_id[64];
    size_t build_id_size;
    uint64_t *offsets;
    size_t count;
};

/** Reads a file with .symtab in the working directory. */
void load_program(struct program *program, const char *name);
void free_program(struct program *program);
/** The module that the program is, borrowed. */
struct symbolize_module module_of(const struct program *program);

/** Unknown strings are "??". */
struct place {
    char *function;
    char *file;
    unsigned line;
};

enum { PLACES_MAX = 16 };

struct answer {
    uint64_t offset;
    size_t count;
    struct place places[PLACES_MAX];
};

struct answers {
    struct answer *items;
    size_t count;
    size_t capacity;
};

/** A symbolize_function; the context is a struct answers. Fails if the frames are malformed. Keeps
 * what has names. */
void keep_answer(void *context, size_t module, uint64_t offset,
                 const struct symbolize_frame *frames, size_t count);
void sort_answers(struct answers *answers);
void free_answers(struct answers *answers);
/** NULL if there is none. */
const struct answer *find_answer(const struct answers *answers, uint64_t offset);

/** Names the program as a module at its path: sorted answers. */
struct symbolize_summary name_program(const struct program *program, struct answers *answers);

/** Asks eu-addr2line about the same addresses, also those of which it knows nothing. */
void ask_referee(const struct program *program, struct answers *answers);

/** Fails unless both have the same answers. */
void expect_equal(const struct answers *actual, const struct answers *expected);

/** Address of a symbol, from .symtab of a program in the working directory. */
uint64_t address_of(const char *program, const char *symbol);

#endif
