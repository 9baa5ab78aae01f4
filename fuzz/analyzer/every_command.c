/* SPDX-License-Identifier: MIT */
/*
 * Runs the target `commands` over the given traces, each with so many identifiers, which choose the
 * command line, that every command is run with every format and option.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../target.h"
#include "support/chunk_edit.h"

#define LINES 1000

static uint8_t *read_trace(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    target_require(file && fseek(file, 0, SEEK_END) == 0, path);
    *size = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*size);
    target_require(bytes && fread(bytes, 1, *size, file) == *size, path);
    fclose(file);
    target_require(*size >= TTD_HEADER_SIZE, "a trace");
    return bytes;
}

int main(int argc, char **argv)
{
    unsigned count = 0;
    for (int i = 1; i < argc; i++) {
        size_t size;
        uint8_t *bytes = read_trace(argv[i], &size);
        for (uint64_t id = 1; id <= LINES; id++, count++) {
            ttd_put64(bytes + TTD_HEADER_TRACE_ID, id);
            chunk_edit_seal_all(bytes, size);
            LLVMFuzzerTestOneInput(bytes, size);
        }
        free(bytes);
    }
    printf("%u command lines\n", count);
    return count ? 0 : 1;
}
