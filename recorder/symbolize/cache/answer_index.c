/* SPDX-License-Identifier: MIT */
#include "symbolize/cache/answer_index.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "arrays.h"

enum { FIRST_ANSWERS = 1024 };

/* ---- The log ---- */

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

static void skip_answer(struct log_cursor *cursor, bool is_data)
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
static bool add_answer(struct answer_index *index, size_t image, uint64_t offset,
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
        if (!add_answer(index, number, offset, batch.next))
            return false;
        skip_answer(&batch, image.is_data);
    }
    return true;
}

void answer_index_read(struct answer_index *index, const uint8_t *log, size_t log_size)
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

size_t answer_index_image(const struct answer_index *index, const struct symbolize_module *module)
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

bool answer_index_find(const struct answer_index *index, size_t image, uint64_t offset,
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

void answer_index_free(struct answer_index *index)
{
    free(index->images);
    free(index->answers);
    *index = (struct answer_index){0};
}
