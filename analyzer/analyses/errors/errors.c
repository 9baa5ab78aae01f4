/* SPDX-License-Identifier: MIT */
#include "analyses/errors/errors.h"

#include <stdlib.h>

#include "base/grow.h"

void heap_errors_free(struct heap_errors *errors)
{
    heap_errors_end(errors);
    free(errors->findings);
    map_free(&errors->index);
}

/* The stacks of a finding that tell it from others, as one half of a key each. */
static uint64_t call_key(const struct heap_finding *finding)
{
    return (uint64_t)finding->call.stack << 16 | (uint64_t)finding->kind << 8 |
           finding->call.action | (finding->signal ? 0x80 : 0);
}

static uint64_t conflict_key(const struct heap_finding *finding)
{
    ttd_id allocated = heap_call_is_known(&finding->allocated) ? finding->allocated.stack : 0;
    ttd_id second_stack = heap_call_is_known(&finding->released) ? finding->released.stack : 0;
    if (heap_call_is_known(&finding->conflict))
        second_stack = finding->conflict.stack;
    return (uint64_t)allocated << 32 | second_stack;
}

/* A loop makes the same mistake a million times: calls with the same kind and stacks are one
 * finding. */
enum ttd_status heap_errors_add(struct heap_errors *errors, const struct heap_finding *finding)
{
    uint64_t a = call_key(finding);
    uint64_t b = conflict_key(finding);
    uint32_t index = map_get(&errors->index, a, b);
    errors->calls++;
    if (index != MAP_NONE) {
        errors->findings[index].count++;
        errors->findings[index].last = finding->call.position;
        return TTD_OK;
    }
    if (errors->count == HEAP_FINDINGS_MAX) {
        errors->omitted++;
        return TTD_OK;
    }
    enum ttd_status status = grow_array((void **)&errors->findings, &errors->capacity,
                                        errors->count + 1, sizeof *errors->findings);
    if (status == TTD_OK)
        status = map_set(&errors->index, a, b, (uint32_t)errors->count);
    if (status != TTD_OK)
        return status;
    struct heap_finding *kept = &errors->findings[errors->count++];
    *kept = *finding;
    kept->count = 1;
    kept->last = finding->call.position;
    return TTD_OK;
}

/* Adds a finding to the one before it that has the same stacks, if there is one. */
static enum ttd_status merge_finding(struct heap_errors *errors, struct hash_map *index,
                                     const struct heap_finding *finding,
                                     const struct heap_finding *key)
{
    uint64_t a = call_key(key), b = conflict_key(key);
    uint32_t first = map_get(index, a, b);
    if (first == MAP_NONE) {
        enum ttd_status status = map_set(index, a, b, (uint32_t)errors->count);
        errors->findings[errors->count++] = *finding;
        return status;
    }
    struct heap_finding *kept = &errors->findings[first];
    kept->count += finding->count;
    kept->is_certain &= finding->is_certain;
    if (ttd_position_compare(finding->last, kept->last) > 0)
        kept->last = finding->last;
    return TTD_OK;
}

enum ttd_status heap_errors_merge(struct heap_errors *errors, heap_same_stack *find, void *context)
{
    struct hash_map index;
    size_t count = errors->count;
    enum ttd_status status = TTD_OK;
    map_init(&index);
    errors->count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct heap_finding finding = errors->findings[i];
        struct heap_finding key = finding;
        ttd_id *stacks[] = {&key.call.stack, &key.allocated.stack, &key.released.stack,
                            &key.conflict.stack};
        for (size_t k = 0; k < sizeof stacks / sizeof *stacks && status == TTD_OK; k++)
            status = find(context, *stacks[k], stacks[k]);
        if (status == TTD_OK)
            status = merge_finding(errors, &index, &finding, &key);
    }
    map_free(&index);
    return status;
}

const char *heap_error_name(enum heap_error_kind kind)
{
    static const char *const names[HEAP_ERROR_KINDS] = {
        [HEAP_ERROR_HEAP_DAMAGE] = "heap-damage",
        [HEAP_ERROR_DOUBLE_FREE] = "double-free",
        [HEAP_ERROR_REALLOC_OF_FREED] = "realloc-of-freed",
        [HEAP_ERROR_INVALID_FREE] = "invalid-free",
        [HEAP_ERROR_INTERIOR_FREE] = "interior-free",
        [HEAP_ERROR_MISMATCHED_FREE] = "mismatched-free",
        [HEAP_ERROR_MISMATCHED_SIZE] = "mismatched-size",
        [HEAP_ERROR_WRONG_HEAP] = "wrong-heap",
        [HEAP_ERROR_USE_OF_DESTROYED_HEAP] = "use-of-destroyed-heap",
        [HEAP_ERROR_USE_OF_READ_ONLY_HEAP] = "use-of-read-only-heap",
        [HEAP_ERROR_UNBALANCED_LOCK] = "unbalanced-lock",
        [HEAP_ERROR_FAILED_CALL] = "failed-call",
        [HEAP_ERROR_DIED_IN_CALL] = "died-in-call",
        [HEAP_ERROR_TRACE_INCONSISTENCY] = "trace-inconsistency",
    };
    return names[kind];
}
