/* SPDX-License-Identifier: MIT */
#include "import/import.h"

#include <stdio.h>
#include <string.h>

#include "import/import_builder.h"
#include "import/text.h"

const struct import_format import_formats[] = {
    {"heaptrack", "raw data of heaptrack (heaptrack --raw)", import_heaptrack},
    {"windbg", "heap objects of a TTD trace, printed by dx in WinDbg", import_windbg},
    {"mtrace", "a log of glibc's mtrace()", import_mtrace},
    {"lttng", "events of LTTng's wrapper of the C library, printed by babeltrace2", import_lttng},
    {"xperf", "heap events in the text of xperf -a dumper (experimental)", import_xperf},
    {NULL, NULL, NULL}};

const struct import_format *import_find(const char *name)
{
    for (const struct import_format *format = import_formats; format->name; format++) {
        if (!strcmp(format->name, name))
            return format;
    }
    return NULL;
}

/* Reads the text. One without a single line of the format makes no trace. */
static enum ttd_status import_read(const struct import_format *format, struct import_text *text,
                                   struct import_builder *builder)
{
    enum ttd_status status = format->read(text, builder);
    if (status != TTD_OK || builder->writer)
        return status;
    text->line = 0;
    return import_text_fail(text, TTD_ERROR_UNSUPPORTED, "nothing in it is %s", format->summary);
}

enum ttd_status import_trace(const struct import_format *format, const struct ttd_input *input,
                             const struct ttd_output *output, struct import_result *result,
                             struct ttd_error *error)
{
    struct import_text text;
    struct import_builder builder;
    *result = (struct import_result){.events = 0};
    enum ttd_status status = import_text_open(&text, input, result, error);
    import_builder_open(&builder, output, &text);
    if (status == TTD_OK)
        status = import_read(format, &text, &builder);
    status = import_builder_close(&builder, status);
    result->lines = text.line;
    import_text_close(&text);
    if (input->close)
        input->close(input->context);
    return status;
}
