/* SPDX-License-Identifier: MIT */
#include "collect/waiting.h"

#include <stdio.h>
#include <string.h>

#include "messages.h"

#define PATIENCE_NS UINT64_C(1000000000)

enum { NAMED_MAX = 4 };

/* Appends the id and the name of a process. Returns the new size of the text. */
static size_t waiting_name(uint32_t pid, char *text, size_t size, size_t room)
{
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/%u/comm", pid);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        if (fgets(name, sizeof name, file) != NULL)
            name[strcspn(name, "\n")] = '\0';
        fclose(file);
    }
    int length = snprintf(text + size, room - size, "%s%u%s%s", size > 0 ? ", " : "", pid,
                          name[0] != '\0' ? " " : "", name);
    return size + (size_t)length;
}

void waiting_tell(struct collector *collector, uint64_t now)
{
    char names[NAMED_MAX * 64] = "";
    size_t size = 0, count = collector->processes.count;
    if (!collector->launched_has_ended || collector->has_told_waiting || collector->is_quiet)
        return;
    if (collector->launched_end == 0)
        collector->launched_end = now;
    if (now - collector->launched_end < PATIENCE_NS)
        return;
    collector->has_told_waiting = true;
    for (size_t i = 0; i < count && i < NAMED_MAX; i++)
        size = waiting_name(collector->processes.items[i]->pid, names, size, sizeof names);
    if (count == 0)
        message("waiting for a process that the program has started; an interrupt ends its "
                "recording");
    else
        message("waiting for %zu process%s (%s%s); an interrupt ends %s recording", count,
                count == 1 ? "" : "es", names, count > NAMED_MAX ? ", …" : "",
                count == 1 ? "its" : "their");
}
