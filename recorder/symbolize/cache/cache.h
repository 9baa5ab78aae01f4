/* SPDX-License-Identifier: MIT */
/**
 * Cache of names, shared by all processes that inherit it by fork(). A program that starts hundreds
 * of others, such as a build, needs the same names of the same libraries again and again, and
 * reading the debug information of the C library alone takes a tenth of a second.
 *
 * Answers are stored by path and build-id; modules without a build-id are looked up each time. Only
 * answers of children that read everything are stored. Answers are never removed; there is a limit.
 */
#ifndef RECORDER_SYMBOLIZE_CACHE_CACHE_H
#define RECORDER_SYMBOLIZE_CACHE_CACHE_H

#include <stddef.h>

#include "symbolize/symbolize.h"

struct symbolize_cache;

/**
 * Makes a cache, and starts the helper, which processes forked later share, and the lookup process,
 * which serves this process alone (worker.h). Returns NULL if memory ran out; all functions accept
 * that.
 */
struct symbolize_cache *symbolize_cache_new(void);

/** Returns a number that grows whenever answers are added. `cache` may be NULL. */
size_t symbolize_cache_size(const struct symbolize_cache *cache);

/** Frees the cache and ends its processes. Called only by the process that made it. */
void symbolize_cache_free(struct symbolize_cache *cache);

/**
 * Like symbolize(), but answers from the cache first, in any order, and asks a child only for the
 * rest, if any. The child does not see the cache.
 *
 * @param cache  may be NULL.
 * @return as symbolize(), or errno of madvise(). Answers of the cache are passed on in any case.
 */
int symbolize_cached(struct symbolize_cache *cache, const struct symbolize_module *modules,
                     size_t count, symbolize_function *function, void *context);

/**
 * Has the lookup process add answers that the cache lacks. Does not wait. Called only by the
 * process that made the cache (may be NULL).
 *
 * @return false if the lookup process is busy, or there is none.
 */
bool symbolize_prepare(struct symbolize_cache *cache, const struct symbolize_module *modules,
                       size_t count);

/** Whether the lookup process is busy. `cache` may be NULL. */
bool symbolize_is_preparing(struct symbolize_cache *cache);

/**
 * Returns the number of a module's image, valid as long as the cache, or SIZE_MAX if there are no
 * answers for it. Reads the answers that other processes have added. `cache` may be NULL.
 */
size_t symbolize_image(struct symbolize_cache *cache, const struct symbolize_module *module);

/**
 * Returns the names of an address from the cache, asking no child.
 *
 * @param image   from symbolize_image().
 * @param frames  has room for SYMBOLIZE_FRAMES_MAX; its strings are valid as long as the cache.
 * @return false if the cache has no answer.
 */
bool symbolize_answer(const struct symbolize_cache *cache, size_t image, uint64_t offset,
                      struct symbolize_frame *frames, size_t *count);

#endif
