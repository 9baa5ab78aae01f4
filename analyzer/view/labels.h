/* SPDX-License-Identifier: MIT */
/** What groups and nodes stand for, each with a small number. */
#ifndef ANALYZER_VIEW_LABELS_H
#define ANALYZER_VIEW_LABELS_H

#include "base/hash.h"
#include "symbols/frames.h"

enum label_kind {
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
};

/** Texts are untrusted, and belong to the definitions. */
struct view_label {
    enum label_kind kind;
    struct ttd_string name;
    struct ttd_string module;
    uint64_t number;
};

struct label_table {
    struct view_label *labels;
    size_t count;
    size_t capacity;
    /** Indices in items, or MAP_NONE. */
    uint32_t *slots;
    size_t slot_count;
    struct hash_key key;
};

void labels_init(struct label_table *table);
void labels_free(struct label_table *table);

/** Sets `index` to the number of a label. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status labels_add(struct label_table *table, const struct view_label *label,
                           uint32_t *index);

/** What a frame is called by function, by file or by module. */
struct view_label label_of_frame(enum label_kind kind, const struct frame *frame);

/** What a label is in another trace as well: modules by their base names, functions without the
 * suffix of a compiler's clone, and no address that is in no module. */
struct view_label label_across(struct view_label label);

#endif
