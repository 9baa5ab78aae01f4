/* SPDX-License-Identifier: MIT */
#include <ttdtrace/position.h>

#include <string.h>

static char *position_format_hex(char *text, uint64_t value)
{
    int shift = 60;
    while (shift > 0 && (value >> shift & 15) == 0)
        shift -= 4;
    for (; shift >= 0; shift -= 4)
        *text++ = "0123456789ABCDEF"[value >> shift & 15];
    return text;
}

size_t ttd_position_format(struct ttd_position position, char text[TTD_POSITION_TEXT])
{
    if (!ttd_position_is_valid(position)) {
        memcpy(text, "Invalid", sizeof "Invalid");
        return sizeof "Invalid" - 1;
    }
    char *end = position_format_hex(text, position.sequence);
    *end++ = ':';
    end = position_format_hex(end, position.steps);
    *end = '\0';
    return (size_t)(end - text);
}

/** Reads hexadecimal digits; NULL if there are none or the value exceeds 64 bits. */
static const char *position_parse_hex(const char *text, uint64_t *value)
{
    const char *start = text;
    uint64_t result = 0;
    for (;; text++) {
        unsigned digit;
        if (*text >= '0' && *text <= '9')
            digit = (unsigned)(*text - '0');
        else if (*text >= 'a' && *text <= 'f')
            digit = (unsigned)(*text - 'a') + 10;
        else if (*text >= 'A' && *text <= 'F')
            digit = (unsigned)(*text - 'A') + 10;
        else
            break;
        /* Another digit would not fit. */
        if (result >> 60 != 0)
            return NULL;
        result = result << 4 | digit;
    }
    if (text == start)
        return NULL;
    *value = result;
    return text;
}

bool ttd_position_parse(const char *text, struct ttd_position *position)
{
    struct ttd_position result;
    text = position_parse_hex(text, &result.sequence);
    /* The result is set at the end: it is untouched if the text is wrong. */
    if (!text || *text++ != ':')
        return false;
    text = position_parse_hex(text, &result.steps);
    if (!text || *text != '\0' || !ttd_position_is_valid(result))
        return false;
    *position = result;
    return true;
}
