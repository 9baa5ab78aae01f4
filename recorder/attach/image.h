/* SPDX-License-Identifier: MIT */
/* The image of the library that is attached: loaded from its file, and relocated for a process. */
#ifndef RECORDER_ATTACH_IMAGE_H
#define RECORDER_ATTACH_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attached.h"
#include "attach/modules.h"

struct attach_image {
    uint8_t *bytes;     /* as they are to be in the process */
    size_t size;        /* a multiple of the page size */
    size_t data;        /* offset of the part that is written to, likewise */
    uint64_t own;       /* offset of the struct attached */
    uint64_t call;      /* offset of the code for a system call: see struct borrowed_code */
    uint64_t copy;      /* offset of the code that makes a copy, likewise */
    uint64_t stack_end; /* offset, likewise */
    uint64_t run;       /* offset of the code that begins to record */
    const struct attached_hook *hooks; /* in `bytes` */
    size_t hook_count;
    uint64_t thread_size; /* of thread-local data */
};

/* Loads the file. Prints a message and returns false if it cannot be used. */
bool attach_image_load(struct attach_image *image, const char *path);
void attach_image_free(struct attach_image *image);

static inline struct attached *attach_image_own(const struct attach_image *image)
{
    return (struct attached *)(image->bytes + image->own);
}

/*
 * Relocates the image for the address `base`, with its thread-local data at an offset from the
 * thread pointer, and functions of the modules. Once only. Returns NULL, or the first name that
 * none of the modules defines.
 */
const char *attach_image_relocate(struct attach_image *image, uint64_t base, int64_t thread_block,
                                  struct attach_modules *modules);

/* Returns the name of the n-th symbol that must be found in the modules; NULL behind the last. */
const char *attach_image_import(const struct attach_image *image, size_t number);

#endif
