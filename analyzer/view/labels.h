/* SPDX-License-Identifier: MIT */
/** What groups and nodes stand for, each with a small number. */
#ifndef ANALYZER_VIEW_LABELS_H
#define ANALYZER_VIEW_LABELS_H

#include "base/hash.h"
#include "symbols/frames.h"

typedef enum label_kind {
    /** No stack was recorded. */
    LABEL_NONE,
    /** A name and a module; without a name an offset in the module, or an address. */
    LABEL_FUNCTION,
    /** A name; without one all that is in a module. */
    LABEL_FILE,
    /** A path; without one what is in no module. */
    LABEL_MODULE,
    /** An identifier. */
    LABEL_THREAD,
    LABEL_HEAP
} label_kind;

/** Texts are untrusted, and belong to the definitions. */
typedef struct view_label {
    label_kind kind;
    ttd_string name;
    ttd_string module;
    uint64_t number;
} view_label;

typedef struct label_table {
    view_label *items;
    size_t count;
    size_t capacity;
    /** Indices in items, or MAP_NONE. */
    uint32_t *slots;
    size_t slot_count;
    hash_key key;
} label_table;

void labels_init(label_table *table);
void labels_free(label_table *table);

/** Sets `index` to the number of a label. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
ttd_status labels_add(label_table *table, const view_label *wanted, uint32_t *index);

/** What a frame is called by function, by file or by module. */
view_label label_of_frame(label_kind kind, const frame *item);

/** What a label is in another trace as well: modules by their base names, functions without the
 * suffix of a compiler's clone, and no address that is in no module. */
view_label label_across(view_label label);

#endif
