/* SPDX-License-Identifier: MIT */
/* Which stacks are the same in another run or after a rebuild, and which are not. */
#include <string.h>

#include <criterion/criterion.h>

#include "support/stored_stack.h"
#include "symbols/fingerprint.h"

/* Definitions under construction. */
typedef struct world {
    definitions names;
    ttd_id strings;
    ttd_id modules;
    ttd_id stacks;
} world;

static ttd_id string(world *to, const char *text)
{
    if (!*text)
        return TTD_NONE;
    ttd_string_definition item = {++to->strings, {text, strlen(text)}};
    ttd_batch batch = {.kind = TTD_KIND_STRINGS, .count = 1, .u.strings = &item};
    cr_assert_eq(definitions_add(&to->names, &batch), TTD_OK);
    return item.id;
}

static ttd_id module(world *to, const char *path, uint64_t bias)
{
    ttd_module item = {.action = TTD_MODULE_LOAD, .id = ++to->modules, .bias = bias};
    item.path = string(to, path);
    ttd_batch batch = {.kind = TTD_KIND_MODULES, .count = 1, .u.modules = &item};
    cr_assert_eq(definitions_add(&to->names, &batch), TTD_OK);
    return item.id;
}

static ttd_id stack(world *to, ttd_id parent, ttd_id in, uint64_t offset)
{
    ttd_stack item = {++to->stacks, parent, in, offset};
    uint8_t payload[STORED_STACK_SIZE_MAX];
    ttd_batch batch = stored_stack(&item, payload);
    cr_assert_eq(definitions_add(&to->names, &batch), TTD_OK);
    return item.id;
}

static void name(world *to, ttd_id in, uint64_t offset, const char *function, uint32_t line)
{
    ttd_symbol_frame place = {string(to, function), string(to, "file.c"), line};
    ttd_symbol item = {in, offset, &place, 1};
    ttd_batch batch = {.kind = TTD_KIND_SYMBOLS, .count = 1, .u.symbols = &item};
    cr_assert_eq(definitions_add(&to->names, &batch), TTD_OK);
}

/* A function called from another one in another module; `noise` is what must not matter. */
static fingerprint two_frames(const char *path, const char *function, uint64_t offset,
                              unsigned noise)
{
    world all = {.strings = 0};
    definitions_init(&all.names);
    for (unsigned i = 0; i < noise; i++) {
        string(&all, "elsewhere");
        stack(&all, TTD_NONE, module(&all, "/lib/other.so", 0x1000), i);
    }
    ttd_id main_module = module(&all, noise ? "/home/a/app" : "/build/app", 0x400000 + noise);
    ttd_id other = module(&all, path, 0x70000000 + noise * 4096);
    name(&all, main_module, 0x10 + noise, "main", 1 + noise);
    if (*function)
        name(&all, other, offset, function, 7 + noise);
    ttd_id outer = stack(&all, TTD_NONE, main_module, 0x10 + noise);
    ttd_id inner = stack(&all, outer, other, offset);
    fingerprinter work = {.state = NULL};
    fingerprint result = {0, 0};
    cr_assert_eq(fingerprint_stack(&work, &all.names, inner, &result), TTD_OK);
    fingerprinter_free(&work);
    definitions_free(&all.names);
    return result;
}

static bool same(fingerprint a, fingerprint b)
{
    return fingerprint_equal(a, b);
}

Test(fingerprint, what_does_not_matter)
{
    fingerprint base = two_frames("/usr/lib/libx.so", "work", 0x40, 0);
    cr_assert(same(base, two_frames("/usr/lib/libx.so", "work", 0x40, 3)), "where it was loaded");
    cr_assert(same(base, two_frames("/opt/libx.so", "work", 0x40, 0)), "where the file is");
    cr_assert(same(base, two_frames("/usr/lib/libx.so", "work", 0x99, 1)), "where in the function");
    cr_assert(same(base, two_frames("libx.so", "work.constprop.0", 0x40, 0)), "clones");
    cr_assert(same(base, two_frames("libx.so", "work.part.12", 0x40, 0)));
    cr_assert(same(base, two_frames("libx.so", "work.isra.3.cold", 0x40, 0)));
    cr_assert(same(two_frames("libx.so", "_Z4workv.constprop.0", 0x40, 0),
                   two_frames("libx.so", "_Z4workv", 0x40, 0)),
              "clones of C++");
}

Test(fingerprint, what_matters)
{
    fingerprint base = two_frames("/usr/lib/libx.so", "work", 0x40, 0);
    fingerprint nameless = two_frames("/usr/lib/libx.so", "", 0x40, 0);
    cr_assert(!same(base, nameless));
    cr_assert(!same(base, two_frames("/usr/lib/liby.so", "work", 0x40, 0)), "the module");
    cr_assert(!same(base, two_frames("/usr/lib/libx.so", "worker", 0x40, 0)), "the function");
    cr_assert(!same(base, two_frames("/usr/lib/libx.so", "work.partition", 0x40, 0)), "no clone");
    cr_assert(!same(base, two_frames("/usr/lib/libx.so", "work.x", 0x40, 0)), "no clone");
    cr_assert(same(nameless, two_frames("/opt/libx.so", "", 0x40, 2)));
    cr_assert(!same(nameless, two_frames("/usr/lib/libx.so", "", 0x41, 0)), "offset without name");
}

Test(fingerprint, frames_do_not_run_together)
{
    cr_assert(!same(two_frames("libx.so", "a", 1, 0), two_frames("x.so", "alib", 1, 0)));
}

Test(fingerprint, addresses_outside_modules)
{
    world all = {.strings = 0};
    definitions_init(&all.names);
    ttd_id one = stack(&all, TTD_NONE, TTD_NONE, 0x7f0000001000);
    ttd_id other = stack(&all, TTD_NONE, TTD_NONE, 0x7f5555551000);
    ttd_id deeper = stack(&all, one, TTD_NONE, 0x7f0000001000);
    fingerprinter work = {.state = NULL};
    fingerprint found[4];
    ttd_id stacks[4] = {one, other, deeper, TTD_NONE};
    for (size_t i = 0; i < 4; i++)
        cr_assert_eq(fingerprint_stack(&work, &all.names, stacks[i], &found[i]), TTD_OK);
    cr_assert(same(found[0], found[1]), "an address says nothing");
    cr_assert(!same(found[0], found[2]), "depth does");
    cr_assert(!same(found[0], found[3]));
    fingerprinter_free(&work);
    definitions_free(&all.names);
}

Test(fingerprint, may_be_stored)
{
    /* Changes only if baselines that people keep are to be made anew. */
    char text[FINGERPRINT_TEXT];
    fingerprint value = two_frames("/usr/lib/libx.so", "work", 0x40, 0);
    fingerprint_format(value, text);
    cr_assert_str_eq(text, "51187133ea8126bb306cd278b1f6d92e");
    fingerprint back = {0, 0};
    cr_assert(fingerprint_parse(text, &back));
    cr_assert(same(back, value));
    cr_assert(!fingerprint_parse("", &back));
    text[31] = 'g';
    cr_assert(!fingerprint_parse(text, &back));
    text[31] = 0;
    cr_assert(!fingerprint_parse(text, &back));
    cr_assert(same(back, value));
}
