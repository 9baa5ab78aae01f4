/* SPDX-License-Identifier: MIT */
#include "base/numbers.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Reads digits; `end` is set to the first character behind them. */
static bool numbers_parse_digits(const char *text, const char **end, uint64_t *number)
{
    bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    unsigned char first = (unsigned char)text[is_hex ? 2 : 0];
    if (is_hex ? !isxdigit(first) : !isdigit(first))
        return false;
    char *digits_end;
    errno = 0;
    unsigned long long value = strtoull(text, &digits_end, is_hex ? 16 : 10);
    if (errno)
        return false;
    *number = value;
    *end = digits_end;
    return true;
}

bool number_parse(const char *text, uint64_t *number)
{
    const char *end;
    uint64_t value;
    if (!numbers_parse_digits(text, &end, &value) || *end)
        return false;
    *number = value;
    return true;
}

static bool numbers_take_size(const char *text, const char **end, uint64_t *number)
{
    uint64_t value;
    if (!numbers_parse_digits(text, end, &value))
        return false;
    static const char suffixes[] = "KMGT";
    const char *suffix = **end ? strchr(suffixes, toupper((unsigned char)**end)) : NULL;
    if (suffix) {
        unsigned shift = 10 * (unsigned)(suffix - suffixes + 1);
        if (value > UINT64_MAX >> shift)
            return false;
        value <<= shift;
        ++*end;
    }
    *number = value;
    return true;
}

bool number_parse_size(const char *text, uint64_t *number)
{
    const char *end;
    uint64_t value;
    if (!numbers_take_size(text, &end, &value) || *end)
        return false;
    *number = value;
    return true;
}

/* Accepts all or nothing: after "10-" a typing error such as "10-x" must not become an open range.
 */
bool number_parse_range(const char *text, struct number_range *range)
{
    const char *end;
    struct number_range result;
    if (!numbers_take_size(text, &end, &result.first))
        return false;
    result.last = result.first;
    uint64_t length;
    if (*end == '-' && !end[1]) {
        result.last = UINT64_MAX;
    } else if (*end == '-') {
        if (!number_parse_size(end + 1, &result.last) || result.last < result.first)
            return false;
    } else if (*end == '+') {
        if (!number_parse_size(end + 1, &length) || !length ||
            length - 1 > UINT64_MAX - result.first)
            return false;
        result.last = result.first + (length - 1);
    } else if (*end) {
        return false;
    }
    *range = result;
    return true;
}
