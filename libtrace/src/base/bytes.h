/* SPDX-License-Identifier: MIT */
/** Little-endian integers in bytes, zigzag and rotation. */
#ifndef TTD_BASE_BYTES_H
#define TTD_BASE_BYTES_H

#include <stdint.h>

static inline uint16_t ttd_get16(const uint8_t *p)
{
    return (uint16_t)(p[0] | (unsigned)p[1] << 8);
}

static inline uint32_t ttd_get32(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t ttd_get64(const uint8_t *p)
{
    return ttd_get32(p) | (uint64_t)ttd_get32(p + 4) << 32;
}

static inline void ttd_put16(uint8_t *p, uint16_t value)
{
    p[0] = (uint8_t)value;
    p[1] = (uint8_t)(value >> 8);
}

static inline void ttd_put32(uint8_t *p, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(value >> (8 * i));
}

static inline void ttd_put64(uint8_t *p, uint64_t value)
{
    ttd_put32(p, (uint32_t)value);
    ttd_put32(p + 4, (uint32_t)(value >> 32));
}

/** Maps differences modulo 2^64 so that small ones, up or down, become small numbers. */
static inline uint64_t ttd_zigzag(uint64_t difference)
{
    return difference << 1 ^ (UINT64_C(0) - (difference >> 63));
}

static inline uint64_t ttd_unzigzag(uint64_t value)
{
    return value >> 1 ^ (UINT64_C(0) - (value & 1));
}

static inline uint64_t ttd_rotate_right(uint64_t value, unsigned bits)
{
    return value >> bits | value << (64 - bits);
}

static inline uint64_t ttd_rotate_left(uint64_t value, unsigned bits)
{
    return value << bits | value >> (64 - bits);
}

/** Writes a varint of at most 10 bytes; returns the byte after it. */
static inline uint8_t *ttd_put_varint(uint8_t *p, uint64_t value)
{
    while (value >= 0x80) {
        *p++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *p++ = (uint8_t)value;
    return p;
}

#endif
