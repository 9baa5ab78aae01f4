/* SPDX-License-Identifier: MIT */
/* Makes sure that descriptors 0, 1 and 2 are open. */
#ifndef TTD_COMMON_STANDARD_DESCRIPTORS_H
#define TTD_COMMON_STANDARD_DESCRIPTORS_H

/*
 * Opens the closed ones of the three, so that no file of ours gets one of these numbers and
 * has messages written into it. Such a descriptor is opened the wrong way round, so that its use
 * still fails, and is closed by an exec. Called first in main().
 */
void standard_descriptors_open(void);

#endif
