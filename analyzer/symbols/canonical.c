/* SPDX-License-Identifier: MIT */
#include "symbols/canonical.h"

#include <string.h>

/* A name that is being read, and what it has become. */
struct name_reader {
    struct ttd_string name;
    size_t at;
    char *text;
    size_t size;
};

static bool stands_at(struct ttd_string name, size_t at, const char *word)
{
    size_t size = strlen(word);
    return at <= name.size && name.size - at >= size && memcmp(name.data + at, word, size) == 0;
}

/* Whether a suffix begins here that compilers give to a part or a copy of a function. */
static bool is_clone_suffix(struct ttd_string name, size_t at)
{
    static const char *const words[] = {".cold",     ".constprop",  ".isra", ".llvm",
                                        ".lto_priv", ".localalias", ".part"};
    if (stands_at(name, at, " [clone "))
        return true;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t after = at + strlen(words[i]);
        if (stands_at(name, at, words[i]) && (after == name.size || name.data[after] == '.'))
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

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || (unsigned char)c >= 0x80;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char peek(const struct name_reader *from)
{
    return from->at < from->name.size ? from->name.data[from->at] : 0;
}

static bool stands(const struct name_reader *from, const char *word)
{
    return stands_at(from->name, from->at, word);
}

static void put(struct name_reader *to, const char *text, size_t size)
{
    memcpy(to->text + to->size, text, size);
    to->size += size;
}

/* Goes behind the bracket that closes the one at this place, or to the end. */
static void skip_brackets(struct name_reader *from)
{
    size_t depth = 0;
    do {
        char c = peek(from);
        /* "->" in an argument closes nothing. */
        bool is_arrow = c == '>' && from->at > 0 && from->name.data[from->at - 1] == '-';
        if (c == '(' || c == '<' || c == '{' || c == '[')
            depth++;
        else if ((c == ')' || c == '>' || c == '}' || c == ']') && !is_arrow)
            depth--;
        from->at++;
    } while (depth && from->at < from->name.size);
}

/* "{lambda(int)#1}" of demanglers, "<lambda(int)>" of debug information, "$_0" of clang. */
static bool take_lambda(struct name_reader *from)
{
    bool is_part = from->size > 1 && from->text[from->size - 1] == ':';
    size_t end = from->at + 2;
    while (end < from->name.size && is_digit(from->name.data[end]))
        end++;
    if (is_part && stands(from, "$_") && stands_at(from->name, end, "::"))
        from->at = end;
    else if (stands(from, "{lambda") || stands(from, "<lambda"))
        skip_brackets(from);
    else
        return false;
    put(from, "{lambda}", 8);
    return true;
}

/* The words of a built-in type come in any order: "long unsigned int", "unsigned long". */
struct builtin {
    bool is_unsigned;
    bool is_signed;
    bool is_short;
    bool has_int;
    unsigned longs;
};

static bool add_builtin(struct builtin *type, struct ttd_string word)
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

static void flush_builtin(struct name_reader *to, struct builtin *type)
{
    bool has_other = type->is_unsigned || type->is_short || type->longs;
    if (type->is_unsigned)
        put(to, "unsigned", 8);
    if (type->is_signed && !has_other && !type->has_int)
        put(to, "signed", 6);
    if (type->is_short)
        put(to, "short", 5);
    for (unsigned i = 0; i < type->longs; i++)
        put(to, "long", 4);
    if (type->has_int && !has_other)
        put(to, "int", 3);
    *type = (struct builtin){.longs = 0};
}

static struct ttd_string take_word(struct name_reader *from)
{
    size_t begin = from->at;
    while (is_word(peek(from)))
        from->at++;
    return (struct ttd_string){from->name.data + begin, from->at - begin};
}

static void put_word(struct name_reader *to, struct builtin *type, struct ttd_string word)
{
    static const char *const dropped[] = {"const", "volatile"};
    for (size_t i = 0; i < sizeof dropped / sizeof dropped[0]; i++) {
        if (word.size == strlen(dropped[i]) && memcmp(word.data, dropped[i], word.size) == 0)
            return;
    }
    if (add_builtin(type, word))
        return;
    flush_builtin(to, type);
    /* "3ul" is 3. */
    while (is_digit(word.data[0]) && word.size > 1 && strchr("ul", word.data[word.size - 1]))
        word.size--;
    put(to, word.data, word.size);
}

/* Template arguments, without what is written in several ways. */
static void take_arguments(struct name_reader *from)
{
    struct builtin type = {.longs = 0};
    struct name_reader end = *from;
    skip_brackets(&end);
    while (from->at < end.at) {
        char c = peek(from);
        if (is_word(c)) {
            put_word(from, &type, take_word(from));
            continue;
        }
        if (c != ' ')
            flush_builtin(from, &type);
        if (take_lambda(from))
            continue;
        if (c != ' ')
            put(from, &c, 1);
        from->at++;
    }
    flush_builtin(from, &type);
}

/* "operator" and what follows it, which may be brackets or a type. */
static bool take_operator(struct name_reader *from)
{
    static const char *const symbols[] = {"()", "[]", "<=>", "<<=", ">>=", "<<", ">>",
                                          "<=", ">=", "->*", "->",  "<",   ">"};
    if (!stands(from, "operator") || (from->size && is_word(from->text[from->size - 1])))
        return false;
    if (from->at + 8 < from->name.size && is_word(from->name.data[from->at + 8]))
        return false;
    put(from, "operator", 8);
    from->at += 8;
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        if (!stands(from, symbols[i]))
            continue;
        put(from, symbols[i], strlen(symbols[i]));
        from->at += strlen(symbols[i]);
        from->at += stands(from, " <");
        return true;
    }
    while (peek(from) && peek(from) != '(') {
        char c = peek(from);
        if (c == '<') {
            take_arguments(from);
            continue;
        }
        put(from, &c, 1);
        from->at++;
    }
    return true;
}

/* After parameters: "const", "&" and the like belong to the function. What else a space follows is
 * its type, or says what it is. */
static void take_space(struct name_reader *from, bool after_parameters)
{
    static const char *const qualifiers[] = {"const", "volatile", "&&", "&", "noexcept"};
    from->at++;
    for (size_t i = 0; after_parameters && i < sizeof qualifiers / sizeof qualifiers[0]; i++) {
        if (stands(from, qualifiers[i])) {
            from->at += strlen(qualifiers[i]);
            return;
        }
    }
    from->size = 0;
}

static void take_parentheses(struct name_reader *from, bool *after_parameters)
{
    static const char anonymous[] = "(anonymous namespace)";
    if (stands(from, anonymous)) {
        put(from, anonymous, sizeof anonymous - 1);
        from->at += sizeof anonymous - 1;
        return;
    }
    skip_brackets(from);
    *after_parameters = true;
}

static void take_part(struct name_reader *from, bool *after_parameters)
{
    char c = peek(from);
    bool at_begin = !from->size || from->text[from->size - 1] == ':';
    if (c == ' ') {
        take_space(from, *after_parameters);
    } else if (c == '(') {
        take_parentheses(from, after_parameters);
    } else if (c == '[') {
        skip_brackets(from);
    } else if (c == '<' && !(at_begin && stands(from, "<lambda"))) {
        take_arguments(from);
    } else if (take_lambda(from) || take_operator(from)) {
        *after_parameters = false;
    } else if (c == '{') {
        skip_brackets(from);
        put(from, "{}", 2);
    } else {
        *after_parameters = false;
        put(from, &c, 1);
        from->at++;
    }
}

static size_t write_name(struct name_reader *from)
{
    from->name = canonical_without_clone(from->name);
    /* A name of C is as it is. */
    if (!memchr(from->name.data, '(', from->name.size) &&
        !memchr(from->name.data, ':', from->name.size) &&
        !memchr(from->name.data, '<', from->name.size)) {
        put(from, from->name.data, from->name.size);
        return from->size;
    }
    bool after_parameters = false;
    while (from->at < from->name.size)
        take_part(from, &after_parameters);
    return from->size;
}

size_t canonical_name(struct ttd_string name, char *text)
{
    struct name_reader from = {.name = name, .text = text};
    return name.size ? write_name(&from) : 0;
}

/* Whether an operator's name begins here. */
static bool is_operator(struct ttd_string canonical, size_t at)
{
    bool begins = !at || canonical.data[at - 1] == ':';
    return begins && stands_at(canonical, at, "operator") &&
           (at + 8 == canonical.size || !is_word(canonical.data[at + 8]));
}

size_t canonical_bare(struct ttd_string canonical, char *text)
{
    size_t depth = 0;
    size_t size = 0;
    for (size_t i = 0; i < canonical.size; i++) {
        char c = canonical.data[i];
        if (!depth && is_operator(canonical, i)) {
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
        if (!depth && is_operator(canonical, i)) {
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
