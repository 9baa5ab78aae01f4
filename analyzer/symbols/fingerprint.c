/* SPDX-License-Identifier: MIT */
#include "symbols/fingerprint.h"

#include <string.h>

#include <xxhash.h>

/* What stands before the parts of a frame, so that no two different ones have the same bytes. */
#define FRAME_NAMED   'f'
#define FRAME_OFFSET  'o'
#define FRAME_NOWHERE '?'

void fingerprinter_free(fingerprinter *work)
{
    frame_list_free(&work->frames);
    XXH3_freeState(work->state);
    *work = (fingerprinter){0};
}

static ttd_string base_name(ttd_string path)
{
    size_t begin = path.size;
    while (begin > 0 && path.data[begin - 1] != '/')
        begin--;
    return begin ? (ttd_string){path.data + begin, path.size - begin} : path;
}

static bool stands_at(ttd_string name, size_t at, const char *word, size_t size)
{
    return name.size - at >= size && memcmp(name.data + at, word, size) == 0;
}

/* Whether a suffix begins here that compilers give to a part or a copy of a function. */
static bool is_clone_suffix(ttd_string name, size_t at)
{
    static const char *const words[] = {".cold",     ".constprop",  ".isra", ".llvm",
                                        ".lto_priv", ".localalias", ".part"};
    static const char demangled[] = " [clone ";
    if (stands_at(name, at, demangled, sizeof demangled - 1))
        return true;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t after = at + strlen(words[i]);
        if (stands_at(name, at, words[i], strlen(words[i])) &&
            (after == name.size || name.data[after] == '.'))
            return true;
    }
    return false;
}

/* They change with every build. */
ttd_string fingerprint_name(ttd_string name)
{
    for (size_t i = 1; i < name.size; i++) {
        if ((name.data[i] == '.' || name.data[i] == ' ') && is_clone_suffix(name, i))
            return (ttd_string){name.data, i};
    }
    return name;
}

static void add_number(XXH3_state_t *state, uint64_t value)
{
    unsigned char bytes[sizeof value];
    for (size_t i = 0; i < sizeof value; i++)
        bytes[i] = (unsigned char)(value >> 8 * i);
    XXH3_128bits_update(state, bytes, sizeof bytes);
}

static void add_text(XXH3_state_t *state, ttd_string text)
{
    add_number(state, text.size);
    if (text.size)
        XXH3_128bits_update(state, text.data, text.size);
}

static void add_frame(XXH3_state_t *state, const frame *item)
{
    char kind = item->function.size ? FRAME_NAMED : item->module_id ? FRAME_OFFSET : FRAME_NOWHERE;
    XXH3_128bits_update(state, &kind, sizeof kind);
    if (kind == FRAME_NOWHERE)
        return;
    if (kind == FRAME_NAMED)
        add_text(state, fingerprint_name(item->function));
    add_text(state, base_name(item->module));
    if (kind == FRAME_OFFSET)
        add_number(state, item->offset);
}

ttd_status fingerprint_stack(fingerprinter *work, definitions *all, ttd_id stack,
                             fingerprint *result)
{
    if (!work->state)
        work->state = XXH3_createState();
    if (!work->state)
        return TTD_ERROR_NO_MEMORY;
    ttd_status status = frame_list_expand(&work->frames, all, stack);
    if (status != TTD_OK)
        return status;
    XXH3_128bits_reset(work->state);
    for (size_t i = 0; i < work->frames.count; i++)
        add_frame(work->state, &work->frames.items[i]);
    XXH128_hash_t hash = XXH3_128bits_digest(work->state);
    *result = (fingerprint){hash.high64, hash.low64};
    return TTD_OK;
}

void fingerprint_format(fingerprint value, char text[FINGERPRINT_TEXT])
{
    for (unsigned i = 0; i < 32; i++) {
        uint64_t half = i < 16 ? value.high : value.low;
        text[i] = "0123456789abcdef"[half >> (60 - 4 * (i % 16)) & 15];
    }
    text[32] = 0;
}

bool fingerprint_parse(const char *text, fingerprint *result)
{
    uint64_t halves[2] = {0, 0};
    for (unsigned i = 0; i < 32; i++) {
        static const char digits[] = "0123456789abcdef";
        const char *digit = text[i] ? strchr(digits, text[i]) : NULL;
        if (!digit)
            return false;
        halves[i / 16] = halves[i / 16] << 4 | (uint64_t)(digit - digits);
    }
    if (text[32])
        return false;
    *result = (fingerprint){halves[0], halves[1]};
    return true;
}
