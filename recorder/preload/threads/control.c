/* SPDX-License-Identifier: MIT */
/*
 * Finds the stack of the calling thread, and its id.
 *
 * The C library keeps both in the thread's control block, on top of the stack, but no interface
 * shows where in it; pthread_getattr_np() takes locks and allocates. So the fields are searched
 * for: a stack that ends just behind the control block, and the id that the system returns. The
 * stack of the first thread is elsewhere; the loader knows where it ends. For any other stack
 * /proc/self/maps is read: reading it for every thread would take time in proportion to the square
 * of their number.
 */
#include <fcntl.h>
#include <string.h>

#include "preload/system/sys.h"
#include "preload/channel/target.h"
#include "preload/system/own_memory.h"

/* A line of maps, parsed as it streams by. */
struct line {
    uintptr_t begin, end;
    enum { IN_BEGIN, IN_END, IN_REST } where;
    char tail[7]; /* the last characters, to recognise "[stack]" */
};

static uintptr_t control_hex_digit(char c)
{
    return (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void control_line_take(struct line *line, char c)
{
    if (line->where == IN_BEGIN && c != '-')
        line->begin = line->begin << 4 | control_hex_digit(c);
    else if (line->where == IN_END && c != ' ')
        line->end = line->end << 4 | control_hex_digit(c);
    else if (line->where != IN_REST)
        line->where++;
    memmove(line->tail, line->tail + 1, sizeof line->tail - 1);
    line->tail[sizeof line->tail - 1] = c;
}

/* Finds the line of the mapping with `address`. */
static bool control_maps_find(uintptr_t address, struct line *line)
{
    char buffer[1024];
    long size;
    bool is_found = false;
    long file = sys_open_maps();
    if (file < 0)
        return false;
    memset(line, 0, sizeof *line);
    while (!is_found && (size = sys_call3(SYS_read, file, (long)buffer, sizeof buffer)) > 0)
        for (long i = 0; i < size && !is_found; i++) {
            if (buffer[i] != '\n') {
                control_line_take(line, buffer[i]);
                continue;
            }
            is_found = address >= line->begin && address < line->end;
            if (!is_found)
                memset(line, 0, sizeof *line);
        }
    sys_call3(SYS_close, file, 0, 0);
    return is_found;
}

enum {
    PAGE = 4096,
    FIELDS_BEGIN = 64,         /* the bytes before it have other uses */
    ABOVE_CONTROL = 64 * 1024, /* bytes of a stack above its control block, at most */
    STACK_MIN = 4096
};

/* Offsets of the fields in the control block, in bytes; 0 until they are found. */
static _Atomic uint32_t stack_field, id_field;

static uintptr_t control_block(void)
{
    uintptr_t control;
    __asm__("mov %%fs:0, %0" : "=r"(control));
    return control;
}

/* Bytes of the control block that can be read, whatever its size. */
static uint32_t control_size(uintptr_t control)
{
    return (uint32_t)(PAGE - control % PAGE);
}

/* Reads the address, size and guard size of a stack from a field. False if it does not hold them.
 */
static bool control_read_stack(uintptr_t control, uint32_t field, struct stack_bounds *bounds)
{
    uintptr_t words[3];
    memcpy(words, (const char *)control + field, sizeof words);
    uintptr_t low = words[0], size = words[1], guard = words[2];
    if (low >= control || size < STACK_MIN || size - 1 > UINTPTR_MAX - low || guard >= size ||
        low + size <= control || low + size - control > ABOVE_CONTROL || low + guard >= control)
        return false;
    *bounds = (struct stack_bounds){low + guard, control, false};
    return true;
}

/* Finds the stack of a thread that is not the first. Until the field is known, it must be the stack
 * in use. */
static bool control_find_stack(uintptr_t stack_pointer, struct stack_bounds *bounds)
{
    uintptr_t control = control_block();
    uint32_t offset = atomic_load(&stack_field);
    uint32_t size = control_size(control);
    if (offset != 0)
        return offset + 3 * sizeof control <= size && control_read_stack(control, offset, bounds);
    for (uint32_t field = FIELDS_BEGIN; field + 3 * sizeof control <= size; field += sizeof control)
        if (stack_pointer < control && control_read_stack(control, field, bounds) &&
            stack_pointer > bounds->low) {
            atomic_store(&stack_field, field);
            return true;
        }
    return false;
}

/* The start of the first thread's stack, at the number of arguments; set by the loader. */
/* NOLINTNEXTLINE(clang-diagnostic-reserved-identifier) */
extern const uintptr_t *const __libc_stack_end;

/* The first thread's stack is larger than this, and nothing else is mapped within it. */
enum { FIRST_STACK = 64 * 1024 };

static bool control_find_first_stack(uintptr_t stack_pointer, struct stack_bounds *bounds)
{
    uintptr_t end = (uintptr_t)__libc_stack_end & -(uintptr_t)sizeof end;
    uintptr_t low = (end - FIRST_STACK) & -(uintptr_t)PAGE;
    if (stack_pointer >= end || stack_pointer <= low || !unwind_page_readable(low))
        return false;
    *bounds = (struct stack_bounds){low, end, true};
    return true;
}

static struct stack_bounds inherited;

void stack_bounds_inherit(const struct stack_bounds *bounds)
{
    inherited = *bounds;
}

static bool control_is_inherited(uintptr_t stack_pointer)
{
    return stack_pointer > inherited.low && stack_pointer < inherited.high;
}

static const char *first_argument;
static size_t arguments_size;

void arguments_find(void)
{
    const uintptr_t *count = __libc_stack_end;
    const uintptr_t *last = count + *count;
    if (*count == 0 || last <= count || !unwind_range_readable((uintptr_t)last, 2 * sizeof *last) ||
        last[1] != 0 || last[0] < count[1])
        return;
    first_argument = (const char *)count[1];
    arguments_size = last[0] - count[1] + strlen((const char *)last[0]) + 1;
}

void arguments_set(const char *text, size_t size)
{
    first_argument = text;
    arguments_size = size;
}

const char *arguments(size_t *size)
{
    *size = arguments_size;
    return first_argument;
}

struct stack_bounds stack_bounds_find(uintptr_t stack_pointer)
{
    struct line line;
    struct stack_bounds bounds;
    if (control_is_inherited(stack_pointer))
        return inherited;
    if (control_find_stack(stack_pointer, &bounds) ||
        control_find_first_stack(stack_pointer, &bounds))
        return bounds;
    bounds = (struct stack_bounds){stack_pointer, stack_pointer, false};
    if (process_is_confined || !control_maps_find(stack_pointer, &line))
        return bounds;
    bounds.low = line.begin;
    bounds.high = line.end;
    bounds.grows = memcmp(line.tail, "[stack]", sizeof line.tail) == 0;
    uintptr_t control = control_block();
    if (control > stack_pointer && control < bounds.high)
        bounds.high = control;
    return bounds;
}

static uint32_t control_read_id(uint32_t field)
{
    uint32_t id;
    memcpy(&id, (const char *)control_block() + field, sizeof id);
    return id;
}

static void control_learn_id(uint32_t id)
{
    uint32_t size = control_size(control_block());
    uint32_t offset = atomic_load(&id_field);
    if (offset != 0 && offset + sizeof id <= size && control_read_id(offset) == id)
        return;
    uint32_t field = FIELDS_BEGIN;
    while (field + sizeof id <= size && control_read_id(field) != id)
        field += sizeof id;
    atomic_store(&id_field, field + sizeof id <= size ? field : 0);
}

uint32_t thread_id(void)
{
    if (!process_is_confined) {
        uint32_t id = (uint32_t)sys_call3(SYS_gettid, 0, 0, 0);
        control_learn_id(id);
        return id;
    }
    uint32_t field = atomic_load(&id_field);
    return field != 0 && field + sizeof field <= control_size(control_block())
               ? control_read_id(field)
               : 0;
}
