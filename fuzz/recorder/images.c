/* SPDX-License-Identifier: MIT */
/*
 * The file of a module may contain anything: looking names up in it ends, and the decoder accepts
 * the encoded answers, at most one for each address. An input is a file.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../capture.h"
#include "symbolize/wire/wire.h"
#include "symbolize/names/module_names.h"
#include "../target.h"

/* Addresses within the code of the seeds, and outside of any code. */
static const uint64_t offsets[] = {0x4000b1,   0x4000b3, 0x4000b5, 0x4000b6,  0x4000ba,
                                   0x4000b3,   0,        1,        0x1000,    UINT32_MAX,
                                   UINT64_MAX, 0x4000,   0x4000b0, 0x40000000};

enum { OFFSETS = sizeof offsets / sizeof *offsets };

/* Addresses of data, ascending. */
static const uint64_t data_offsets[OFFSETS] = {0,
                                               8,
                                               0x1000,
                                               0x4000,
                                               0x4000b0,
                                               0x4000b1,
                                               0x4000ba,
                                               0x600000,
                                               UINT32_MAX,
                                               0x40000000000,
                                               SYMBOLIZE_TLS,
                                               SYMBOLIZE_TLS + 8,
                                               UINT64_MAX - 7,
                                               UINT64_MAX};

static char path[128];

/* Number of answers to the present request. */
static unsigned answers;

static void listen(void *context, size_t module, uint64_t offset,
                   const struct symbolize_frame *frames, size_t count)
{
    (void)context;
    (void)module;
    (void)offset;
    (void)frames;
    target_require(count <= SYMBOLIZE_FRAMES_MAX, "as many frames as there may be");
    target_require(++answers <= OFFSETS, "each address once");
}

/* Returns the descriptor of an unlinked file. */
static int open_answers(void)
{
    char name[160];
    snprintf(name, sizeof name, "%s.answers", path);
    int file = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    target_require(file >= 0, "a file");
    unlink(name);
    return file;
}

static void check_answers(int file, const struct symbolize_module *module)
{
    struct wire_decoder decoder;
    answers = 0;
    target_require(wire_decoder_init(&decoder, module, 1, listen, NULL) == 0, "a decoder");
    target_require(lseek(file, 0, SEEK_SET) == 0, "answers");
    for (;;) {
        size_t room;
        uint8_t *room_begin = wire_decoder_room(&decoder, &room);
        ssize_t size = read(file, room_begin, room);
        target_require(size >= 0, "answers");
        if (size == 0)
            break;
        target_require(wire_decoder_take(&decoder, (size_t)size), "answers are accepted");
    }
    target_require(decoder.is_finished, "it comes to an end");
    wire_decoder_free(&decoder);
}

static void look_up(bool is_data, bool is_reduced)
{
    struct symbolize_module module = {
        .path = path,
        .offsets = is_data ? data_offsets : offsets,
        .offset_count = OFFSETS,
        .is_data = is_data,
    };
    struct wire_encoder encoder = {.fd = open_answers()};
    wire_encoder_module(&encoder, 0);
    wire_encoder_end(&encoder, names_look_up(&encoder, NULL, &module, NULL, is_reduced));
    wire_encoder_finished(&encoder);
    check_answers(encoder.fd, &module);
    close(encoder.fd);
    free(encoder.data);
}

static void prepare(void)
{
    unsetenv("DEBUGINFOD_URLS");
    snprintf(path, sizeof path, "%s/image", capture_directory());
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!*path)
        prepare();
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    target_require(file >= 0 && write(file, data, size) == (ssize_t)size, "a file");
    close(file);
    look_up(false, false);
    look_up(false, true);
    look_up(true, false);
    look_up(true, true);
    unlink(path);
    return 0;
}
