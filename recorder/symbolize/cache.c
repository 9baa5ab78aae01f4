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
#include "helper.h"

enum { CAPACITY = 64 * 1024 * 1024, PATIENCE = 2 /* seconds */ };

struct symbolize_cache {
    pthread_mutex_t asking; /* a child; who waits for that may find all answered afterwards */
    struct helper helper;   /* for whoever holds that lock */
    pthread_mutex_t appending;
    _Atomic size_t used;
    uint8_t log[];
};

enum { LOG_MAX = CAPACITY - sizeof(struct symbolize_cache) };

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

/* Children read what nobody trusts: they do not see the cache. */
static int hide(struct symbolize_cache *cache)
{
    return madvise(cache, CAPACITY, MADV_DONTFORK) < 0 ? errno : 0;
}

static void show(struct symbolize_cache *cache)
{
    (void)madvise(cache, CAPACITY, MADV_DOFORK);
}

struct symbolize_cache *symbolize_cache_new(void)
{
    struct symbolize_cache *cache = mmap(NULL, CAPACITY, PROT_READ | PROT_WRITE,
                                         MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (cache == MAP_FAILED)
        return NULL;
    init_mutex(&cache->asking);
    init_mutex(&cache->appending);
    if (hide(cache) == 0)
        helper_start(&cache->helper, SYMBOLIZE_MEMORY);
    show(cache);
    return cache;
}

size_t symbolize_cache_size(const struct symbolize_cache *cache)
{
    return cache != NULL ? atomic_load_explicit(&cache->used, memory_order_acquire) : 0;
}

void symbolize_cache_free(struct symbolize_cache *cache)
{
    if (cache == NULL)
        return;
    helper_stop(&cache->helper);
    munmap(cache, CAPACITY);
}

/* ---- What is asked for ---- */

/* The modules with the offsets that are not answered yet, which are ascending. */
struct request {
    struct symbolize_module *modules;
    uint64_t *offsets;
    size_t count;
    /* For each of `offsets`, when the log is being read: whether it is answered. */
    uint8_t *answered;
    symbolize_function *function;
    void *context;
    /* How much of the log has been read. */
    size_t read;
};

static int compare_offsets(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

static void free_request(struct request *request)
{
    free(request->modules);
    free(request->offsets);
    free(request->answered);
}

/* A copy, since offsets are to be taken out. False without memory. */
static bool copy_request(struct request *request, const struct symbolize_module *modules)
{
    size_t total = 0;
    for (size_t i = 0; i < request->count; i++)
        total += modules[i].offset_count;
    request->modules = calloc(request->count + 1, sizeof *request->modules);
    request->offsets = calloc(total + 1, sizeof *request->offsets);
    request->answered = calloc(total + 1, 1);
    if (request->modules == NULL || request->offsets == NULL || request->answered == NULL)
        return false;
    uint64_t *offsets = request->offsets;
    for (size_t i = 0; i < request->count; i++) {
        size_t count = modules[i].offset_count;
        request->modules[i] = modules[i];
        request->modules[i].offsets = offsets;
        if (count > 0) {
            memcpy(offsets, modules[i].offsets, count * sizeof *offsets);
            qsort(offsets, count, sizeof *offsets, compare_offsets);
        }
        offsets += count;
    }
    return true;
}

/* ---- Reading ---- */

struct reading {
    const uint8_t *at;
    const uint8_t *end;
};

static void take(struct reading *reading, void *value, size_t size)
{
    memcpy(value, reading->at, size);
    reading->at += size;
}

static uint32_t take_number(struct reading *reading)
{
    uint32_t value;
    take(reading, &value, sizeof value);
    return value;
}

static const char *take_string(struct reading *reading, size_t size)
{
    const uint8_t *string = reading->at;
    reading->at += size;
    return size > 0 ? (const char *)string : NULL;
}

static size_t take_frames(struct reading *reading, struct symbolize_frame *frames)
{
    size_t count = take_number(reading);
    for (size_t i = 0; i < count; i++) {
        frames[i].line = take_number(reading);
        frames[i].function_size = take_number(reading);
        frames[i].file_size = take_number(reading);
        frames[i].function = take_string(reading, frames[i].function_size);
        frames[i].file = take_string(reading, frames[i].file_size);
    }
    return count;
}

/* Tells what a batch has of a module. */
static void tell_entries(struct request *request, size_t index, struct reading batch)
{
    const struct symbolize_module *module = &request->modules[index];
    uint8_t *answered = request->answered + (module->offsets - request->offsets);
    while (batch.at < batch.end) {
        struct symbolize_frame frames[SYMBOLIZE_FRAMES_MAX];
        uint64_t offset;
        take(&batch, &offset, sizeof offset);
        size_t count = take_frames(&batch, frames);
        const uint64_t *found =
            bsearch(&offset, module->offsets, module->offset_count, sizeof offset, compare_offsets);
        if (found == NULL || answered[found - module->offsets])
            continue;
        answered[found - module->offsets] = 1;
        request->function(request->context, index, offset, frames, count);
    }
}

/* To each module that it is about: one that was loaded several times is there as often. */
static void tell_batch(struct request *request, struct reading batch)
{
    size_t id_size = take_number(&batch);
    size_t path_size = take_number(&batch);
    const uint8_t *id = batch.at;
    const uint8_t *path = id + id_size;
    batch.at += id_size + path_size;
    for (size_t i = 0; i < request->count; i++) {
        const struct symbolize_module *module = &request->modules[i];
        if (module->offset_count > 0 && module->build_id_size == id_size &&
            memcmp(module->build_id, id, id_size) == 0 && strlen(module->path) == path_size &&
            memcmp(module->path, path, path_size) == 0)
            tell_entries(request, i, batch);
    }
}

/* Takes what is answered out of the request. True when nothing is left. */
static bool drop_answered(struct request *request)
{
    size_t left = 0;
    for (size_t i = 0; i < request->count; i++) {
        struct symbolize_module *module = &request->modules[i];
        size_t begin = (size_t)(module->offsets - request->offsets);
        size_t kept = 0;
        for (size_t k = begin; k < begin + module->offset_count; k++) {
            if (!request->answered[k])
                request->offsets[begin + kept++] = request->offsets[k];
        }
        memset(request->answered + begin, 0, module->offset_count);
        module->offset_count = kept;
        left += kept;
    }
    return left == 0;
}

/* From where the last one ended. True when nothing is left. */
static bool tell_known(struct request *request, const struct symbolize_cache *cache)
{
    size_t used = atomic_load_explicit(&cache->used, memory_order_acquire);
    struct reading log = {cache->log + request->read, cache->log + used};
    request->read = used;
    while (log.at < log.end) {
        uint32_t size = take_number(&log);
        tell_batch(request, (struct reading){log.at, log.at + size});
        log.at += size;
    }
    return drop_answered(request);
}

/* ---- Writing ---- */

static void append(struct symbolize_cache *cache, const uint8_t *data, size_t size)
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
        append(cache, answers.data, answers.batch);
    free(answers.data);
    return error;
}

static int ask_in_turn(struct symbolize_cache *cache, struct request *request)
{
    int error = 0;
    bool locked = lock(&cache->asking);
    if (!locked || !tell_known(request, cache))
        error = ask(cache, locked ? &cache->helper : NULL, request);
    if (locked)
        pthread_mutex_unlock(&cache->asking);
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

void symbolize_known(const struct symbolize_cache *cache, const struct symbolize_module *modules,
                     size_t count, symbolize_function *function, void *context)
{
    struct request request = {.count = count, .function = function, .context = context};
    if (cache != NULL && copy_request(&request, modules))
        tell_known(&request, cache);
    free_request(&request);
}

static void ignore(void *context, size_t module, uint64_t offset,
                   const struct symbolize_frame *frames, size_t count)
{
    (void)context, (void)module, (void)offset, (void)frames, (void)count;
}

void symbolize_prepare(struct symbolize_cache *cache, const struct symbolize_module *modules,
                       size_t count)
{
    symbolize_cached(cache, modules, count, ignore, NULL);
}

bool symbolize_is_known(const struct symbolize_cache *cache, const struct symbolize_module *modules,
                        size_t count)
{
    struct request request = {.count = count, .function = ignore};
    bool known = cache != NULL && copy_request(&request, modules) && tell_known(&request, cache);
    free_request(&request);
    return known;
}
