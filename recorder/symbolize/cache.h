/* SPDX-License-Identifier: MIT */
/**
 * What was answered already, for all processes that inherit it by fork(). Programs that start
 * hundreds of others, such as a build, name the same addresses of the same libraries again and
 * again; to read the debug information of the C library alone takes a tenth of a second.
 *
 * Answers are kept by path and build-id, so modules without one are asked for each time; and only
 * those of children that could read all there was to read. Entries are only added, up to a limit.
 */
#ifndef TTD_SYMBOLIZE_CACHE_H
#define TTD_SYMBOLIZE_CACHE_H

#include <stddef.h>

#include "symbolize.h"

struct symbolize_cache;

/**
 * NULL if there is no memory; all works without. It is shared with processes forked later, as is a
 * child that it starts: see helper.h. Another one is this process's alone: see asker.h.
 */
struct symbolize_cache *symbolize_cache_new(void);
/** A number that grows whenever something more is known. `cache` may be NULL. */
size_t symbolize_cache_size(const struct symbolize_cache *cache);

/** By the process that has made it. */
void symbolize_cache_free(struct symbolize_cache *cache);

/**
 * The same as symbolize(), but the child that reads debug information is asked only for what is
 * not known, if anything; it does not see the cache. What is known comes first, in any order.
 *
 * @param cache  may be NULL.
 * @return as symbolize(), or what madvise() says. What is known is told in any case.
 */
int symbolize_cached(struct symbolize_cache *cache, const struct symbolize_module *modules,
                     size_t count, symbolize_function *function, void *context);

/**
 * Has everything looked up that is not known, for those who ask later, by another process. Only by
 * the process that has made the cache.
 *
 * @return false if that is not possible, or not now; `cache` may be NULL.
 */
bool symbolize_prepare(struct symbolize_cache *cache, const struct symbolize_module *modules,
                       size_t count);

/** Whether that is under way. */
bool symbolize_is_preparing(struct symbolize_cache *cache);

/**
 * A number for the file of a module, which stays as long as the cache; SIZE_MAX if nothing is known
 * of it. `cache` may be NULL: then nothing is.
 */
size_t symbolize_image(struct symbolize_cache *cache, const struct symbolize_module *module);

/**
 * The names of an address of that file, as symbolize() would tell them. Nobody is asked.
 *
 * @param image   from symbolize_image(), which also looks for what others have added.
 * @param frames  has room for SYMBOLIZE_FRAMES_MAX; its strings are valid as long as the cache.
 * @return false if they are not known.
 */
bool symbolize_answer(const struct symbolize_cache *cache, size_t image, uint64_t offset,
                      struct symbolize_frame *frames, size_t *count);

#endif
