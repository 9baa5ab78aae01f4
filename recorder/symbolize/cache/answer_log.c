/* SPDX-License-Identifier: MIT */
#include "symbolize/cache/answer_log.h"

#include <stdlib.h>
#include <string.h>

static void answer_log_put(struct answer_log *log, const void *data, size_t size)
{
    if (log->has_failed || size == 0)
        return;
    if (size > log->capacity - log->size) {
        size_t capacity = 2 * (log->size + size) + 4096;
        uint8_t *grown = capacity <= log->limit ? realloc(log->data, capacity) : NULL;
        log->has_failed = grown == NULL;
        if (log->has_failed)
            return;
        log->data = grown;
        log->capacity = capacity;
    }
    memcpy(log->data + log->size, data, size);
    log->size += size;
}

static void answer_log_put_number(struct answer_log *log, uint32_t value)
{
    answer_log_put(log, &value, sizeof value);
}

void answer_log_end_batch(struct answer_log *log)
{
    uint32_t size = (uint32_t)(log->size - log->batch);
    if (log->has_failed || size == 0)
        return;
    size -= (uint32_t)sizeof size;
    memcpy(log->data + log->batch, &size, sizeof size);
    log->batch = log->size;
}

static void begin_batch(struct answer_log *log, size_t index)
{
    const struct symbolize_module *module = &log->modules[index];
    answer_log_end_batch(log);
    log->module = index;
    answer_log_put_number(log, 0); /* answer_log_end_batch() sets the size */
    answer_log_put_number(log, module->is_data);
    answer_log_put_number(log, (uint32_t)module->build_id_size);
    answer_log_put_number(log, (uint32_t)strlen(module->path));
    answer_log_put(log, module->build_id, module->build_id_size);
    answer_log_put(log, module->path, strlen(module->path));
}

static void put_variable(struct answer_log *log, const struct symbolize_frame *variable)
{
    answer_log_put(log, &variable->begin, sizeof variable->begin);
    answer_log_put(log, &variable->size, sizeof variable->size);
    answer_log_put_number(log, (uint32_t)variable->function_size);
    answer_log_put(log, variable->function, variable->function_size);
}

void answer_log_add(void *context, size_t module, uint64_t offset,
                    const struct symbolize_frame *frames, size_t count)
{
    struct answer_log *log = context;
    log->function(log->context, module, offset, frames, count);
    /* A file without a build-id may have changed when its path is asked for again. */
    if (log->modules[module].build_id_size == 0)
        return;
    if (log->batch == log->size || log->module != module)
        begin_batch(log, module);
    answer_log_put(log, &offset, sizeof offset);
    if (log->modules[module].is_data) {
        put_variable(log, frames);
        return;
    }
    answer_log_put_number(log, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        answer_log_put_number(log, frames[i].line);
        answer_log_put_number(log, (uint32_t)frames[i].function_size);
        answer_log_put_number(log, (uint32_t)frames[i].file_size);
        answer_log_put(log, frames[i].function, frames[i].function_size);
        answer_log_put(log, frames[i].file, frames[i].file_size);
    }
}
