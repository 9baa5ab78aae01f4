/* SPDX-License-Identifier: MIT */
/**
 * Dumps: a program adds contents of its memory to its trace (spec, "Snapshots"). Part of the live
 * API; ttdtrace/live.h includes it.
 *
 * A recorder notes the calls of malloc(), not what the program writes into its blocks. Where a
 * program finds itself broken, it saves the contents for later.
 *
 *     static const struct ttd_live_guid mine = {{0x7a, 0x12}};
 *     static char table[100];
 *     struct ttd_live *client = ttd_live_open(&mine, NULL, 0);
 *     bool is_dumped = ttd_live_dump_range(client, table, table + sizeof table, true);
 *     printf("%s\n", is_dumped ? "dumped" : "not recorded");
 *
 * A dump is a snapshot in the trace, at a position soon after the call. The recorder copies memory
 * from outside the program, in whole pages: memory that is not mapped, or is unmapped meanwhile,
 * causes no fault and is not recorded. Other threads go on, and their writes meanwhile may be torn;
 * they are stopped only for a dump of the heaps. Pages that were copied before are not stored
 * again.
 *
 * A trace with dumps has contents of memory, whatever the options of the recorder.
 *
 * Threads: any threads may request dumps, many at once. A signal handler that may have interrupted
 * a heap call can only request one that is not synchronous; others do nothing there. Without a
 * client, or with a closed one, nothing happens.
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
 * Adds the contents of all heaps, and the words of the program's memory that point into them, like
 * `ttdrecord --snapshot=memory snapshot PID`. Returns when the dump is complete.
 *
 * @return whether it was taken: false if the system does not permit it, or the recorder has ended
 */
static inline bool ttd_live_dump_heaps(struct ttd_live *client)
{
    return client && client->functions->dumps->heaps(client);
}

/**
 * Adds the contents of the memory [begin, end).
 *
 * @param synchronous  whether to return when the dump is complete; otherwise returns at once, and
 *                     the memory is copied later, with the contents that it has then
 * @return whether it was taken or requested: false if the range is empty; if `synchronous`, also if
 *         nothing in it is mapped
 */
static inline bool ttd_live_dump_range(struct ttd_live *client, const void *begin, const void *end,
                                       bool synchronous)
{
    return client && client->functions->dumps->range(client, begin, end, synchronous);
}

/**
 * Adds the contents of the memory of a module. Returns when the dump is complete.
 *
 * @param address        any address in the module, such as a function's or a variable's
 * @param writable_only  whether to add only memory that the program can write: data, no code
 * @return whether it was taken: false if no module has the address
 */
static inline bool ttd_live_dump_module(struct ttd_live *client, const void *address,
                                        bool writable_only)
{
    return client && client->functions->dumps->module(client, address, writable_only);
}

/**
 * Copies the absolute path of the trace.
 *
 * @param name  `size` bytes, set to the path and a NUL if they fit; may be NULL if `size` is 0
 * @return length of the path in bytes without the NUL; 0 if it is not known or exceeds 255
 */
static inline size_t ttd_live_file_name(struct ttd_live *client, char *name, size_t size)
{
    return client ? client->functions->dumps->file_name(client, name, size) : 0;
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
