/* SPDX-License-Identifier: MIT */
#include "known.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { FIRST_IMAGES = 16, FIRST_ANSWERS = 1024 };

/* ---- The log ---- */

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

static const uint8_t *take_bytes(struct reading *reading, size_t size)
{
    const uint8_t *bytes = reading->at;
    reading->at += size;
    return bytes;
}

static const char *take_string(struct reading *reading, size_t size)
{
    const uint8_t *string = take_bytes(reading, size);
    return size > 0 ? (const char *)string : NULL;
}

static void take_frame(struct reading *reading, struct symbolize_frame *frame)
{
    frame->line = take_number(reading);
    frame->function_size = take_number(reading);
    frame->file_size = take_number(reading);
    frame->function = take_string(reading, frame->function_size);
    frame->file = take_string(reading, frame->file_size);
}

static void skip_frames(struct reading *reading)
{
    struct symbolize_frame skipped;
    for (uint32_t count = take_number(reading); count > 0; count--)
        take_frame(reading, &skipped);
}

/* ---- Images ---- */

static size_t find_image(const struct known *known, const struct known_image *image)
{
    for (size_t i = 0; i < known->image_count; i++) {
        const struct known_image *one = &known->images[i];
        if (one->id_size == image->id_size && one->path_size == image->path_size &&
            memcmp(one->id, image->id, image->id_size) == 0 &&
            memcmp(one->path, image->path, image->path_size) == 0)
            return i;
    }
    return SIZE_MAX;
}

/* SIZE_MAX without memory. */
static size_t add_image(struct known *known, const struct known_image *image)
{
    size_t found = find_image(known, image);
    if (found != SIZE_MAX)
        return found;
    if (known->image_count == known->image_capacity) {
        size_t capacity = known->image_capacity != 0 ? known->image_capacity * 2 : FIRST_IMAGES;
        void *grown = reallocarray(known->images, capacity, sizeof *known->images);
        if (grown == NULL)
            return SIZE_MAX;
        known->images = grown;
        known->image_capacity = capacity;
    }
    known->images[known->image_count] = *image;
    return known->image_count++;
}

/* ---- Answers ---- */

/* The entry of an address, or the free one where it belongs. */
static struct known_answer *probe(const struct known *known, size_t image, uint64_t offset)
{
    __uint128_t product =
        (__uint128_t)(offset ^ known->key) *
        (((uint64_t)image << 1 | 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (known->key << 1));
    size_t mask = known->answer_capacity - 1;
    size_t at = ((uint64_t)(product >> 64) ^ (uint64_t)product) & mask;
    for (;; at = (at + 1) & mask) {
        struct known_answer *answer = &known->answers[at];
        if (answer->names == NULL || (answer->offset == offset && answer->image == image))
            return answer;
    }
}

static bool make_room(struct known *known)
{
    if (known->answer_count + known->answer_count / 2 < known->answer_capacity)
        return true;
    struct known old = *known;
    size_t capacity = old.answer_capacity != 0 ? old.answer_capacity * 2 : FIRST_ANSWERS;
    struct known_answer *answers = calloc(capacity, sizeof *answers);
    if (answers == NULL)
        return false;
    known->answers = answers;
    known->answer_capacity = capacity;
    for (size_t i = 0; i < old.answer_capacity; i++)
        if (old.answers[i].names != NULL)
            *probe(known, old.answers[i].image, old.answers[i].offset) = old.answers[i];
    free(old.answers);
    return true;
}

/* False without memory. */
static bool add_answer(struct known *known, size_t image, uint64_t offset, const uint8_t *names)
{
    if (!make_room(known))
        return false;
    struct known_answer *answer = probe(known, image, offset);
    known->answer_count += answer->names == NULL;
    *answer = (struct known_answer){offset, names, image};
    return true;
}

static bool read_batch(struct known *known, struct reading batch)
{
    struct known_image image;
    image.id_size = take_number(&batch);
    image.path_size = take_number(&batch);
    image.id = take_bytes(&batch, image.id_size);
    image.path = take_bytes(&batch, image.path_size);
    size_t index = add_image(known, &image);
    if (index == SIZE_MAX)
        return false;
    while (batch.at < batch.end) {
        uint64_t offset;
        take(&batch, &offset, sizeof offset);
        if (!add_answer(known, index, offset, batch.at))
            return false;
        skip_frames(&batch);
    }
    return true;
}

void known_read(struct known *known, const uint8_t *log, size_t used)
{
    if (known->key == 0 && getrandom(&known->key, sizeof known->key, 0) != sizeof known->key)
        known->key = (uintptr_t)known;
    while (known->read < used) {
        struct reading rest = {log + known->read, log + used};
        uint32_t size = take_number(&rest);
        if (!read_batch(known, (struct reading){rest.at, rest.at + size}))
            return; /* all of the batch is read again the next time */
        known->read += sizeof size + size;
    }
}

size_t known_image(const struct known *known, const struct symbolize_module *module)
{
    if (module->path == NULL || module->build_id_size == 0 || module->build_id_size > UINT32_MAX)
        return SIZE_MAX;
    struct known_image image = {.id = module->build_id,
                                .path = (const uint8_t *)module->path,
                                .id_size = (uint32_t)module->build_id_size,
                                .path_size = (uint32_t)strlen(module->path)};
    return find_image(known, &image);
}

bool known_find(const struct known *known, size_t image, uint64_t offset,
                struct symbolize_frame *frames, size_t *count)
{
    if (image >= known->image_count || known->answer_capacity == 0)
        return false;
    const struct known_answer *answer = probe(known, image, offset);
    if (answer->names == NULL)
        return false;
    struct reading names = {.at = answer->names};
    *count = take_number(&names);
    for (size_t i = 0; i < *count; i++)
        take_frame(&names, &frames[i]);
    return true;
}

void known_free(struct known *known)
{
    free(known->images);
    free(known->answers);
    *known = (struct known){0};
}
