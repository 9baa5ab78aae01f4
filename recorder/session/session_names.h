/* SPDX-License-Identifier: MIT */
/*
 * Programs that are recorded by name. The system asks before it executes one of their files
 * (fanotify), which lasts until the answer, or until the descriptor is closed: a daemon that is
 * killed holds up nothing. A file that replaces one of them is noticed.
 */
#ifndef RECORDER_SESSION_SESSION_NAMES_H
#define RECORDER_SESSION_SESSION_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NAMES_MAX = 64 };

struct names {
    int events;  /* fanotify; -1 if it is not permitted */
    int changes; /* inotify; -1 likewise */
    size_t count;
    struct named_program {
        char *path;
        int folder; /* watch of inotify */
    } items[NAMES_MAX];
};

/* Returns 0, or an errno value if the system does not permit it. */
int names_open(struct names *names);

/* Closes the descriptors: in a process that must not hold up others, and at the end. */
void names_close(struct names *names);

/* Adds or removes a program. Return 0 or an errno value. */
int names_watch(struct names *names, const char *path);
int names_forget(struct names *names, const char *path);

/* A thread that is about to execute a program. */
struct names_event {
    int file;     /* the program, by which the answer is given */
    uint32_t tid; /* 0 if it is in a PID namespace that is not visible here */
};

/* Reads the next event. Returns false if there is none. */
bool names_next(struct names *names, struct names_event *event);

/* Lets the thread execute the program. */
void names_allow(struct names *names, struct names_event *event);

/* Reads changes of folders, and watches the files that have replaced others. */
void names_follow_changes(struct names *names);

#endif
