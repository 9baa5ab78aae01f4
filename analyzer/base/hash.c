/* SPDX-License-Identifier: MIT */
#include "base/hash.h"

#include <time.h>
#include <unistd.h>

struct hash_key hash_key_new(void)
{
    struct hash_key key;
    if (getentropy(&key, sizeof key) != 0) {
        struct timespec now = {0, 0};
        clock_gettime(CLOCK_MONOTONIC, &now);
        key.add = (uint64_t)now.tv_nsec ^ (uintptr_t)&key;
        key.multiply = hash_value((struct hash_key){key.add, 1}, (uint64_t)now.tv_sec);
    }
    key.multiply |= 1;
    return key;
}
