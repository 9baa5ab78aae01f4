/* SPDX-License-Identifier: MIT */
#include "reference_writer.h"

#include <stdlib.h>

#include "../../quiet_thread.h"
#include "../../snapshot/calls.h"

void reference_writer_open(struct reference_writer *writer, struct trace *trace, struct host *host,
                           const struct ttd_snapshot *snapshot)
{
    *writer =
        (struct reference_writer){.trace = trace,
                                  .host = host,
                                  .snapshot = snapshot->number,
                                  .may_have_thread = !(snapshot->contents & TTD_SNAPSHOT_MEMORY)};
    pthread_mutex_init(&writer->trace_mutex, NULL);
    pthread_mutex_init(&writer->mutex, NULL);
    pthread_cond_init(&writer->changed, NULL);
}

void reference_writer_lock(struct reference_writer *writer)
{
    pthread_mutex_lock(&writer->trace_mutex);
}

void reference_writer_unlock(struct reference_writer *writer)
{
    pthread_mutex_unlock(&writer->trace_mutex);
}

/* Writes the first array that waits, while the mutex is not held, which it is otherwise. */
static void write_first(struct reference_writer *writer)
{
    struct ttd_references references = {writer->snapshot, writer->arrays[writer->first],
                                        writer->counts[writer->first]};
    pthread_mutex_unlock(&writer->mutex);
    reference_writer_lock(writer);
    bool is_written = trace_references(writer->trace, &references);
    reference_writer_unlock(writer);
    host_tick(writer->host); /* a file may be slow */
    pthread_mutex_lock(&writer->mutex);
    writer->has_failed |= !is_written;
    writer->first = (writer->first + 1) % REFERENCE_ARRAYS;
    writer->waiting--;
    pthread_cond_broadcast(&writer->changed);
}

static bool has_more(const struct reference_writer *writer)
{
    return writer->waiting != 0 && !writer->is_dropped;
}

static void *run(void *context)
{
    struct reference_writer *writer = context;
    pthread_mutex_lock(&writer->mutex);
    while (has_more(writer) || !writer->is_closed) {
        if (has_more(writer))
            write_first(writer);
        else
            pthread_cond_wait(&writer->changed, &writer->mutex);
    }
    pthread_mutex_unlock(&writer->mutex);
    return NULL;
}

struct ttd_reference *reference_writer_next(struct reference_writer *writer, size_t count)
{
    pthread_mutex_lock(&writer->mutex);
    if (count == REFERENCES_PER_CHUNK && writer->may_have_thread && !writer->has_thread)
        writer->has_thread = quiet_thread_start(&writer->thread, run, writer);
    while (writer->waiting == REFERENCE_ARRAYS - 1) {
        if (writer->has_thread)
            pthread_cond_wait(&writer->changed, &writer->mutex);
        else
            write_first(writer);
    }
    size_t current = (writer->first + writer->waiting) % REFERENCE_ARRAYS;
    size_t next = count != 0 ? (current + 1) % REFERENCE_ARRAYS : current;
    if (writer->arrays[next] == NULL)
        writer->arrays[next] = malloc(REFERENCES_PER_CHUNK * sizeof *writer->arrays[next]);
    struct ttd_reference *array = writer->has_failed ? NULL : writer->arrays[next];
    if (array != NULL && count != 0) {
        writer->counts[current] = count;
        writer->waiting++;
        pthread_cond_broadcast(&writer->changed);
    }
    pthread_mutex_unlock(&writer->mutex);
    return array;
}

bool reference_writer_close(struct reference_writer *writer, bool are_wanted)
{
    pthread_mutex_lock(&writer->mutex);
    writer->is_closed = true;
    writer->is_dropped = !are_wanted;
    pthread_cond_broadcast(&writer->changed);
    while (!writer->has_thread && has_more(writer))
        write_first(writer);
    pthread_mutex_unlock(&writer->mutex);
    if (writer->has_thread)
        pthread_join(writer->thread, NULL);
    for (size_t i = 0; i < REFERENCE_ARRAYS; i++)
        free(writer->arrays[i]);
    pthread_cond_destroy(&writer->changed);
    pthread_mutex_destroy(&writer->mutex);
    pthread_mutex_destroy(&writer->trace_mutex);
    return !writer->has_failed;
}
