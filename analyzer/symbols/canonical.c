/* SPDX-License-Identifier: MIT */
#include "symbols/canonical.h"

#include <string.h>

#include "symbols/canonical_parts.h"

/* Whether the suffix of a part or copy of a function begins at an offset. Compilers append it when
 * they split or specialize a function. */
static bool is_clone_suffix(struct ttd_string name, size_t offset)
{
    static const char *const words[] = {".cold",     ".constprop",  ".isra", ".llvm",
                                        ".lto_priv", ".localalias", ".part"};
    if (canonical_stands_at(name, offset, " [clone "))
        return true;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t after = offset + strlen(words[i]);
        if (canonical_stands_at(name, offset, words[i]) &&
            (after == name.size || name.data[after] == '.'))
            return true;
    }
    return false;
}

struct ttd_string canonical_without_clone(struct ttd_string name)
{
    for (size_t i = 1; i < name.size; i++) {
        if ((name.data[i] == '.' || name.data[i] == ' ') && is_clone_suffix(name, i))
            return (struct ttd_string){name.data, i};
    }
    return name;
}

/* Whether the name of an operator begins at an offset. */
static bool canonical_is_operator(struct ttd_string canonical, size_t offset)
{
    bool begins = !offset || canonical.data[offset - 1] == ':';
    return begins && canonical_stands_at(canonical, offset, "operator") &&
           (offset + 8 == canonical.size || !canonical_is_word(canonical.data[offset + 8]));
}

size_t canonical_bare(struct ttd_string canonical, char *text)
{
    size_t depth = 0;
    size_t size = 0;
    for (size_t i = 0; i < canonical.size; i++) {
        char c = canonical.data[i];
        if (!depth && canonical_is_operator(canonical, i)) {
            memcpy(text + size, "operator", 8);
            return size + 8;
        }
        depth += c == '<';
        if (!depth)
            text[size++] = c;
        depth -= c == '>' && depth;
    }
    return size;
}

struct ttd_string canonical_last(struct ttd_string canonical)
{
    size_t depth = 0;
    size_t begin = 0;
    size_t end = canonical.size;
    for (size_t i = 0; i < canonical.size; i++) {
        char c = canonical.data[i];
        if (!depth && canonical_is_operator(canonical, i)) {
            end = canonical.size;
            break;
        }
        if (!depth && c == '<' && i > begin)
            end = i;
        if (c == '<' || c == '(' || c == '{')
            depth++;
        else if ((c == '>' || c == ')' || c == '}') && depth)
            depth--;
        else if (!depth && c == ':' && i + 1 < canonical.size && canonical.data[i + 1] == ':') {
            begin = i + 2;
            end = canonical.size;
        }
    }
    return (struct ttd_string){canonical.data + begin, end - begin};
}
