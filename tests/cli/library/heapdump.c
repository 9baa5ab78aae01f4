/* SPDX-License-Identifier: MIT */
/*
 * Asks libttdheap and prints each answer as a line of JSON: `heapdump TRACE QUESTION...`. A
 * question is a word and arguments with slashes between, such as `go/50%`, `groups/function` or
 * `diff/stack/start/end`. `index/PATH` must come first.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ttdtrace/ttdheap.h>

#define ARGUMENTS 8

static struct ttdheap *heap;
static struct ttdheap_error failure;

static void print_text(const char *name, struct ttd_string text)
{
    printf(", \"%s\": \"", name);
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c < ' ' || c == '"' || c == '\\' || c >= 0x7f)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

static void print_position(const char *name, struct ttd_position position)
{
    char text[TTD_POSITION_TEXT];
    ttd_position_format(position, text);
    if (ttd_position_is_valid(position))
        printf(", \"%s\": \"%s\"", name, text);
    else
        printf(", \"%s\": null", name);
}

static void print_number(const char *name, uint64_t number)
{
    printf(", \"%s\": %" PRIu64, name, number);
}

static void print_bool(const char *name, bool value)
{
    printf(", \"%s\": %s", name, value ? "true" : "false");
}

static void print_answer(const struct ttdheap_answer *answer)
{
    printf("{\"certain\": %s, \"reasons\": [", answer->is_certain ? "true" : "false");
    for (size_t i = 0; i < answer->reason_count; i++)
        printf("%s\"%s\"", i ? ", " : "", answer->reasons[i]);
    putchar(']');
    print_position("position", answer->position);
}

static void print_call(const char *name, const struct ttdheap_call *call)
{
    printf(", \"%s\": {\"action\": %u", name, call->action);
    print_position("position", call->position);
    print_number("stack_id", call->stack);
    print_number("thread", call->thread);
    putchar('}');
}

static void print_block(const struct ttdheap_block *block)
{
    printf("\"address\": \"0x%" PRIx64 "\"", block->address);
    print_number("size", block->size);
    print_position("allocated", block->allocated);
    print_number("number", block->event);
    print_number("heap_id", block->heap);
    print_number("thread", block->thread);
    print_number("stack_id", block->stack);
    print_bool("unknown", block->is_unknown);
}

static void print_blocks(struct ttdheap_blocks *blocks)
{
    print_answer(&blocks->answer);
    printf(", \"blocks\": [");
    for (size_t i = 0; i < blocks->count; i++) {
        printf("%s{", i ? ", " : "");
        print_block(&blocks->items[i]);
        putchar('}');
    }
    printf("]}\n");
    ttdheap_free(&blocks->answer);
}

static void print_groups(struct ttdheap_groups *groups)
{
    print_answer(&groups->answer);
    print_number("live_blocks", groups->blocks);
    print_number("live_bytes", groups->bytes);
    print_number("runtime_blocks", groups->runtime_blocks);
    print_number("runtime_bytes", groups->runtime_bytes);
    printf(", \"groups\": [");
    for (size_t i = 0; i < groups->count; i++) {
        const struct ttdheap_group *group = &groups->items[i];
        printf("%s{\"kind\": %u", i ? ", " : "", group->kind);
        print_text("name", group->name);
        print_text("module", group->module);
        print_number("id", group->number);
        print_number("stack_id", group->stack);
        print_number("blocks", group->blocks);
        print_number("bytes", group->bytes);
        print_number("nested_blocks", group->nested_blocks);
        print_number("nested_bytes", group->nested_bytes);
        print_position("first", group->first);
        print_position("last", group->last);
        putchar('}');
    }
    printf("]}\n");
    ttdheap_free(&groups->answer);
}

static enum ttd_status ask_info(void)
{
    struct ttdheap_info info;
    enum ttd_status status = ttdheap_info(heap, &info, &failure);
    if (status != TTD_OK)
        return status;
    print_answer(&info.answer);
    print_bool("closed", info.is_closed);
    print_bool("has_index", info.has_index);
    print_number("events", info.events);
    print_number("lost_events", info.lost_events);
    print_number("failed", info.failed);
    print_number("unfinished", info.unfinished);
    print_number("live_blocks", info.live_blocks);
    print_number("live_bytes", info.live_bytes);
    printf(", \"calls\": {");
    for (unsigned action = TTD_ACTION_ALLOC; action <= TTD_ACTION_DESTROY; action++)
        printf("%s\"%s\": %" PRIu64, action > TTD_ACTION_ALLOC ? ", " : "",
               ttd_action_name((enum ttd_action)action), info.calls[action]);
    printf("}}\n");
    ttdheap_free(&info.answer);
    return TTD_OK;
}

static enum ttd_status ask_moves(void)
{
    struct ttdheap_moves moves;
    enum ttd_status status = ttdheap_moves(heap, &moves, &failure);
    if (status != TTD_OK)
        return status;
    print_answer(&moves.answer);
    printf(", \"groups\": [");
    for (size_t i = 0; i < moves.count; i++) {
        const struct ttdheap_move *move = &moves.items[i];
        printf("%s{\"inferred\": %s", i ? ", " : "", move->is_inferred ? "true" : "false");
        print_number("stack_id", move->stack);
        print_number("growth", move->growth);
        print_number("reallocs", move->calls);
        print_number("moved", move->moved);
        print_number("in_place", move->in_place);
        print_number("copied", move->copied);
        print_number("copied_at_most", move->copied_at_most);
        print_number("avoidable", move->avoidable);
        print_number("smallest", move->smallest);
        print_number("largest", move->largest);
        putchar('}');
    }
    printf("]}\n");
    ttdheap_free(&moves.answer);
    return TTD_OK;
}

static enum ttd_status ask_errors(void)
{
    struct ttdheap_findings findings;
    enum ttd_status status = ttdheap_errors(heap, &findings, &failure);
    if (status != TTD_OK)
        return status;
    print_answer(&findings.answer);
    print_number("calls", findings.calls);
    printf(", \"findings\": [");
    for (size_t i = 0; i < findings.count; i++) {
        const struct ttdheap_finding *finding = &findings.items[i];
        printf("%s{\"kind\": \"%s\"", i ? ", " : "", finding->kind);
        print_bool("certain", finding->is_certain);
        printf(", \"address\": \"0x%" PRIx64 "\"", finding->address);
        print_number("count", finding->count);
        print_number("block_size", finding->block_size);
        print_call("call", &finding->call);
        print_call("allocated", &finding->allocated);
        print_call("released", &finding->released);
        putchar('}');
    }
    printf("]}\n");
    ttdheap_free(&findings.answer);
    return TTD_OK;
}

static enum ttd_status ask_history(uint64_t first, uint64_t last, size_t max)
{
    struct ttdheap_history history;
    enum ttd_status status = ttdheap_history(heap, first, last, max, &history, &failure);
    if (status != TTD_OK)
        return status;
    print_answer(&history.answer);
    print_number("total", history.total);
    printf(", \"owners\": [");
    for (size_t i = 0; i < history.count; i++) {
        const struct ttdheap_owner *owner = &history.items[i];
        printf("%s{", i ? ", " : "");
        print_block(&owner->block);
        print_number("ordinal", owner->ordinal);
        printf(", \"previous\": \"0x%" PRIx64 "\"", owner->previous_address);
        print_call("released", &owner->released);
        putchar('}');
    }
    printf("]}\n");
    ttdheap_free(&history.answer);
    return TTD_OK;
}

static enum ttd_status ask_frames(ttd_id stack)
{
    struct ttdheap_frames frames;
    enum ttd_status status = ttdheap_frames(heap, stack, &frames, &failure);
    if (status != TTD_OK)
        return status;
    print_answer(&frames.answer);
    printf(", \"frames\": [");
    for (size_t i = 0; i < frames.count; i++) {
        const struct ttdheap_frame *frame = &frames.items[i];
        printf("%s{\"inlined\": %s", i ? ", " : "", frame->is_inlined ? "true" : "false");
        print_text("function", frame->function);
        print_text("file", frame->file);
        print_text("module", frame->module);
        print_number("line", frame->line);
        print_number("offset", frame->offset);
        putchar('}');
    }
    printf("]}\n");
    ttdheap_free(&frames.answer);
    return TTD_OK;
}

/* Lists calls in parts of `max`. */
static enum ttd_status ask_calls(struct ttd_position from, struct ttd_position to, size_t max)
{
    uint64_t next = 0;
    do {
        struct ttdheap_calls calls;
        struct ttdheap_range range = {from, to, next, max};
        enum ttd_status status = ttdheap_calls(heap, &range, &calls, &failure);
        if (status != TTD_OK)
            return status;
        print_answer(&calls.answer);
        printf(", \"calls\": [");
        for (size_t i = 0; i < calls.count; i++) {
            printf("%s{\"number\": %" PRIu64, i ? ", " : "", calls.items[i].number);
            printf(", \"action\": \"%s\"", ttd_action_name(calls.items[i].action));
            print_position("start", calls.items[i].time_start);
            print_number("size", calls.items[i].size);
            printf(", \"parameters\": [");
            for (uint32_t j = 0; j < calls.items[i].parameter_count; j++)
                printf("%s%" PRIu64, j ? ", " : "", calls.items[i].parameters[j]);
            printf("]}");
        }
        printf("]}\n");
        next = calls.next;
        ttdheap_free(&calls.answer);
    } while (next != UINT64_MAX);
    return TTD_OK;
}

static enum ttdheap_by property(const char *name)
{
    static const char *const names[] = {"stack",  "function", "file",  "module",
                                        "thread", "heap",     "class", "size"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], name) == 0)
            return (enum ttdheap_by)i;
    }
    return (enum ttdheap_by)99;
}

static enum ttd_status go(const char *text)
{
    struct ttd_position position;
    enum ttd_status status = ttdheap_find(heap, text, &position, &failure);
    if (status != TTD_OK)
        return status;
    char found[TTD_POSITION_TEXT];
    ttd_position_format(position, found);
    printf("{\"at\": \"%s\"}\n", found);
    return ttdheap_go(heap, position);
}

/* Appends the next bytes of the file PATH.whole to the trace. */
static void grow(const char *path, size_t size)
{
    char name[4096];
    char *bytes = malloc(size);
    snprintf(name, sizeof name, "%s.whole", path);
    FILE *whole = fopen(name, "rb");
    FILE *trace = fopen(path, "ab");
    if (!bytes || !whole || !trace || fseek(trace, 0, SEEK_END) != 0 ||
        fseek(whole, ftell(trace), SEEK_SET) != 0)
        exit(1);
    fwrite(bytes, 1, fread(bytes, 1, size, whole), trace);
    fclose(whole);
    fclose(trace);
    free(bytes);
}

static enum ttd_status ask(char *arguments[ARGUMENTS])
{
    const char *word = arguments[0];
    struct ttdheap_groups groups;
    struct ttdheap_blocks blocks;
    struct ttd_position from, to;
    enum ttd_status status = TTD_OK;
    if (strcmp(word, "go") == 0)
        return go(arguments[1]);
    if (strcmp(word, "info") == 0)
        return ask_info();
    if (strcmp(word, "moves") == 0)
        return ask_moves();
    if (strcmp(word, "errors") == 0)
        return ask_errors();
    if (strcmp(word, "frames") == 0)
        return ask_frames((ttd_id)strtoul(arguments[1], NULL, 0));
    if (strcmp(word, "history") == 0)
        return ask_history(strtoull(arguments[1], NULL, 0), strtoull(arguments[2], NULL, 0),
                           strtoul(arguments[3], NULL, 0));
    if (strcmp(word, "blocks") == 0 || strcmp(word, "block") == 0) {
        status = arguments[1]
                     ? ttdheap_block_at(heap, strtoull(arguments[1], NULL, 0), &blocks, &failure)
                     : ttdheap_blocks(heap, &blocks, &failure);
        if (status == TTD_OK)
            print_blocks(&blocks);
        return status;
    }
    if (strcmp(word, "calls") == 0) {
        status = ttdheap_find_range(heap, arguments[2], arguments[3], &from, &to, &failure);
        return status == TTD_OK ? ask_calls(from, to, strtoul(arguments[1], NULL, 0)) : status;
    }
    if (strcmp(word, "diff") == 0) {
        status = ttdheap_find_range(heap, arguments[2], arguments[3], &from, &to, &failure);
        if (status == TTD_OK)
            status = ttdheap_diff(heap, from, to, property(arguments[1]), &groups, &failure);
    } else if (strcmp(word, "groups") == 0) {
        status = ttdheap_groups(heap, property(arguments[1]), &groups, &failure);
    } else {
        status = ttdheap_leaks(heap, property(arguments[1]), &groups, &failure);
    }
    if (status == TTD_OK)
        print_groups(&groups);
    return status;
}

int main(int count, char **values)
{
    struct ttdheap_options options = ttdheap_options_default();
    int first = 2;
    if (count > 2 && strncmp(values[2], "index/", 6) == 0) {
        options.index = values[2] + 6;
        first++;
    }
    if (ttdheap_open(values[1], &options, &heap, &failure) != TTD_OK) {
        fprintf(stderr, "%s\n", failure.text);
        return failure.detail.status;
    }
    int result = 0;
    for (int i = first; i < count; i++) {
        char *arguments[ARGUMENTS] = {NULL};
        char *part = strtok(values[i], "/");
        for (size_t j = 0; part && j < ARGUMENTS - 1; j++, part = strtok(NULL, "/"))
            arguments[j] = part;
        if (strcmp(arguments[0], "grow") == 0) {
            grow(values[1], strtoul(arguments[1], NULL, 0));
            continue;
        }
        enum ttd_status status = ask(arguments);
        if (status == TTD_OK)
            continue;
        printf("{\"status\": %d, \"what\": \"%s\"}\n", status, failure.text);
        result = status;
    }
    ttdheap_close(heap);
    return result;
}
