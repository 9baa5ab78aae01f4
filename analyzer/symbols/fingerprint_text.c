/* SPDX-License-Identifier: MIT */
/* Fingerprints as text, for baselines and reports. */
#include <string.h>

#include "symbols/fingerprint.h"

void fingerprint_format(struct fingerprint value, char text[FINGERPRINT_TEXT])
{
    for (unsigned i = 0; i < 32; i++) {
        uint64_t half = i < 16 ? value.high : value.low;
        text[i] = "0123456789abcdef"[half >> (60 - 4 * (i % 16)) & 15];
    }
    text[32] = 0;
}

bool fingerprint_parse(const char *text, struct fingerprint *result)
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
    *result = (struct fingerprint){halves[0], halves[1]};
    return true;
}
