/* SPDX-License-Identifier: MIT */
#include "cli/sidecar.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/exit.h"
#include "cli/message.h"

/* A trace of fewer events is replayed in the time that looking for an index is worth. */
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
 * Why an index is not believed, NULL if it is. What is in it is checked as far as that takes no
 * replay; for the rest it must be of somebody who could have changed the trace as well, or us: its
 * owner, if nobody else can write it, the owner of the trace, or root.
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

/* Opens what was looked at, whatever has the name meanwhile. */
static enum ttd_status open_looked_at(int descriptor, struct ttd_reader **sidecar)
{
    char self[64];
    struct ttd_input input;
    struct ttd_error error;
    snprintf(self, sizeof self, "/proc/self/fd/%d", descriptor);
    enum ttd_status status = ttd_input_file(self, NULL, &input, &error);
    return status == TTD_OK ? ttd_reader_open(&input, NULL, NULL, sidecar, &error) : status;
}

/* Takes the index if it is of this very file: all of that was intact when it was made, and not all
 * of it will be read. */
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
    const char *why = why_not_ours(&index, source->path);
    bool is_open = !why && open_looked_at(descriptor, &sidecar) == TTD_OK;
    close(descriptor);
    if (why && S_ISREG(index.st_mode) && !source->has_refused_index) {
        message("warning: %s: is not used: it %s", path, why);
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

/* `pays`: to make one, if the trace is long. */
static const struct heap_keyframes *use(struct session *session, bool pays)
{
    struct source *source = &session->source;
    if (!session->options.has_index || !source->is_closed)
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

const struct heap_keyframes *sidecar_use(struct session *session, struct ttd_position at)
{
    bool is_start = ttd_position_compare(at, ttd_position_min()) == 0;
    bool is_end = ttd_position_compare(at, ttd_position_max()) == 0;
    return use(session, !is_start && !is_end);
}
