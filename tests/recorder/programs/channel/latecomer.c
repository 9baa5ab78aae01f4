/* SPDX-License-Identifier: MIT */
/** Asks for a client of the live API, and calls its functions whether it got one or not. An
 * argument is a library that it loads before. */
#include <dlfcn.h>
#include <stdio.h>

#include <ttdtrace/live.h>

int main(int count, char **arguments)
{
    static const struct ttd_live_guid guid = {{1}};
    if (count > 1 && !dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL)) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    struct ttd_live *client = ttd_live_open(&guid, NULL, 0);
    bool is_added = ttd_live_add_event(client, TTD_LIVE_GLOBAL, 0, "x", 1);
    bool is_paused = ttd_live_try_pause(client);
    bool is_resumed = ttd_live_resume(client);
    ttd_live_close(client, NULL, 0);
    printf("client %d: %d %d %d\n", client != NULL, is_added, is_paused, is_resumed);
    return 0;
}
