/* SPDX-License-Identifier: MIT */
/* Stands alone: Windows lacks this header, and posix.h has its declarations. */
