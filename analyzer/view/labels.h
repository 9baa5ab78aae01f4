/* SPDX-License-Identifier: MIT */
/** Labels: the functions, files, modules, threads, heaps and classes that groups and nodes of trees
 * stand for, each with a small number. */
#ifndef ANALYZER_VIEW_LABELS_H
#define ANALYZER_VIEW_LABELS_H

#include "base/hash_map.h"
#include "symbols/frames.h"

enum label_kind {
    /** No stack was recorded. */
    LABEL_NONE,
    /** A name and a module. Without a name an offset in the module, or an address. */
    LABEL_FUNCTION,
    /** A name. Without one, all code of a module whose files are unknown. */
    LABEL_FILE,
    /** A path. Without one, all code in no module. */
    LABEL_MODULE,
    /** The identifier of a thread. */
    LABEL_THREAD,
    LABEL_HEAP,
    /** A name, or else in `number` the address of a table of virtual functions; neither if the
     * class is not known. */
    LABEL_CLASS
};

/** A label. Texts are untrusted, and belong to the definitions. */
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
    /** Hash table of indices in `labels`, or MAP_NONE. */
    uint32_t *slots;
    size_t slot_count;
    struct hash_key key;
};

void labels_init(struct label_table *table);
void labels_free(struct label_table *table);

/** Sets `index` to the number of a label; adds the label if it is new. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY. */
enum ttd_status labels_add(struct label_table *table, const struct view_label *label,
                           uint32_t *index);

/** Makes the label of a frame, by function, by file or by module. */
struct view_label label_of_frame(enum label_kind kind, const struct frame *frame);

/** Makes a label comparable across traces: modules by their base names, functions without the
 * suffix of a compiler's copy, and no address that is in no module. */
struct view_label label_across(struct view_label label);

#endif
