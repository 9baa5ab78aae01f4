/* SPDX-License-Identifier: MIT */
/* A copy of a loaded module's file, made of its memory: the symbols that other modules link to. */
#ifndef RECORDER_COLLECT_TRACE_MODULE_IMAGE_H
#define RECORDER_COLLECT_TRACE_MODULE_IMAGE_H

#include <stdint.h>

#include "collect/trace/modules.h"

/* Returns a file in memory, to be closed; -1 if the module cannot be read. */
int module_image_copy(const struct module *module, uint32_t pid);

#endif
