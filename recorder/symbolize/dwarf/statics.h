/* SPDX-License-Identifier: MIT */
/** Variables of functions, which symbol tables name without their function: from debug
 * information. */
#ifndef RECORDER_SYMBOLIZE_DWARF_STATICS_H
#define RECORDER_SYMBOLIZE_DWARF_STATICS_H

#include "symbolize/image/elf_symbols.h"
#include "symbolize/dwarf/units.h"

/** A variable of a function, with a name such as "run()::kept". */
struct static_variable {
    uint64_t address;
    char *name;
};

/** The variables of the units that were read, by address. All zero when empty. */
struct statics {
    struct static_variable *variables;
    size_t count;
    size_t capacity;
    /** By unit; NULL before the first one is read. */
    bool *is_read;
};

/**
 * Returns the name of a variable of a function, valid until statics_free() or the next call; NULL
 * if debug information has none. Reads the units with the symbol's source file, each once.
 */
const char *statics_name(struct statics *statics, const struct units *units,
                         const struct symbol *symbol);
void statics_free(struct statics *statics);

#endif
