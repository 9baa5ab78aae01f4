/* SPDX-License-Identifier: MIT */
/**
 * Dumps: a program adds contents of its memory to its trace (spec, "Snapshots"). Part of the live
 * API; ttdtrace/live.h includes it.
 *
 * A dump is a snapshot in the trace, at a position soon after the call. The recorder copies memory
 * from outside of the program, in whole pages: what is not mapped, or goes away meanwhile, is
 * neither a fault nor recorded. Other threads run on, and what they write meanwhile may be torn;
 * only for the heaps are they held. What was copied before is not stored again.
 *
 * A trace with dumps has what the memory contained, whatever the options of the recorder are.
 *
 * Threads: dumps may be asked for by any threads, many at once. A signal handler that may have
 * interrupted a heap call can only ask for one that is not synchronous: others do nothing then.
 * Without a client, or with one that is closed, nothing happens.
 */
#ifndef TTDTRACE_LIVE_DUMP_H
#define TTDTRACE_LIVE_DUMP_H

#include <ttdtrace/live.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Functions of the recorder. Programs call those below instead. */
struct ttd_live_dump_functions {
    uint32_t size; /* of this struct: a later minor version appends members */
    bool (*heaps)(struct ttd_live *);
    bool (*range)(struct ttd_live *, const void *, const void *, bool);
    bool (*module)(struct ttd_live *, const void *, bool);
    size_t (*file_name)(struct ttd_live *, char *, size_t);
};

/**
 * Adds the contents of all heaps, and which words of the program's memory point into them: as
 * `ttdrecord --snapshot=memory snapshot PID`. Returns when that is done.
 *
 * @return whether it was taken: false if the system does not permit it, or the recorder has stopped
 */
static inline bool ttd_live_dump_heaps(struct ttd_live *client)
{
    return client != NULL && client->functions->dumps->heaps(client);
}

/**
 * Adds what memory from `begin` to before `end` contains.
 *
 * @param synchronous  returns when that is done; else at once, and the memory is copied later, as
 *                     it is then
 * @return whether it was taken, or asked for: false if the range is empty; if `synchronous`, also
 *         if nothing of it is mapped
 */
static inline bool ttd_live_dump_range(struct ttd_live *client, const void *begin, const void *end,
                                       bool synchronous)
{
    return client != NULL && client->functions->dumps->range(client, begin, end, synchronous);
}

/**
 * Adds what the memory of a module contains, and returns when that is done.
 *
 * @param address        any address in the module, such as that of a function or a variable
 * @param writable_only  only memory that the program can write: its data, and no code
 * @return whether it was taken: false if no module has the address
 */
static inline bool ttd_live_dump_module(struct ttd_live *client, const void *address,
                                        bool writable_only)
{
    return client != NULL && client->functions->dumps->module(client, address, writable_only);
}

/**
 * Copies the absolute path of the trace.
 *
 * @param name  `size` bytes, set to the path and a NUL if there is room; may be NULL if `size` is 0
 * @return bytes of the path without the NUL; 0 if it is not known, or longer than 255 bytes
 */
static inline size_t ttd_live_file_name(struct ttd_live *client, char *name, size_t size)
{
    return client != NULL ? client->functions->dumps->file_name(client, name, size) : 0;
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
