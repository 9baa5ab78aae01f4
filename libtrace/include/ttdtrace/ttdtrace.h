/* SPDX-License-Identifier: MIT */
/** Everything but <ttdtrace/advanced.h>. */
#ifndef TTDTRACE_TTDTRACE_H
#define TTDTRACE_TTDTRACE_H

#include <ttdtrace/allocator.h>
#include <ttdtrace/amend.h>
#include <ttdtrace/batch.h>
#include <ttdtrace/io.h>
#include <ttdtrace/model.h>
#include <ttdtrace/names.h>
#include <ttdtrace/position.h>
#include <ttdtrace/reader.h>
#include <ttdtrace/redact.h>
#include <ttdtrace/status.h>
#include <ttdtrace/verify.h>
#include <ttdtrace/version.h>
#include <ttdtrace/writer.h>

#endif
