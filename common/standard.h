/* SPDX-License-Identifier: MIT */
/* Descriptors 0, 1 and 2 are what everybody takes them for. */
#ifndef TTD_COMMON_STANDARD_H
#define TTD_COMMON_STANDARD_H

/*
 * Opens those of the three that are closed, so that no file of ours gets one of them, and messages
 * end up in it. What they stand for fails: they can only be used the wrong way round. Closed at an
 * exec. Called first in main().
 */
void standard_open(void);

#endif
