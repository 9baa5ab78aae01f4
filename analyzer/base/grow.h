/* SPDX-License-Identifier: MIT */
/** Growing of arrays by doubling. */
#ifndef ANALYZER_BASE_GROW_H
#define ANALYZER_BASE_GROW_H

#include <stddef.h>

#include <ttdtrace/status.h>

/**
 * Makes room for `count` elements of `size` bytes in `*array`, whose capacity is `*capacity`
 * elements.
 *
 * @return TTD_OK, or TTD_ERROR_NO_MEMORY with the array untouched.
 */
enum ttd_status grow_array(void **array, size_t *capacity, size_t count, size_t size);

#endif
