/* SPDX-License-Identifier: MIT */
/** What the tests of the public interface have in common. */
#ifndef API_FIXTURE_H
#define API_FIXTURE_H

#include <criterion/criterion.h>

#include "support/chaos.h"
#include "support/model.h"

/** Writer options with this codec, level and size of chunks. */
ttd_writer_options fixture_options(ttd_codec codec, int level, uint32_t events_per_chunk);

/** Opens a writer into memory; both are checked. */
ttd_writer *fixture_writer(ttd_memory *memory, const ttd_trace *trace,
                           const ttd_writer_options *options);

/** A trace with nothing out of the ordinary. */
ttd_trace fixture_trace(void);

/** Closes the writer with an End chunk; checked. */
void fixture_close(ttd_writer *writer);

/** Opens a reader of memory; checked. */
ttd_reader *fixture_reader(const ttd_memory *memory, bool tolerant);

/** Checks that what is read is what the model wrote, and that verify finds nothing wrong. */
void fixture_check_model(const model *m, const ttd_memory *memory);

/** Writes a model's trace of `steps` records, with an End chunk. */
void fixture_write_model(model *m, entropy from, model_style style,
                         const ttd_writer_options *options, size_t steps, ttd_memory *memory);

/** Checks that verify finds nothing wrong. */
void fixture_check_intact(const void *data, size_t size);

#endif
