/* SPDX-License-Identifier: MIT */
#include "inbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CAPACITY = 2 * (WIRE_HEADER + WIRE_BODY_MAX) };

/* What is left of a message's body. */
struct body {
    const uint8_t *at;
    size_t left;
};

int inbox_init(struct inbox *box, const struct symbolize_module *modules, size_t count,
               symbolize_function *function, void *context)
{
    *box = (struct inbox){
        .modules = modules, .count = count, .function = function, .context = context};
    size_t most = 1;
    for (size_t i = 0; i < count; i++) {
        if (modules[i].offset_count > most)
            most = modules[i].offset_count;
    }
    box->answered = calloc(most, 1);
    box->data = malloc(CAPACITY);
    return box->answered != NULL && box->data != NULL ? 0 : ENOMEM;
}

void inbox_free(struct inbox *box)
{
    free(box->answered);
    free(box->data);
}

/* Goes to a module, which may be the one past the end. */
static void go_to(struct inbox *box, size_t module)
{
    if (module == box->module)
        return;
    if (box->module < box->count)
        memset(box->answered, 0, box->modules[box->module].offset_count);
    box->module = module;
}

void inbox_restart(struct inbox *box)
{
    box->size = 0;
    box->under_way = false;
}

void inbox_skip(struct inbox *box)
{
    go_to(box, box->module + 1);
}

static bool take_number(struct body *body, uint32_t *value)
{
    if (body->left < sizeof *value)
        return false;
    memcpy(value, body->at, sizeof *value);
    body->at += sizeof *value;
    body->left -= sizeof *value;
    return true;
}

static bool take_string(struct body *body, uint32_t size, const char **string)
{
    if (size > SYMBOLIZE_STRING_MAX || size > body->left)
        return false;
    *string = size > 0 ? (const char *)body->at : NULL;
    body->at += size;
    body->left -= size;
    return true;
}

static bool take_frame(struct body *body, struct symbolize_frame *frame)
{
    uint32_t function_size;
    uint32_t file_size;
    if (!take_number(body, &frame->line) || !take_number(body, &function_size) ||
        !take_number(body, &file_size) || !take_string(body, function_size, &frame->function) ||
        !take_string(body, file_size, &frame->file))
        return false;
    frame->function_size = function_size;
    frame->file_size = file_size;
    return true;
}

static bool take_answer(struct inbox *box, struct body *body)
{
    struct symbolize_frame frames[SYMBOLIZE_FRAMES_MAX];
    uint32_t index;
    uint32_t count;
    if (!box->under_way || !take_number(body, &index) || !take_number(body, &count) || count < 1 ||
        count > SYMBOLIZE_FRAMES_MAX)
        return false;
    const struct symbolize_module *module = &box->modules[box->module];
    if (index >= module->offset_count || box->answered[index])
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!take_frame(body, &frames[i]))
            return false;
    }
    if (body->left != 0)
        return false;
    box->answered[index] = 1;
    box->named++;
    box->function(box->context, box->module, module->offsets[index], frames, count);
    return true;
}

static bool take_module(struct inbox *box, struct body *body)
{
    uint32_t module;
    if (box->under_way || !take_number(body, &module) || body->left != 0 || module < box->module ||
        module >= box->count)
        return false;
    for (size_t i = box->module; i < module; i++) {
        if (box->modules[i].offset_count > 0)
            return false;
    }
    go_to(box, module);
    box->under_way = true;
    return true;
}

static void tell_nameless(const struct inbox *box)
{
    const struct symbolize_module *module = &box->modules[box->module];
    for (size_t i = 0; i < module->offset_count; i++) {
        if (!box->answered[i])
            box->function(box->context, box->module, module->offsets[i], NULL, 0);
    }
}

static bool take_end(struct inbox *box, struct body *body)
{
    uint32_t result;
    if (!box->under_way || !take_number(body, &result) || body->left != 0 || result >= WIRE_RESULTS)
        return false;
    bool reduced = box->reduced && box->reduced_module == box->module;
    if (result == WIRE_READ && reduced)
        box->reduced_count++;
    else
        box->results[result]++;
    if (result == WIRE_READ && !reduced)
        tell_nameless(box);
    box->under_way = false;
    go_to(box, box->module + 1);
    return true;
}

static bool take_finished(struct inbox *box, const struct body *body)
{
    if (box->under_way || body->left != 0)
        return false;
    for (size_t i = box->module; i < box->count; i++) {
        if (box->modules[i].offset_count > 0)
            return false;
    }
    box->finished = true;
    return true;
}

static bool take_message(struct inbox *box, uint32_t kind, struct body body)
{
    if (box->finished)
        return false;
    switch (kind) {
    case WIRE_MODULE:
        return take_module(box, &body);
    case WIRE_ANSWER:
        return take_answer(box, &body);
    case WIRE_END:
        return take_end(box, &body);
    case WIRE_FINISHED:
        return take_finished(box, &body);
    default:
        return false;
    }
}

uint8_t *inbox_room(struct inbox *box, size_t *size)
{
    *size = CAPACITY - box->size;
    return box->data + box->size;
}

bool inbox_take(struct inbox *box, size_t size)
{
    box->size += size;
    struct body input = {box->data, box->size};
    while (input.left >= WIRE_HEADER) {
        struct body after = input;
        uint32_t kind = 0;
        uint32_t body_size = 0;
        take_number(&after, &kind);
        take_number(&after, &body_size);
        if (body_size > WIRE_BODY_MAX)
            return false;
        if (body_size > after.left)
            break;
        if (!take_message(box, kind, (struct body){after.at, body_size}))
            return false;
        input = (struct body){after.at + body_size, after.left - body_size};
    }
    memmove(box->data, input.at, input.left);
    box->size = input.left;
    return true;
}
