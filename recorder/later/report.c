/* SPDX-License-Identifier: MIT */
#include "later/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/visible.h"
#include "messages.h"

enum { MODULES_SHOWN = 20 };

static const char *path_of(const struct wanted_module *module)
{
    return module->path != NULL ? module->path : "a module without a path";
}

void report_progress(const struct wanted_module *module, size_t index, size_t count)
{
    enum { PATH_SHOWN = 60 };
    char escaped[PATH_SHOWN + 1];
    const char *path = path_of(module);
    visible_escape(path, strlen(path), escaped, sizeof escaped);
    fprintf(stderr, "\r\033[Kttdrecord: %zu of %zu: %s", index + 1, count, escaped);
    fflush(stderr);
}

void report_progress_end(void)
{
    fputs("\r\033[K", stderr);
}

/* How many of a module's frames have no names. */
struct tally {
    size_t improved, kept, unnamed;
    size_t outside; /* of the unnamed: in no module */
    size_t *by_module;
};

static void count_frames(const struct wanted *wanted, struct tally *tally)
{
    for (size_t i = 0; i < wanted->address_count; i++) {
        const struct wanted_address *address = &wanted->addresses[i];
        if (!address->is_in_stack)
            continue;
        bool is_unnamed = address->quality == NAME_NONE;
        tally->improved += address->is_improved;
        tally->kept += !address->is_improved && !is_unnamed;
        tally->unnamed += is_unnamed;
        tally->outside += is_unnamed && address->module == 0;
        if (is_unnamed && address->module != 0 && tally->by_module != NULL)
            tally->by_module[address->module - 1]++;
    }
}

static const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}

static bool has_file(const struct wanted_module *module)
{
    struct stat status;
    return module->path != NULL && module->path[0] == '/' && stat(module->path, &status) == 0;
}

static const char *later_reason(const struct wanted_module *module, enum symbolize_result result)
{
    if (module->build_id_size == 0)
        return "it has no build-id";
    switch (result) {
    case SYMBOLIZE_READ:
        return "no debug information with its build-id names them";
    case SYMBOLIZE_REDUCED:
        return "its debug information is damaged, and its symbols do not name them";
    case SYMBOLIZE_FAILED:
        return "its file, or its debug file, is damaged";
    case SYMBOLIZE_ABSENT:
        return has_file(module) ? "the file there is another build, and no debug file has its "
                                  "build-id"
                                : "no file has its build-id";
    default:
        return "there was not enough time";
    }
}

/* Whether a module with the same path and build-id was told of before: modules that are loaded
 * again are defined again. */
static bool later_is_reported(const struct names_to_add *adding, const size_t *unnamed,
                              size_t index)
{
    const struct wanted_module *module = &adding->wanted->modules[index];
    for (size_t i = 0; i < index; i++) {
        const struct wanted_module *earlier = &adding->wanted->modules[i];
        if (unnamed[i] != 0 && adding->results[i] == adding->results[index] &&
            earlier->path_id == module->path_id &&
            earlier->build_id_size == module->build_id_size &&
            memcmp(earlier->build_id, module->build_id, module->build_id_size) == 0)
            return true;
    }
    return false;
}

static void later_report_modules(const struct names_to_add *adding, const size_t *unnamed)
{
    size_t told_count = 0;
    for (size_t i = 0; i < adding->wanted->module_count; i++) {
        const struct wanted_module *module = &adding->wanted->modules[i];
        if (unnamed[i] == 0 || told_count > MODULES_SHOWN || later_is_reported(adding, unnamed, i))
            continue;
        if (told_count++ == MODULES_SHOWN)
            message("there are more modules without names");
        else
            message("%s: %zu frame%s without names: %s", path_of(module), unnamed[i],
                    plural(unnamed[i]), later_reason(module, adding->results[i]));
    }
}

void report_names(const struct names_to_add *adding, const char *path)
{
    const struct wanted *wanted = adding->wanted;
    struct tally tally = {.by_module = calloc(wanted->module_count + 1, sizeof(size_t))};
    count_frames(wanted, &tally);
    message("'%s': %zu frame%s got names or better ones, %zu kept those they had, %zu ha%s none; "
            "%zu variable%s got names",
            path, tally.improved, plural(tally.improved), tally.kept, tally.unnamed,
            tally.unnamed == 1 ? "s" : "ve", adding->variables, plural(adding->variables));
    if (tally.by_module != NULL)
        later_report_modules(adding, tally.by_module);
    if (tally.outside != 0)
        message("%zu frame%s in no module that the trace tells of", tally.outside,
                tally.outside == 1 ? " is" : "s are");
    if (wanted->is_partial)
        message("warning: the trace refers to so many addresses that some were left out");
    free(tally.by_module);
}
