/* SPDX-License-Identifier: MIT */
#include "collect/trace/reference_writer.h"

#include <ttdtrace/advanced.h>

#include "quiet_thread.h"

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

/* Writes the first pack that waits, with the mutex released meanwhile. */
static void reference_writer_write_first(struct reference_writer *writer)
{
    struct ttd_reference_pack *pack = writer->packs[writer->first];
    pthread_mutex_unlock(&writer->mutex);
    reference_writer_lock(writer);
    bool is_written = trace_references(writer->trace, pack);
    reference_writer_unlock(writer);
    host_tick(writer->host); /* a file may be slow */
    pthread_mutex_lock(&writer->mutex);
    writer->has_failed |= !is_written;
    writer->first = (writer->first + 1) % REFERENCE_PACKS;
    writer->waiting--;
    pthread_cond_broadcast(&writer->changed);
}

static bool reference_writer_has_more(const struct reference_writer *writer)
{
    return writer->waiting != 0 && !writer->is_dropped;
}

static void *reference_writer_run(void *context)
{
    struct reference_writer *writer = context;
    pthread_mutex_lock(&writer->mutex);
    while (reference_writer_has_more(writer) || !writer->is_closed) {
        if (reference_writer_has_more(writer))
            reference_writer_write_first(writer);
        else
            pthread_cond_wait(&writer->changed, &writer->mutex);
    }
    pthread_mutex_unlock(&writer->mutex);
    return NULL;
}

/* Hands the pack that is filled to the thread, and waits until there is another one. */
static void reference_writer_hand_over(struct reference_writer *writer)
{
    pthread_mutex_lock(&writer->mutex);
    if (writer->may_have_thread && !writer->has_thread)
        writer->has_thread = quiet_thread_start(&writer->thread, reference_writer_run, writer);
    writer->waiting++;
    pthread_cond_broadcast(&writer->changed);
    while (writer->waiting == REFERENCE_PACKS) {
        if (writer->has_thread)
            pthread_cond_wait(&writer->changed, &writer->mutex);
        else
            reference_writer_write_first(writer);
    }
    pthread_mutex_unlock(&writer->mutex);
}

/* Returns where the pack is that is filled. */
static struct ttd_reference_pack **current_slot(struct reference_writer *writer)
{
    return &writer->packs[(writer->first + writer->waiting) % REFERENCE_PACKS];
}

/* Returns the pack that is filled, or NULL after a failure. */
static struct ttd_reference_pack *current_pack(struct reference_writer *writer)
{
    pthread_mutex_lock(&writer->mutex);
    struct ttd_reference_pack **pack = current_slot(writer);
    if (!*pack && ttd_reference_pack_create(NULL, pack) != TTD_OK)
        writer->has_failed = true;
    struct ttd_reference_pack *current = writer->has_failed ? NULL : *pack;
    pthread_mutex_unlock(&writer->mutex);
    return current;
}

/* Notes that references could not be packed. Those that are wrong are damage of the trace. */
static bool reference_writer_fail(struct reference_writer *writer, enum ttd_status status)
{
    if (status == TTD_ERROR_ARGUMENT) {
        reference_writer_lock(writer);
        trace_check(writer->trace, status);
        reference_writer_unlock(writer);
    }
    pthread_mutex_lock(&writer->mutex);
    writer->has_failed = true;
    pthread_mutex_unlock(&writer->mutex);
    return false;
}

bool reference_writer_add(struct reference_writer *writer, const struct ttd_reference *references,
                          size_t count)
{
    struct ttd_references list = {writer->snapshot, references, count};
    struct ttd_reference_pack *pack = current_pack(writer);
    if (pack && ttd_reference_pack_count(pack) + count > TTD_REFERENCE_PACK_MAX) {
        reference_writer_hand_over(writer);
        pack = current_pack(writer);
    }
    if (!pack)
        return false;
    enum ttd_status status = ttd_reference_pack_add(pack, &list);
    return status == TTD_OK || reference_writer_fail(writer, status);
}

bool reference_writer_close(struct reference_writer *writer, bool are_wanted)
{
    pthread_mutex_lock(&writer->mutex);
    writer->waiting += *current_slot(writer) != NULL;
    writer->is_closed = true;
    writer->is_dropped = !are_wanted;
    pthread_cond_broadcast(&writer->changed);
    while (!writer->has_thread && reference_writer_has_more(writer))
        reference_writer_write_first(writer);
    pthread_mutex_unlock(&writer->mutex);
    if (writer->has_thread)
        pthread_join(writer->thread, NULL);
    for (size_t i = 0; i < REFERENCE_PACKS; i++)
        ttd_reference_pack_free(writer->packs[i]);
    pthread_cond_destroy(&writer->changed);
    pthread_mutex_destroy(&writer->mutex);
    pthread_mutex_destroy(&writer->trace_mutex);
    return !writer->has_failed;
}
