/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target over files damaged systematically: cut at every length, and with whole chunks
 * left out, repeated, swapped and forged under valid checksums.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/chunk_edit.h"
#include "target.h"

#define CHUNKS_MAX 64

struct subject {
    uint8_t *data;
    size_t size;
    /** Offsets of the chunks, then the size of the file. */
    size_t offsets[CHUNKS_MAX];
    size_t count;
};

static struct subject read_subject(const char *path)
{
    struct subject s = {.count = 0};
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        abort();
    s.size = (size_t)ftell(file);
    rewind(file);
    s.data = malloc(s.size);
    target_require(s.data && fread(s.data, 1, s.size, file) == s.size, "file");
    fclose(file);
    target_require(target_is_intact(s.data, s.size), "an intact file");
    size_t at;
    while ((at = chunk_edit_find(s.data, s.size, s.count)) < s.size) {
        target_require(s.count + 3 < CHUNKS_MAX, "few chunks");
        s.offsets[s.count++] = at;
    }
    s.offsets[s.count] = s.size;
    return s;
}

static unsigned inputs;
static unsigned intact;

static void try_file(const uint8_t *bytes, size_t size)
{
    inputs++;
    intact += target_is_intact(bytes, size) != 0;
    LLVMFuzzerTestOneInput(bytes, size);
}

/* Tries a file of some of the subject's chunks, in the given order. */
static void try_chunks(const struct subject *s, const size_t *chunks, size_t count, bool is_sealed)
{
    uint8_t *bytes = malloc(2 * s->size);
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        size_t chunk = s->offsets[chunks[i] + 1] - s->offsets[chunks[i]];
        memcpy(bytes + size, s->data + s->offsets[chunks[i]], chunk);
        size += chunk;
    }
    if (is_sealed)
        chunk_edit_seal_all(bytes, size);
    try_file(bytes, size);
    free(bytes);
}

static size_t all_but(const struct subject *s, size_t left_out, size_t chunks[CHUNKS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < s->count; i++)
        if (i != left_out)
            chunks[count++] = i;
    return count;
}

/* Leaves out each chunk, repeats it in place and at the end, and swaps it with the next. */
static void try_order(const struct subject *s, bool is_sealed)
{
    size_t chunks[CHUNKS_MAX];
    for (size_t i = 0; i < s->count; i++) {
        try_chunks(s, chunks, all_but(s, i, chunks), is_sealed);
        size_t count = all_but(s, i, chunks);
        memmove(chunks + i + 2, chunks + i, (count - i) * sizeof *chunks);
        chunks[i] = chunks[i + 1] = i;
        try_chunks(s, chunks, s->count + 1, is_sealed);
        all_but(s, s->count, chunks);
        chunks[s->count] = i;
        try_chunks(s, chunks, s->count + 1, is_sealed);
        if (i + 1 == s->count)
            continue;
        chunks[i] = i + 1;
        chunks[i + 1] = i;
        try_chunks(s, chunks, s->count, is_sealed);
    }
}

/* Changes each field of each header, and corrects the hash. */
static void try_headers(const struct subject *s)
{
    static const size_t fields[] = {8, 10, 12, 13, 14, 16, 20, 32, 40, 48, 56, 64, 72, 80, 88, 96};
    uint8_t *bytes = malloc(s->size);
    for (size_t i = 0; i < s->count; i++) {
        for (size_t k = 0; k < sizeof fields / sizeof *fields; k++) {
            for (unsigned how = 0; how < 5; how++) {
                memcpy(bytes, s->data, s->size);
                uint8_t *field = bytes + s->offsets[i] + fields[k];
                bool is_byte = fields[k] == 12 || fields[k] == 13;
                size_t at = how == 3 && !is_byte ? 2 : how == 4 && !is_byte ? 1 : 0;
                static const uint8_t masks[] = {0x01, 0xFF, 0x10, 0x40, 0x80};
                field[at] ^= masks[how];
                chunk_edit_seal_header(bytes + s->offsets[i]);
                try_file(bytes, s->size);
            }
        }
    }
    free(bytes);
}

/* Changes each byte of each payload, and corrects the hash. */
static void try_payloads(const struct subject *s)
{
    uint8_t *bytes = malloc(s->size);
    for (size_t i = 0; i < s->count; i++) {
        for (size_t at = s->offsets[i] + TTD_HEADER_SIZE; at < s->offsets[i + 1]; at++) {
            memcpy(bytes, s->data, s->size);
            bytes[at] ^= (uint8_t)(1u << at % 8);
            chunk_edit_seal(bytes + s->offsets[i], s->size - s->offsets[i]);
            try_file(bytes, s->size);
        }
    }
    free(bytes);
}

static void try_cuts(const struct subject *s)
{
    for (size_t size = 0; size < s->size; size++)
        try_file(s->data, size);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        struct subject s = read_subject(argv[i]);
        intact = 0;
        try_file(s.data, s.size);
        try_cuts(&s);
        target_require(intact == 1, "nothing that was cut is intact");
        intact = 0;
        try_order(&s, false);
        try_order(&s, true);
        try_headers(&s);
        try_payloads(&s);
        printf("%s: %u inputs so far, %u changed ones intact\n", argv[i], inputs, intact);
        free(s.data);
    }
    return 0;
}
