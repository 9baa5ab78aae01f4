/* SPDX-License-Identifier: MIT */
/**
 * The live API: a recorded program talks to its recorder (spec, "User events").
 *
 * A recorder, such as ttdrecord, notes every call of malloc() in a program without its help. A
 * program that helps nevertheless marks moments that matter to it, and switches recording off where
 * nothing of interest happens.
 *
 *     static const struct ttd_live_guid mine = {{0x7a, 0x11}};
 *     struct ttd_live *client = ttd_live_open(&mine, "server", 6);
 *     ttd_live_add_event(client, TTD_LIVE_GLOBAL, 0, "request 1", 9);
 *     ttd_live_close(client, NULL, 0);
 *     printf("%s\n", client ? "recorded" : "not recorded");
 *
 * Everything here is inline: a program includes this header and links nothing, except -ldl with a
 * glibc older than 2.34. While no recorder is loaded, ttd_live_open() returns NULL, and every other
 * function returns at once if its client is NULL. A statically linked program always gets NULL. A
 * recorder may be attached to a program that runs: one that wants to be heard then calls
 * ttd_live_open() again, at some moments, until it has a client. It keeps that: while no recorder
 * is attached its calls do nothing.
 *
 * Threads: all functions may be called by any threads at once. All but ttd_live_open() may be
 * called in signal handlers. None allocates memory from the heap, sets errno, or is a cancellation
 * point.
 */
#ifndef TTDTRACE_LIVE_H
#define TTDTRACE_LIVE_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Version of struct ttd_live_functions. A recorder that does not know it returns no client. */
#define TTD_LIVE_VERSION 1u

/** Largest size of the user data of a call, in bytes. A call with more fails. */
#define TTD_LIVE_DATA_MAX 16384u

/** Activity of an island that belongs to none. */
#define TTD_LIVE_NO_ACTIVITY UINT64_C(0)

/** Throttle that never ends an island. */
#define TTD_LIVE_NO_LIMIT UINT64_MAX

/** Identifies a client: 16 bytes chosen at random by its author, in the byte order of RFC 9562. */
struct ttd_live_guid {
    uint8_t bytes[16];
};

/** Scope of an event: the process, or the calling thread. */
enum ttd_live_scope { TTD_LIVE_GLOBAL = 0, TTD_LIVE_THREAD = 1 };

/** Flag of an event: asks for a keyframe at its position. */
#define TTD_LIVE_KEYFRAME 1u

/** Recording state of the calling thread. */
enum ttd_live_state {
    /** There is no recorder, the client is closed, or ttd_live_stop() was called. */
    TTD_LIVE_NOT_STARTED = 0,
    TTD_LIVE_RECORDING = 1,
    /** Paused by ttd_live_try_pause(), or from outside the program. */
    TTD_LIVE_PAUSED = 2,
    /** The island reached its throttle. */
    TTD_LIVE_THROTTLED = 3
};

/** A client of the recorder. It is never freed: calls with a closed client are allowed and do
 * nothing. */
struct ttd_live {
    const struct ttd_live_functions *functions;
};

struct ttd_live_heap_functions;
struct ttd_live_dump_functions;

/** Functions of the recorder. Programs call those below instead. */
struct ttd_live_functions {
    uint32_t version;
    uint32_t size; /* of this struct: a later minor version appends members */
    void (*close)(struct ttd_live *, const void *, size_t);
    bool (*is_open)(const struct ttd_live *);
    bool (*add_event)(struct ttd_live *, enum ttd_live_scope, uint32_t, const void *, size_t);
    bool (*start)(struct ttd_live *, uint64_t, uint64_t, const void *, size_t);
    bool (*stop)(struct ttd_live *, const void *, size_t);
    bool (*try_pause)(struct ttd_live *);
    bool (*resume)(struct ttd_live *);
    enum ttd_live_state (*state)(const struct ttd_live *);
    bool (*reset_throttle)(struct ttd_live *);
    bool (*throttle)(const struct ttd_live *, uint64_t *, uint64_t *);
    const struct ttd_live_heap_functions *heaps; /* live_heap.h */
    const struct ttd_live_dump_functions *dumps; /* live_dump.h */
};

/**
 * Makes a client.
 *
 * @param guid  identifies the client in the trace; copied
 * @param data  `size` bytes for the record of the client, copied; may be NULL if `size` is 0
 * @return the client; NULL if the program is not being recorded, the recorder has another version,
 *         `guid` is NULL, or the process has opened 1024 clients
 */
static inline struct ttd_live *ttd_live_open(const struct ttd_live_guid *guid, const void *data,
                                             size_t size)
{
    typedef struct ttd_live *ttd_live_factory(uint32_t version, const struct ttd_live_guid *guid,
                                              const void *data, size_t size);
    ttd_live_factory *factory;
    /* RTLD_DEFAULT is declared for some dialects only; and ISO C has no conversion from void * to a
     * function. */
    void *symbol = dlsym((void *)0, "ttd_live_factory");
    *(void **)&factory = symbol;
    return symbol ? factory(TTD_LIVE_VERSION, guid, data, size) : NULL;
}

/** Closes the client: a record with `size` bytes of user data. Calls of a closed client do nothing.
 */
static inline void ttd_live_close(struct ttd_live *client, const void *data, size_t size)
{
    if (client)
        client->functions->close(client, data, size);
}

/** Returns whether the client is open and its recorder still runs. */
static inline bool ttd_live_is_open(const struct ttd_live *client)
{
    return client && client->functions->is_open(client);
}

/**
 * Adds an event to the trace at the position of the calling thread, even if that thread is paused,
 * throttled or not started.
 *
 * @param flags  0 or TTD_LIVE_KEYFRAME
 * @param data   `size` bytes, copied; may be NULL if `size` is 0. Text is UTF-8 without a NUL.
 * @return whether it was recorded: false for other flags, more than TTD_LIVE_DATA_MAX bytes, or if
 * the recorder had no room (counted as a loss in the trace)
 */
static inline bool ttd_live_add_event(struct ttd_live *client, enum ttd_live_scope scope,
                                      uint32_t flags, const void *data, size_t size)
{
    return client && client->functions->add_event(client, scope, flags, data, size);
}

/**
 * Begins an island of recording in the calling thread, whatever its state; an open island ends. A
 * thread that never calls this function is recorded from its first heap call on, in an island
 * without activity.
 *
 * @param activity  number chosen by the program that groups islands; TTD_LIVE_NO_ACTIVITY for none
 * @param maximum   throttle: heap calls until the island ends by itself, or TTD_LIVE_NO_LIMIT
 * @return false, without effect, for a `maximum` of 0 or more than TTD_LIVE_DATA_MAX bytes
 */
static inline bool ttd_live_start(struct ttd_live *client, uint64_t activity, uint64_t maximum,
                                  const void *data, size_t size)
{
    return client && client->functions->start(client, activity, maximum, data, size);
}

/**
 * Ends the island of the calling thread. Its heap calls from here on are missing in the trace, and
 * the trace says so: the state of blocks that the thread may have released is unknown.
 *
 * @return false, without effect, if no island is open
 */
static inline bool ttd_live_stop(struct ttd_live *client, const void *data, size_t size)
{
    return client && client->functions->stop(client, data, size);
}

/** Pauses recording of the calling thread. Pauses nest. Returns false, without effect, if the
 * thread has no island or is throttled. */
static inline bool ttd_live_try_pause(struct ttd_live *client)
{
    return client && client->functions->try_pause(client);
}

/** Ends a pause that ttd_live_try_pause() began. Returns false if there is none. */
static inline bool ttd_live_resume(struct ttd_live *client)
{
    return client && client->functions->resume(client);
}

/** Returns the state of the calling thread. */
static inline enum ttd_live_state ttd_live_thread_state(const struct ttd_live *client)
{
    return client ? client->functions->state(client) : TTD_LIVE_NOT_STARTED;
}

/** Resets the throttle of the calling thread's island, and resumes recording if it was reached.
 * Returns false if no island is open. */
static inline bool ttd_live_reset_throttle(struct ttd_live *client)
{
    return client && client->functions->reset_throttle(client);
}

/**
 * Gets the distance of the calling thread's island from its throttle, in heap calls.
 *
 * @param executed   calls recorded since the island began or its throttle was reset; not NULL
 * @param remaining  calls until it ends, TTD_LIVE_NO_LIMIT without a throttle; not NULL
 * @return false, with both 0, if no island is open
 */
static inline bool ttd_live_throttle(const struct ttd_live *client, uint64_t *executed,
                                     uint64_t *remaining)
{
    if (client)
        return client->functions->throttle(client, executed, remaining);
    *executed = *remaining = 0;
    return false;
}

#ifdef __cplusplus
} /* extern "C" */

namespace ttd
{

/** Pauses recording of the calling thread for the lifetime of the object. */
class live_pause
{
  public:
    explicit live_pause(struct ttd_live *client)
        : client_(ttd_live_try_pause(client) ? client : nullptr)
    {
    }
    ~live_pause()
    {
        ttd_live_resume(client_);
    }
    live_pause(const live_pause &) = delete;
    live_pause &operator=(const live_pause &) = delete;

  private:
    struct ttd_live *client_;
};

} /* namespace ttd */
#endif

#include <ttdtrace/live_dump.h>
#include <ttdtrace/live_heap.h>

#endif
