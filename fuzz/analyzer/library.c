/* SPDX-License-Identifier: MIT */
/*
 * libttdheap answers about any bytes: each question returns a documented status; its answer can be
 * read as a whole, and is the same again, also after a question that the caller has cancelled; it
 * is certain only if the trace is intact.
 */
#include <stdlib.h>
#include <string.h>

#include <ttdtrace/ttdheap.h>

#include "../target.h"

/* Questions of each position, and positions. */
#define POSITIONS_MAX 4

/* Steps are few: each input is asked many questions. */
#define STEPS_MAX 100000

struct asking {
    struct ttdheap *heap;
    int is_intact;
    /** Calls of the progress function until it cancels. */
    uint64_t left;
    /** Hash of all answers, and number of them. */
    uint64_t hash;
    uint64_t answers;
    int is_cancelled;
};

static int library_progress(void *context, uint64_t done, uint64_t total)
{
    struct asking *asking = context;
    (void)done;
    (void)total;
    asking->is_cancelled |= asking->left == 0;
    return asking->left == 0 || !asking->left--;
}

static void library_add(struct asking *asking, uint64_t value)
{
    asking->hash = (asking->hash ^ value) * UINT64_C(0x100000001b3);
}

static void library_add_text(struct asking *asking, struct ttd_string text)
{
    for (size_t i = 0; i < text.size; i++)
        library_add(asking, (unsigned char)text.data[i]);
}

/* Takes an answer, and whether there is one. */
static int library_take(struct asking *asking, enum ttd_status status,
                        const struct ttdheap_answer *answer, const struct ttdheap_error *error)
{
    target_require(status == TTD_OK || status == TTD_ERROR_CORRUPT ||
                       status == TTD_ERROR_TRUNCATED || status == TTD_ERROR_UNSUPPORTED ||
                       status == TTD_ERROR_LIMIT || status == TTD_ERROR_MISUSE ||
                       status == TTD_ERROR_ARGUMENT || status == TTD_ERROR_CANCELLED ||
                       status == TTD_END,
                   "documented status of a question");
    target_require((status == TTD_ERROR_CANCELLED) == asking->is_cancelled,
                   "only the caller cancels");
    library_add(asking, status);
    asking->answers++;
    if (status != TTD_OK) {
        target_require(error->detail.status == status && *error->text, "a failure is described");
        target_require(!answer || (!answer->memory && !answer->reason_count), "no answer");
        return 0;
    }
    if (!answer)
        return 1;
    target_require(answer->is_certain == !answer->reason_count, "an uncertain answer has reasons");
    for (size_t i = 0; i < answer->reason_count; i++)
        library_add(asking, strlen(answer->reasons[i]));
    library_add(asking, answer->position.sequence);
    return 1;
}

static void library_take_groups(struct asking *asking, enum ttd_status status,
                                struct ttdheap_groups *groups, const struct ttdheap_error *error)
{
    uint64_t blocks = 0;
    if (!library_take(asking, status, &groups->answer, error))
        return;
    target_require(!groups->answer.is_certain || asking->is_intact, "certain, and damaged");
    for (size_t i = 0; i < groups->count; i++) {
        const struct ttdheap_group *group = &groups->items[i];
        blocks += group->blocks;
        library_add_text(asking, group->name);
        library_add_text(asking, group->module);
        library_add(asking, group->bytes);
        library_add(asking, group->stack ^ group->number);
    }
    target_require(blocks == groups->blocks, "groups add up");
    ttdheap_free(&groups->answer);
    target_require(!groups->answer.memory, "a freed answer is empty");
}

static void library_ask_blocks(struct asking *asking)
{
    struct ttdheap_blocks blocks, one;
    struct ttdheap_frames frames;
    struct ttdheap_error error;
    if (!library_take(asking, ttdheap_blocks(asking->heap, &blocks, &error), &blocks.answer,
                      &error))
        return;
    for (size_t i = 0; i < blocks.count; i++)
        library_add(asking, blocks.items[i].address ^ blocks.items[i].size);
    for (size_t i = 0; i < blocks.count && i < 2 && !asking->is_cancelled; i++) {
        const struct ttdheap_block *block = &blocks.items[i];
        if (library_take(asking, ttdheap_block_at(asking->heap, block->address, &one, &error),
                         &one.answer, &error))
            target_require(one.count == 1, "a live block covers its address");
        ttdheap_free(&one.answer);
        if (!asking->is_cancelled &&
            library_take(asking, ttdheap_frames(asking->heap, block->stack, &frames, &error),
                         &frames.answer, &error)) {
            for (size_t j = 0; j < frames.count; j++)
                library_add_text(asking, frames.items[j].function);
        }
        ttdheap_free(&frames.answer);
    }
    ttdheap_free(&blocks.answer);
}

static void library_ask_of_all(struct asking *asking)
{
    struct ttdheap_error error;
    struct ttdheap_info info;
    struct ttdheap_moves moves;
    struct ttdheap_findings findings;
    struct ttdheap_history history;
    struct ttdheap_calls calls;
    struct ttdheap_range range = {ttd_position_min(), ttd_position_max(), 0, 3};
    library_take(asking, ttdheap_info(asking->heap, &info, &error), &info.answer, &error);
    ttdheap_free(&info.answer);
    if (asking->is_cancelled)
        return;
    if (library_take(asking, ttdheap_moves(asking->heap, &moves, &error), &moves.answer, &error)) {
        for (size_t i = 0; i < moves.count; i++)
            library_add(asking, moves.items[i].copied_at_most);
    }
    ttdheap_free(&moves.answer);
    if (asking->is_cancelled)
        return;
    if (library_take(asking, ttdheap_errors(asking->heap, &findings, &error), &findings.answer,
                     &error)) {
        for (size_t i = 0; i < findings.count; i++)
            library_add(asking, strlen(findings.items[i].kind) ^ findings.items[i].address);
    }
    ttdheap_free(&findings.answer);
    if (asking->is_cancelled)
        return;
    if (library_take(asking, ttdheap_history(asking->heap, 0, UINT64_MAX, 10, &history, &error),
                     &history.answer, &error))
        target_require(history.count <= 10 && history.count <= history.total, "as many as wanted");
    ttdheap_free(&history.answer);
    if (asking->is_cancelled)
        return;
    if (library_take(asking, ttdheap_calls(asking->heap, &range, &calls, &error), &calls.answer,
                     &error))
        target_require(calls.count <= 3 && (calls.next == UINT64_MAX || calls.count == 3),
                       "as many as wanted");
    ttdheap_free(&calls.answer);
}

/* Asks all questions. */
static void library_ask(struct asking *asking)
{
    static const char *const positions[POSITIONS_MAX] = {"end", "50%", "#3", "start"};
    struct ttdheap_groups groups;
    struct ttdheap_error error;
    asking->hash = asking->answers = 0;
    asking->is_cancelled = 0;
    for (size_t i = 0; i < POSITIONS_MAX && !asking->is_cancelled; i++) {
        struct ttd_position position = ttd_position_min();
        if (library_take(asking, ttdheap_find(asking->heap, positions[i], &position, &error), NULL,
                         &error))
            ttdheap_go(asking->heap, position);
        for (int by = TTDHEAP_BY_STACK; by <= TTDHEAP_BY_SIZE && !asking->is_cancelled; by++) {
            enum ttd_status status =
                ttdheap_groups(asking->heap, (enum ttdheap_by)by, &groups, &error);
            library_take_groups(asking, status, &groups, &error);
        }
        if (!asking->is_cancelled)
            library_ask_blocks(asking);
        if (!asking->is_cancelled) {
            enum ttd_status status = ttdheap_leaks(asking->heap, TTDHEAP_BY_STACK, &groups, &error);
            library_take_groups(asking, status, &groups, &error);
        }
        if (!asking->is_cancelled) {
            enum ttd_status status = ttdheap_diff(asking->heap, position, ttd_position_max(),
                                                  TTDHEAP_BY_FUNCTION, &groups, &error);
            library_take_groups(asking, status, &groups, &error);
        }
    }
    if (!asking->is_cancelled)
        library_ask_of_all(asking);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = target_copy(data, size);
    struct ttd_input input = target_input(bytes, size);
    struct asking asking = {.left = UINT64_MAX, .is_intact = target_is_intact(bytes, size)};
    struct ttdheap_options options = ttdheap_options_default();
    struct ttdheap_error error;
    options.input = &input;
    options.allocator = &target_allocator;
    options.progress = library_progress;
    options.context = &asking;
    options.steps_max = STEPS_MAX;
    options.reads_ahead = false;
    enum ttd_status status = ttdheap_open("input", &options, &asking.heap, &error);
    if (status == TTD_OK) {
        library_ask(&asking);
        uint64_t hash = asking.hash;
        uint64_t answers = asking.answers;
        /* A question is cancelled in its midst; asked again, all have the same answers. */
        asking.left = size % 37;
        library_ask(&asking);
        asking.left = UINT64_MAX;
        library_ask(&asking);
        target_require(answers == asking.answers && hash == asking.hash,
                       "the same question has the same answer");
        ttdheap_close(asking.heap);
    } else {
        target_require(*error.text != 0, "a failure is described");
    }
    free(bytes);
    return 0;
}
