/* SPDX-License-Identifier: MIT */
/*
 * A module's file may contain anything: loading its section .debug_frame reads nothing outside of
 * copies, takes memory in proportion to the file, gives all of it back, and ends. An input is a
 * byte whose bits say which files there are, then the module's file; each debug file is the same.
 */
#include <stdlib.h>
#include <string.h>

#include "../target.h"
#include "dwarf/frame_file.h"

/* Bytes of a section for each byte of its file, at most, and the memory of a search. */
enum { RATIO = 2 * 1032 + 8, SEARCH = 1 << 16 };

static const uint8_t *file_bytes;
static size_t file_size, memory_used;
static unsigned files_there; /* a bit for each file that is opened */

int dwarf_file_open(const char *path)
{
    bool is_there = files_there & 1;
    files_there >>= 1;
    target_require(strnlen(path, 5000) < 4096, "a path that ends");
    return is_there ? 1 : -1;
}

bool dwarf_file_read(int file, uint64_t offset, void *bytes, size_t size)
{
    (void)file;
    if (offset > file_size || size > file_size - offset)
        return false;
    memcpy(bytes, file_bytes + offset, size);
    return true;
}

void dwarf_file_close(int file)
{
    (void)file;
}

void *dwarf_pages(size_t size)
{
    memory_used += size;
    target_require(memory_used <= SEARCH + file_size * RATIO, "memory in proportion to the file");
    return calloc(1, size);
}

void dwarf_pages_free(void *pages, size_t size)
{
    target_require(size <= memory_used, "memory that was taken");
    memory_used -= size;
    free(pages);
}

/* The other functions of cfi.c have no module to look at. */

struct cfi_span modules_segment(const struct cfi_lookup *lookup, uintptr_t address)
{
    (void)lookup;
    (void)address;
    return (struct cfi_span){0};
}

struct cursor span_fetch(const struct cfi_span *span, uintptr_t address, size_t size)
{
    (void)span;
    (void)address;
    (void)size;
    return (struct cursor){.is_bad = true};
}

static const struct debug_frame *loaded;

const struct debug_frame *modules_debug_frame(struct cfi_lookup *lookup, uintptr_t *bias)
{
    (void)lookup;
    *bias = 0;
    return loaded;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct debug_frame frame = {.size = 0};
    if (size == 0)
        return 0;
    files_there = data[0];
    file_bytes = data + 1;
    file_size = size - 1;
    if (debug_frame_load(1, "/usr/bin/module", 0, UINT64_MAX, &frame)) {
        target_require(frame.fde_count > 0 && frame.size > 0, "a section with records");
        loaded = &frame;
        for (size_t i = 0; i < frame.fde_count && i < 64; i++) {
            static struct cfi_lookup lookup;
            uint64_t code = frame.fdes[i].code + 4;
            memset(&lookup, 0, sizeof lookup);
            if (cfi_find(&lookup, code))
                cfi_row(&lookup, code);
        }
        debug_frame_unload(&frame);
    }
    target_require(memory_used == 0 && !frame.bytes, "no memory is kept");
    return 0;
}
