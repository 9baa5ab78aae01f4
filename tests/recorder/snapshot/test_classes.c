/* SPDX-License-Identifier: MIT */
/* Classes of objects in this process, and in memory that was made up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "snapshot/search/classes.h"
#include "shapes.h"

enum { RANGES_MAX = 1024 };

static struct class_range ranges[RANGES_MAX];
static size_t range_count, reads;
static struct classes classes;

static const void *read_own(void *context, uint64_t address, void *room)
{
    struct iovec here = {room, CLASS_PAGE}, there = {(void *)(uintptr_t)address, CLASS_PAGE};
    (void)context;
    reads++;
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == CLASS_PAGE ? room : NULL;
}

static void begin(void)
{
    char line[512], flags[8], path[256];
    FILE *maps = fopen("/proc/self/maps", "r");
    cr_assert(maps != NULL);
    while (fgets(line, sizeof line, maps) && range_count < RANGES_MAX) {
        unsigned long low, high;
        *path = '\0';
        if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %255s", &low, &high, flags, path) >= 3 &&
            *path == '/')
            ranges[range_count++] =
                (struct class_range){low, high, flags[2] == 'x', flags[1] == 'w', true};
    }
    fclose(maps);
    classes_init(&classes, read_own, NULL, ranges, range_count);
}

static void end(void)
{
    cr_expect_not(classes.is_incomplete);
    classes_free(&classes);
}

TestSuite(classes, .init = begin, .fini = end, .timeout = 60);

static uint64_t word_of(const void *object)
{
    uint64_t word;
    memcpy(&word, object, sizeof word);
    return word;
}

/* The name of the class that begins with this address, or "" without one; NULL if it is none. */
static const char *class_of(uint64_t value)
{
    if (!classes_has(&classes, value))
        return NULL;
    size_t count;
    struct class_found *list = classes_list(&classes, &count);
    const char *name = NULL;
    for (size_t i = 0; i < count; i++) {
        cr_expect(i == 0 || list[i - 1].address < list[i].address);
        if (list[i].address == value)
            name = list[i].name ? list[i].name : "";
    }
    free(list);
    cr_assert(name != NULL, "it is listed");
    return name;
}

Test(classes, of_objects)
{
    for (unsigned i = 0; i < SHAPES; i++) {
        struct shape one = shape(i);
        const char *name = class_of(word_of(one.object));
        cr_assert(name != NULL, "%s", one.name);
        cr_expect_str_eq(name, one.name);
    }
}

Test(classes, of_parts_of_objects)
{
    const char *name = class_of(word_of(second_part()));
    cr_assert(name != NULL);
    cr_expect_str_eq(name, "4Both");
}

Test(classes, without_type_info)
{
    const char *name = class_of(word_of(plain_shape()));
    cr_assert(name != NULL);
    cr_expect_str_eq(name, "");
}

static const struct {
    uint64_t zeros[2];
    void *words[4];
} data = {{0, 0}, {(void *)(uintptr_t)&ranges, NULL, NULL, NULL}};

/* Each word of this program's own modules but those that objects may begin with. */
Test(classes, not_of_other_words)
{
    char *heap = malloc(64);
    cr_expect(!class_of((uintptr_t)heap));
    cr_expect(!class_of((uintptr_t)&data.words));
    cr_expect(!class_of((uintptr_t)&range_count & ~UINT64_C(7)));
    cr_expect(!class_of(((uintptr_t)&malloc & ~UINT64_C(7)) + 8));
    cr_expect(!class_of(word_of(shape(0).object) + 8));
    cr_expect(!class_of(word_of(shape(0).object) + 1));
    free(heap);
}

/* However many words have the same value, memory is read for the first. */
Test(classes, are_judged_once)
{
    uint64_t value = word_of(shape(1).object);
    cr_assert(classes_has(&classes, value));
    size_t before = reads, values = classes.value_count;
    for (int i = 0; i < 1000; i++)
        cr_assert(classes_has(&classes, value));
    cr_expect_eq(reads, before);
    cr_expect_eq(classes.value_count, values);
}

/* ---- Made up memory: two ranges of data and one of code ---- */

enum { DATA = 1 << 20, CODE = 1 << 28, SIZE = 64 * CLASS_PAGE };

static uint64_t memory[SIZE / sizeof(uint64_t)];
static uint64_t state = 1;
static bool has_holes;

static uint64_t random_number(uint64_t limit)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (state >> 33) % limit;
}

/* Borrows every other page. */
static const void *read_made_up(void *context, uint64_t address, void *room)
{
    (void)context;
    reads++;
    if (address < DATA || address - DATA >= SIZE || (has_holes && address / CLASS_PAGE % 7 == 6))
        return NULL;
    const char *bytes = (const char *)memory + (address - DATA);
    return address / CLASS_PAGE % 2 == 0 ? bytes : memcpy(room, bytes, CLASS_PAGE);
}

static const struct class_range made_up[] = {
    {DATA, DATA + SIZE / 2, false, false, true},
    {DATA + SIZE / 2, DATA + SIZE, false, true, true},
    {CODE, CODE + SIZE, true, false, true},
};

/* Mostly pointers into the same memory, and small numbers. */
static void make_up(void)
{
    for (size_t i = 0; i < SIZE / sizeof *memory; i++) {
        uint64_t kind = random_number(8);
        memory[i] = kind < 5    ? DATA + random_number(SIZE / 8) * 8
                    : kind == 5 ? CODE + random_number(SIZE)
                    : kind == 6 ? -random_number(100)
                                : UINT64_C(0x4141414141414141);
    }
}

Test(classes, of_hostile_memory)
{
    struct classes hostile;
    has_holes = true;
    for (int round = 0; round < 20; round++) {
        make_up();
        classes_init(&hostile, read_made_up, NULL, made_up, 3);
        reads = 0;
        for (uint64_t value = 0; value < SIZE; value += 8)
            (void)classes_has(&hostile, DATA + value);
        cr_expect_lt(reads, SIZE / 8 * 12);
        cr_expect_not(classes_has(&hostile, DATA - 8));
        cr_expect_not(classes_has(&hostile, UINT64_MAX - 7));
        classes_free(&hostile);
    }
}

/* Puts a class at the begin of the made up memory: a table at word 2, with the type at word 10,
 * whose own class is at word 20. The name is at byte 1024 on. */
static void make_class(const char *name)
{
    memset(memory, 0, sizeof memory);
    memory[1] = DATA + 80;
    memory[2] = CODE;
    memory[10] = DATA + 8 * 22;
    memory[11] = DATA + 1024;
    memory[21] = DATA + 8 * 30;
    memory[31] = DATA + 512;
    strcpy((char *)memory + 512, "*N10__cxxabiv117__class_type_infoE");
    strcpy((char *)memory + 1024, name);
}

static const char *made_up_class(void)
{
    static char name[CLASS_NAME_MAX];
    struct classes made;
    size_t count = 0;
    classes_init(&made, read_made_up, NULL, made_up, 3);
    bool has = classes_has(&made, DATA + 16);
    struct class_found *list = classes_list(&made, &count);
    cr_expect_eq(count, has);
    snprintf(name, sizeof name, "%s", !has ? "none" : list->name ? list->name : "");
    free(list);
    classes_free(&made);
    return name;
}

Test(classes, of_made_up_tables)
{
    make_class("6Server");
    cr_expect_str_eq(made_up_class(), "6Server");
    memory[0] = -UINT64_C(16);
    cr_expect_str_eq(made_up_class(), "6Server");
    memory[0] = 16;
    cr_expect_str_eq(made_up_class(), "none");
    make_class("6Server");
    memory[31] = DATA + 1024; /* its own class is no type_info */
    cr_expect_str_eq(made_up_class(), "none");
    make_class("6Server");
    memory[1] = 0;
    cr_expect_str_eq(made_up_class(), "");
    memory[2] = DATA;
    cr_expect_str_eq(made_up_class(), "none");
}

/* The page that the loader has written to. */
static uint64_t written_page;

static bool is_not_written(void *context, uint64_t address)
{
    (void)context;
    return address / CLASS_PAGE != written_page / CLASS_PAGE;
}

/* Whether a class is found in the made up memory, and how often that is read. */
static bool is_found(uint64_t value, uint64_t written, const struct class_range *parts,
                     size_t count)
{
    struct classes made;
    written_page = written;
    classes_init(&made, read_made_up, NULL, parts, count);
    made.is_plain = is_not_written;
    reads = 0;
    bool has = classes_has(&made, value);
    classes_free(&made);
    return has;
}

Test(classes, of_memory_that_the_loader_has_left_alone)
{
    const struct class_range in_place[] = {{DATA, DATA + SIZE, false, false, false}};
    has_holes = false;
    make_class("6Server");
    cr_expect(is_found(DATA + 16, DATA, made_up, 3));
    cr_expect_not(is_found(DATA + 16, CODE, made_up, 3));
    cr_expect_eq(reads, 0);
    cr_expect(is_found(DATA + 16, CODE, in_place, 1)); /* addresses are in the file */
}

/* A type_info is addresses as well. What is before a part that the loader has written to is no head
 * of a table in it. */
Test(classes, of_types_that_the_loader_has_left_alone)
{
    const struct class_range parts[] = {{DATA, DATA + CLASS_PAGE, false, false, true},
                                        {DATA + CLASS_PAGE, DATA + SIZE, false, false, true},
                                        {CODE, CODE + SIZE, true, false, true}};
    has_holes = false;
    make_class("6Server");
    memory[1] = DATA + CLASS_PAGE;
    cr_expect_not(is_found(DATA + 16, DATA, parts, 3));
    cr_expect_eq(reads, 1);
    memory[1] = 0;
    cr_expect(is_found(DATA + 16, DATA, parts, 3));
    cr_expect_eq(reads, 1);
    memset(memory, 0, sizeof memory);
    memory[CLASS_PAGE / 8] = CODE;
    cr_expect_not(is_found(DATA + CLASS_PAGE, DATA + CLASS_PAGE, parts, 3));
    cr_expect_eq(reads, 0);
}

Test(classes, of_made_up_names)
{
    static const char *const good[] = {"*6Server", "N1a1bE", "St9exception", "1\xc3", "Z4mainE1A"};
    static const char *const bad[] = {
        "", "7Server", "0", "6Serv er", "i", "Pv", "6Serve\n", "N", "99999999999999999999999a"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        make_class(good[i]);
        cr_expect_str_eq(made_up_class(), good[i] + (*good[i] == '*'));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        make_class(bad[i]);
        cr_expect_str_eq(made_up_class(), "none", "%s", bad[i]);
    }
    make_class("N");
    memset((char *)memory + 1025, 'x', CLASS_NAME_MAX - 2);
    cr_expect_eq(strlen(made_up_class()), CLASS_NAME_MAX - 1);
    memset((char *)memory + 1025, 'x', CLASS_NAME_MAX - 1);
    cr_expect_str_eq(made_up_class(), "none");
}
