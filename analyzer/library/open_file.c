/* SPDX-License-Identifier: MIT */
/* Opening a trace that is a file, and its index. Apart from handle.c, because the engine of exact
 * pages has no files. */
#include <stdlib.h>
#include <string.h>

#include "library/handle.h"

static bool open_is_unchanged(const struct ttdheap *heap)
{
    struct stamp now = stamp_of(heap->path);
    return stamp_is_same(&heap->opened, &now);
}

static enum ttd_status open_file(struct ttdheap *heap, const struct ttdheap_options *options,
                                 struct ttd_input *input, struct ttd_error *error)
{
    heap->opened = stamp_of(heap->path);
    /* Only a regular file has a stamp. */
    heap->is_unchanged = heap->opened.text[0] ? open_is_unchanged : NULL;
    return ttd_input_file(heap->path, options->allocator, input, error);
}

/* Uses the index if it belongs to this trace; and if the trace is a file, to this very file. */
static enum ttd_status open_index(struct ttdheap *heap, const struct ttdheap_options *options)
{
    struct ttd_input input;
    struct ttd_reader *sidecar;
    enum ttd_status status = ttd_input_file(options->index, options->allocator, &input, NULL);
    if (status == TTD_OK)
        status = ttd_reader_open(&input, NULL, options->allocator, &sidecar, NULL);
    if (status == TTD_OK)
        status = heap_keyframes_open(sidecar, heap->reader, &heap->keyframes);
    if (status != TTD_OK)
        return status == TTD_ERROR_NO_MEMORY ? status : TTD_OK;
    heap->has_keyframes = options->input || (heap->is_unchanged && strcmp(heap->keyframes.source,
                                                                          heap->opened.text) == 0);
    if (!heap->has_keyframes)
        heap_keyframes_close(&heap->keyframes);
    return TTD_OK;
}

static enum ttd_status open_input(struct ttdheap *heap, const struct ttdheap_options *options,
                                  struct ttd_error *error)
{
    struct ttd_input input;
    enum ttd_status status = TTD_OK;
    if (options->input)
        input = *options->input;
    else
        status = open_file(heap, options, &input, error);
    if (status == TTD_OK)
        status = handle_open(heap, &input, options->allocator, error);
    return status == TTD_OK && options->index && heap->is_closed ? open_index(heap, options)
                                                                 : status;
}

enum ttd_status ttdheap_open(const char *path, const struct ttdheap_options *options,
                             struct ttdheap **result, struct ttdheap_error *error)
{
    struct ttdheap unnamed = {.path = (char[]){"trace"}};
    struct ttdheap_options chosen = ttdheap_options_default();
    struct ttdheap *heap = NULL;
    struct ttd_error why = {.status = TTD_OK};
    if (options && options->size != sizeof chosen)
        return handle_fail_with(&unnamed, error, TTD_ERROR_ARGUMENT, "options of unknown size");
    if (options)
        chosen = *options;
    enum ttd_status status =
        path && result ? handle_make(path, &chosen, &heap) : TTD_ERROR_ARGUMENT;
    if (status != TTD_OK) {
        /* The caller's input is closed in every case. */
        if (chosen.input && chosen.input->close)
            chosen.input->close(chosen.input->context);
        return handle_fail(&unnamed, error, status, NULL);
    }
    status = open_input(heap, &chosen, &why);
    if (status != TTD_OK) {
        handle_fail(heap, error, status, &why);
        ttdheap_close(heap);
        return status;
    }
    *result = heap;
    return TTD_OK;
}
