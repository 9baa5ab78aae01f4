/* SPDX-License-Identifier: MIT */
/*
 * Whatever the process that reads debug information says, in whatever pieces it comes: names are
 * well-formed, each address has them once at most, and what makes no sense is refused. The first
 * byte of an input is the size of the pieces.
 */
#include <stdlib.h>
#include <string.h>

#include "wire_decoder.h"
#include "target.h"

enum { OFFSETS = 4, MODULES = 4 };

static const uint64_t offsets[OFFSETS] = {0, 20, 30, UINT64_MAX};

static const struct symbolize_module modules[MODULES] = {
    {"/a", NULL, 0, offsets, OFFSETS},
    {"/empty", NULL, 0, NULL, 0},
    {"/b", NULL, 0, offsets, 1},
    {"/c", NULL, 0, offsets, 2},
};

struct listener {
    /** By module and offset: whether it was told. */
    bool is_told[MODULES][OFFSETS];
    size_t last_module;
    size_t named;
    uint64_t hash;
};

static void mix(struct listener *all, const void *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        all->hash = (all->hash ^ ((const uint8_t *)data)[i]) * UINT64_C(0x100000001B3);
}

static void check_text(struct listener *all, const char *name, size_t size)
{
    target_require((name == NULL) == (size == 0), "no name has no size");
    target_require(size <= SYMBOLIZE_STRING_MAX, "a name is as long as it may be");
    mix(all, name, size);
}

static void listen(void *context, size_t module, uint64_t offset,
                   const struct symbolize_frame *frames, size_t count)
{
    struct listener *all = context;
    size_t index = 0;
    target_require(module < MODULES && module >= all->last_module, "modules in their order");
    while (index < modules[module].offset_count && offsets[index] != offset)
        index++;
    target_require(index < modules[module].offset_count, "an address that was asked for");
    target_require(!all->is_told[module][index], "an address once");
    target_require(count <= SYMBOLIZE_FRAMES_MAX, "as many frames as there may be");
    all->is_told[module][index] = true;
    all->last_module = module;
    all->named += count > 0;
    mix(all, &offset, sizeof offset);
    for (size_t i = 0; i < count; i++) {
        check_text(all, frames[i].function, frames[i].function_size);
        check_text(all, frames[i].file, frames[i].file_size);
        mix(all, &frames[i].line, sizeof frames[i].line);
    }
}

/* Whether all was taken. */
static bool feed(const uint8_t *data, size_t size, size_t piece, struct listener *all)
{
    struct wire_decoder decoder;
    *all = (struct listener){.named = 0};
    target_require(wire_decoder_init(&decoder, modules, MODULES, listen, all) == 0, "an inbox");
    bool is_taken = true;
    while (size && is_taken) {
        size_t room;
        uint8_t *to = wire_decoder_room(&decoder, &room);
        size_t part = size < piece ? size : piece;
        target_require(room > 0, "room");
        part = part < room ? part : room;
        memcpy(to, data, part);
        is_taken = wire_decoder_take(&decoder, part);
        data += part;
        size -= part;
    }
    target_require(decoder.named == all->named, "names are counted");
    target_require(!decoder.is_finished || !decoder.is_in_module,
                   "nothing is under way at the end");
    wire_decoder_free(&decoder);
    return is_taken;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct listener whole, pieces;
    bool is_taken = feed(data + 1, size - 1, SIZE_MAX, &whole);
    target_require(feed(data + 1, size - 1, 1u + data[0], &pieces) == is_taken,
                   "pieces are taken as the whole is");
    target_require(whole.hash == pieces.hash, "the same names");
    return 0;
}
