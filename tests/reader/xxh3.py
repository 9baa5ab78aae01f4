# SPDX-License-Identifier: MIT
"""XXH3-64 with seed 0, in plain Python."""

MASK = (1 << 64) - 1
SECRET = bytes.fromhex(
    'b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f'
    'cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c'
    '3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8'
    'a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364'
    'eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e'
    '2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e')
P32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
P64 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
       0x27D4EB2F165667C5)
STRIPES = 16


def get(data, at, size=8):
    return int.from_bytes(data[at:at + size], 'little')


def rotate(value, bits):
    return (value << bits | value >> (64 - bits)) & MASK


def fold(a, b):
    product = a * b
    return (product ^ product >> 64) & MASK


def avalanche(value):
    value ^= value >> 37
    value = value * 0x165667919E3779F9 & MASK
    return value ^ value >> 32


def avalanche64(value):
    value ^= value >> 33
    value = value * P64[1] & MASK
    value ^= value >> 29
    value = value * P64[2] & MASK
    return value ^ value >> 32


def mix16(data, at, secret):
    return fold(get(data, at) ^ get(SECRET, secret), get(data, at + 8) ^ get(SECRET, secret + 8))


def up_to_16(data):
    size = len(data)
    if size > 8:
        low = get(data, 0) ^ get(SECRET, 24) ^ get(SECRET, 32)
        high = get(data, size - 8) ^ get(SECRET, 40) ^ get(SECRET, 48)
        swapped = int.from_bytes(low.to_bytes(8, 'little'), 'big')
        return avalanche((size + swapped + high + fold(low, high)) & MASK)
    if size >= 4:
        value = get(data, size - 4, 4) + (get(data, 0, 4) << 32)
        value ^= get(SECRET, 8) ^ get(SECRET, 16)
        value ^= rotate(value, 49) ^ rotate(value, 24)
        value = value * 0x9FB21C651E98DF25 & MASK
        value ^= (value >> 35) + size
        value = value * 0x9FB21C651E98DF25 & MASK
        return value ^ value >> 28
    if size:
        value = data[0] << 16 | data[size >> 1] << 24 | data[-1] | size << 8
        return avalanche64(value ^ get(SECRET, 0, 4) ^ get(SECRET, 4, 4))
    return avalanche64(get(SECRET, 56) ^ get(SECRET, 64))


def up_to_240(data):
    size = len(data)
    value = size * P64[0]
    if size <= 128:
        for i in range((size - 1) // 32, -1, -1):
            value += mix16(data, 16 * i, 32 * i) + mix16(data, size - 16 * (i + 1), 32 * i + 16)
        return avalanche(value & MASK)
    for i in range(8):
        value += mix16(data, 16 * i, 16 * i)
    value = avalanche(value & MASK)
    for i in range(8, size // 16):
        value += mix16(data, 16 * i, 16 * (i - 8) + 3)
    return avalanche(value + mix16(data, size - 16, 136 - 17) & MASK)


def accumulate(sums, data, at, secret):
    for i in range(8):
        value = get(data, at + 8 * i)
        key = value ^ get(SECRET, secret + 8 * i)
        sums[i ^ 1] = sums[i ^ 1] + value & MASK
        sums[i] = sums[i] + (key & 0xFFFFFFFF) * (key >> 32) & MASK


def scramble(sums):
    for i in range(8):
        value = sums[i] ^ sums[i] >> 47 ^ get(SECRET, 128 + 8 * i)
        sums[i] = value * P32[0] & MASK


def long_hash(data):
    size = len(data)
    sums = [P32[2], P64[0], P64[1], P64[2], P64[3], P32[1], P64[4], P32[0]]
    for stripe in range((size - 1) // 64):
        accumulate(sums, data, 64 * stripe, 8 * (stripe % STRIPES))
        if stripe % STRIPES == STRIPES - 1:
            scramble(sums)
    accumulate(sums, data, size - 64, 192 - 64 - 7)
    value = size * P64[0]
    for i in range(4):
        value += fold(sums[2 * i] ^ get(SECRET, 11 + 16 * i),
                      sums[2 * i + 1] ^ get(SECRET, 19 + 16 * i))
    return avalanche(value & MASK)


def xxh3(data):
    if len(data) <= 16:
        return up_to_16(data)
    return up_to_240(data) if len(data) <= 240 else long_hash(data)
