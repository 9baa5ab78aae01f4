/* SPDX-License-Identifier: MIT */
/* Questions about the trace, from the position on the command line to the certainty of the answer.
 */
#include "cli/process/exit.h"
#include "cli/session/session.h"
#include "cli/session/sidecar.h"

static int question_resolve(struct session *session, const struct position_spec *position,
                            struct question *question)
{
    question->error = (struct ttd_error){.what = NULL};
    return position_spec_resolve(position, POSITION_FOR_STATE, &session->source, &question->at);
}

int session_ask(struct session *session, const struct position_spec *position,
                struct question *question)
{
    int status = question_resolve(session, position, question);
    if (status != STATUS_OK)
        return status;
    question->trace = source_trace(&session->source);
    /* After the position is known, since the start and the end of a trace need no index. */
    question->trace.keyframes = sidecar_use(session, question->at);
    return STATUS_OK;
}

int session_ask_runtime(struct session *session, const struct position_spec *position,
                        struct question *question)
{
    int status = question_resolve(session, position, question);
    if (status == STATUS_OK)
        status = session_trace(session, &question->trace);
    if (status == STATUS_OK)
        question->trace.keyframes = sidecar_use(session, question->at);
    return status;
}

struct question session_ask_all(struct session *session)
{
    return (struct question){.trace = source_trace(&session->source), .at = ttd_position_max()};
}

int session_found(struct session *session, const struct question *question, enum ttd_status result,
                  const struct heap_outcome *outcome)
{
    if (result != TTD_OK)
        return source_fail(&session->source, result, &question->error);
    if (outcome->has_refuted_index)
        /* Before anything else asks the trace: a later query must not use the index again. */
        sidecar_refute(&session->source);
    return STATUS_OK;
}

int session_answer(struct session *session, const struct question *question, enum ttd_status result,
                   const struct heap_outcome *outcome)
{
    int status = session_found(session, question, result, outcome);
    if (status == STATUS_OK)
        session_outcome(session, outcome, question->at);
    return status;
}
