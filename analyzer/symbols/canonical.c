/* SPDX-License-Identifier: MIT */
#include "symbols/canonical.h"

#include <stdbool.h>
#include <string.h>
#include <ttdtrace/model.h>

/** Whether a word stands at an offset of a name. */
static inline bool canonical_stands_at(struct ttd_string name, size_t offset, const char *word)
{
    size_t size = strlen(word);
    return offset <= name.size && name.size - offset >= size &&
           memcmp(name.data + offset, word, size) == 0;
}

/** Whether a character may be part of an identifier or a number, as compilers write them. */
static inline bool canonical_is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || (unsigned char)c >= 0x80;
}

/* Rewrites a demangled name in canonical form, in one pass from left to right. */

/* A demangled name that is being read, and the canonical text written so far. Parts may be dropped
 * again: a return type is known as such only when the name follows. */
struct name_reader {
    struct ttd_string name;
    size_t offset;
    char *text;
    size_t size;
};

static bool canonical_name_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char canonical_name_peek(const struct name_reader *reader)
{
    return reader->offset < reader->name.size ? reader->name.data[reader->offset] : 0;
}

static bool canonical_stands(const struct name_reader *reader, const char *word)
{
    return canonical_stands_at(reader->name, reader->offset, word);
}

static void canonical_name_put(struct name_reader *reader, const char *text, size_t size)
{
    memcpy(reader->text + reader->size, text, size);
    reader->size += size;
}

/* Skips to the end of a bracketed part, or of the name if nothing closes it. */
static void canonical_skip_brackets(struct name_reader *reader)
{
    size_t depth = 0;
    do {
        char c = canonical_name_peek(reader);
        /* The '>' of "->" closes no bracket. */
        bool is_arrow =
            c == '>' && reader->offset > 0 && reader->name.data[reader->offset - 1] == '-';
        if (c == '(' || c == '<' || c == '{' || c == '[')
            depth++;
        else if ((c == ')' || c == '>' || c == '}' || c == ']') && !is_arrow)
            depth--;
        reader->offset++;
    } while (depth && reader->offset < reader->name.size);
}

/* Replaces a lambda: "{lambda(int)#1}" of demanglers, "<lambda(int)>" of debug information, "$_0"
 * of clang. */
static bool canonical_take_lambda(struct name_reader *reader)
{
    bool is_part = reader->size > 1 && reader->text[reader->size - 1] == ':';
    size_t end = reader->offset + 2;
    while (end < reader->name.size && canonical_name_is_digit(reader->name.data[end]))
        end++;
    if (is_part && canonical_stands(reader, "$_") && canonical_stands_at(reader->name, end, "::"))
        reader->offset = end;
    else if (canonical_stands(reader, "{lambda") || canonical_stands(reader, "<lambda"))
        canonical_skip_brackets(reader);
    else
        return false;
    canonical_name_put(reader, "{lambda}", 8);
    return true;
}

/* The words of a built-in type, in any order: "long unsigned int", "unsigned long". */
struct builtin {
    bool is_unsigned;
    bool is_signed;
    bool is_short;
    bool has_int;
    unsigned longs;
};

static bool canonical_add_builtin(struct builtin *type, struct ttd_string word)
{
    if (word.size == 8 && memcmp(word.data, "unsigned", 8) == 0)
        type->is_unsigned = true;
    else if (word.size == 6 && memcmp(word.data, "signed", 6) == 0)
        type->is_signed = true;
    else if (word.size == 5 && memcmp(word.data, "short", 5) == 0)
        type->is_short = true;
    else if (word.size == 3 && memcmp(word.data, "int", 3) == 0)
        type->has_int = true;
    else if (word.size == 4 && memcmp(word.data, "long", 4) == 0)
        type->longs++;
    else
        return false;
    return true;
}

static void canonical_flush_builtin(struct name_reader *reader, struct builtin *type)
{
    bool has_other = type->is_unsigned || type->is_short || type->longs;
    if (type->is_unsigned)
        canonical_name_put(reader, "unsigned", 8);
    if (type->is_signed && !has_other && !type->has_int)
        canonical_name_put(reader, "signed", 6);
    if (type->is_short)
        canonical_name_put(reader, "short", 5);
    for (unsigned i = 0; i < type->longs; i++)
        canonical_name_put(reader, "long", 4);
    if (type->has_int && !has_other)
        canonical_name_put(reader, "int", 3);
    *type = (struct builtin){.longs = 0};
}

static struct ttd_string canonical_take_word(struct name_reader *reader)
{
    size_t begin = reader->offset;
    while (canonical_is_word(canonical_name_peek(reader)))
        reader->offset++;
    return (struct ttd_string){reader->name.data + begin, reader->offset - begin};
}

static void canonical_put_word(struct name_reader *reader, struct builtin *type,
                               struct ttd_string word)
{
    static const char *const dropped[] = {"const", "volatile"};
    for (size_t i = 0; i < sizeof dropped / sizeof dropped[0]; i++) {
        if (word.size == strlen(dropped[i]) && memcmp(word.data, dropped[i], word.size) == 0)
            return;
    }
    if (canonical_add_builtin(type, word))
        return;
    canonical_flush_builtin(reader, type);
    /* Some demanglers give a number the suffix of its type: "3ul" is 3. */
    while (canonical_name_is_digit(word.data[0]) && word.size > 1 &&
           strchr("ul", word.data[word.size - 1]))
        word.size--;
    canonical_name_put(reader, word.data, word.size);
}

/* Copies template arguments: without blanks, "const" and "volatile", and with one order of the
 * words of built-in types. */
static void canonical_take_arguments(struct name_reader *reader)
{
    struct builtin type = {.longs = 0};
    struct name_reader end = *reader;
    canonical_skip_brackets(&end);
    while (reader->offset < end.offset) {
        char c = canonical_name_peek(reader);
        if (canonical_is_word(c)) {
            canonical_put_word(reader, &type, canonical_take_word(reader));
            continue;
        }
        if (c != ' ')
            canonical_flush_builtin(reader, &type);
        if (canonical_take_lambda(reader))
            continue;
        if (c != ' ')
            canonical_name_put(reader, &c, 1);
        reader->offset++;
    }
    canonical_flush_builtin(reader, &type);
}

/* Copies an operator, whose name may have brackets or be a type. */
static bool canonical_take_operator(struct name_reader *reader)
{
    static const char *const symbols[] = {"()", "[]", "<=>", "<<=", ">>=", "<<", ">>",
                                          "<=", ">=", "->*", "->",  "<",   ">"};
    if (!canonical_stands(reader, "operator") ||
        (reader->size && canonical_is_word(reader->text[reader->size - 1])))
        return false;
    if (reader->offset + 8 < reader->name.size &&
        canonical_is_word(reader->name.data[reader->offset + 8]))
        return false;
    canonical_name_put(reader, "operator", 8);
    reader->offset += 8;
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        if (!canonical_stands(reader, symbols[i]))
            continue;
        canonical_name_put(reader, symbols[i], strlen(symbols[i]));
        reader->offset += strlen(symbols[i]);
        reader->offset += canonical_stands(reader, " <");
        return true;
    }
    while (canonical_name_peek(reader) && canonical_name_peek(reader) != '(') {
        char c = canonical_name_peek(reader);
        if (c == '<') {
            canonical_take_arguments(reader);
            continue;
        }
        canonical_name_put(reader, &c, 1);
        reader->offset++;
    }
    return true;
}

/* Handles a space. After parameters a qualifier of the function follows; it is dropped. Otherwise
 * the text before the space was a return type, or a word such as "non-virtual thunk to", and is
 * dropped. */
static void canonical_take_space(struct name_reader *reader, bool after_parameters)
{
    static const char *const qualifiers[] = {"const", "volatile", "&&", "&", "noexcept"};
    reader->offset++;
    for (size_t i = 0; after_parameters && i < sizeof qualifiers / sizeof qualifiers[0]; i++) {
        if (canonical_stands(reader, qualifiers[i])) {
            reader->offset += strlen(qualifiers[i]);
            return;
        }
    }
    reader->size = 0;
}

static void canonical_take_parentheses(struct name_reader *reader, bool *after_parameters)
{
    static const char anonymous[] = "(anonymous namespace)";
    if (canonical_stands(reader, anonymous)) {
        canonical_name_put(reader, anonymous, sizeof anonymous - 1);
        reader->offset += sizeof anonymous - 1;
        return;
    }
    canonical_skip_brackets(reader);
    *after_parameters = true;
}

static void canonical_name_take_part(struct name_reader *reader, bool *after_parameters)
{
    char c = canonical_name_peek(reader);
    bool at_begin = !reader->size || reader->text[reader->size - 1] == ':';
    if (c == ' ') {
        canonical_take_space(reader, *after_parameters);
    } else if (c == '(') {
        canonical_take_parentheses(reader, after_parameters);
    } else if (c == '[') {
        canonical_skip_brackets(reader);
    } else if (c == '<' && !(at_begin && canonical_stands(reader, "<lambda"))) {
        canonical_take_arguments(reader);
    } else if (canonical_take_lambda(reader) || canonical_take_operator(reader)) {
        *after_parameters = false;
    } else if (c == '{') {
        canonical_skip_brackets(reader);
        canonical_name_put(reader, "{}", 2);
    } else {
        *after_parameters = false;
        canonical_name_put(reader, &c, 1);
        reader->offset++;
    }
}

static size_t name_write_canonical(struct name_reader *reader)
{
    reader->name = canonical_without_clone(reader->name);
    /* Names of C are canonical. */
    if (!memchr(reader->name.data, '(', reader->name.size) &&
        !memchr(reader->name.data, ':', reader->name.size) &&
        !memchr(reader->name.data, '<', reader->name.size)) {
        canonical_name_put(reader, reader->name.data, reader->name.size);
        return reader->size;
    }
    bool after_parameters = false;
    while (reader->offset < reader->name.size)
        canonical_name_take_part(reader, &after_parameters);
    return reader->size;
}

/* Returns the size of "<Type>" at the begin of the name of a method of Rust; other versions of its
 * mangling write "Type"; 0 if there is none. "<Type as Trait>" is another one. */
static size_t canonical_size_of_inherent(struct ttd_string name)
{
    size_t depth = 0, size = 0;
    if (name.size < 3 || name.data[0] != '<' || canonical_stands_at(name, 0, "<lambda"))
        return 0;
    do {
        char c = name.data[size];
        bool is_arrow = c == '>' && name.data[size - 1] == '-';
        if (c == '<' || c == '(' || c == '[')
            depth++;
        else if ((c == '>' || c == ')' || c == ']') && !is_arrow)
            depth--;
        if (depth == 1 && canonical_stands_at(name, size, " as "))
            return 0;
        size++;
    } while (depth && size < name.size);
    return depth == 0 && canonical_stands_at(name, size, "::") ? size : 0;
}

size_t canonical_name(struct ttd_string name, char *text)
{
    size_t size = 0, inherent = canonical_size_of_inherent(name);
    if (inherent) {
        struct ttd_string type = {name.data + 1, inherent - 2};
        struct name_reader reader = {.name = type, .text = text};
        size = name_write_canonical(&reader);
        name = (struct ttd_string){name.data + inherent, name.size - inherent};
    }
    struct name_reader reader = {.name = name, .text = text + size};
    return size + (name.size ? name_write_canonical(&reader) : 0);
}

/* Whether the suffix of a part or copy of a function begins at an offset. Compilers append it when
 * they split or specialize a function. */
static bool canonical_is_clone_suffix(struct ttd_string name, size_t offset)
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
        if ((name.data[i] == '.' || name.data[i] == ' ') && canonical_is_clone_suffix(name, i))
            return (struct ttd_string){name.data, i};
    }
    return name;
}

/* Whether the name of an operator begins at an offset. */
static inline bool canonical_is_operator(struct ttd_string canonical, size_t offset)
{
    if (canonical.data[offset] != 'o')
        return false;
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
