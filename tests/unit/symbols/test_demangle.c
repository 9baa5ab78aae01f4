/* SPDX-License-Identifier: MIT */
/* Long names are demangled in full, or shortened from within; none costs unbounded time or memory.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "symbols/demangle.h"

enum { TEXT_SIZE = 70000 };

static struct demangler demangler;
static char mangled[TEXT_SIZE];

static void append(const char *part, size_t count)
{
    size_t size = strlen(mangled), part_size = strlen(part);
    cr_assert(size + count * part_size < TEXT_SIZE);
    for (size_t i = 0; i < count; i++)
        memcpy(mangled + size + i * part_size, part, part_size);
    mangled[size + count * part_size] = '\0';
}

static struct ttd_string found(void)
{
    return demangler_find(&demangler, (struct ttd_string){mangled, strlen(mangled)});
}

static bool begins(struct ttd_string text, const char *word)
{
    return text.size >= strlen(word) && memcmp(text.data, word, strlen(word)) == 0;
}

static bool has(struct ttd_string text, const char *word)
{
    char *copy = strndup(text.data, text.size);
    bool is_there = strstr(copy, word) != NULL;
    free(copy);
    return is_there;
}

static void reset(void)
{
    demangler_free(&demangler);
    mangled[0] = '\0';
}

TestSuite(demangle, .init = reset, .fini = reset, .timeout = 60);

/* void f<Box<…Box<int>…> >() */
static void nested(size_t depth)
{
    append("_Z1fI", 1);
    append("3BoxI", depth);
    append("i", 1);
    append("E", depth);
    append("Evv", 1);
}

Test(demangle, names_of_more_than_1024_bytes_are_whole)
{
    nested(250);
    struct ttd_string text = found();
    cr_assert(begins(text, "void f<Box<Box<"));
    cr_assert(has(text, "Box<int> > >"));
    cr_assert(!has(text, "…"));
    cr_assert_eq(text.size, strlen("void f<") + 250 * strlen("Box<>") + strlen("int >()") + 249);
}

Test(demangle, text_of_more_than_4096_bytes_is_whole)
{
    /* A<int, int>, then f of the one before twice, again and again. */
    append("_Z1fI1AIiiES_IS1_S1_ES_IS2_S2_ES_IS3_S3_ES_IS4_S4_ES_IS5_S5_ES_IS6_S6_ES_IS7_S7_ES_IS8_"
           "S8_E",
           1);
    append("Evv", 1);
    struct ttd_string text = found();
    cr_assert(begins(text, "void f<A<int, int>, f<A<int, int>, A<int, int> >"), "%.*s",
              (int)text.size, text.data);
    cr_assert_gt(text.size, 4096);
    cr_assert(!has(text, "…"));
}

Test(demangle, what_is_nested_too_deeply_is_shortened_from_within)
{
    nested(5000);
    struct ttd_string text = found();
    cr_assert(begins(text, "void f<Box<Box<Box<"));
    cr_assert(has(text, "Box<…> >"));
    cr_assert_lt(text.size, 1000);
}

Test(demangle, what_stands_for_gigabytes_is_shortened)
{
    append("_Z1fI1AIiiE", 1);
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (size_t i = 1; i < sizeof digits - 1; i++) {
        const char pair[] = {'S', digits[i], '_', 'S', digits[i], '_', '\0'};
        append("S_I", 1);
        append(pair, 1);
        append("E", 1);
    }
    append("Evv", 1);
    struct ttd_string text = found();
    cr_assert(begins(text, "void f<A<…>, f<…>, f<…>"), "%.300s", text.data);
    cr_assert_leq(text.size, DEMANGLE_MAX);
}

Test(demangle, names_that_need_much_stack_end_no_program)
{
    append("_Z4flatI", 1);
    append("P", 60000);
    append("iEvv", 1);
    struct ttd_string text = found();
    cr_assert(begins(text, "flat<…>… ["), "%.*s", (int)text.size, text.data);
    cr_assert_eq(demangler.process.failures, 0);
}

Test(demangle, names_that_need_exponential_time_end)
{
    append("_ZN1Acv", 1);
    append("T0_Ii", 60);
    append("Ev", 1);
    struct ttd_string text = found();
    cr_assert(begins(text, "A::… ["), "%.*s", (int)text.size, text.data);
    cr_assert_eq(demangler.process.failures, 1);
}

Test(demangle, names_that_were_cut_have_their_beginning)
{
    append("_ZN6HolderIJ", 1);
    append("St6vectorI3TagILi0EESaIS2_EE", 100);
    struct ttd_string text = found();
    cr_assert(begins(text, "Holder<…>::… ["), "%.*s", (int)text.size, text.data);
    char *first = strndup(text.data, text.size);
    append("E", 1);
    text = found();
    cr_assert(strlen(first) != text.size || memcmp(first, text.data, text.size) != 0,
              "other names, other numbers");
    free(first);
}

Test(demangle, a_process_that_dies_costs_one_name)
{
    nested(250);
    size_t size = found().size;
    cr_assert_neq(demangler.process.id, 0);
    kill(demangler.process.id, SIGKILL);
    cr_assert(begins(found(), "f<…>… ["));
    cr_assert_eq(found().size, size);
    cr_assert_eq(demangler.process.failures, 1);
}

Test(demangle, other_names_stay_as_they_are)
{
    static const char *const names[] = {"main", "", "_", "_Z", "_Znonsense", "_Rust"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct ttd_string name = {names[i], strlen(names[i])};
        cr_assert_eq(demangler_find(&demangler, name).size, 0, "%s", names[i]);
    }
    cr_assert_eq(demangler_find(&demangler, (struct ttd_string){"_Z1fv\0", 6}).size, 0);
    cr_assert_eq(demangler.process.id, 0, "no process for usual names");
}
