/* SPDX-License-Identifier: MIT */
#include "answers.h"

#include <stdlib.h>
#include <string.h>

static void put(struct answers *answers, const void *data, size_t size)
{
    if (answers->failed || size == 0)
        return;
    if (size > answers->capacity - answers->size) {
        size_t capacity = 2 * (answers->size + size) + 4096;
        uint8_t *grown = capacity <= answers->limit ? realloc(answers->data, capacity) : NULL;
        answers->failed = grown == NULL;
        if (answers->failed)
            return;
        answers->data = grown;
        answers->capacity = capacity;
    }
    memcpy(answers->data + answers->size, data, size);
    answers->size += size;
}

static void put_number(struct answers *answers, uint32_t value)
{
    put(answers, &value, sizeof value);
}

void answers_end(struct answers *answers)
{
    uint32_t size = (uint32_t)(answers->size - answers->batch);
    if (answers->failed || size == 0)
        return;
    size -= (uint32_t)sizeof size;
    memcpy(answers->data + answers->batch, &size, sizeof size);
    answers->batch = answers->size;
}

static void begin_batch(struct answers *answers, size_t index)
{
    const struct symbolize_module *module = &answers->modules[index];
    answers_end(answers);
    answers->module = index;
    put_number(answers, 0); /* its size, later */
    put_number(answers, (uint32_t)module->build_id_size);
    put_number(answers, (uint32_t)strlen(module->path));
    put(answers, module->build_id, module->build_id_size);
    put(answers, module->path, strlen(module->path));
}

void answers_keep(void *context, size_t module, uint64_t offset,
                  const struct symbolize_frame *frames, size_t count)
{
    struct answers *answers = context;
    answers->function(answers->context, module, offset, frames, count);
    if (answers->modules[module].build_id_size == 0)
        return;
    if (answers->batch == answers->size || answers->module != module)
        begin_batch(answers, module);
    put(answers, &offset, sizeof offset);
    put_number(answers, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        put_number(answers, frames[i].line);
        put_number(answers, (uint32_t)frames[i].function_size);
        put_number(answers, (uint32_t)frames[i].file_size);
        put(answers, frames[i].function, frames[i].function_size);
        put(answers, frames[i].file, frames[i].file_size);
    }
}
