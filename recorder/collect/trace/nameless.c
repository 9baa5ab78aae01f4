/* SPDX-License-Identifier: MIT */
#include "collect/trace/nameless.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "messages.h"
#include "symbolize/image/image_file.h"
#include "collect/trace/module_files.h"

/* Returns why the file of a module cannot be read; NULL if it can. */
static const char *nameless_reason(const struct module *module)
{
    struct stat status;
    const char *place = module_files_place(module), *path = place != NULL ? place : module->path;
    bool is_copy = place != NULL && module->file.inode == 0;
    if (path[0] != '/' || module->has_names)
        return NULL;
    if (is_copy || (place == NULL && stat(path, &status) != 0))
        return "its file was removed or replaced while the program ran";
    int fd = image_file_open(path);
    bool is_same = fd < 0 || image_file_is(fd, &module->file);
    if (fd >= 0)
        close(fd);
    return is_same ? NULL : "its file was replaced or changed while the program ran";
}

static bool lacks_lines(const struct module *module)
{
    const char *place = module_files_place(module);
    return inflate_lacks_method(place != NULL ? place : module->path);
}

static void nameless_say(struct trace *trace, const char *path, const char *missing,
                         const char *reason)
{
    char *text;
    unsigned hash = 0;
    for (const char *c = path; *c != '\0'; c++)
        hash = hash * 31 + (unsigned char)*c;
    if (asprintf(&text, "%s: %s", path, reason) < 0)
        return;
    trace_metadata(trace, "unnamed", text);
    free(text);
    if (message_is_first(MESSAGE_NAMELESS, (int)(hash >> 1)))
        message("warning: '%s' has no %s: %s", path, missing, reason);
}

void nameless_note(struct trace *trace)
{
    const struct modules *modules = &trace->modules;
    bool *is_used = calloc(modules->count + 1, sizeof *is_used);
    if (is_used == NULL)
        return;
    for (size_t i = 0; i < modules->frame_count; i++)
        if (modules->frames[i].module != TTD_NONE)
            is_used[modules->frames[i].module - 1] = true;
    for (size_t i = 0; i < modules->count; i++) {
        const char *reason = is_used[i] ? nameless_reason(&modules->items[i]) : NULL;
        if (reason != NULL)
            nameless_say(trace, modules->items[i].path, "names", reason);
        else if (is_used[i] && lacks_lines(&modules->items[i]))
            nameless_say(trace, modules->items[i].path, "source lines",
                         "its debug information is in zstd, which takes a ttdrecord with libzstd");
    }
    free(is_used);
}
