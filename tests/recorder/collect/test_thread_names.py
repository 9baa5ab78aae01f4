# SPDX-License-Identifier: MIT
"""Threads have the names that the program gave them, however short they live."""

import collections
import os
import subprocess
import unittest

from support import Recording, analyze

THREADS = 300
PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
static pthread_barrier_t before, after;
static char name[16];
static void *named_before(void *unused)
{
    pthread_setname_np(pthread_self(), name);
    free(malloc(10));
    return unused;
}
static void *named_after(void *unused)
{
    free(malloc(10));
    prctl(PR_SET_NAME, name);
    return unused;
}
static void *named_by_another(void *unused)
{
    free(malloc(10));
    pthread_barrier_wait(&before);
    pthread_barrier_wait(&after);
    return unused;
}
int main(void)
{
    pthread_barrier_init(&before, NULL, 2);
    pthread_barrier_init(&after, NULL, 2);
    for (int i = 0; i < THREADS; i++) {
        static void *(*const functions[])(void *) = {named_before, named_after, named_by_another};
        static const char *const kinds[] = {"before", "after", "other"};
        pthread_t thread;
        snprintf(name, sizeof name, "%s-%d", kinds[i % 3], i);
        pthread_create(&thread, NULL, functions[i % 3], NULL);
        if (i % 3 == 2) {
            pthread_barrier_wait(&before);
            pthread_setname_np(thread, name);
            pthread_barrier_wait(&after);
        }
        pthread_join(thread, NULL);
    }
    return 0;
}
"""


class ThreadNames(Recording):
    def test_short_lives(self):
        source = self.directory / 'threads.c'
        source.write_text(PROGRAM)
        program = self.directory / 'threads'
        subprocess.run([*os.environ['COMPILER'].split(), f'-DTHREADS={THREADS}', '-pthread',
                        str(source), '-o', str(program)], check=True)
        self.assertEqual(self.record(str(program)).returncode, 0)
        self.assert_sound()
        names = [thread['name'] for thread in analyze('info', self.trace)['thread_list']]
        kinds = collections.Counter(name.split('-')[0] for name in set(names))
        self.assertEqual(kinds, {'threads': 1, 'before': THREADS / 3, 'after': THREADS / 3,
                                 'other': THREADS / 3})


if __name__ == '__main__':
    unittest.main()
