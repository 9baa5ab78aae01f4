/* SPDX-License-Identifier: MIT */
#include "report/writers/guid.h"

#include <stdio.h>

const char *guid_text(const uint8_t guid[16], char text[GUID_TEXT])
{
    char *end = text;
    for (size_t i = 0; i < 16; i++)
        end += sprintf(end, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", guid[i]);
    return text;
}

bool guid_is_given(const uint8_t guid[16])
{
    uint8_t bits = 0;
    for (size_t i = 0; i < 16; i++)
        bits |= guid[i];
    return bits != 0;
}
