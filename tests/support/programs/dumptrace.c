/* SPDX-License-Identifier: MIT */
/*
 * dumptrace [-t] FILE: prints a line per record, and how the reading ended, as the second reader
 * does. -t checks everything, goes on after damage, and prints the losses made of it. With several
 * files, each after a line "# FILE".
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "support/records/record_text.h"

static void dump(const char *path, bool tolerant)
{
    struct ttd_input input;
    struct ttd_reader *reader = NULL;
    struct ttd_error error = {.what = ""};
    struct text lines = {0};
    struct ttd_reader_options options = ttd_reader_options_default();
    options.tolerant = tolerant;
    enum ttd_status status = ttd_input_file(path, NULL, &input, &error);
    if (status == TTD_OK)
        status = ttd_reader_open(&input, &options, NULL, &reader, &error);
    if (status == TTD_OK && tolerant)
        status = ttd_reader_rewind_checked(reader, TTD_KINDS_ALL);
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(reader, &batch, &error);
        batch.synthetic = false; /* they are told as well */
        if (status == TTD_OK)
            text_of_batch(&lines, &batch);
    }
    ttd_reader_close(reader);
    fwrite(lines.data, 1, lines.size, stdout);
    text_free(&lines);
    if (status == TTD_END || status == TTD_ERROR_NOT_A_TRACE)
        printf("= %s\n", ttd_status_text(status));
    else
        printf("= %s %" PRIu64 "\n", ttd_status_text(status), error.offset);
}

int main(int argc, char **argv)
{
    bool tolerant = argc > 1 && strcmp(argv[1], "-t") == 0;
    for (int i = 1 + tolerant; i < argc; i++) {
        if (argc - tolerant > 2)
            printf("# %s\n", argv[i]);
        dump(argv[i], tolerant);
    }
    return 0;
}
