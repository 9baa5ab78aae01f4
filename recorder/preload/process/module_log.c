/* SPDX-License-Identifier: MIT */
#include "preload/process/module_log.h"

#include <elf.h>
#include <string.h>

#include "channel_record.h"
#include "preload/channel/target.h"
#include "preload/system/memory.h"
#include "preload/process/module_file.h"

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
    if (process_log.chunk != NULL)
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

static uint64_t *put_bytes(uint64_t *word, const void *bytes, size_t size)
{
    size_t words = (size + 7) / 8;
    if (words != 0)
        word[words - 1] = 0;
    memcpy(word, bytes, size);
    return word + words;
}

/* Records of modules: what is in them is looked up once, and not in each of the thousands of forked
 * children of a server. There is room for about 600; the others are looked up again. */
enum { KEPT_WORDS = 1 << 14, KEPT_SEQUENCE = 1, KEPT_STEPS };
_Static_assert(KEPT_WORDS - 1 <= UINT16_MAX, "positions fit into struct module");
static uint64_t *kept;
static uint32_t kept_count;

static void log_keep(struct module *module, const uint64_t *record, size_t words)
{
    if (words > module->kept_words) {
        if (kept == NULL || words > KEPT_WORDS - kept_count) {
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
    size_t words = module->kept_words;
    uint64_t *room = words != 0 ? log_room(words) : NULL;
    if (words == 0)
        module_log_load(module, sequence, 0);
    if (room == NULL)
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
    const char *id = note != NULL ? (const char *)(note + 1) + ((note->n_namesz + 3u) & ~3u) : "";
    size_t id_size = note != NULL && note->n_descsz <= TTD_BUILD_ID_MAX ? note->n_descsz : 0;

    const struct module_file *file = module_file_of(module);
    size_t path_size = file->path_size;
    uint64_t *room = log_room(8 + MODULE_FILE_FACTS + (id_size + 7) / 8 + (path_size + 7) / 8);
    if (room == NULL)
        return;
    const uint64_t facts[] = {sequence,    steps,   map->l_addr, module->begin,
                              module->end, id_size, path_size};
    uint64_t *word = room + 1;
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        *word++ = facts[i];
    for (size_t i = 0; i < MODULE_FILE_FACTS; i++)
        *word++ = file->facts[i];
    word = put_bytes(word, id, id_size);
    word = put_bytes(word, file->path, path_size);
    *room = record_head(OP_MODULE_LOAD, 0, 0, 0, (unsigned)(word - room));
    log_keep(module, room, (size_t)(word - room));
    log_commit(word);
}

void module_log_unload(uintptr_t begin)
{
    uint64_t *room = log_room(4);
    if (room == NULL)
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
}
