/* SPDX-License-Identifier: MIT */
/**
 * Finds the words of a process's memory that are pointers to tables of virtual functions, and their
 * classes, as the Itanium C++ ABI lays them out; no symbols are needed.
 *
 *     object   vtable pointer ----> vtable  ...
 *                                     -16   offset of this part in the whole object, 0 or below
 *                                      -8   type_info ----> vtable of the type_info's own class
 *                                       0   functions       name ----> "6Server"
 *
 * A table with a type_info is certain: the type_info's own class must be one of the three
 * that the ABI has for classes. Without it (-fno-rtti) there is a zero, and the first function must
 * be code; tables of functions in C that follow two zeros look the same.
 *
 * The memory belongs to the recorded program and may hold anything. Each value is looked at once,
 * and their number is limited.
 */
#ifndef RECORDER_SNAPSHOT_SEARCH_CLASSES_H
#define RECORDER_SNAPSHOT_SEARCH_CLASSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CLASS_PAGE = 4096,
    CLASS_PAGES = 1024,         /* that are kept: 4 MB */
    CLASS_VALUES_MAX = 1 << 20, /* that are looked at */
    CLASS_NAME_MAX = 16 * 1024, /* bytes */
    CLASS_NAMES_MAX = 64 << 20, /* bytes of all names */
};

/** Returns the bytes of a page of the process: in `room`, or elsewhere until classes_free(). NULL
 * if it is not there. */
typedef const void *class_page_reader(void *context, uint64_t address, void *room);

/** Whether the process has a page of a module as it is in the module's file. */
typedef bool class_page_test(void *context, uint64_t address);

/** A part of a module in memory. */
struct class_range {
    uint64_t begin, end;
    bool is_code, is_writable;
    /** The module is not where its file says, so the loader has written to each page that has an
       address, as tables have. */
    bool is_relocated;
};

/** A class, by the address that its objects begin with. */
struct class_found {
    uint64_t address;
    const char *name; /* as in type_info; NULL if it has none. Valid until classes_free(). */
};

struct class_value;
struct class_cached_page;

struct classes {
    class_page_reader *reader;
    class_page_test *is_plain; /* NULL if nobody knows */
    void *context;
    const struct class_range *ranges;
    size_t range_count;
    uint64_t low, high; /* all ranges lie in [low, high) */
    struct class_value *values;
    size_t value_count, value_capacity;
    uint64_t key; /* random: the program chooses the values */
    char **names;
    size_t name_count, name_capacity, name_bytes;
    struct class_cached_page *pages;
    unsigned char *bytes; /* CLASS_PAGE of each of `pages` */
    bool is_incomplete;   /* a limit was reached: some classes were not found */
};

/** Prepares a search; `is_plain` may be set then. `ranges` are the ranges of all modules,
 * ascending; they are borrowed. Without memory it finds nothing, and is incomplete. */
void classes_init(struct classes *classes, class_page_reader *reader, void *context,
                  const struct class_range *ranges, size_t range_count);
void classes_free(struct classes *classes);

/** The slow path of classes_has(). */
bool classes_look(struct classes *classes, uint64_t value);

/** Whether a word is a pointer to a table of virtual functions. */
static inline bool classes_has(struct classes *classes, uint64_t value)
{
    return value - classes->low < classes->high - classes->low && value % sizeof value == 0 &&
           classes_look(classes, value);
}

/** Returns the tables found so far, by ascending address; to be freed. NULL if memory ran out. */
struct class_found *classes_list(const struct classes *classes, size_t *count);

#endif
