/* SPDX-License-Identifier: MIT */
#include "preload/process/module_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "preload/channel/target.h"
#include "preload/system/memory.h"
#include "preload/system/sys.h"

/* Room for /proc/self/maps; of a longer one, the begin is read. */
enum { MAPS_SIZE = 8 << 20 };

static char *maps_text;
static size_t maps_size;

static struct module_file module_file;
static char program_path[MODULE_PATH_MAX]; /* once it is known */
static struct {
    char path[MODULE_PATH_MAX];
    bool is_gone; /* the file has no longer this name */
} mapped_file;

void module_files_begin(void)
{
    if (process_is_confined || maps_text != NULL)
        return;
    long file = sys_open_maps();
    if (file < 0)
        return;
    char *text = unwind_pages(MAPS_SIZE);
    size_t size = 0;
    long count = text != NULL ? 1 : 0;
    while (count > 0 && size < MAPS_SIZE) {
        count = sys_call3(SYS_read, file, (long)(text + size), (long)(MAPS_SIZE - size));
        size += count > 0 ? (size_t)count : 0;
    }
    sys_call3(SYS_close, file, 0, 0);
    maps_text = text;
    maps_size = size;
}

void module_files_end(void)
{
    if (maps_text != NULL)
        unwind_pages_free(maps_text, MAPS_SIZE);
    maps_text = NULL;
}

static const char *module_file_take_number(const char *next, unsigned base, uint64_t *number)
{
    *number = 0;
    for (;; next++) {
        unsigned c = (unsigned char)*next, digit = base;
        if (c >= '0' && c <= '9')
            digit = c - '0';
        else if (c >= 'a' && c <= 'f')
            digit = c - 'a' + 10;
        if (digit >= base)
            return next;
        *number = *number * base + digit;
    }
}

/* Reads a line: "begin-end flags offset major:minor inode    path". */
static void take_mapping(const char *next, const char *end)
{
    static const char gone[] = " (deleted)";
    uint64_t *facts = module_file.facts, major, minor;
    next = module_file_take_number(next, 16, &facts[MODULE_FILE_BEGIN]);
    next = module_file_take_number(next + 1, 16, &facts[MODULE_FILE_END]);
    next = module_file_take_number(next + 6, 16, &major); /* the offset */
    next = module_file_take_number(next + 1, 16, &major);
    next = module_file_take_number(next + 1, 16, &minor);
    next = module_file_take_number(next + 1, 10, &facts[MODULE_FILE_INODE]);
    facts[MODULE_FILE_DEVICE] = major << 32 | minor;
    while (next < end && *next == ' ')
        next++;
    size_t size = (size_t)(end - next), gone_size = sizeof gone - 1;
    mapped_file.is_gone = size > gone_size && memcmp(end - gone_size, gone, gone_size) == 0;
    size -= mapped_file.is_gone ? gone_size : 0;
    if (size >= sizeof mapped_file.path)
        size = 0;
    memcpy(mapped_file.path, next, size);
    mapped_file.path[size] = '\0';
}

/* Finds the mapping at an address. False if none is known. */
static bool find_mapping(uintptr_t address)
{
    const char *next = maps_text, *end = maps_text + maps_size;
    while (maps_text != NULL && next < end) {
        const char *line_end = memchr(next, '\n', (size_t)(end - next));
        uint64_t first, last;
        if (line_end == NULL)
            return false;
        module_file_take_number(module_file_take_number(next, 16, &first) + 1, 16, &last);
        if (first <= address && address < last) {
            take_mapping(next, line_end);
            return true;
        }
        next = line_end + 1;
    }
    return false;
}

/* Sets the path of the program itself, when the map cannot be read. */
static void take_program(void)
{
    if (program_path[0] == '\0' && !process_is_confined &&
        sys_call3(SYS_readlink, (long)"/proc/self/exe", (long)program_path,
                  sizeof program_path - 1) < 0)
        sys_call3(SYS_readlink, (long)"/proc/thread-self/exe", (long)program_path,
                  sizeof program_path - 1);
    strcpy(module_file.path, program_path);
}

/* Sets the path by the loader's name: an absolute one, without "./". Of the program itself, it is
 * the one that it was executed by. */
static void take_name(const char *name)
{
    char *path = module_file.path;
    size_t size = 0, name_size;
    if (*name == '\0')
        name = (const char *)getauxval(AT_EXECFN);
    if (name == NULL)
        name = "";
    if (*name != '/' && strchr(name, '/') != NULL && !process_is_confined) {
        long length = sys_call3(SYS_getcwd, (long)path, MODULE_PATH_MAX, 0);
        size = length > 0 && path[0] == '/' ? (size_t)length : 0;
        if (size > 0 && path[size - 2] != '/')
            path[size - 1] = '/';
        else if (size > 0)
            size--;
        while (name[0] == '.' && name[1] == '/')
            name += 2;
    }
    name_size = strlen(name);
    if (name_size >= MODULE_PATH_MAX - size)
        name_size = size = 0;
    memcpy(path + size, name, name_size);
    path[size + name_size] = '\0';
}

static bool module_file_status(const char *path, struct stat *status)
{
    return path[0] == '/' &&
           sys_call6(SYS_newfstatat, AT_FDCWD, (long)path, (long)status, 0, 0, 0) == 0;
}

static uint64_t nanoseconds(struct timespec time)
{
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Decides between the loader's name and that in the map: the former if it is the same file. Numbers
 * of devices in the map are not always those of the file system (overlayfs, btrfs). */
static void choose_path(void)
{
    struct stat named, mapped;
    bool has_mapped = module_file_status(mapped_file.path, &mapped);
    bool is_named = module_file_status(module_file.path, &named) &&
                    (has_mapped ? named.st_dev == mapped.st_dev && named.st_ino == mapped.st_ino
                                : !mapped_file.is_gone);
    if (mapped_file.is_gone)
        module_file.facts[MODULE_FILE_STATE] = MODULE_FILE_GONE;
    if (!is_named)
        strcpy(module_file.path, mapped_file.path);
    if (mapped_file.is_gone || !has_mapped)
        return;
    uint64_t *facts = module_file.facts;
    facts[MODULE_FILE_STATE] = MODULE_FILE_THERE;
    facts[MODULE_FILE_DEVICE] = mapped.st_dev;
    facts[MODULE_FILE_INODE] = mapped.st_ino;
    facts[MODULE_FILE_SIZE] = (uint64_t)mapped.st_size;
    facts[MODULE_FILE_MODIFIED] = nanoseconds(mapped.st_mtim);
    facts[MODULE_FILE_CHANGED] = nanoseconds(mapped.st_ctim);
}

const struct module_file *module_file_of(const struct module *module)
{
    bool is_single = maps_text == NULL, is_program = module->map->l_name[0] == '\0';
    memset(module_file.facts, 0, sizeof module_file.facts);
    if (is_single)
        module_files_begin();
    take_name(module->map->l_name);
    /* The vDSO is no file. */
    if (!find_mapping(module->begin)) {
        if (is_program)
            take_program();
    } else if (mapped_file.path[0] == '/') {
        choose_path();
        if (is_program)
            strcpy(program_path, module_file.path);
    }
    if (is_single)
        module_files_end();
    module_file.path_size = strlen(module_file.path);
    return &module_file;
}
