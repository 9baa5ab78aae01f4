/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* asprintf */
#include "support.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

static char directory[] = "/tmp/symbolize-XXXXXX";

void enter_directory(void)
{
    cr_assert(mkdtemp(directory) && chdir(directory) == 0);
    run("cp " FIXTURES "/* .");
}

void leave_directory(void)
{
    cr_assert(chdir("/") == 0);
    run("rm -rf %s", directory);
}

bool has_tool(const char *name)
{
    char command[128];
    snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", name);
    return system(command) == 0;
}

void run(const char *format, ...)
{
    char *command;
    va_list arguments;
    va_start(arguments, format);
    cr_assert(vasprintf(&command, format, arguments) > 0);
    va_end(arguments);
    cr_assert(system(command) == 0, "%s", command);
    free(command);
}

struct symbolize_module module_of(const struct program *program)
{
    return (struct symbolize_module){
        .path = program->path,
        .build_id = program->build_id_size > 0 ? program->build_id : NULL,
        .build_id_size = program->build_id_size,
        .offsets = program->offsets,
        .offset_count = program->count,
    };
}

void free_program(struct program *program)
{
    free(program->offsets);
}

static struct answer *add_answer(struct answers *answers, uint64_t offset)
{
    if (answers->count == answers->capacity) {
        answers->capacity = answers->capacity > 0 ? 2 * answers->capacity : 64;
        answers->items = realloc(answers->items, answers->capacity * sizeof *answers->items);
        cr_assert(answers->items != NULL);
    }
    struct answer *answer = &answers->items[answers->count++];
    *answer = (struct answer){.offset = offset};
    return answer;
}

static char *copy_string(const char *data, size_t size)
{
    cr_assert((data != NULL) == (size > 0));
    cr_assert(size <= SYMBOLIZE_STRING_MAX);
    return size > 0 ? strndup(data, size) : strdup("??");
}

void keep_answer(void *context, size_t module, uint64_t offset,
                 const struct symbolize_frame *frames, size_t count)
{
    (void)module;
    cr_assert(count <= SYMBOLIZE_FRAMES_MAX);
    if (count == 0)
        return;
    struct answer *answer = add_answer(context, offset);
    for (size_t i = 0; i < count && i < PLACES_MAX; i++)
        answer->places[answer->count++] = (struct place){
            .function = copy_string(frames[i].function, frames[i].function_size),
            .file = copy_string(frames[i].file, frames[i].file_size),
            .line = frames[i].line,
        };
}

static int compare_answers(const void *left, const void *right)
{
    const struct answer *a = left;
    const struct answer *b = right;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

void sort_answers(struct answers *answers)
{
    if (answers->count > 0)
        qsort(answers->items, answers->count, sizeof *answers->items, compare_answers);
}

void free_answers(struct answers *answers)
{
    for (size_t i = 0; i < answers->count; i++) {
        for (size_t k = 0; k < answers->items[i].count; k++) {
            free(answers->items[i].places[k].function);
            free(answers->items[i].places[k].file);
        }
    }
    free(answers->items);
    *answers = (struct answers){0};
}

const struct answer *find_answer(const struct answers *answers, uint64_t offset)
{
    const struct answer key = {.offset = offset};
    if (answers->count == 0)
        return NULL;
    return bsearch(&key, answers->items, answers->count, sizeof key, compare_answers);
}

struct symbolize_summary name_program(const struct program *program, struct answers *answers)
{
    struct symbolize_module module = module_of(program);
    struct symbolize_summary summary;
    *answers = (struct answers){0};
    cr_assert(symbolize(&module, 1, keep_answer, answers, &summary) == 0);
    cr_assert(summary.addresses_named == answers->count);
    sort_answers(answers);
    return summary;
}

void expect_equal(const struct answers *actual, const struct answers *expected)
{
    cr_assert_eq(actual->count, expected->count);
    for (size_t i = 0; i < actual->count; i++) {
        const struct answer *a = &actual->items[i];
        const struct answer *b = &expected->items[i];
        cr_assert(a->offset == b->offset && a->count == b->count, "offset %zx", (size_t)a->offset);
        for (size_t k = 0; k < a->count; k++) {
            cr_assert_str_eq(a->places[k].function, b->places[k].function);
            cr_assert_str_eq(a->places[k].file, b->places[k].file);
            cr_assert_eq(a->places[k].line, b->places[k].line);
        }
    }
}

static void write_addresses(const struct program *program)
{
    FILE *file = fopen("addresses", "w");
    cr_assert(file != NULL);
    for (size_t i = 0; i < program->count; i++)
        fprintf(file, "0x%zx\n", (size_t)program->offsets[i] - 1);
    cr_assert(fclose(file) == 0);
}

/* "file:line", "file:line:column" or "file:line (what else is known)". */
static void parse_place(struct place *place, char *text)
{
    text[strcspn(text, " ")] = '\0';
    char *colon = strrchr(text, ':');
    cr_assert(colon != NULL);
    *colon = '\0';
    char *before = strrchr(text, ':');
    if (before && before[1] != '\0' && strspn(before + 1, "0123456789") == strlen(before + 1))
        *(colon = before) = '\0';
    place->line = (unsigned)strtoul(colon + 1, NULL, 10);
    place->file = strdup(text);
}

void ask_referee(const struct program *program, struct answers *answers)
{
    *answers = (struct answers){0};
    write_addresses(program);
    run("eu-addr2line -a -f -i -e %s < addresses > places", program->path);
    FILE *file = fopen("places", "r");
    cr_assert(file != NULL);
    char text[8192];
    struct answer *answer = NULL;
    while (fgets(text, sizeof text, file)) {
        text[strcspn(text, "\n")] = '\0';
        if (strncmp(text, "0x", 2) == 0) {
            answer = add_answer(answers, strtoull(text, NULL, 16) + 1);
            continue;
        }
        cr_assert(answer && answer->count < PLACES_MAX);
        struct place *place = &answer->places[answer->count++];
        text[strcspn(text, " ")] = '\0';
        place->function = strdup(text);
        cr_assert(fgets(text, sizeof text, file) != NULL);
        text[strcspn(text, "\n")] = '\0';
        parse_place(place, text);
    }
    fclose(file);
    sort_answers(answers);
}
