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
#include <sys/random.h>
#include <time.h>

#include "arrays.h"
#include "symbolize/process/worker.h"
#include "symbolize/symbolize.h"

/* ---- The index ----
 *
 * Hash table over the answers in the log, by image and offset. Each process has its own, since the
 * table holds addresses. */

enum { FIRST_ANSWERS = 1024 };

/* A file that the log has answers for. Build-id and path point into the log. */
struct answered_image {
    const uint8_t *id;
    const uint8_t *path;
    uint32_t id_size;
    uint32_t path_size;
    /* The answers are variables. */
    bool is_data;
};

/* An entry of the table: the encoded names of an address. NULL in a free entry. */
struct indexed_answer {
    uint64_t offset;
    const uint8_t *names;
    size_t image;
};

/* All zero when empty. */
struct answer_index {
    struct answered_image *images;
    size_t image_count;
    size_t image_capacity;
    struct indexed_answer *answers;
    size_t answer_count;
    size_t answer_capacity; /* 0, or a power of two */
    size_t indexed_size;    /* bytes of the log that are indexed */
    uint64_t key;           /* random: offsets come from untrusted processes */
};

struct log_cursor {
    const uint8_t *next;
    const uint8_t *end;
};

static void answer_index_log_take(struct log_cursor *cursor, void *value, size_t size)
{
    memcpy(value, cursor->next, size);
    cursor->next += size;
}

static uint32_t answer_index_log_take_number(struct log_cursor *cursor)
{
    uint32_t value;
    answer_index_log_take(cursor, &value, sizeof value);
    return value;
}

static const uint8_t *answer_index_take_bytes(struct log_cursor *cursor, size_t size)
{
    const uint8_t *bytes = cursor->next;
    cursor->next += size;
    return bytes;
}

static const char *answer_index_log_take_string(struct log_cursor *cursor, size_t size)
{
    const uint8_t *string = answer_index_take_bytes(cursor, size);
    return size > 0 ? (const char *)string : NULL;
}

static void answer_index_log_take_frame(struct log_cursor *cursor, struct symbolize_frame *frame)
{
    *frame = (struct symbolize_frame){.line = answer_index_log_take_number(cursor)};
    frame->function_size = answer_index_log_take_number(cursor);
    frame->file_size = answer_index_log_take_number(cursor);
    frame->function = answer_index_log_take_string(cursor, frame->function_size);
    frame->file = answer_index_log_take_string(cursor, frame->file_size);
}

static void answer_index_log_take_variable(struct log_cursor *cursor,
                                           struct symbolize_frame *variable)
{
    *variable = (struct symbolize_frame){.line = 0};
    answer_index_log_take(cursor, &variable->begin, sizeof variable->begin);
    answer_index_log_take(cursor, &variable->size, sizeof variable->size);
    variable->function_size = answer_index_log_take_number(cursor);
    variable->function = answer_index_log_take_string(cursor, variable->function_size);
}

static void answer_index_skip(struct log_cursor *cursor, bool is_data)
{
    struct symbolize_frame skipped;
    if (is_data) {
        answer_index_log_take_variable(cursor, &skipped);
        return;
    }
    for (uint32_t count = answer_index_log_take_number(cursor); count > 0; count--)
        answer_index_log_take_frame(cursor, &skipped);
}

/* ---- Images ---- */

static size_t answer_index_find_image(const struct answer_index *index,
                                      const struct answered_image *image)
{
    for (size_t i = 0; i < index->image_count; i++) {
        const struct answered_image *answered = &index->images[i];
        if (answered->is_data == image->is_data && answered->id_size == image->id_size &&
            answered->path_size == image->path_size &&
            memcmp(answered->id, image->id, image->id_size) == 0 &&
            memcmp(answered->path, image->path, image->path_size) == 0)
            return i;
    }
    return SIZE_MAX;
}

/* Returns the image's index, or SIZE_MAX if memory ran out. */
static size_t answer_index_add_image(struct answer_index *index, const struct answered_image *image)
{
    size_t index_of_image = answer_index_find_image(index, image);
    if (index_of_image != SIZE_MAX)
        return index_of_image;
    void *grown = array_grow(index->images, index->image_count, &index->image_capacity,
                             sizeof *index->images);
    if (!grown)
        return SIZE_MAX;
    index->images = grown;
    index->images[index->image_count] = *image;
    return index->image_count++;
}

/* ---- Answers ---- */

/*
 * Returns the entry of an address, or the free entry where it belongs. The hash is keyed with a
 * random number: recorded programs choose the offsets, and could make all of them collide.
 */
static struct indexed_answer *answer_index_probe(const struct answer_index *index, size_t image,
                                                 uint64_t offset)
{
    uint64_t factor = ((uint64_t)image << 1 | 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (index->key << 1);
    size_t mask = index->answer_capacity - 1;
    size_t slot = array_hash(offset ^ index->key, factor) & mask;
    for (;; slot = (slot + 1) & mask) {
        struct indexed_answer *answer = &index->answers[slot];
        if (!answer->names || (answer->offset == offset && answer->image == image))
            return answer;
    }
}

static bool answer_index_make_room(struct answer_index *index)
{
    if (index->answer_count + index->answer_count / 2 < index->answer_capacity)
        return true;
    struct answer_index old = *index;
    size_t capacity = old.answer_capacity != 0 ? old.answer_capacity * 2 : FIRST_ANSWERS;
    struct indexed_answer *answers = calloc(capacity, sizeof *answers);
    if (!answers)
        return false;
    index->answers = answers;
    index->answer_capacity = capacity;
    for (size_t i = 0; i < old.answer_capacity; i++)
        if (old.answers[i].names)
            *answer_index_probe(index, old.answers[i].image, old.answers[i].offset) =
                old.answers[i];
    free(old.answers);
    return true;
}

/* Returns false if memory ran out. */
static bool answer_index_add(struct answer_index *index, size_t image, uint64_t offset,
                             const uint8_t *names)
{
    if (!answer_index_make_room(index))
        return false;
    struct indexed_answer *answer = answer_index_probe(index, image, offset);
    index->answer_count += !answer->names;
    *answer = (struct indexed_answer){offset, names, image};
    return true;
}

static bool answer_index_read_batch(struct answer_index *index, struct log_cursor batch)
{
    struct answered_image image;
    image.is_data = answer_index_log_take_number(&batch) != 0;
    image.id_size = answer_index_log_take_number(&batch);
    image.path_size = answer_index_log_take_number(&batch);
    image.id = answer_index_take_bytes(&batch, image.id_size);
    image.path = answer_index_take_bytes(&batch, image.path_size);
    size_t number = answer_index_add_image(index, &image);
    if (number == SIZE_MAX)
        return false;
    while (batch.next < batch.end) {
        uint64_t offset;
        answer_index_log_take(&batch, &offset, sizeof offset);
        if (!answer_index_add(index, number, offset, batch.next))
            return false;
        answer_index_skip(&batch, image.is_data);
    }
    return true;
}

/* Indexes the log up to `log_size` bytes. If memory runs out, later answers are not found yet; the
 * next call tries again. */
static void answer_index_read(struct answer_index *index, const uint8_t *log, size_t log_size)
{
    if (index->key == 0 && getrandom(&index->key, sizeof index->key, 0) != sizeof index->key)
        index->key = (uintptr_t)index;
    while (index->indexed_size < log_size) {
        struct log_cursor cursor = {log + index->indexed_size, log + log_size};
        uint32_t size = answer_index_log_take_number(&cursor);
        if (!answer_index_read_batch(index, (struct log_cursor){cursor.next, cursor.next + size}))
            return; /* no memory: the next call reads the whole batch again */
        index->indexed_size += sizeof size + size;
    }
}

/* Returns the index of a module's image, or SIZE_MAX if the log has no answers for it. */
static size_t answer_index_image(const struct answer_index *index,
                                 const struct symbolize_module *module)
{
    if (!module->path || module->build_id_size == 0 || module->build_id_size > UINT32_MAX)
        return SIZE_MAX;
    struct answered_image image = {.id = module->build_id,
                                   .path = (const uint8_t *)module->path,
                                   .id_size = (uint32_t)module->build_id_size,
                                   .path_size = (uint32_t)strlen(module->path),
                                   .is_data = module->is_data};
    return answer_index_find_image(index, &image);
}

/* Finds the names of an address. `frames` has room for SYMBOLIZE_FRAMES_MAX; strings point into the
 * log. Returns false if the log has no answer. */
static bool answer_index_find(const struct answer_index *index, size_t image, uint64_t offset,
                              struct symbolize_frame *frames, size_t *count)
{
    if (image >= index->image_count || index->answer_capacity == 0)
        return false;
    const struct indexed_answer *answer = answer_index_probe(index, image, offset);
    if (!answer->names)
        return false;
    struct log_cursor names = {.next = answer->names};
    if (index->images[image].is_data) {
        *count = 1;
        answer_index_log_take_variable(&names, frames);
        return true;
    }
    *count = answer_index_log_take_number(&names);
    for (size_t i = 0; i < *count; i++)
        answer_index_log_take_frame(&names, &frames[i]);
    return true;
}

static void answer_index_free(struct answer_index *index)
{
    free(index->images);
    free(index->answers);
    *index = (struct answer_index){0};
}

/* ---- The log ----
 *
 * Its encoder passes answers on to a function, and encodes them as batches of the log. */

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
