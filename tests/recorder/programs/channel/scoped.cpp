/* SPDX-License-Identifier: MIT */
/* Pauses its recording in scopes of C++, nested and left by an exception, and allocates a block of
 * a size of its own in and after each. */
#include <cstdlib>
#include <new>

#include <ttdtrace/live.h>

static const struct ttd_live_guid guid = {{0x5f, 1, 2, 3}};
static struct ttd_live *client;

static void allocate(size_t size)
{
    void *volatile block = std::malloc(size);
    (void)block;
}

static void leave_by_exception()
{
    const ttd::live_pause pause(client);
    allocate(10004);
    throw std::bad_alloc();
}

int main()
{
    client = ttd_live_open(&guid, nullptr, 0);
    allocate(10000);
    {
        const ttd::live_pause outer(client);
        allocate(10001);
        {
            const ttd::live_pause inner(client);
            allocate(10002);
        }
        allocate(10003);
    }
    try {
        leave_by_exception();
    } catch (const std::bad_alloc &) {
        allocate(10005);
    }
    ttd_live_stop(client, nullptr, 0);
    {
        const ttd::live_pause nothing(client); /* of a thread that has no island */
        ttd_live_start(client, 1, TTD_LIVE_NO_LIMIT, nullptr, 0);
        allocate(10006);
        ttd_live_try_pause(client);
    } /* and that other pause goes on */
    allocate(10007);
    return ttd_live_thread_state(client) ==
                   (client != nullptr ? TTD_LIVE_PAUSED : TTD_LIVE_NOT_STARTED)
               ? 0
               : 1;
}
