/* SPDX-License-Identifier: MIT */
/** Lines of a script for tracegen, and the trace that they are written to. */
#ifndef SUPPORT_TRACEGEN_H
#define SUPPORT_TRACEGEN_H

#include <ttdtrace/writer.h>

#define FIELDS_MAX 32

struct line {
    const char *word;
    const char *names[FIELDS_MAX];
    char *values[FIELDS_MAX];
    size_t count;
};

extern struct ttd_writer *writer;

/** End the program with a message. */
__attribute__((noreturn)) void fail(const char *what);
void check(enum ttd_status status);

/** The value of a field, or what it is without one. */
char *text_of(const struct line *from, const char *name);
uint64_t number_of(const struct line *from, const char *name, uint64_t otherwise);
ttd_id id_of(const struct line *from, const char *name, ttd_id otherwise);
struct ttd_position position_of(const struct line *from, const char *name);

/** The identifier of a text, defining it if it is new. Texts with NUL are always new. */
ttd_id string_id(const char *text);

/** Replaces %XX in place; returns the length. */
size_t decode(char *text);

/** A word that a line may begin with; the last one of each table has no name. */
struct word {
    const char *word;
    void (*write)(const struct line *from);
};

extern const struct word definition_words[];
extern const struct word event_words[];
extern const struct word state_words[];
extern const struct word snapshot_words[];

#endif
