/* SPDX-License-Identifier: MIT */
/** Files of modules, and what tells one from another. */
#ifndef RECORDER_SYMBOLIZE_IMAGE_IMAGE_FILE_H
#define RECORDER_SYMBOLIZE_IMAGE_IMAGE_FILE_H

#include <stdbool.h>

#include "symbolize/symbolize.h"

/** Opens a regular file by its absolute path, or returns -1: opening a FIFO may block, opening a
 * device may have effects. */
int image_file_open(const char *path);

/** Sets `file` to what an open file is now. */
bool image_file_read(int fd, struct symbolize_file *file);

/** Whether a file, as it was when it was read, is the given one, unchanged. */
bool image_file_same(const struct symbolize_file *now, const struct symbolize_file *file);

/** Whether an open file is the given one, unchanged; true if nothing is known of that. */
bool image_file_is(int fd, const struct symbolize_file *file);

#endif
