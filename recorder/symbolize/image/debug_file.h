/* SPDX-License-Identifier: MIT */
/** Debug files found by build-id alone: libdwfl looks for them only beside a module's own file. */
#ifndef RECORDER_SYMBOLIZE_IMAGE_DEBUG_FILE_H
#define RECORDER_SYMBOLIZE_IMAGE_DEBUG_FILE_H

#include "symbolize/symbolize.h"

/** Search path of libdwfl: the default, and what symbolize_set_debug_path() has added. */
extern char *debug_file_path;

/**
 * Looks in the directories, then asks the debuginfod servers. The caller verifies the build-id.
 *
 * @param path  set to the name of the file, to be freed
 * @return a descriptor, or -1.
 */
int debug_file_open(const struct symbolize_module *module, char **path);

#endif
