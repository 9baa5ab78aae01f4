/* SPDX-License-Identifier: MIT */
/* A copy of a loaded module's file, made of its memory: the symbols that other modules link to. */
#ifndef TTD_COLLECT_TRACE_MODULE_IMAGE_H
#define TTD_COLLECT_TRACE_MODULE_IMAGE_H

#include <stdint.h>

#include "modules.h"

/* Returns a file in memory, to be closed; -1 if the module cannot be read. */
int module_image_copy(const struct module *module, uint32_t pid);

#endif
