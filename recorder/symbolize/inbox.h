/* SPDX-License-Identifier: MIT */
/** The parent's end of the pipe: believes nothing, passes well-formed answers on. */
#ifndef TTD_SYMBOLIZE_INBOX_H
#define TTD_SYMBOLIZE_INBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize.h"
#include "wire.h"

struct inbox {
    const struct symbolize_module *modules;
    size_t count;
    symbolize_function *function;
    void *context;
    /** Module that is under way, or that comes next. */
    size_t module;
    bool under_way;
    bool finished;
    /** Results of ended modules: how many of each; told by `reduced` where the table was enough. */
    size_t results[WIRE_RESULTS];
    size_t reduced_count;
    /** Whether `reduced_module` is read with its symbol table only. */
    bool reduced;
    size_t reduced_module;
    size_t named;
    /** For each offset of `module`: whether it has been answered. */
    uint8_t *answered;
    /** Bytes of a message that is not complete yet. */
    uint8_t *data;
    size_t size;
};

/** @return 0 or ENOMEM. The caller frees with inbox_free() in either case. */
int inbox_init(struct inbox *box, const struct symbolize_module *modules, size_t count,
               symbolize_function *function, void *context);
void inbox_free(struct inbox *box);

/** Another child begins with `module`: forgets the unfinished message, keeps what was answered. */
void inbox_restart(struct inbox *box);

/** Gives up on `module`: the next one is expected. */
void inbox_skip(struct inbox *box);

/** Where to read bytes to, and at most how many: never 0. */
uint8_t *inbox_room(struct inbox *box, size_t *size);

/** Takes `size` bytes read there. @return false if the child must be killed: it said nonsense. */
bool inbox_take(struct inbox *box, size_t size);

#endif
