/* SPDX-License-Identifier: MIT */
/** The vector files: how each is made, what it is for, and what a reader must say of it. */
#ifndef VECTORS_VECTORS_H
#define VECTORS_VECTORS_H

#include <ttdtrace/ttdtrace.h>

/** No chunk of the file. */
#define VECTOR_NOWHERE (-1)

/** A file in the making. */
struct vector_file {
    uint8_t *data;
    size_t size;
};

/** A field of a chunk, little-endian, behind the beginning of its header. */
struct vector_field {
    /** The chunk's place in the file. */
    size_t chunk;
    size_t at;
    /** Bytes; 0 for no field. */
    unsigned size;
    uint64_t value;
};

/** Records in place of the base file's heaps. */
struct vector_records {
    unsigned kind;
    uint64_t first_record;
    uint32_t count;
    /** NULL for no records. */
    const uint8_t *bytes;
    size_t size;
};

struct vector {
    /** Without ".trace"; good-, bad- or unsupported-. */
    const char *name;
    /** The purpose of the file. */
    const char *purpose;
    /** Numbered requirements of spec/format.md that it is about, separated by blanks. */
    const char *requirements;
    /** How a bad file is made of a good one: a field, records, or a function. */
    struct vector_field field;
    struct vector_records records;
    void (*damage)(struct vector_file *file);
    /** Writes a good file; NULL for the one that most bad ones are made of. */
    void (*write)(struct ttd_memory_output *memory);
    /** How strict reading ends, at which chunk's offset (by place in the file), with which text. */
    enum ttd_status status;
    int chunk;
    const char *what;
    /** The first problem that verify reports, if it differs: one that only verify looks for. */
    enum ttd_status verify_status;
    const char *verify_what;
    /** Events that a tolerant reader finds; 0 if that is not looked at. */
    unsigned tolerant_events;
};

extern const struct vector vectors_good[];
extern const struct vector vectors_bad[];
extern const struct vector vectors_bad_payload[];
extern const struct vector vectors_bad_events[];
extern const struct vector vectors_bad_records[];
extern const struct vector vectors_bad_kinds[];
extern const struct vector vectors_bad_snapshots[];
extern const struct vector vectors_bad_heaps[];
extern const struct vector vectors_bad_damage[];

/** The tables, ended by NULL; each ends with a vector without a name. */
extern const struct vector *const vectors_all[];

/** Makes the file; free its data with free(). */
struct vector_file vector_make(const struct vector *of);

/** Makes room for `size` bytes in all. */
void vector_resize(struct vector_file *file, size_t size);

/** Opens a writer into memory; aborts on failure, as all the following. */
struct ttd_writer *vector_writer(struct ttd_memory_output *memory,
                                 const struct ttd_writer_options *options);
ttd_id vector_string(struct ttd_writer *writer, const char *text);
void vector_event(struct ttd_writer *writer, struct ttd_event event);
void vector_check(enum ttd_status status);
void vector_close(struct ttd_writer *writer);

/** The example that spec/example.md explains byte by byte. */
void vector_write_example(struct ttd_memory_output *memory);

/** The file that most bad ones are made of: chunks trace, strings, threads, heaps, stacks, events,
 * events, index, end, all raw. */
void vector_write_base(struct ttd_memory_output *memory);

/** Every kind of chunk, and every action with each of its properties. */
void vector_write_kinds(struct ttd_memory_output *memory, enum ttd_codec codec);

/** A derived file of good-base: what was live after the first event. `more` is added to the size
 * of the source: then it is tied to no file that there is. */
void vector_write_tied(struct ttd_memory_output *memory, uint64_t more);

/** Two snapshots with parts of all kinds, and a fatal signal. */
void vector_write_snapshots(struct ttd_memory_output *memory);

/** Makes the references of that file ones of the older kind: all, or those of the last chunk. */
void vector_make_references_older(struct vector_file *file);
void vector_make_last_references_older(struct vector_file *file);

/** References of which one reaches out of its region and one is behind it. */
void vector_write_reference_outside(struct ttd_memory_output *memory);

/** A pool in a block of malloc's: blocks at one address, and all eight actions. */
void vector_write_nested_heaps(struct ttd_memory_output *memory);

/** A snapshot that was cut short, and one after it. */
void vector_write_snapshot_cut(struct ttd_memory_output *memory);

#endif
