/* SPDX-License-Identifier: MIT */
/* Where the calling thread's stack is, from /proc/self/maps: pthread_getattr_np takes locks. */
#include <fcntl.h>
#include <string.h>

#include "sys.h"
#include "target.h"

/* A line of maps, parsed as it streams by. */
struct line {
    uintptr_t begin, end;
    enum { IN_BEGIN, IN_END, IN_REST } where;
    char tail[7]; /* the last characters, to know "[stack]" by */
};

static uintptr_t hex_digit(char c)
{
    return (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void line_take(struct line *line, char c)
{
    if (line->where == IN_BEGIN && c != '-')
        line->begin = line->begin << 4 | hex_digit(c);
    else if (line->where == IN_END && c != ' ')
        line->end = line->end << 4 | hex_digit(c);
    else if (line->where != IN_REST)
        line->where++;
    memmove(line->tail, line->tail + 1, sizeof line->tail - 1);
    line->tail[sizeof line->tail - 1] = c;
}

/* Finds the line of the mapping with `address`. */
static bool maps_find(uintptr_t address, struct line *line)
{
    char buffer[1024];
    long got;
    bool found = false;
    long file =
        sys_call6(SYS_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (file < 0)
        return false;
    memset(line, 0, sizeof *line);
    while (!found && (got = sys_call3(SYS_read, file, (long)buffer, sizeof buffer)) > 0)
        for (long i = 0; i < got && !found; i++) {
            if (buffer[i] != '\n') {
                line_take(line, buffer[i]);
                continue;
            }
            found = address >= line->begin && address < line->end;
            if (!found)
                memset(line, 0, sizeof *line);
        }
    sys_call3(SYS_close, file, 0, 0);
    return found;
}

struct stack_bounds stack_bounds_find(uintptr_t stack_pointer)
{
    struct line line;
    struct stack_bounds bounds = {stack_pointer, stack_pointer, false};
    if (process_is_confined || !maps_find(stack_pointer, &line))
        return bounds;
    bounds.low = line.begin;
    bounds.high = line.end;
    bounds.grows = memcmp(line.tail, "[stack]", sizeof line.tail) == 0;
    /* The C library puts the thread's control block on top of its stack. */
    uintptr_t control;
    __asm__("mov %%fs:0, %0" : "=r"(control));
    if (control > stack_pointer && control < bounds.high)
        bounds.high = control;
    return bounds;
}
