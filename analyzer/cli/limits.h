/* SPDX-License-Identifier: MIT */
/**
 * Limits of a command's memory and work. A trace of some kilobytes can be crafted to stand for
 * gigabytes: LZ4 alone compresses 255 to 1. Memory is limited by the system, so that whatever
 * allocates fails as it does without memory; steps through stacks are counted where stacks are
 * looked up.
 */
#ifndef ANALYZER_CLI_LIMITS_H
#define ANALYZER_CLI_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The default is so much for each byte of the traces, but at least the minimum, and at most three
 * quarters of the machine's memory. */
#define LIMITS_MEMORY_RATIO   512
#define LIMITS_MEMORY_MINIMUM (UINT64_C(448) << 20)

/** Memory that a step through a stack counts for. */
#define LIMITS_STEP_BYTES 16

/** Reads the argument of --max-memory: a size; false if it is none. */
bool limits_parse(const char *text, uint64_t *memory);

/**
 * Limits the memory of this process, from now on.
 *
 * @param memory  in bytes; 0 for the default
 * @param traces  the files to be read; NULL for none
 */
void limits_set(uint64_t memory, const char *const traces[2]);

/** Undoes limits_set(), in a child that runs another program. */
void limits_lift(void);

/** How many steps through stacks a command may take. */
uint64_t limits_steps(void);

/** How many bytes a report may have: half as many as there may be of memory. */
uint64_t limits_output(void);

/** Size of a text with its NUL. */
#define LIMITS_TEXT 32

/** The limit of memory for people, such as "448 MB". */
void limits_format(char text[LIMITS_TEXT]);

#endif
