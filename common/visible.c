/* SPDX-License-Identifier: MIT */
#include "visible.h"

#include <stdio.h>
#include <string.h>

size_t visible_decode(const unsigned char *data, size_t size, uint32_t *character)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = data[0];
    if (first < 0x80) {
        *character = first;
        return 1;
    }
    size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || length > size)
        return 0;
    uint32_t value = first & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((data[i] & 0xC0) != 0x80)
            return 0;
        value = value << 6 | (data[i] & 0x3F);
    }
    if (value < smallest[length] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
        return 0;
    *character = value;
    return length;
}

/* The table has the controls, format characters and default ignorable characters of Unicode, in
 * order. */
bool visible_is_hidden(uint32_t character)
{
    static const struct {
        uint32_t first;
        uint32_t last;
    } ranges[] = {{0x0000, 0x001F},   {0x007F, 0x009F},   {0x00AD, 0x00AD},   {0x034F, 0x034F},
                  {0x0600, 0x0605},   {0x061C, 0x061C},   {0x06DD, 0x06DD},   {0x070F, 0x070F},
                  {0x0890, 0x0891},   {0x08E2, 0x08E2},   {0x115F, 0x1160},   {0x17B4, 0x17B5},
                  {0x180B, 0x180F},   {0x200B, 0x200F},   {0x2028, 0x202E},   {0x2060, 0x206F},
                  {0x3164, 0x3164},   {0xFE00, 0xFE0F},   {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0},
                  {0xFFF0, 0xFFFB},   {0x110BD, 0x110BD}, {0x110CD, 0x110CD}, {0x13430, 0x1343F},
                  {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF}};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0] && ranges[i].first <= character; i++) {
        if (character <= ranges[i].last)
            return true;
    }
    return false;
}

void visible_escape(const char *text, size_t size, char *escaped, size_t room)
{
    enum { ESCAPE = sizeof "\\xNN" - 1 };
    const unsigned char *data = (const unsigned char *)text;
    size_t used = 0;
    for (size_t i = 0; i < size;) {
        uint32_t character = 0;
        size_t length = visible_decode(data + i, size - i, &character);
        bool is_visible = length != 0 && !visible_is_hidden(character);
        bool is_doubled = is_visible && character == '\\';
        length += length == 0;
        size_t needed = is_visible ? length + is_doubled : length * ESCAPE;
        if (needed >= room - used)
            break;
        if (is_doubled)
            escaped[used++] = '\\';
        if (is_visible)
            used += (size_t)((char *)mempcpy(escaped + used, text + i, length) - (escaped + used));
        for (size_t j = 0; !is_visible && j < length; j++)
            used += (size_t)sprintf(escaped + used, "\\x%02x", data[i + j]);
        i += length;
    }
    escaped[used] = '\0';
}
