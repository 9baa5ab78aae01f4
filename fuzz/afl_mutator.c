/* SPDX-License-Identifier: MIT */
/* The mutations of mutator.c as a library for AFL++, loaded by AFL_CUSTOM_MUTATOR_LIBRARY. */
#include <stdlib.h>
#include <string.h>

#include "target.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
void *afl_custom_init(void *afl, unsigned seed);
size_t afl_custom_fuzz(void *state, uint8_t *data, size_t size, uint8_t **out, uint8_t *other,
                       size_t other_size, size_t max_size);
void afl_custom_deinit(void *state);

struct mutator {
    uint8_t *data;
    size_t capacity;
};

static uint64_t random_state;

static unsigned draw(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(random_state >> 33);
}

/* Stands in for libFuzzer's function of this name: changes, inserts or removes a few bytes. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
    static const uint8_t values[] = {0x00, 0x01, 0x7F, 0x80, 0x81, 0xFE, 0xFF};
    for (unsigned left = 1 + draw() % 4; left; left--) {
        size_t at = size ? draw() % size : 0;
        switch (draw() % 4) {
        case 0:
            if (size)
                data[at] ^= (uint8_t)(1u << draw() % 8);
            break;
        case 1:
            if (size)
                data[at] = values[draw() % sizeof values];
            break;
        case 2:
            if (size > 1) {
                memmove(data + at, data + at + 1, size - at - 1);
                size--;
            }
            break;
        default:
            if (size < max_size) {
                memmove(data + at + 1, data + at, size - at);
                data[at] = (uint8_t)draw();
                size++;
            }
            break;
        }
    }
    return size;
}

void *afl_custom_init(void *afl, unsigned seed)
{
    (void)afl;
    random_state = seed;
    return calloc(1, sizeof(struct mutator));
}

size_t afl_custom_fuzz(void *state, uint8_t *data, size_t size, uint8_t **out, uint8_t *other,
                       size_t other_size, size_t max_size)
{
    struct mutator *mutator = state;
    (void)other;
    (void)other_size;
    if (mutator->capacity < max_size) {
        free(mutator->data);
        mutator->data = malloc(max_size);
        mutator->capacity = mutator->data ? max_size : 0;
    }
    if (!mutator->data || size > max_size) {
        *out = data;
        return size;
    }
    memcpy(mutator->data, data, size);
    *out = mutator->data;
    return LLVMFuzzerCustomMutator(mutator->data, size, max_size, draw());
}

void afl_custom_deinit(void *state)
{
    struct mutator *mutator = state;
    free(mutator->data);
    free(mutator);
}
