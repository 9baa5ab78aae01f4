/* SPDX-License-Identifier: MIT */
#include "symbols/fingerprint.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "base/grow.h"

/* What stands before the parts of a frame, so that no two different ones have the same bytes. */
#define FRAME_NAMED   'f'
#define FRAME_OFFSET  'o'
#define FRAME_NOWHERE '?'
#define FRAME_FIXED   (1 + 2 * sizeof(uint64_t))

void fingerprinter_free(fingerprinter *work)
{
    frame_list_free(&work->frames);
    free(work->bytes);
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

/* Which copy of a function the compiler chose, and their numbers, change with every build. */
static ttd_string without_clone(ttd_string name)
{
    for (size_t i = 1; i < name.size; i++) {
        if ((name.data[i] == '.' || name.data[i] == ' ') && is_clone_suffix(name, i))
            return (ttd_string){name.data, i};
    }
    return name;
}

static size_t put_number(char *to, uint64_t value)
{
    for (size_t i = 0; i < sizeof value; i++)
        to[i] = (char)(value >> 8 * i);
    return sizeof value;
}

static size_t put_text(char *to, ttd_string text)
{
    size_t used = put_number(to, text.size);
    if (text.size)
        memcpy(to + used, text.data, text.size);
    return used + text.size;
}

/* As many bytes at most as FRAME_FIXED and both texts. */
static size_t put_frame(char *to, const frame *item)
{
    ttd_string module = base_name(item->module);
    size_t used = 1;
    if (item->function.size) {
        *to = FRAME_NAMED;
        used += put_text(to + used, without_clone(item->function));
        used += put_text(to + used, module);
    } else if (item->module_id) {
        *to = FRAME_OFFSET;
        used += put_text(to + used, module);
        used += put_number(to + used, item->offset);
    } else {
        *to = FRAME_NOWHERE;
    }
    return used;
}

ttd_status fingerprint_stack(fingerprinter *work, definitions *all, ttd_id stack,
                             fingerprint *result)
{
    ttd_status status = frame_list_expand(&work->frames, all, stack);
    size_t size = 0;
    for (size_t i = 0; i < work->frames.count && status == TTD_OK; i++) {
        const frame *item = &work->frames.items[i];
        size_t wanted = size + FRAME_FIXED + item->function.size + item->module.size;
        status = grow_array((void **)&work->bytes, &work->capacity, wanted, 1);
        if (status == TTD_OK)
            size += put_frame(work->bytes + size, item);
    }
    if (status != TTD_OK)
        return status;
    XXH128_hash_t hash = XXH3_128bits(size ? work->bytes : "", size);
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
