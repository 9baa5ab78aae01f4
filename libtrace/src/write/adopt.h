/* SPDX-License-Identifier: MIT */
/** Writers that continue a trace, to add names to it. */
#ifndef TTD_WRITE_ADOPT_H
#define TTD_WRITE_ADOPT_H

#include <ttdtrace/writer.h>

#include "codec/chunk/emitter.h"

/** The state of a trace that another writer has begun. */
struct ttd_written {
    struct ttd_emitter *emitter;
    /** The last ids in use. */
    ttd_id strings;
    ttd_id modules;
    /** Ordinals of the next records. */
    uint64_t symbols;
    uint64_t variables;
};

/**
 * Makes a writer that accepts names only. The emitter is the writer's until ttd_writer_end_names().
 *
 * @param allocator  used by the emitter as well
 * @return TTD_OK, TTD_ERROR_NO_MEMORY
 */
enum ttd_status ttd_writer_begin_names(const struct ttd_written *written,
                                       const struct ttd_allocator *allocator,
                                       struct ttd_writer **writer);

/** Writes out all that is buffered, gives the emitter back and releases the writer. The detail of a
 * failure is in written->emitter->error. */
enum ttd_status ttd_writer_end_names(struct ttd_writer *writer, const struct ttd_written *written);

#endif
