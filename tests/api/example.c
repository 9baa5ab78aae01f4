/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include <ttdtrace/ttdtrace.h>

int main(int count, char **arguments)
{
    ttd_input input;
    ttd_reader *reader;
    ttd_batch batch;
    ttd_error error;

    if (count != 2 || ttd_input_file(arguments[1], NULL, &input, &error) != TTD_OK ||
        ttd_reader_open(&input, NULL, NULL, &reader, &error) != TTD_OK)
        return 1;
    while (ttd_reader_next(reader, &batch, &error) == TTD_OK)
        for (size_t i = 0; batch.kind == TTD_KIND_EVENTS && i < batch.count; i++) {
            char position[TTD_POSITION_TEXT];
            const ttd_event *event = &batch.u.events[i];
            ttd_position_format(event->time_start, position);
            printf("%s %s %#llx\n", position, ttd_action_name((ttd_action)event->action),
                   (unsigned long long)event->address);
        }
    ttd_reader_close(reader);
    return 0;
}
