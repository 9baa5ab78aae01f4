/* SPDX-License-Identifier: MIT */
/* The descriptors that ttdrecord was started with. They are the program's: as long as ttdrecord
 * kept them open as well, nobody would see the end of a pipe that the program closes. */
#ifndef RECORDER_INHERITED_H
#define RECORDER_INHERITED_H

/* Notes which descriptors are open. Called before any other is opened. */
void inherited_note(void);

/* Closes them, and replaces standard input and output by nothing; standard error stays, for
 * messages. Called once the program has its own. */
void inherited_close(void);

#endif
