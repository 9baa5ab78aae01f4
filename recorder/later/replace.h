/* SPDX-License-Identifier: MIT */
/* A new file that replaces an existing one, if there is one, only when it is complete. */
#ifndef RECORDER_LATER_REPLACE_H
#define RECORDER_LATER_REPLACE_H

#include "common/output_path.h"

struct replacement {
    struct output_path destination;
    char *temporary; /* beside the destination; NULL if that is no regular file */
    int descriptor;  /* to write to */
};

/* Creates the file, readable by its owner only. A signal that ends this process removes it. Only
 * one file can be in the making at a time. Returns 0, or an errno value if nothing was created. */
int replacement_begin(struct replacement *replacement, const char *path);

/* Gives the file its name. Returns 0, or an errno value after the file was removed. */
int replacement_publish(struct replacement *replacement);

/* Removes the file. */
void replacement_discard(struct replacement *replacement);

#endif
