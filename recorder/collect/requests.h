/* SPDX-License-Identifier: MIT */
/* Requests from outside: ttdrecord status PID, ttdrecord snapshot PID. */
#ifndef RECORDER_COLLECT_REQUESTS_H
#define RECORDER_COLLECT_REQUESTS_H

#include "collect/collector.h"

/* Answers a request: a control_function, whose context is the collector. */
void requests_answer(void *context, const struct control_request *request,
                     struct control_answer *answer);

#endif
