/* SPDX-License-Identifier: MIT */
/*
 * The cache is a log of batches. Each has the answers of one child for one module:
 *
 *     batch     size of the rest, 1 if its answers are variables, size of the build-id,
 *               size of the path, build-id, path, answers or variables
 *     answer    offset, number of frames, frames
 *     frame     line, size of function, size of file, bytes of function, bytes of file
 *     variable  offset, begin and size of the variable, size of its name, name
 *
 * Bytes below `used` never change, so that they are read without a lock.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS, MADV_DONTFORK, pthread_mutex_clocklock */
#include "symbolize/cache/cache.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "symbolize/cache/answer_index.h"
#include "symbolize/process/worker.h"
#include "symbolize/symbolize.h"

/*
 * Encoder of a cache's log: passes answers on to a function, and encodes them as batches of the
 * log, whose format cache.c describes.
 */

/* The owner sets the first group, zeroes the rest, and frees `data`. */
struct answer_log {
    const struct symbolize_module *modules;
    /* Receives each answer. */
    symbolize_function *function;
    void *context;
    size_t limit; /* bytes that `data` may have */

    uint8_t *data;
    size_t size;
    size_t capacity;
    /* Offset of the batch under construction, and the index of its module. */
    size_t batch;
    size_t module;
    /* Memory ran out or `limit` was reached: the bytes from `batch` on are incomplete. */
    bool has_failed;
};

static void cache_answer_log_put(struct answer_log *log, const void *data, size_t size)
{
    if (log->has_failed || size == 0)
        return;
    if (size > log->capacity - log->size) {
        size_t capacity = 2 * (log->size + size) + 4096;
        uint8_t *grown = capacity <= log->limit ? realloc(log->data, capacity) : NULL;
        log->has_failed = !grown;
        if (log->has_failed)
            return;
        log->data = grown;
        log->capacity = capacity;
    }
    memcpy(log->data + log->size, data, size);
    log->size += size;
}

static void cache_answer_log_put_number(struct answer_log *log, uint32_t value)
{
    cache_answer_log_put(log, &value, sizeof value);
}

/* Completes the last batch: all bytes before `batch` are then complete. */
static void cache_answer_log_end_batch(struct answer_log *log)
{
    uint32_t size = (uint32_t)(log->size - log->batch);
    if (log->has_failed || size == 0)
        return;
    size -= (uint32_t)sizeof size;
    memcpy(log->data + log->batch, &size, sizeof size);
    log->batch = log->size;
}

static void cache_begin_batch(struct answer_log *log, size_t index)
{
    const struct symbolize_module *module = &log->modules[index];
    cache_answer_log_end_batch(log);
    log->module = index;
    cache_answer_log_put_number(log, 0); /* cache_answer_log_end_batch() sets the size */
    cache_answer_log_put_number(log, module->is_data);
    cache_answer_log_put_number(log, (uint32_t)module->build_id_size);
    cache_answer_log_put_number(log, (uint32_t)strlen(module->path));
    cache_answer_log_put(log, module->build_id, module->build_id_size);
    cache_answer_log_put(log, module->path, strlen(module->path));
}

/* Passes an answer on and encodes it. A symbolize_function; `context` is the answer_log. */
static void cache_answer_log_add(void *context, size_t module, uint64_t offset,
                                 const struct symbolize_frame *frames, size_t count)
{
    struct answer_log *log = context;
    log->function(log->context, module, offset, frames, count);
    /* A file without a build-id may have changed when its path is asked for again. */
    if (log->modules[module].build_id_size == 0)
        return;
    if (log->batch == log->size || log->module != module)
        cache_begin_batch(log, module);
    cache_answer_log_put(log, &offset, sizeof offset);
    if (log->modules[module].is_data) {
        cache_answer_log_put(log, &frames->begin, sizeof frames->begin);
        cache_answer_log_put(log, &frames->size, sizeof frames->size);
        cache_answer_log_put_number(log, (uint32_t)frames->function_size);
        cache_answer_log_put(log, frames->function, frames->function_size);
        return;
    }
    cache_answer_log_put_number(log, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        cache_answer_log_put_number(log, frames[i].line);
        cache_answer_log_put_number(log, (uint32_t)frames[i].function_size);
        cache_answer_log_put_number(log, (uint32_t)frames[i].file_size);
        cache_answer_log_put(log, frames[i].function, frames[i].function_size);
        cache_answer_log_put(log, frames[i].file, frames[i].file_size);
    }
}

enum { CAPACITY = 64 * 1024 * 1024, PATIENCE = 2 /* seconds */ };

/* Memory that all processes share. */
struct shared {
    pthread_mutex_t asking;    /* held by the process that asks a child */
    struct helper helper;      /* used by the holder of `asking` */
    pthread_mutex_t appending; /* held while the log grows */
    _Atomic size_t used;
    uint8_t log[];
};

enum { LOG_MAX = CAPACITY - sizeof(struct shared) };

struct symbolize_cache {
    struct shared *shared;
    struct answer_index index;     /* of this process, built from the log */
    struct lookup_process process; /* of the process that made the cache */
};

/* Initializes a mutex in shared memory. Robust, since a process may die while it holds the lock. */
static void cache_init_mutex(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

/* Returns false if the lock cannot be had within PATIENCE. */
static bool cache_lock(pthread_mutex_t *mutex)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE;
    int error = pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until);
    /* The holder died. The log is consistent: `used` is set last. */
    if (error == EOWNERDEAD)
        error = pthread_mutex_consistent(mutex);
    return error == 0;
}

/* Children read untrusted files, so they must not inherit the log: they could falsify it. */
static int cache_hide(const struct symbolize_cache *cache)
{
    return madvise(cache->shared, CAPACITY, MADV_DONTFORK) < 0 ? errno : 0;
}

static void cache_show(const struct symbolize_cache *cache)
{
    (void)madvise(cache->shared, CAPACITY, MADV_DOFORK);
}

static lookup_function cache_prepare;

struct symbolize_cache *symbolize_cache_new(void)
{
    struct symbolize_cache *cache = calloc(1, sizeof *cache);
    struct shared *shared = mmap(NULL, CAPACITY, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!cache || shared == MAP_FAILED) {
        if (shared != MAP_FAILED)
            munmap(shared, CAPACITY);
        free(cache);
        return NULL;
    }
    cache_init_mutex(&shared->asking);
    cache_init_mutex(&shared->appending);
    cache->shared = shared;
    if (cache_hide(cache) == 0)
        helper_start(&shared->helper, SYMBOLIZE_MEMORY);
    cache_show(cache);
    const int files[] = {shared->helper.fd, shared->helper.pidfd};
    lookup_process_start(&cache->process, cache_prepare, cache, files,
                         shared->helper.pid != 0 ? 2 : 0);
    return cache;
}

size_t symbolize_cache_size(const struct symbolize_cache *cache)
{
    return cache ? atomic_load_explicit(&cache->shared->used, memory_order_acquire) : 0;
}

void symbolize_cache_free(struct symbolize_cache *cache)
{
    if (!cache)
        return;
    lookup_process_stop(&cache->process);
    helper_stop(&cache->shared->helper);
    munmap(cache->shared, CAPACITY);
    answer_index_free(&cache->index);
    free(cache);
}

size_t symbolize_image(struct symbolize_cache *cache, const struct symbolize_module *module)
{
    if (!cache)
        return SIZE_MAX;
    answer_index_read(&cache->index, cache->shared->log, symbolize_cache_size(cache));
    return answer_index_image(&cache->index, module);
}

bool symbolize_answer(const struct symbolize_cache *cache, size_t image, uint64_t offset,
                      struct symbolize_frame *frames, size_t *count)
{
    return cache && answer_index_find(&cache->index, image, offset, frames, count);
}

/* ---- Requests ---- */

/* A request: modules with those offsets that are not answered yet. */
struct request {
    struct symbolize_module *modules;
    uint64_t *offsets;
    size_t count;
    symbolize_function *function;
    void *context;
};

/* Copies the modules, since answered offsets are removed. Returns false if memory ran out. */
static bool cache_copy_request(struct request *request, const struct symbolize_module *modules)
{
    size_t total = 0;
    for (size_t i = 0; i < request->count; i++)
        total += modules[i].offset_count;
    request->modules = calloc(request->count + 1, sizeof *request->modules);
    request->offsets = calloc(total + 1, sizeof *request->offsets);
    if (!request->modules || !request->offsets)
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

/* Passes on the answers that the log has for a module, and removes their offsets. */
static void cache_answer_module(struct request *request, struct symbolize_cache *cache,
                                size_t index)
{
    struct symbolize_module *module = &request->modules[index];
    uint64_t *offsets = request->offsets + (module->offsets - request->offsets);
    size_t image = module->offset_count > 0 ? symbolize_image(cache, module) : SIZE_MAX;
    size_t kept_count = 0;
    for (size_t i = 0; i < module->offset_count; i++) {
        struct symbolize_frame frames[SYMBOLIZE_FRAMES_MAX];
        size_t count;
        if (symbolize_answer(cache, image, offsets[i], frames, &count))
            request->function(request->context, index, offsets[i], frames, count);
        else
            offsets[kept_count++] = offsets[i];
    }
    module->offset_count = kept_count;
}

/* Passes on all answers that the log has. Returns true if no offset is left. */
static bool cache_answer_from_log(struct request *request, struct symbolize_cache *cache)
{
    size_t unanswered = 0;
    for (size_t i = 0; i < request->count; i++) {
        cache_answer_module(request, cache, i);
        unanswered += request->modules[i].offset_count;
    }
    return unanswered == 0;
}

/* ---- Writing ---- */

static void cache_append(struct shared *cache, const uint8_t *data, size_t size)
{
    if (size == 0 || !cache_lock(&cache->appending))
        return;
    size_t used = atomic_load_explicit(&cache->used, memory_order_relaxed);
    if (size <= LOG_MAX - used) {
        memcpy(cache->log + used, data, size);
        atomic_store_explicit(&cache->used, used + size, memory_order_release);
    }
    pthread_mutex_unlock(&cache->appending);
}

/* Whether every module was read completely. Poorer answers are not cached: the next child may do
 * better. */
static bool cache_is_best(const struct symbolize_summary *summary)
{
    return summary->modules_reduced + summary->modules_failed + summary->modules_skipped == 0;
}

static int cache_ask(struct symbolize_cache *cache, struct helper *helper,
                     const struct request *request)
{
    struct answer_log log = {.modules = request->modules,
                             .function = request->function,
                             .context = request->context,
                             .limit = LOG_MAX};
    struct symbolize_summary summary;
    int error = cache_hide(cache);
    if (error != 0)
        return error;
    error = symbolize_with(&(struct symbolize_options){.helper = helper}, request->modules,
                           request->count, cache_answer_log_add, &log, &summary);
    cache_show(cache);
    cache_answer_log_end_batch(&log);
    if (error == 0 && cache_is_best(&summary))
        cache_append(cache->shared, log.data, log.batch);
    free(log.data);
    return error;
}

/* Asks a child. The log is searched again under the lock: whoever held it may have asked for the
 * same. */
static int cache_ask_in_turn(struct symbolize_cache *cache, struct request *request)
{
    int error = 0;
    bool locked = cache_lock(&cache->shared->asking);
    if (!locked || !cache_answer_from_log(request, cache))
        error = cache_ask(cache, locked ? &cache->shared->helper : NULL, request);
    if (locked)
        pthread_mutex_unlock(&cache->shared->asking);
    return error;
}

int symbolize_cached(struct symbolize_cache *cache, const struct symbolize_module *modules,
                     size_t count, symbolize_function *function, void *context)
{
    struct request request = {.count = count, .function = function, .context = context};
    int error = 0;
    if (!cache || !cache_copy_request(&request, modules))
        error = symbolize(modules, count, function, context, NULL);
    else if (!cache_answer_from_log(&request, cache))
        error = cache_ask_in_turn(cache, &request);
    free(request.modules);
    free(request.offsets);
    return error;
}

static void cache_ignore(void *context, size_t module, uint64_t offset,
                         const struct symbolize_frame *frames, size_t count)
{
    (void)context, (void)module, (void)offset, (void)frames, (void)count;
}

static void cache_prepare(void *cache, const struct symbolize_module *modules, size_t count)
{
    symbolize_cached(cache, modules, count, cache_ignore, NULL);
}

bool symbolize_prepare(struct symbolize_cache *cache, const struct symbolize_module *modules,
                       size_t count)
{
    return cache && lookup_process_send(&cache->process, modules, count);
}

bool symbolize_is_preparing(struct symbolize_cache *cache)
{
    return cache && lookup_process_is_busy(&cache->process);
}
