/* SPDX-License-Identifier: MIT */
/*
 * mutate SEED IN OUT: writes a mutated copy of a trace, the same one for the same seed. For files
 * that are larger, and programs that are slower, than what a fuzzing engine is good at; see
 * tools/mutated-files.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target.h"

/* Room for added bytes. */
#define GROWTH 65536

#define MUTATIONS_MAX 4

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

static uint64_t state;

static size_t draw(size_t limit)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return limit ? (size_t)(state >> 33) % limit : 0;
}

static void mutate_byte(uint8_t *byte)
{
    static const uint8_t extremes[] = {0, 1, 0x7F, 0x80, 0xFF};
    switch (draw(3)) {
    case 0:
        *byte ^= (uint8_t)(1u << draw(8));
        break;
    case 1:
        *byte = extremes[draw(sizeof extremes)];
        break;
    default:
        *byte = (uint8_t)draw(256);
        break;
    }
}

/* Repeats or removes some bytes. */
static size_t change_length(uint8_t *data, size_t size, size_t max_size)
{
    size_t at = draw(size);
    size_t count = 1 + draw(size - at < 16 ? size - at : 16);
    if (draw(2)) {
        memmove(data + at, data + at + count, size - at - count);
        return size - count;
    }
    if (count > max_size - size)
        return size;
    memmove(data + at + count, data + at, size - at);
    return size + count;
}

/* The changes that an engine would make in bytes of which it knows nothing. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
    for (size_t count = 1 + draw(3); count && size; count--) {
        if (draw(4) == 0)
            size = change_length(data, size, max_size);
        else
            mutate_byte(data + draw(size));
    }
    return size;
}

static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    target_require(file && fseek(file, 0, SEEK_END) == 0, path);
    *size = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*size + GROWTH);
    target_require(bytes && fread(bytes, 1, *size, file) == *size, path);
    fclose(file);
    return bytes;
}

int main(int argc, char **argv)
{
    target_require(argc == 4, "usage: mutate SEED IN OUT");
    state = strtoull(argv[1], NULL, 10);
    size_t size;
    uint8_t *bytes = read_file(argv[2], &size);
    size_t max_size = size + GROWTH;
    for (size_t count = 1 + draw(MUTATIONS_MAX); count; count--)
        size = LLVMFuzzerCustomMutator(bytes, size, max_size, (unsigned)draw(UINT32_MAX));
    FILE *out = fopen(argv[3], "wb");
    target_require(out && fwrite(bytes, 1, size, out) == size && fclose(out) == 0, argv[3]);
    free(bytes);
    return 0;
}
