/* SPDX-License-Identifier: MIT */
#include "report/writers/out.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void out_init(struct text_output *output, int descriptor, bool has_color)
{
    output->descriptor = descriptor;
    output->error = 0;
    output->room = UINT64_MAX;
    output->is_full = false;
    output->has_color = has_color;
    output->has_utf8 = true;
    output->width = 0;
    output->used = 0;
    output->column = 0;
}

bool out_flush(struct text_output *output)
{
    size_t written = 0;
    /* A report that exceeds its limit ends here; is_full shows the caller why it could not write.
     */
    if (output->room < output->used) {
        output->is_full = true;
        output->error = output->error ? output->error : EFBIG;
    } else if (output->room != UINT64_MAX) {
        output->room -= output->used;
    }
    while (!output->error && written < output->used) {
        ssize_t n = write(output->descriptor, output->buffer + written, output->used - written);
        if (n >= 0)
            written += (size_t)n;
        else if (errno != EINTR)
            output->error = errno;
    }
    output->used = 0;
    return !output->error;
}

void out_write(struct text_output *output, const char *data, size_t size)
{
    output->column += size;
    while (size && !output->error) {
        if (output->used == OUT_BUFFER)
            out_flush(output);
        size_t room = OUT_BUFFER - output->used;
        size_t part = size < room ? size : room;
        memcpy(output->buffer + output->used, data, part);
        output->used += part;
        data += part;
        size -= part;
    }
}

void out_char(struct text_output *output, char c)
{
    if (output->used == OUT_BUFFER)
        out_flush(output);
    output->buffer[output->used++] = c;
    output->column = c == '\n' ? 0 : output->column + 1;
}

void out_text(struct text_output *output, const char *text)
{
    out_write(output, text, strlen(text));
    const char *line = strrchr(text, '\n');
    if (line)
        output->column = strlen(line + 1);
}

void out_unsigned(struct text_output *output, uint64_t value)
{
    /* 2^64 - 1 has 20 digits. */
    char text[20];
    size_t begin = sizeof text;
    do {
        text[--begin] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    out_write(output, text + begin, sizeof text - begin);
}

void out_grouped(struct text_output *output, uint64_t value)
{
    /* 20 digits and six commas. */
    char text[27];
    size_t begin = sizeof text;
    unsigned digits = 0;
    do {
        if (digits && digits % 3 == 0)
            text[--begin] = ',';
        text[--begin] = (char)('0' + value % 10);
        value /= 10;
        digits++;
    } while (value);
    out_write(output, text + begin, sizeof text - begin);
}

void out_size(struct text_output *output, uint64_t bytes)
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes / 1000;
    size_t unit = 0;
    if (bytes < 1000) {
        out_unsigned(output, bytes);
        out_text(output, bytes == 1 ? " byte" : " bytes");
        return;
    }
    /* From 999.5 on, three digits need the next unit. */
    while (value >= 999.5) {
        value /= 1000;
        unit++;
    }
    out_format(output, "%.*f %s", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, units[unit]);
}

void out_hex(struct text_output *output, uint64_t value)
{
    /* 0x and 16 digits. */
    char text[18];
    size_t begin = sizeof text;
    do {
        text[--begin] = "0123456789abcdef"[value & 15];
        value >>= 4;
    } while (value);
    text[--begin] = 'x';
    text[--begin] = '0';
    out_write(output, text + begin, sizeof text - begin);
}

void out_position(struct text_output *output, struct ttd_position position)
{
    char text[TTD_POSITION_TEXT];
    out_write(output, text, ttd_position_format(position, text));
}

void out_format(struct text_output *output, const char *format, ...)
{
    /* Enough for numbers and fixed words. Names, which may be of any length, are not formatted but
     * escaped. */
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    out_text(output, text);
}

void out_tab(struct text_output *output, size_t column)
{
    if (output->column)
        out_char(output, ' ');
    while (output->column < column)
        out_char(output, ' ');
}

static uint64_t round_time(uint64_t time, uint64_t step)
{
    uint64_t rest = time % step;
    return time - rest + (2 * rest >= step && time - rest <= UINT64_MAX - step ? step : 0);
}

void time_text(char text[TIME_TEXT], uint64_t time)
{
    uint64_t step = 1;
    int digits = 9;
    /* Rounding up may add a digit. */
    while (step < TIME_SECOND && round_time(time, step) >= 1000 * step)
        step *= 10;
    uint64_t rounded = round_time(time, step);
    for (uint64_t scale = step; scale > 1; scale /= 10)
        digits--;
    if (!rounded)
        digits = 0;
    snprintf(text, TIME_TEXT, "+%.*fs", digits, (double)rounded / (double)TIME_SECOND);
}

/* Colours take no room on the screen, so they leave the column as it is. */
static void style(struct text_output *output, const char *sequence)
{
    size_t column = output->column;
    if (output->has_color)
        out_text(output, sequence);
    output->column = column;
}

void out_bold(struct text_output *output)
{
    style(output, "\033[1m");
}

void out_alarm(struct text_output *output)
{
    style(output, "\033[1;31m");
}

void out_dim(struct text_output *output)
{
    style(output, "\033[2m");
}

void out_plain(struct text_output *output)
{
    style(output, "\033[0m");
}
