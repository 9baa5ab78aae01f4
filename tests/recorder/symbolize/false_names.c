/* SPDX-License-Identifier: MIT */
/*
 * A child that does what its module's path says, instead of reading debug information. Linked in
 * place of names.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "symbolize/names/module_names.h"

static void say(struct wire_encoder *encoder, uint32_t index, const char *text)
{
    struct symbolize_frame frame = {.function = text, .function_size = strlen(text)};
    wire_encoder_answer(encoder, index, &frame, 1);
}

static void flush_by_module(struct wire_encoder *encoder)
{
    /* Sends the answers so far before the end comes. */
    if (write(encoder->fd, encoder->data, encoder->size) == (ssize_t)encoder->size)
        encoder->size = 0;
}

static void raw(struct wire_encoder *encoder, const uint32_t *words, size_t count)
{
    flush_by_module(encoder);
    if (write(encoder->fd, words, count * sizeof *words) < 0)
        _exit(1);
}

static void use_all_memory(void)
{
    for (;;) {
        char *memory = malloc(16 << 20);
        if (!memory)
            _exit(1);
        memory[0] = 1;
    }
}

static void tell_surroundings(struct wire_encoder *encoder)
{
    char text[256];
    int files = 0;
    for (int fd = 0; fd < 1024; fd++)
        files += fcntl(fd, F_GETFD) >= 0;
    struct rlimit core = {1, 1}, size = {1, 1};
    getrlimit(RLIMIT_CORE, &core);
    getrlimit(RLIMIT_FSIZE, &size);
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    struct sigaction user;
    sigaction(SIGUSR1, NULL, &user);
    void *memory =
        mmap(NULL, 128 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    raise(SIGINT);
    raise(SIGTERM);
    raise(SIGHUP);
    snprintf(text, sizeof text, "files %d core %d size %d blocked %d handler %d memory %d", files,
             (int)core.rlim_cur, (int)size.rlim_cur, sigismember(&blocked, SIGUSR2),
             user.sa_handler != SIG_DFL && user.sa_handler != SIG_IGN, memory != MAP_FAILED);
    say(encoder, 0, text);
}

enum wire_result names_look_up(struct wire_encoder *encoder, struct image_cache *images,
                               const struct symbolize_module *module, const uint8_t *answered,
                               bool reduced)
{
    static const char *const reads[] = {"full", "reduced"};
    const char *path = module->path;
    bool is_helper = images != NULL;
    if (!is_helper && strncmp(path, "helper ", 7) == 0)
        path = "good";
    path += strncmp(path, "helper ", 7) == 0 ? 7 : 0;
    if (reduced && strncmp(path, "once ", 5) == 0)
        path = "good";
    path += strncmp(path, "once ", 5) == 0 ? 5 : 0;
    if (strcmp(path, "surroundings") == 0) {
        tell_surroundings(encoder);
        return WIRE_READ;
    }
    for (uint32_t i = 0; i < module->offset_count; i++) {
        if (!answered || !answered[i])
            say(encoder, i, reads[reduced]);
        if (i == 0 && strncmp(path, "late ", 5) == 0)
            flush_by_module(encoder);
        if (i == 0 && strncmp(path, "late ", 5) == 0)
            path += 5;
        if (strcmp(path, "crash") == 0)
            abort();
        if (strcmp(path, "fault") == 0)
            raise(SIGSEGV);
        if (strcmp(path, "hang") == 0)
            pause();
        if (strcmp(path, "spin") == 0)
            for (;;)
                (void)getppid();
        if (strcmp(path, "slow") == 0)
            usleep(300 * 1000);
        if (strcmp(path, "leave") == 0)
            _exit(0);
        if (strcmp(path, "memory") == 0)
            use_all_memory();
        if (strcmp(path, "close") == 0) {
            close(encoder->fd);
            pause();
        }
        if (strcmp(path, "finish") == 0)
            raw(encoder, (uint32_t[]){WIRE_FINISHED, 0}, 2);
        if (strcmp(path, "nonsense") == 0)
            raw(encoder, (uint32_t[]){77, 0}, 2);
        if (strcmp(path, "huge") == 0)
            raw(encoder, (uint32_t[]){WIRE_ANSWER, UINT32_MAX}, 2);
        if (strcmp(path, "index") == 0)
            say(encoder, (uint32_t)module->offset_count, "x");
        if (strcmp(path, "twice") == 0)
            say(encoder, 0, "x");
        if (strcmp(path, "back") == 0)
            raw(encoder, (uint32_t[]){WIRE_MODULE, 4, 0}, 3);
    }
    return strcmp(path, "absent") == 0 ? WIRE_ABSENT : WIRE_READ;
}

void image_cache_clear(struct image_cache *images)
{
    (void)images;
}
