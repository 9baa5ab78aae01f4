/* SPDX-License-Identifier: MIT */
#include "view/view.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash_map.h"
#include "symbols/canonical.h"
#include "view/function_names.h"

void labels_init(struct label_table *table)
{
    /* Names come from the trace, and might be made to collide: so the hash has a random key. */
    *table = (struct label_table){.key = hash_key_new()};
}

void labels_free(struct label_table *table)
{
    free(table->labels);
    free(table->slots);
    *table = (struct label_table){0};
}

static uint64_t labels_hash_text(struct hash_key key, uint64_t hash, struct ttd_string text)
{
    /* The size, too: the last part is filled up with zeros; a text may end with zeros too. */
    hash = hash_value(key, hash ^ text.size);
    for (size_t i = 0; i < text.size; i += sizeof(uint64_t)) {
        uint64_t part = 0;
        size_t remaining = text.size - i;
        memcpy(&part, text.data + i, remaining < sizeof part ? remaining : sizeof part);
        hash = hash_value(key, hash ^ part);
    }
    return hash;
}

static bool label_same_text(struct ttd_string a, struct ttd_string b)
{
    return a.size == b.size && (!a.size || memcmp(a.data, b.data, a.size) == 0);
}

static bool label_same(const struct view_label *a, const struct view_label *b)
{
    return a->kind == b->kind && a->number == b->number && label_same_text(a->name, b->name) &&
           label_same_text(a->module, b->module);
}

/* Finds the slot of a label, or the empty slot where it belongs. */
static uint32_t *label_slot(const struct label_table *table, const struct view_label *label)
{
    uint64_t hash = hash_value(table->key, label->number ^ (uint64_t)label->kind << 60);
    hash = labels_hash_text(table->key, hash, label->name);
    hash = labels_hash_text(table->key, hash, label->module);
    size_t i = (size_t)hash & (table->slot_count - 1);
    while (table->slots[i] != MAP_NONE && !label_same(&table->labels[table->slots[i]], label))
        i = (i + 1) & (table->slot_count - 1);
    return &table->slots[i];
}

static enum ttd_status label_table_rebuild(struct label_table *table)
{
    struct label_table grown = *table;
    grown.slot_count = table->slot_count ? table->slot_count * 2 : 64;
    if (grown.slot_count > SIZE_MAX / sizeof *grown.slots)
        return TTD_ERROR_NO_MEMORY;
    grown.slots = malloc(grown.slot_count * sizeof *grown.slots);
    if (!grown.slots)
        return TTD_ERROR_NO_MEMORY;
    memset(grown.slots, 0xFF, grown.slot_count * sizeof *grown.slots);
    for (size_t i = 0; i < grown.count; i++)
        *label_slot(&grown, &grown.labels[i]) = (uint32_t)i;
    free(table->slots);
    *table = grown;
    return TTD_OK;
}

enum ttd_status labels_add(struct label_table *table, const struct view_label *label,
                           uint32_t *index)
{
    enum ttd_status status = TTD_OK;
    if (table->count >= table->slot_count / 2)
        status = label_table_rebuild(table);
    if (status != TTD_OK)
        return status;
    uint32_t *slot = label_slot(table, label);
    if (*slot == MAP_NONE) {
        status = grow_array((void **)&table->labels, &table->capacity, table->count + 1,
                            sizeof *table->labels);
        if (status != TTD_OK)
            return status;
        *slot = (uint32_t)table->count;
        table->labels[table->count++] = *label;
    }
    *index = *slot;
    return TTD_OK;
}

struct view_label label_of_frame(enum label_kind kind, const struct frame *frame)
{
    struct view_label label = {.kind = kind, .name = frame->function, .module = frame->module};
    if (kind == LABEL_MODULE) {
        label.name = frame->module;
        label.module = (struct ttd_string){"", 0};
    } else if (kind == LABEL_FILE) {
        label.name = frame->file;
        /* All unknown files of a module are one label. */
        if (frame->file.size)
            label.module = (struct ttd_string){"", 0};
    } else if (!frame->function.size) {
        label.number = frame->offset;
    }
    return label;
}

struct view_label label_across(struct view_label label)
{
    label.module = glob_base_name(label.module);
    if (label.kind == LABEL_MODULE)
        label.name = glob_base_name(label.name);
    if (label.kind != LABEL_FUNCTION)
        return label;
    /* Clones of a function, such as .constprop.0, come and go from build to build. */
    label.name = canonical_without_clone(label.name);
    /* An address in no module means something in one run only. */
    if (!label.module.size)
        label.number = 0;
    return label;
}
