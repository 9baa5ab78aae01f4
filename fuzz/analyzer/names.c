/* SPDX-License-Identifier: MIT */
/*
 * A symbol may have any name. Its demangled form is not too long and has the length returned; the
 * canonical form of either fits its buffer and is the same each time.
 */
#include <stdlib.h>
#include <string.h>

#include "../target.h"
#include "symbols/canonical.h"
#include "symbols/demangle.h"

enum { NAME_SIZE_MAX = 9000 };

/* Returns a canonical name in a block of exactly its room, to be freed. */
static struct ttd_string make_canonical(struct ttd_string name)
{
    char *room = malloc(CANONICAL_ROOM(name.size));
    target_require(room != NULL, "memory");
    size_t size = canonical_name(name, room);
    target_require(size <= CANONICAL_ROOM(name.size), "room for a canonical name");
    return (struct ttd_string){room, size};
}

static int is_within(struct ttd_string part, struct ttd_string whole)
{
    return part.data >= whole.data && part.data + part.size <= whole.data + whole.size;
}

static void free_text(struct ttd_string name)
{
    free((void *)(uintptr_t)name.data);
}

static void check_name(const char *data, size_t size)
{
    struct ttd_string name = {data, size};
    struct ttd_string canonical = make_canonical(name);
    struct ttd_string again = make_canonical(name);
    target_require(canonical.size == again.size &&
                       memcmp(canonical.data, again.data, again.size) == 0,
                   "the same canonical name");
    target_require(is_within(canonical_last(canonical), canonical), "the last part");
    target_require(is_within(canonical_without_clone(name), name), "a name without a suffix");
    char *bare = malloc(canonical.size + 1);
    target_require(bare && canonical_bare(canonical, bare) <= canonical.size, "a bare name");
    free(bare);
    free_text(canonical);
    free_text(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct demangler demangler;
    size = size < NAME_SIZE_MAX ? size : NAME_SIZE_MAX;
    char *name = malloc(size + 1);
    target_require(name != NULL, "memory");
    if (size)
        memcpy(name, data, size);
    name[size] = '\0';
    check_name(name, size);
    struct ttd_string plain = demangler_find(&demangler, (struct ttd_string){name, size});
    target_require(plain.size <= DEMANGLE_MAX, "a demangled name is not too long");
    if (plain.size) {
        target_require(!memchr(plain.data, '\0', plain.size), "a demangled name has its length");
        check_name(plain.data, plain.size);
    }
    free(name);
    return 0;
}
