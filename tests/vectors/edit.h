/* SPDX-License-Identifier: MIT */
/** Making bad files of good ones: chunks of the base file, and changes of their length. */
#ifndef VECTORS_EDIT_H
#define VECTORS_EDIT_H

#include "vectors/vectors.h"

/** Chunks of the base file. */
enum { TRACE, STRINGS, THREADS, HEAPS, STACKS, EVENTS, MORE_EVENTS, INDEX, END };

/** The header of the chunk at a place. */
uint8_t *vector_chunk(struct vector_file *file, size_t number);

/** Sets a field, and makes the checksums of its chunk right; and the index, if it is a field of the
 * payload of another chunk. */
void vector_set_field(struct vector_file *file, const struct vector_field *field);

/** Makes the file's only index, of one link, agree with the chunks before it. */
void vector_seal_index(struct vector_file *file);

/** Puts `size` bytes in before a chunk, and makes what follows right again. */
void vector_insert(struct vector_file *file, size_t number, const uint8_t *bytes, size_t size);

/** Replaces the payload, which is not compressed, and makes the rest right. */
void vector_set_payload(struct vector_file *file, size_t number, const uint8_t *bytes, size_t size);

/** Replaces the heaps by records of a kind. */
void vector_replace(struct vector_file *file, const struct vector_records *records);

/** Replaces a column of a chunk of events in the same way. */
void vector_set_column(struct vector_file *file, size_t number, unsigned column,
                       const uint8_t *bytes, size_t size);

#endif
