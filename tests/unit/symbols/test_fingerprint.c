/* SPDX-License-Identifier: MIT */
/* Which stacks are the same in another run or after a rebuild, and which are not. */
#include <string.h>

#include <criterion/criterion.h>

#include "support/lazy_stack.h"
#include "symbols/canonical.h"
#include "symbols/fingerprint.h"

/* Definitions under construction. */
struct world {
    struct definitions names;
    ttd_id strings;
    ttd_id modules;
    ttd_id stacks;
};

static ttd_id string(struct world *to, const char *text)
{
    if (!*text)
        return TTD_NONE;
    struct ttd_string_definition item = {++to->strings, {text, strlen(text)}};
    struct ttd_batch batch = {.kind = TTD_KIND_STRINGS, .count = 1, .u.strings = &item};
    cr_assert_eq(definitions_add(&to->names, &batch), TTD_OK);
    return item.id;
}

static ttd_id module(struct world *to, const char *path, uint64_t bias)
{
    struct ttd_module item = {.action = TTD_MODULE_LOAD, .id = ++to->modules, .bias = bias};
    item.path = string(to, path);
    struct ttd_batch batch = {.kind = TTD_KIND_MODULES, .count = 1, .u.modules = &item};
    cr_assert_eq(definitions_add(&to->names, &batch), TTD_OK);
    return item.id;
}

static ttd_id stack(struct world *to, ttd_id parent, ttd_id in, uint64_t offset)
{
    struct ttd_stack item = {++to->stacks, parent, in, offset};
    uint8_t payload[STORED_STACK_SIZE_MAX];
    struct ttd_batch batch = lazy_stack(&item, payload);
    cr_assert_eq(definitions_add(&to->names, &batch), TTD_OK);
    return item.id;
}

static void name(struct world *to, ttd_id in, uint64_t offset, const char *function, uint32_t line)
{
    struct ttd_symbol_frame place = {string(to, function), string(to, "file.c"), line};
    struct ttd_symbol item = {in, offset, &place, 1};
    struct ttd_batch batch = {.kind = TTD_KIND_SYMBOLS, .count = 1, .u.symbols = &item};
    cr_assert_eq(definitions_add(&to->names, &batch), TTD_OK);
}

/* A function called from another one in another module; `noise` is what must not matter. */
static struct fingerprint two_frames(const char *path, const char *function, uint64_t offset,
                                     unsigned noise)
{
    struct world all = {.strings = 0};
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
    struct fingerprinter work = {.definitions = NULL};
    struct fingerprint result = {0, 0};
    cr_assert_eq(fingerprint_stack(&work, &all.names, inner, &result), TTD_OK);
    fingerprinter_free(&work);
    definitions_free(&all.names);
    return result;
}

static bool same(struct fingerprint a, struct fingerprint b)
{
    return fingerprint_equal(a, b);
}

Test(fingerprint, what_does_not_matter)
{
    struct fingerprint base = two_frames("/usr/lib/libx.so", "work", 0x40, 0);
    cr_assert(same(base, two_frames("/usr/lib/libx.so", "work", 0x40, 3)), "where it was loaded");
    cr_assert(same(base, two_frames("/opt/liby.so", "work", 0x40, 0)), "what the file is called");
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
    struct fingerprint base = two_frames("/usr/lib/libx.so", "work", 0x40, 0);
    struct fingerprint nameless = two_frames("/usr/lib/libx.so", "", 0x40, 0);
    cr_assert(!same(base, nameless));
    cr_assert(!same(base, two_frames("/usr/lib/libc.so.6", "work", 0x40, 0)), "a library's frame");
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
    struct world all = {.strings = 0};
    definitions_init(&all.names);
    ttd_id one = stack(&all, TTD_NONE, TTD_NONE, 0x7f0000001000);
    ttd_id other = stack(&all, TTD_NONE, TTD_NONE, 0x7f5555551000);
    ttd_id deeper = stack(&all, one, TTD_NONE, 0x7f0000001000);
    struct fingerprinter work = {.definitions = NULL};
    struct fingerprint found[4];
    ttd_id stacks[4] = {one, other, deeper, TTD_NONE};
    for (size_t i = 0; i < 4; i++)
        cr_assert_eq(fingerprint_stack(&work, &all.names, stacks[i], &found[i]), TTD_OK);
    cr_assert(same(found[0], found[1]), "an address says nothing");
    cr_assert(!same(found[0], found[2]), "depth does");
    cr_assert(!same(found[0], found[3]));
    fingerprinter_free(&work);
    definitions_free(&all.names);
}

static void expect_canonical(const char *name, const char *expected)
{
    char text[CANONICAL_ROOM(512)];
    size_t size = canonical_name((struct ttd_string){name, strlen(name)}, text);
    cr_assert_eq(size, strlen(expected), "%s: %.*s", name, (int)size, text);
    cr_assert_eq(memcmp(text, expected, size), 0, "%s: %.*s", name, (int)size, text);
}

Test(canonical, names)
{
    static const char *const names[][2] = {
        {"work", "work"},
        {"work.constprop.0", "work"},
        {"work.partition", "work.partition"},
        {"f(int)", "f"},
        {"app::Server::parse(char const*) const", "app::Server::parse"},
        {"int* app::(anonymous namespace)::make<double>(int)",
         "app::(anonymous namespace)::make<double>"},
        {"app::(anonymous namespace)::make<const long unsigned int *>",
         "app::(anonymous namespace)::make<unsignedlong*>"},
        {"void app::make<unsigned long const*>(int)", "app::make<unsignedlong*>"},
        {"f<3ul>()", "f<3>"},
        {"f<3>", "f<3>"},
        {"app::handle(int)::{lambda(int)#1}::operator()(int) const",
         "app::handle::{lambda}::operator()"},
        {"app::handle::<lambda(int)>::operator()", "app::handle::{lambda}::operator()"},
        {"app::handle(int)::$_12::operator()(int) const", "app::handle::{lambda}::operator()"},
        {"a::$_0::$_0::$_0::f", "a::{lambda}::{lambda}::{lambda}::f"},
        {"a::$_x::f", "a::$_x::f"},
        {"std::function<void ()>::operator()() const", "std::function<void()>::operator()"},
        {"std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, char const*)",
         "std::operator<<<std::char_traits<char>>"},
        {"a::B::operator bool() const", "a::B::operator bool"},
        {"a::B::operator->() const &", "a::B::operator->"},
        {"name[abi:cxx11](int)", "name"},
        {"f(int (*)(char)) [clone .part.0]", "f"},
        {"non-virtual thunk to a::B::f()", "a::B::f"},
        {"decltype (x) f<int>(int)", "f<int>"},
        {"operator new(unsigned long)", "operator new"},
        {"f<(", "f<("},
        {"{", "{"},
        {"a::{", "a::{}"},
        {"<lambda", "{lambda}"},
        {"f((((", "f"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        expect_canonical(names[i][0], names[i][1]);
}

Test(canonical, last_parts)
{
    static const char *const names[][2] = {{"f", "f"},
                                           {"a::b<c::d>::f<g::h>", "f"},
                                           {"a::(anonymous namespace)::f", "f"},
                                           {"a::{lambda}::operator()", "operator()"},
                                           {"operator<<<int>", "operator<<<int>"},
                                           {"a::operators<int>", "operators"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct ttd_string last =
            canonical_last((struct ttd_string){names[i][0], strlen(names[i][0])});
        cr_assert_eq(last.size, strlen(names[i][1]), "%s", names[i][0]);
        cr_assert_eq(memcmp(last.data, names[i][1], last.size), 0, "%s", names[i][0]);
    }
}

Test(fingerprint, may_be_stored)
{
    /* Changes only if baselines that people keep are to be made anew. */
    char text[FINGERPRINT_TEXT];
    struct fingerprint value = two_frames("/usr/lib/libx.so", "work", 0x40, 0);
    fingerprint_format(value, text);
    cr_assert_str_eq(text, "56702ea0e93ef8894e65781413102cfc");
    struct fingerprint back = {0, 0};
    cr_assert(fingerprint_parse(text, &back));
    cr_assert(same(back, value));
    cr_assert(!fingerprint_parse("", &back));
    text[31] = 'g';
    cr_assert(!fingerprint_parse(text, &back));
    text[31] = 0;
    cr_assert(!fingerprint_parse(text, &back));
    cr_assert(same(back, value));
}
