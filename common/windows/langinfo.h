/* SPDX-License-Identifier: MIT */
/* Stands alone: Windows lacks this header, and posix.h declares what sources want of it. */
