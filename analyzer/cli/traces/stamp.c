/* SPDX-License-Identifier: MIT */
#include "cli/traces/stamp.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct stamp stamp_of(const char *path)
{
    struct stamp result = {.text = ""};
    struct stat file;
    if (stat(path, &file) == 0 && S_ISREG(file.st_mode))
        snprintf(result.text, sizeof result.text,
                 "%" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 ".%09ld %" PRId64 ".%09ld",
                 (uint64_t)file.st_dev, (uint64_t)file.st_ino, (int64_t)file.st_size,
                 (int64_t)file.st_mtim.tv_sec, file.st_mtim.tv_nsec, (int64_t)file.st_ctim.tv_sec,
                 file.st_ctim.tv_nsec);
    return result;
}

bool stamp_is_same(const struct stamp *before, const struct stamp *after)
{
    return before->text[0] && strcmp(before->text, after->text) == 0;
}
