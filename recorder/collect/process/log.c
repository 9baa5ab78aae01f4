/* SPDX-License-Identifier: MIT */
#include "collect/process/log.h"

#include <string.h>

#include "channel_record.h"
#include "collect/trace/allocators.h"
#include "collect/trace/module_files.h"

static void copy_bytes(void *bytes, const volatile uint64_t *words, size_t size)
{
    uint64_t word;
    for (size_t i = 0; i < size; i += 8) {
        word = words[i / 8];
        memcpy((char *)bytes + i, &word, size - i < 8 ? size - i : 8);
    }
}

static struct logged_file logged_file_of(const volatile uint64_t *facts)
{
    bool is_there = facts[MODULE_FILE_STATE] == MODULE_FILE_THERE;
    return (struct logged_file){
        .is_there = is_there,
        .begin = facts[MODULE_FILE_BEGIN],
        .end = facts[MODULE_FILE_END],
        .file =
            {
                .device = facts[MODULE_FILE_DEVICE],
                .inode = is_there || facts[MODULE_FILE_STATE] == MODULE_FILE_GONE
                             ? facts[MODULE_FILE_INODE]
                             : 0,
                .size = facts[MODULE_FILE_SIZE],
                .modified = facts[MODULE_FILE_MODIFIED],
                .changed = facts[MODULE_FILE_CHANGED],
            },
    };
}

/* Notes that the module has an allocator of its own, whose calls are not seen, unless the module is
 * the program, the first one, and its allocator is patched. */
static void note_allocator(struct process *process, struct host *host, const struct module *module)
{
    bool is_program = !process->has_modules;
    process->has_modules = true;
    if (allocators_find(module) != NULL)
        atomic_fetch_or(&channel_process(&host->view, process->slot)->notes,
                        is_program ? NOTE_OF_PROGRAM : NOTE_WITHIN);
}

static void apply_load(struct process *process, struct host *host, const struct record *record,
                       struct ttd_position position)
{
    enum { FACTS = 8 + MODULE_FILE_FACTS };
    char path[MODULE_PATH_MAX + 1];
    if (record->count < FACTS)
        return;
    uint64_t id_size = record->words[6], path_size = record->words[7];
    if (id_size > TTD_BUILD_ID_MAX || path_size > MODULE_PATH_MAX ||
        FACTS + (id_size + 7) / 8 + (path_size + 7) / 8 > record->count)
        return;
    struct module module = {
        .path = path,
        .bias = record->words[3],
        .begin = record->words[4],
        .end = record->words[5],
        .build_id_size = (uint32_t)id_size,
    };
    copy_bytes(module.build_id, record->words + FACTS, id_size);
    copy_bytes(path, record->words + FACTS + (id_size + 7) / 8, path_size);
    path[path_size] = '\0';
    struct logged_file file = logged_file_of(record->words + FACTS - MODULE_FILE_FACTS);
    module_files_keep(&module, &file, process->pid);
    trace_module_load(process->trace, position, &module);
    note_allocator(process, host, &module);
}

void log_apply(struct process *process, struct host *host, uint64_t sequence)
{
    for (;;) {
        if (!process->has_log_next)
            process->has_log_next =
                stream_peek(&process->log, host, &channel_process(&host->view, process->slot)->log,
                            &process->log_next);
        const struct record *record = &process->log_next;
        if (!process->has_log_next || record->count < 4 || record->words[1] > sequence)
            break;
        struct ttd_position position = {record->words[1], record->words[2]};
        if (record_operation(record->head) == OP_MODULE_LOAD)
            apply_load(process, host, record, position);
        else if (record_operation(record->head) == OP_MODULE_UNLOAD)
            trace_module_unload(process->trace, position, record->words[3]);
        stream_consume(&process->log, record);
        process->has_log_next = false;
    }
    process->log_looks = host->looks;
}
