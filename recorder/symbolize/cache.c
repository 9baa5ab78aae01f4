/* SPDX-License-Identifier: MIT */
/*
 * The cache is a log of batches, one for each module that somebody has asked a child for:
 *
 *     batch   size of the rest, size of the build-id, size of the path, build-id, path, entries
 *     entry   offset, number of frames, frames
 *     frame   line, size of function, size of file, bytes of function, bytes of file
 *
 * What lies below `used` never changes, so that it is read without a lock.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS, MADV_DONTFORK, pthread_mutex_clocklock */
#include "cache.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "answers.h"
#include "asker.h"
#include "helper.h"
#include "known.h"

enum { CAPACITY = 64 * 1024 * 1024, PATIENCE = 2 /* seconds */ };

/* What all processes share. */
struct shared {
    pthread_mutex_t asking; /* a child; who waits for that may find all answered afterwards */
    struct helper helper;   /* for whoever holds that lock */
    pthread_mutex_t appending;
    _Atomic size_t used;
    uint8_t log[];
};

enum { LOG_MAX = CAPACITY - sizeof(struct shared) };

struct symbolize_cache {
    struct shared *shared;
    struct known known; /* this process's, made from the log */
    struct asker asker; /* of the process that has made it */
};

/* Shared, and robust: processes may die at any time. */
static void init_mutex(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

/* False if that takes too long, or is impossible. */
static bool lock(pthread_mutex_t *mutex)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE;
    int error = pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until);
    /* Whoever died while it held the lock has changed nothing that is in use. */
    if (error == EOWNERDEAD)
        error = pthread_mutex_consistent(mutex);
    return error == 0;
}

/* Children read what nobody trusts: they do not see the log. */
static int hide(const struct symbolize_cache *cache)
{
    return madvise(cache->shared, CAPACITY, MADV_DONTFORK) < 0 ? errno : 0;
}

static void show(const struct symbolize_cache *cache)
{
    (void)madvise(cache->shared, CAPACITY, MADV_DOFORK);
}

static asker_function prepare;

struct symbolize_cache *symbolize_cache_new(void)
{
    struct symbolize_cache *cache = calloc(1, sizeof *cache);
    struct shared *shared = mmap(NULL, CAPACITY, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (cache == NULL || shared == MAP_FAILED) {
        if (shared != MAP_FAILED)
            munmap(shared, CAPACITY);
        free(cache);
        return NULL;
    }
    init_mutex(&shared->asking);
    init_mutex(&shared->appending);
    cache->shared = shared;
    if (hide(cache) == 0)
        helper_start(&shared->helper, SYMBOLIZE_MEMORY);
    show(cache);
    const int files[] = {shared->helper.fd, shared->helper.pidfd};
    asker_start(&cache->asker, prepare, cache, files, shared->helper.pid != 0 ? 2 : 0);
    return cache;
}

size_t symbolize_cache_size(const struct symbolize_cache *cache)
{
    return cache != NULL ? atomic_load_explicit(&cache->shared->used, memory_order_acquire) : 0;
}

void symbolize_cache_free(struct symbolize_cache *cache)
{
    if (cache == NULL)
        return;
    asker_stop(&cache->asker);
    helper_stop(&cache->shared->helper);
    munmap(cache->shared, CAPACITY);
    known_free(&cache->known);
    free(cache);
}

size_t symbolize_image(struct symbolize_cache *cache, const struct symbolize_module *module)
{
    if (cache == NULL)
        return SIZE_MAX;
    known_read(&cache->known, cache->shared->log, symbolize_cache_size(cache));
    return known_image(&cache->known, module);
}

bool symbolize_answer(const struct symbolize_cache *cache, size_t image, uint64_t offset,
                      struct symbolize_frame *frames, size_t *count)
{
    return cache != NULL && known_find(&cache->known, image, offset, frames, count);
}

/* ---- What is asked for ---- */

/* The modules with the offsets that are not answered yet. */
struct request {
    struct symbolize_module *modules;
    uint64_t *offsets;
    size_t count;
    symbolize_function *function;
    void *context;
};

static void free_request(struct request *request)
{
    free(request->modules);
    free(request->offsets);
}

/* A copy, since offsets are to be taken out. False without memory. */
static bool copy_request(struct request *request, const struct symbolize_module *modules)
{
    size_t total = 0;
    for (size_t i = 0; i < request->count; i++)
        total += modules[i].offset_count;
    request->modules = calloc(request->count + 1, sizeof *request->modules);
    request->offsets = calloc(total + 1, sizeof *request->offsets);
    if (request->modules == NULL || request->offsets == NULL)
        return false;
    uint64_t *offsets = request->offsets;
    for (size_t i = 0; i < request->count; i++) {
        size_t count = modules[i].offset_count;
        request->modules[i] = modules[i];
        request->modules[i].offsets = offsets;
        if (count > 0)
            memcpy(offsets, modules[i].offsets, count * sizeof *offsets);
        offsets += count;
    }
    return true;
}

/* Tells what is known of a module, and takes it out of the request. */
static void tell_module(struct request *request, struct symbolize_cache *cache, size_t index)
{
    struct symbolize_module *module = &request->modules[index];
    uint64_t *offsets = request->offsets + (module->offsets - request->offsets);
    size_t image = module->offset_count > 0 ? symbolize_image(cache, module) : SIZE_MAX;
    size_t kept = 0;
    for (size_t i = 0; i < module->offset_count; i++) {
        struct symbolize_frame frames[SYMBOLIZE_FRAMES_MAX];
        size_t count;
        if (symbolize_answer(cache, image, offsets[i], frames, &count))
            request->function(request->context, index, offsets[i], frames, count);
        else
            offsets[kept++] = offsets[i];
    }
    module->offset_count = kept;
}

/* True when nothing is left. */
static bool tell_known(struct request *request, struct symbolize_cache *cache)
{
    size_t left = 0;
    for (size_t i = 0; i < request->count; i++) {
        tell_module(request, cache, i);
        left += request->modules[i].offset_count;
    }
    return left == 0;
}

/* ---- Writing ---- */

static void append(struct shared *cache, const uint8_t *data, size_t size)
{
    if (size == 0 || !lock(&cache->appending))
        return;
    size_t used = atomic_load_explicit(&cache->used, memory_order_relaxed);
    if (size <= LOG_MAX - used) {
        memcpy(cache->log + used, data, size);
        atomic_store_explicit(&cache->used, used + size, memory_order_release);
    }
    pthread_mutex_unlock(&cache->appending);
}

/* Whether all that was asked for was read as well as it can be. */
static bool is_best(const struct symbolize_summary *summary)
{
    return summary->modules_reduced + summary->modules_failed + summary->modules_skipped == 0;
}

static int ask(struct symbolize_cache *cache, struct helper *helper, const struct request *request)
{
    struct answers answers = {.modules = request->modules,
                              .function = request->function,
                              .context = request->context,
                              .limit = LOG_MAX};
    struct symbolize_summary summary;
    int error = hide(cache);
    if (error != 0)
        return error;
    error = symbolize_with(helper, NULL, request->modules, request->count, answers_keep, &answers,
                           &summary);
    show(cache);
    answers_end(&answers);
    if (error == 0 && is_best(&summary))
        append(cache->shared, answers.data, answers.batch);
    free(answers.data);
    return error;
}

static int ask_in_turn(struct symbolize_cache *cache, struct request *request)
{
    int error = 0;
    bool locked = lock(&cache->shared->asking);
    if (!locked || !tell_known(request, cache))
        error = ask(cache, locked ? &cache->shared->helper : NULL, request);
    if (locked)
        pthread_mutex_unlock(&cache->shared->asking);
    return error;
}

int symbolize_cached(struct symbolize_cache *cache, const struct symbolize_module *modules,
                     size_t count, symbolize_function *function, void *context)
{
    struct request request = {.count = count, .function = function, .context = context};
    int error = 0;
    if (cache == NULL || !copy_request(&request, modules))
        error = symbolize(modules, count, function, context, NULL);
    else if (!tell_known(&request, cache))
        error = ask_in_turn(cache, &request);
    free_request(&request);
    return error;
}

static void ignore(void *context, size_t module, uint64_t offset,
                   const struct symbolize_frame *frames, size_t count)
{
    (void)context, (void)module, (void)offset, (void)frames, (void)count;
}

static void prepare(void *cache, const struct symbolize_module *modules, size_t count)
{
    symbolize_cached(cache, modules, count, ignore, NULL);
}

bool symbolize_prepare(struct symbolize_cache *cache, const struct symbolize_module *modules,
                       size_t count)
{
    return cache != NULL && asker_ask(&cache->asker, modules, count);
}

bool symbolize_is_preparing(struct symbolize_cache *cache)
{
    return cache != NULL && asker_is_busy(&cache->asker);
}
