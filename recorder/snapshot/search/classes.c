/* SPDX-License-Identifier: MIT */
#include "snapshot/search/classes.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "arrays.h"

enum { WORD = sizeof(uint64_t), FIRST_VALUES = 1024 };

/* How far a part can be from the begin of its object. */
#define OBJECT_MAX (UINT64_C(1) << 32)

enum verdict { UNSEEN, NO_CLASS, CLASS_WITHOUT_NAME, CLASS_WITH_NAME };

struct class_value {
    uint64_t value;
    uint32_t name; /* index in names */
    uint32_t verdict;
};

struct class_cached_page {
    uint64_t address;           /* 0: nothing is cached */
    const unsigned char *bytes; /* NULL if it is not there */
};

void classes_init(struct classes *classes, class_page_reader *reader, void *context,
                  const struct class_range *ranges, size_t range_count)
{
    *classes = (struct classes){
        .reader = reader, .context = context, .ranges = ranges, .range_count = range_count};
    if (getrandom(&classes->key, sizeof classes->key, 0) != sizeof classes->key)
        classes->key = (uintptr_t)classes;
    classes->pages = calloc(CLASS_PAGES, sizeof *classes->pages);
    /* Most snapshots need few pages: clearing all of them would be most of the work. */
    classes->bytes = malloc((size_t)CLASS_PAGES * CLASS_PAGE);
    classes->values = calloc(FIRST_VALUES, sizeof *classes->values);
    classes->is_incomplete = !classes->pages || !classes->bytes || !classes->values;
    if (classes->is_incomplete || range_count == 0)
        return;
    classes->value_capacity = FIRST_VALUES;
    classes->low = ranges[0].begin;
    classes->high = ranges[range_count - 1].end;
}

void classes_free(struct classes *classes)
{
    for (size_t i = 0; i < classes->name_count; i++)
        free(classes->names[i]);
    free(classes->names);
    free(classes->values);
    free(classes->pages);
    free(classes->bytes);
    *classes = (struct classes){0};
}

/* ---- Memory ---- */

/* Returns the rest of the page from an address on, and its size; NULL if it is not there. */
static const unsigned char *classes_look_at(struct classes *classes, uint64_t address, size_t *size)
{
    uint64_t page = address - address % CLASS_PAGE;
    size_t slot = page / CLASS_PAGE % CLASS_PAGES;
    struct class_cached_page *cached = &classes->pages[slot];
    if (cached->address != page) {
        cached->address = page;
        cached->bytes = classes->reader(classes->context, page, classes->bytes + slot * CLASS_PAGE);
    }
    *size = CLASS_PAGE - address % CLASS_PAGE;
    return cached->bytes ? cached->bytes + address % CLASS_PAGE : NULL;
}

/* Returns the range that holds an address, or NULL. */
static const struct class_range *classes_range_of(const struct classes *classes, uint64_t address)
{
    size_t begun_count =
        array_count_up_to(classes->ranges, classes->range_count, sizeof *classes->ranges,
                          offsetof(struct class_range, begin), address);
    const struct class_range *last = begun_count != 0 ? &classes->ranges[begun_count - 1] : NULL;
    return last && address < last->end ? last : NULL;
}

/* Reads an aligned word of a module. */
static bool classes_read_word(struct classes *classes, uint64_t address, uint64_t *word)
{
    size_t size;
    const unsigned char *bytes = address % WORD == 0 && classes_range_of(classes, address)
                                     ? classes_look_at(classes, address, &size)
                                     : NULL;
    if (bytes)
        memcpy(word, bytes, WORD);
    return bytes != NULL;
}

/* Whether an aligned word of a module may be an address: the loader would have written it. */
static bool classes_may_be_address(const struct classes *classes, uint64_t address)
{
    const struct class_range *range = classes_range_of(classes, address);
    return range && (!range->is_relocated || !classes->is_plain ||
                     !classes->is_plain(classes->context, address));
}

/* Reads an aligned word of a module that is an address. */
static bool classes_read_address(struct classes *classes, uint64_t address, uint64_t *word)
{
    return classes_may_be_address(classes, address) && classes_read_word(classes, address, word);
}

/* Reads a string of at most CLASS_NAME_MAX bytes, NUL included, into `name`. */
static bool classes_read_name(struct classes *classes, uint64_t address, char *name)
{
    for (size_t size_read = 0; size_read < CLASS_NAME_MAX;) {
        size_t size;
        const unsigned char *bytes = classes_range_of(classes, address + size_read)
                                         ? classes_look_at(classes, address + size_read, &size)
                                         : NULL;
        if (!bytes)
            return false;
        size = size < CLASS_NAME_MAX - size_read ? size : CLASS_NAME_MAX - size_read;
        const unsigned char *end = memchr(bytes, 0, size);
        memcpy(name + size_read, bytes, end ? (size_t)(end - bytes) + 1 : size);
        if (end)
            return true;
        size_read += size;
    }
    return false;
}

/* ---- Names ---- */

static bool classes_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool classes_is_name_byte(char c)
{
    return classes_is_digit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           c == '$' || c == '.' || (unsigned char)c >= 0x80;
}

/* Whether a string can be the mangled name of a class: a name with its length before it, of a
 * namespace (N, St), or local to a function (Z). */
static bool classes_is_class_name(const char *name)
{
    size_t size = strlen(name), length = 0, digits = 0;
    while (classes_is_digit(name[digits]) && length <= size)
        length = length * 10 + (size_t)(name[digits++] - '0');
    if (digits > 0 ? length == 0 || length > size - digits : !strchr("NSZ", *name))
        return false;
    for (size_t i = 0; i < size; i++)
        if (!classes_is_name_byte(name[i]))
            return false;
    return size > 1;
}

/* Finds out the name in a type_info. Gcc marks names that are no global symbols with a star. */
static bool classes_read_type_name(struct classes *classes, uint64_t type, char *name)
{
    uint64_t address;
    if (!classes_read_address(classes, type + WORD, &address) ||
        !classes_read_name(classes, address, name))
        return false;
    if (*name == '*')
        memmove(name, name + 1, strlen(name));
    return classes_is_class_name(name);
}

/* Whether a type_info is one of a class, by its own class. */
static bool classes_is_type_of_class(struct classes *classes, uint64_t type, char *name)
{
    static const char *const names[] = {"N10__cxxabiv117__class_type_infoE",
                                        "N10__cxxabiv120__si_class_type_infoE",
                                        "N10__cxxabiv121__vmi_class_type_infoE"};
    uint64_t table, own_type;
    if (!classes_read_address(classes, type, &table) ||
        !classes_read_address(classes, table - WORD, &own_type) ||
        !classes_read_type_name(classes, own_type, name))
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Keeps a copy of a name. Returns false if a limit is reached. */
static bool classes_keep_name(struct classes *classes, const char *name, uint32_t *index)
{
    size_t size = strlen(name) + 1;
    void *grown = array_grow(classes->names, classes->name_count, &classes->name_capacity,
                             sizeof *classes->names);
    if (!grown)
        return false;
    classes->names = grown;
    char *copy = size <= CLASS_NAMES_MAX - classes->name_bytes ? malloc(size) : NULL;
    if (!copy)
        return false;
    memcpy(copy, name, size);
    classes->name_bytes += size;
    *index = (uint32_t)classes->name_count;
    classes->names[classes->name_count++] = copy;
    return true;
}

/* ---- Verdicts ---- */

static bool classes_is_code(const struct classes *classes, uint64_t address)
{
    const struct class_range *range = classes_range_of(classes, address);
    return range && range->is_code;
}

/* Reads the words before a table: the address of a type_info, or zeros, in the same part of the
 * module. */
static bool classes_read_head(struct classes *classes, const struct class_range *range,
                              uint64_t value, uint64_t *offset, uint64_t *type)
{
    bool may_be_table = classes_may_be_address(classes, value - WORD) ||
                        (classes_may_be_address(classes, value) &&
                         classes_range_of(classes, value - WORD) == range);
    return may_be_table && classes_read_word(classes, value - WORD, type) &&
           classes_read_word(classes, value - 2 * WORD, offset);
}

/* Judges a value that lies in a module. */
static enum verdict classes_judge(struct classes *classes, uint64_t value, uint32_t *index)
{
    char name[CLASS_NAME_MAX];
    uint64_t offset, type, function;
    const struct class_range *range = classes_range_of(classes, value);
    if (!range || !classes_read_head(classes, range, value, &offset, &type) ||
        -offset >= OBJECT_MAX)
        return NO_CLASS;
    if (type == 0) {
        bool is_table = !range->is_writable && !range->is_code &&
                        classes_read_address(classes, value, &function) &&
                        classes_is_code(classes, function);
        return is_table ? CLASS_WITHOUT_NAME : NO_CLASS;
    }
    if (!classes_is_type_of_class(classes, type, name) ||
        !classes_read_type_name(classes, type, name))
        return NO_CLASS;
    if (classes_keep_name(classes, name, index))
        return CLASS_WITH_NAME;
    classes->is_incomplete = true;
    return CLASS_WITHOUT_NAME;
}

/* Returns the entry of a value, or the free one where it belongs. */
static struct class_value *classes_probe(const struct classes *classes, uint64_t value)
{
    size_t mask = classes->value_capacity - 1;
    size_t slot = array_hash(value ^ classes->key, UINT64_C(0x9e3779b97f4a7c15)) & mask;
    while (classes->values[slot].verdict != UNSEEN && classes->values[slot].value != value)
        slot = (slot + 1) & mask;
    return &classes->values[slot];
}

static bool classes_make_room(struct classes *classes)
{
    if (classes->value_count * 2 < classes->value_capacity)
        return true;
    struct classes old = *classes;
    struct class_value *values = classes->value_count < CLASS_VALUES_MAX
                                     ? calloc(old.value_capacity * 2, sizeof *values)
                                     : NULL;
    if (!values)
        return false;
    classes->values = values;
    classes->value_capacity *= 2;
    for (size_t i = 0; i < old.value_capacity; i++)
        if (old.values[i].verdict != UNSEEN)
            *classes_probe(classes, old.values[i].value) = old.values[i];
    free(old.values);
    return true;
}

bool classes_look(struct classes *classes, uint64_t value)
{
    if (!classes_range_of(classes, value))
        return false;
    struct class_value *entry = classes_probe(classes, value);
    if (entry->verdict == UNSEEN) {
        if (!classes_make_room(classes)) {
            classes->is_incomplete = true;
            return false;
        }
        uint32_t name = 0;
        enum verdict verdict = classes_judge(classes, value, &name);
        entry = classes_probe(classes, value);
        *entry = (struct class_value){value, name, verdict};
        classes->value_count++;
    }
    return entry->verdict != NO_CLASS;
}

static int classes_compare_addresses(const void *left, const void *right)
{
    const struct class_found *a = left, *b = right;
    return a->address < b->address ? -1 : a->address > b->address;
}

struct class_found *classes_list(const struct classes *classes, size_t *count)
{
    struct class_found *list = calloc(classes->value_count + 1, sizeof *list);
    *count = 0;
    for (size_t i = 0; list && i < classes->value_capacity; i++) {
        const struct class_value *value = &classes->values[i];
        if (value->verdict >= CLASS_WITHOUT_NAME)
            list[(*count)++] = (struct class_found){value->value, value->verdict == CLASS_WITH_NAME
                                                                      ? classes->names[value->name]
                                                                      : NULL};
    }
    if (*count > 0)
        qsort(list, *count, sizeof *list, classes_compare_addresses);
    return list;
}
