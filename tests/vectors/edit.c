/* SPDX-License-Identifier: MIT */
#include "vectors/edit.h"

#include <stdlib.h>
#include <string.h>

#include "support/chunk_edit.h"

uint8_t *vector_chunk(struct vector_file *file, size_t number)
{
    return file->data + chunk_edit_find(file->data, file->size, number);
}

/* Makes `old` bytes at `at` `size` bytes, and the new ones 0. */
static void resize_part(struct vector_file *file, size_t at, size_t old, size_t size)
{
    size_t rest = file->size - at - old;
    if (size > old)
        vector_resize(file, file->size + (size - old));
    memmove(file->data + at + size, file->data + at + old, rest);
    if (size < old)
        vector_resize(file, file->size - (old - size));
    memset(file->data + at, 0, size);
}

/* The place of the only index chunk, before End. */
static size_t find_index(const struct vector_file *file)
{
    size_t at = chunk_edit_find_kind(file->data, file->size, TTD_KIND_INDEX);
    size_t place = 0;
    while (chunk_edit_find(file->data, file->size, place) < at)
        place++;
    return place;
}

/* Makes room in an index for entries of all chunks before it. */
static void fit_index(struct vector_file *file, size_t place)
{
    uint8_t *index = vector_chunk(file, place);
    uint32_t count = ttd_get32(index + TTD_HEADER_RECORD_COUNT);
    uint32_t stored = ttd_get32(index + TTD_HEADER_STORED_SIZE);
    size_t added = (place - count) * TTD_HEADER_SIZE;
    ttd_put32(index + TTD_HEADER_RECORD_COUNT, (uint32_t)place);
    ttd_put32(index + TTD_HEADER_STORED_SIZE, stored + (uint32_t)added);
    ttd_put32(index + TTD_HEADER_RAW_SIZE, stored + (uint32_t)added);
    resize_part(file, (size_t)(index - file->data) + TTD_HEADER_SIZE + stored, 0, added);
}

void vector_seal_index(struct vector_file *file)
{
    size_t place = find_index(file);
    uint8_t *index = vector_chunk(file, place);
    uint8_t *link = index + TTD_HEADER_SIZE + TTD_INDEX_LINKS;
    ttd_put64(link + TTD_LINK_OFFSET, (uint64_t)(index - file->data));
    for (size_t i = 0; i < place; i++)
        memcpy(link + TTD_LINK_SIZE + i * TTD_HEADER_SIZE, vector_chunk(file, i), TTD_HEADER_SIZE);
    chunk_edit_seal(index, (size_t)(file->data + file->size - index));
}

void vector_set_field(struct vector_file *file, const struct vector_field *field)
{
    uint8_t *chunk = vector_chunk(file, field->chunk);
    for (unsigned i = 0; i < field->size; i++)
        chunk[field->at + i] = (uint8_t)(field->value >> 8 * i);
    if (field->at < TTD_HEADER_SIZE) {
        chunk_edit_seal_header(chunk);
        return;
    }
    chunk_edit_seal(chunk, (size_t)(file->data + file->size - chunk));
    if (field->chunk < find_index(file))
        vector_seal_index(file);
}

/* The totals of the End chunk, which has moved, and the index. */
static void seal_all(struct vector_file *file)
{
    size_t index = find_index(file);
    fit_index(file, index);
    uint8_t *end = file->data + file->size - TTD_END_CHUNK_SIZE;
    ttd_put64(end + TTD_HEADER_SIZE + TTD_END_PAYLOAD_CHUNKS, index + 2);
    ttd_put64(end + TTD_HEADER_SIZE + TTD_END_PAYLOAD_INDEX_OFFSET,
              chunk_edit_find(file->data, file->size, index));
    chunk_edit_seal_all(file->data, file->size);
    vector_seal_index(file);
}

void vector_insert(struct vector_file *file, size_t number, const uint8_t *bytes, size_t size)
{
    size_t at = chunk_edit_find(file->data, file->size, number);
    resize_part(file, at, 0, size);
    memcpy(file->data + at, bytes, size);
    seal_all(file);
}

void vector_set_payload(struct vector_file *file, size_t number, const uint8_t *bytes, size_t size)
{
    size_t at = chunk_edit_find(file->data, file->size, number);
    size_t old = (size_t)chunk_edit_size(file->data + at, file->size - at);
    resize_part(file, at + TTD_HEADER_SIZE, old - TTD_HEADER_SIZE,
                (size + TTD_ALIGNMENT - 1) / TTD_ALIGNMENT * TTD_ALIGNMENT);
    uint8_t *chunk = file->data + at;
    memcpy(chunk + TTD_HEADER_SIZE, bytes, size);
    ttd_put32(chunk + TTD_HEADER_STORED_SIZE, (uint32_t)size);
    ttd_put32(chunk + TTD_HEADER_RAW_SIZE, (uint32_t)size);
    seal_all(file);
}

void vector_set_column(struct vector_file *file, size_t number, unsigned column,
                       const uint8_t *bytes, size_t size)
{
    const uint8_t *payload = vector_chunk(file, number) + TTD_HEADER_SIZE;
    size_t whole = ttd_get32(vector_chunk(file, number) + TTD_HEADER_RAW_SIZE);
    size_t old = ttd_get32(payload + TTD_EVENTS_LENGTHS + 4 * column);
    size_t before = TTD_EVENTS_COLUMNS;
    for (unsigned i = 0; i < column; i++)
        before += ttd_get32(payload + TTD_EVENTS_LENGTHS + 4 * i);
    uint8_t *changed = malloc(whole + size);
    if (!changed)
        abort();
    memcpy(changed, payload, before);
    memcpy(changed + before, bytes, size);
    memcpy(changed + before + size, payload + before + old, whole - before - old);
    ttd_put32(changed + TTD_EVENTS_LENGTHS + 4 * column, (uint32_t)size);
    vector_set_payload(file, number, changed, whole - old + size);
    free(changed);
}

void vector_replace(struct vector_file *file, const struct vector_records *records)
{
    uint8_t *chunk = vector_chunk(file, HEAPS);
    ttd_put16(chunk + TTD_HEADER_KIND, (uint16_t)records->kind);
    ttd_put64(chunk + TTD_HEADER_FIRST_RECORD, records->first_record);
    ttd_put32(chunk + TTD_HEADER_RECORD_COUNT, records->count);
    vector_set_payload(file, HEAPS, records->bytes, records->size);
}
