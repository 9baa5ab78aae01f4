/* SPDX-License-Identifier: MIT */
#include "preload/process/module_log.h"

#include <elf.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "channel_record.h"
#include "preload/channel/target.h"
#include "preload/system/own_memory.h"
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
    if (process_is_confined || maps_text)
        return;
    long file = sys_open_maps();
    if (file < 0)
        return;
    char *text = unwind_pages(MAPS_SIZE);
    size_t size = 0;
    long count = text ? 1 : 0;
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
    char *text = maps_text;
    maps_text = NULL; /* before it is gone: the child of a fork meanwhile gives away its own */
    atomic_signal_fence(memory_order_seq_cst);
    if (text)
        unwind_pages_free(text, MAPS_SIZE);
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
static void module_log_take_mapping(const char *next, const char *end)
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
static bool module_log_find_mapping(uintptr_t address)
{
    const char *next = maps_text, *end = maps_text + maps_size;
    while (maps_text && next < end) {
        const char *line_end = memchr(next, '\n', (size_t)(end - next));
        uint64_t first, last;
        if (!line_end)
            return false;
        module_file_take_number(module_file_take_number(next, 16, &first) + 1, 16, &last);
        if (first <= address && address < last) {
            module_log_take_mapping(next, line_end);
            return true;
        }
        next = line_end + 1;
    }
    return false;
}

/* Sets the path of the program itself, when the map cannot be read. */
static void module_log_take_program(void)
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
static void module_log_take_name(const char *name)
{
    char *path = module_file.path;
    size_t size = 0, name_size;
    if (*name == '\0')
        name = (const char *)getauxval(AT_EXECFN);
    if (!name)
        name = "";
    if (*name != '/' && strchr(name, '/') && !process_is_confined) {
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

static uint64_t module_log_nanoseconds(struct timespec time)
{
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Decides between the loader's name and that in the map: the former if it is the same file. Numbers
 * of devices in the map are not always the file system's (overlayfs, btrfs). */
static void module_log_choose_path(void)
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
    facts[MODULE_FILE_MODIFIED] = module_log_nanoseconds(mapped.st_mtim);
    facts[MODULE_FILE_CHANGED] = module_log_nanoseconds(mapped.st_ctim);
}

const struct module_file *module_file_of(const struct module *module)
{
    bool is_single = !maps_text, is_program = module->map->l_name[0] == '\0';
    memset(module_file.facts, 0, sizeof module_file.facts);
    if (is_single)
        module_files_begin();
    module_log_take_name(module->map->l_name);
    /* The vDSO is no file. */
    if (!module_log_find_mapping(module->begin)) {
        if (is_program)
            module_log_take_program();
    } else if (mapped_file.path[0] == '/') {
        module_log_choose_path();
        if (is_program)
            strcpy(program_path, module_file.path);
    }
    if (is_single)
        module_files_end();
    module_file.path_size = strlen(module_file.path);
    return &module_file;
}

static struct {
    uint32_t index; /* of the chunk, CHANNEL_NONE at first */
    struct chunk *chunk;
    uint64_t *write;
    uint64_t *limit;
    bool starving;
} process_log;

/* Returns room for a record of the log; NULL if there is none, and then the module has no name. */
static uint64_t *log_room(size_t words)
{
    if (process_log.limit - process_log.write >= (ptrdiff_t)words)
        return process_log.write;
    uint32_t index = chunk_wait(process_log.index, words, &process_log.starving);
    if (index == CHANNEL_NONE)
        return NULL;
    struct chunk *chunk = channel_chunk(&target_view, index);
    process_log.write = chunk->data;
    process_log.limit = chunk->data + channel_chunk_words(index);
    if (process_log.chunk)
        atomic_store_explicit(&process_log.chunk->next, index, memory_order_release);
    else
        atomic_store_explicit(&channel_process(&target_view, process_index())->log, index,
                              memory_order_release);
    process_log.index = index;
    process_log.chunk = chunk;
    return process_log.write;
}

static void log_commit(uint64_t *end)
{
    process_log.write = end;
    atomic_store_explicit(&process_log.chunk->committed,
                          (uint32_t)((char *)end - (char *)process_log.chunk->data),
                          memory_order_release);
}

/* Returns a note of the given type in a loaded module; NULL if there is none. */
static const ElfW(Nhdr) * find_note(const ElfW(Ehdr) * header, uintptr_t bias, uint32_t type)
{
    const ElfW(Phdr) *segment = (const ElfW(Phdr) *)((const char *)header + header->e_phoff);
    for (unsigned i = 0; i < header->e_phnum; i++) {
        if (segment[i].p_type != PT_NOTE)
            continue;
        const char *at = (const char *)(bias + segment[i].p_vaddr);
        const char *end = at + segment[i].p_memsz;
        while (end - at >= (ptrdiff_t)sizeof(ElfW(Nhdr))) {
            const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
            size_t size =
                sizeof *note + ((note->n_namesz + 3u) & ~3u) + ((note->n_descsz + 3u) & ~3u);
            if (size > (size_t)(end - at))
                break;
            if (note->n_type == type && note->n_namesz == 4 && memcmp(note + 1, "GNU", 4) == 0)
                return note;
            at += size;
        }
    }
    return NULL;
}

static uint64_t *module_log_put_bytes(uint64_t *word, const void *bytes, size_t size)
{
    size_t words = (size + 7) / 8;
    if (words != 0)
        word[words - 1] = 0;
    memcpy(word, bytes, size);
    return word + words;
}

/* Records of modules: their contents are looked up once, and not in each of the thousands of forked
 * children of a server. There is room for about 600; the others are looked up again. */
enum { KEPT_WORDS = 1 << 14, KEPT_SEQUENCE = 1, KEPT_STEPS };
_Static_assert(KEPT_WORDS - 1 <= UINT16_MAX, "positions fit into struct module");
static uint64_t *kept;
static uint32_t kept_count;

static void log_keep(struct module *module, const uint64_t *record, size_t words)
{
    if (words > module->kept_words) {
        if (!kept || words > KEPT_WORDS - kept_count) {
            module->kept_words = 0;
            return;
        }
        module->kept_at = (uint16_t)kept_count;
        kept_count += (uint32_t)words;
    }
    module->kept_words = (uint16_t)words;
    memcpy(kept + module->kept_at, record, words * sizeof *record);
}

size_t module_log_room(void)
{
    return KEPT_WORDS * sizeof *kept;
}

void module_log_keep(void *room)
{
    kept = room;
}

void module_log_again(struct module *module, uint64_t sequence)
{
    size_t words = module->is_settled ? module->kept_words : 0;
    uint64_t *room = words != 0 ? log_room(words) : NULL;
    if (words == 0)
        module_log_load(module, sequence, 0);
    if (!room)
        return;
    memcpy(room, kept + module->kept_at, words * sizeof *room);
    room[KEPT_SEQUENCE] = sequence;
    room[KEPT_STEPS] = 0;
    log_commit(room + words);
}

void module_log_load(struct module *module, uint64_t sequence, uint64_t steps)
{
    const struct link_map *map = module->map;
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)module->begin;
    const ElfW(Nhdr) *note = NULL;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) == 0)
        note = find_note(header, map->l_addr, NT_GNU_BUILD_ID);
    const char *id = note ? (const char *)(note + 1) + ((note->n_namesz + 3u) & ~3u) : "";
    size_t id_size = note && note->n_descsz <= TTD_BUILD_ID_MAX ? note->n_descsz : 0;

    module->is_settled = false;
    const struct module_file *file = module_file_of(module);
    size_t path_size = file->path_size;
    uint64_t *room = log_room(8 + MODULE_FILE_FACTS + (id_size + 7) / 8 + (path_size + 7) / 8);
    if (!room)
        return;
    const uint64_t facts[] = {sequence,    steps,   map->l_addr, module->begin,
                              module->end, id_size, path_size};
    uint64_t *word = room + 1;
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        *word++ = facts[i];
    for (size_t i = 0; i < MODULE_FILE_FACTS; i++)
        *word++ = file->facts[i];
    word = module_log_put_bytes(word, id, id_size);
    word = module_log_put_bytes(word, file->path, path_size);
    *room = record_head(OP_MODULE_LOAD, 0, 0, 0, (unsigned)(word - room));
    log_keep(module, room, (size_t)(word - room));
    log_commit(word);
    atomic_signal_fence(memory_order_seq_cst);
    module->is_settled = true;
}

void module_log_unload(uintptr_t begin)
{
    uint64_t *room = log_room(4);
    if (!room)
        return;
    room[0] = record_head(OP_MODULE_UNLOAD, 0, 0, 0, 4);
    room[1] = atomic_fetch_add(&target_channel->sequence, 1) + 1; /* a fragment of its own */
    room[2] = 0;
    room[3] = begin;
    log_commit(room + 4);
}

void module_log_forget(void)
{
    memset(&process_log, 0, sizeof process_log);
    module_files_end(); /* another thread may have been reading it when this process was forked */
}
