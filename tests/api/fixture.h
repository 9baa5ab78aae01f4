/* SPDX-License-Identifier: MIT */
/** Helpers that the tests of the public interface share. */
#ifndef API_FIXTURE_H
#define API_FIXTURE_H

#include <criterion/criterion.h>

#include "support/chaos.h"
#include "support/records/model.h"

/** Writer options with this codec, level and size of chunks. */
struct ttd_writer_options fixture_options(enum ttd_codec codec, int level,
                                          uint32_t events_per_chunk);

/** Opens a writer into memory; both are checked. */
struct ttd_writer *fixture_writer(struct ttd_memory_output *memory, const struct ttd_trace *trace,
                                  const struct ttd_writer_options *options);

/** A trace with nothing out of the ordinary. */
struct ttd_trace fixture_trace(void);

/** Closes the writer with an End chunk; checked. */
void fixture_close(struct ttd_writer *writer);

/** Opens a reader of memory; checked. */
struct ttd_reader *fixture_reader_with(const struct ttd_memory_output *memory,
                                       const struct ttd_reader_options *options);
struct ttd_reader *fixture_reader(const struct ttd_memory_output *memory, bool tolerant);

/** Checks that what is read is what the model wrote, and that verify finds nothing wrong. */
void fixture_check_model(const struct model *m, const struct ttd_memory_output *memory);

/** Writes a model's trace of `steps` records, with an End chunk. */
void fixture_write_model(struct model *m, struct entropy from, enum model_style style,
                         const struct ttd_writer_options *options, size_t steps,
                         struct ttd_memory_output *memory);

/** Checks that verify finds nothing wrong. */
void fixture_check_intact(const void *data, size_t size);

#endif
