/* SPDX-License-Identifier: MIT */
/*
 * Whatever messages a symbolizer's child sends, in pieces of any size: decoded names are
 * well-formed, each address is answered at most once, and malformed messages are refused. The first
 * byte of an input is the size of the pieces.
 */
#include <string.h>

#include "symbolize/wire/wire.h"
#include "../target.h"

enum { OFFSETS = 4, MODULES = 4 };

static const uint64_t offsets[OFFSETS] = {0, 20, 30, UINT64_MAX};

static const struct symbolize_module modules[MODULES] = {
    {.path = "/a", .offsets = offsets, .offset_count = OFFSETS},
    {.path = "/empty", .offsets = NULL, .offset_count = 0},
    {.path = "/b", .offsets = offsets, .offset_count = 1},
    {.path = "/c", .offsets = offsets, .offset_count = 2, .is_data = true},
};

struct listener {
    /** By module and offset: it was answered. */
    bool is_answered[MODULES][OFFSETS];
    size_t last_module;
    size_t named;
    uint64_t hash;
};

static void mix(struct listener *listener, const void *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        listener->hash = (listener->hash ^ ((const uint8_t *)data)[i]) * UINT64_C(0x100000001B3);
}

static void check_text(struct listener *listener, const char *name, size_t size)
{
    target_require((!name) == (size == 0), "no name has no size");
    target_require(size <= SYMBOLIZE_STRING_MAX, "a name is as long as it may be");
    mix(listener, name, size);
}

static void listen(void *context, size_t module, uint64_t offset,
                   const struct symbolize_frame *frames, size_t count)
{
    struct listener *listener = context;
    size_t index = 0;
    target_require(module < MODULES && module >= listener->last_module, "modules in their order");
    while (index < modules[module].offset_count && offsets[index] != offset)
        index++;
    target_require(index < modules[module].offset_count, "an address that was asked for");
    target_require(!listener->is_answered[module][index], "an address once");
    target_require(count <= SYMBOLIZE_FRAMES_MAX, "as many frames as there may be");
    listener->is_answered[module][index] = true;
    listener->last_module = module;
    listener->named += modules[module].is_data ? frames->function_size > 0 : count > 0;
    target_require(!modules[module].is_data || (count == 1 && frames->begin <= offset &&
                                                offset - frames->begin < frames->size),
                   "a variable holds its address");
    mix(listener, &offset, sizeof offset);
    for (size_t i = 0; i < count; i++) {
        check_text(listener, frames[i].function, frames[i].function_size);
        check_text(listener, frames[i].file, frames[i].file_size);
        mix(listener, &frames[i].line, sizeof frames[i].line);
        mix(listener, &frames[i].begin, sizeof frames[i].begin);
        mix(listener, &frames[i].size, sizeof frames[i].size);
    }
}

/* Decodes the bytes in pieces. Returns whether all of them were accepted. */
static bool feed(const uint8_t *data, size_t size, size_t piece, struct listener *listener)
{
    struct wire_decoder decoder;
    *listener = (struct listener){.named = 0};
    target_require(wire_decoder_init(&decoder, modules, MODULES, listen, listener) == 0,
                   "a decoder");
    bool is_accepted = true;
    while (size && is_accepted) {
        size_t room;
        uint8_t *room_begin = wire_decoder_room(&decoder, &room);
        size_t part = size < piece ? size : piece;
        target_require(room > 0, "room");
        part = part < room ? part : room;
        memcpy(room_begin, data, part);
        is_accepted = wire_decoder_take(&decoder, part);
        data += part;
        size -= part;
    }
    target_require(decoder.named == listener->named, "names are counted");
    target_require(!decoder.is_finished || !decoder.is_in_module, "no module is open at the end");
    wire_decoder_free(&decoder);
    return is_accepted;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct listener whole, pieces;
    bool is_accepted = feed(data + 1, size - 1, SIZE_MAX, &whole);
    target_require(feed(data + 1, size - 1, 1u + data[0], &pieces) == is_accepted,
                   "pieces are taken as the whole is");
    target_require(whole.hash == pieces.hash, "the same names");
    return 0;
}
