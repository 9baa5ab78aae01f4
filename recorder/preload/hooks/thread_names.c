/* SPDX-License-Identifier: MIT */
/* Names that the program gives its threads, as soon as it does: some live for less time than the
 * collector needs to look at them. See prctl() as well. */
#include <pthread.h>

#include "preload/hooks/hooks.h"

typedef int setname_function(pthread_t, const char *);

REAL(setname_function, pthread_setname_np, NULL)

EXPORT int pthread_setname_np(pthread_t thread, const char *name)
{
    int result = find_pthread_setname_np()(thread, name);
    if (result == 0)
        thread_rename((uint64_t)thread, name);
    return result;
}
