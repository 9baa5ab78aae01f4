/* SPDX-License-Identifier: MIT */
#include "cli/session/sidecar.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/process/exit.h"
#include "cli/process/message.h"

/* A shorter trace is replayed faster than an index is found and checked. */
#define PAYS_EVENTS 4000000

char *sidecar_path(const char *trace)
{
    size_t size = strlen(trace) + sizeof ".idx";
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%s.idx", trace);
    return path;
}

/*
 * Returns why an index is not trusted; NULL if it is. Its content is checked only as far as that
 * takes no replay. So the rest must come from somebody who could have changed the trace as well:
 * the index must belong to this user, the owner of the trace or root, and nobody else may be able
 * to write it.
 */
static const char *why_not_ours(const struct stat *index, const char *trace)
{
    struct stat origin;
    if (!S_ISREG(index->st_mode))
        return "is no regular file";
    bool is_origin_known = stat(trace, &origin) == 0;
    if (index->st_uid != geteuid() && index->st_uid != 0 &&
        !(is_origin_known && index->st_uid == origin.st_uid))
        return "belongs to another user";
    if (index->st_mode & (S_IWGRP | S_IWOTH))
        return "can be written by other users";
    return NULL;
}

/* Opens the file that was checked, whatever file has its name by now. */
static enum ttd_status open_looked_at(int descriptor, struct ttd_reader **sidecar)
{
    char self[64];
    struct ttd_input input;
    struct ttd_error error;
    snprintf(self, sizeof self, "/proc/self/fd/%d", descriptor);
    enum ttd_status status = ttd_input_file(self, NULL, &input, &error);
    return status == TTD_OK ? ttd_reader_open(&input, NULL, NULL, sidecar, &error) : status;
}

/* Uses the index if it belongs to this very file. The whole file was intact when the index was
 * made, and not all of it will be read again. */
static bool open_index(struct source *source, const char *path)
{
    struct ttd_reader *sidecar;
    struct stat index;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (descriptor < 0)
        return false;
    if (fstat(descriptor, &index) != 0) {
        close(descriptor);
        return false;
    }
    const char *reason = why_not_ours(&index, source->path);
    bool is_open = !reason && open_looked_at(descriptor, &sidecar) == TTD_OK;
    close(descriptor);
    if (reason && S_ISREG(index.st_mode) && !source->has_refused_index) {
        message("warning: %s: is not used: it %s", path, reason);
        source->has_refused_index = true;
    }
    if (!is_open || heap_keyframes_open(sidecar, source->reader, &source->keyframes) != TTD_OK)
        return false;
    source->has_keyframes =
        source->opened.text[0] && strcmp(source->keyframes.source, source->opened.text) == 0;
    if (!source->has_keyframes)
        heap_keyframes_close(&source->keyframes);
    return source->has_keyframes;
}

void sidecar_refute(struct source *source)
{
    char *path = sidecar_path(source->path);
    progress_end(&source->progress);
    message("warning: %s: is not used: it does not agree with the trace", path ? path : "index");
    free(path);
    heap_keyframes_close(&source->keyframes);
    source->has_keyframes = false;
    source->has_refuted_index = true;
}

/* Finds the keyframes. `pays`: an index may be made if the trace is long. */
static const struct heap_keyframes *use(struct session *session, bool pays)
{
    struct source *source = &session->source;
    if (!session->options.has_index || !source->is_closed || source->has_refuted_index)
        return NULL;
    char *path = source->has_keyframes ? NULL : sidecar_path(source->path);
    struct heap_index_facts facts;
    if (path && !open_index(source, path) && pays && source->end.events >= PAYS_EVENTS &&
        !source->has_no_index) {
        source->has_no_index = sidecar_make(source, path, true, &facts) != STATUS_OK;
        if (!source->has_no_index)
            open_index(source, path);
    }
    free(path);
    return source->has_keyframes ? &source->keyframes : NULL;
}

const struct heap_keyframes *sidecar_use(struct session *session, struct ttd_position position)
{
    bool is_start = ttd_position_compare(position, ttd_position_min()) == 0;
    bool is_end = ttd_position_compare(position, ttd_position_max()) == 0;
    return is_start || is_end ? NULL : use(session, true);
}

const struct heap_keyframes *sidecar_use_existing(struct session *session)
{
    return use(session, false);
}
