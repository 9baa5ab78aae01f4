/* SPDX-License-Identifier: MIT */
/* confined_dumper strict|filter MEGABYTES: fills so much memory; confines itself to read, write and
 * exit, so that any other system call kills it; then asks for all dumps, and marks a moment. Prints
 * what each returned, and exits with 7. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ttdtrace/live.h>

#define ALLOW(number)                                                                              \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

enum { SIZE = 16384 };

static const struct ttd_live_guid guid = {{0x5e, 1, 2, 3}};
static char marked[64] = "in the data of the program";

static int confine(const char *way)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_read),
        ALLOW(SYS_write),
        ALLOW(SYS_exit),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (strcmp(way, "strict") == 0)
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

static void tell(const char *name, uintptr_t value)
{
    char line[64];
    size_t size = strlen(name);
    memcpy(line, name, size);
    line[size++] = ' ';
    for (int shift = 60; shift >= 0; shift -= 4)
        line[size++] = "0123456789abcdef"[value >> shift & 15];
    line[size++] = '\n';
    if (write(1, line, size) < 0)
        _exit(1);
}

int main(int argc, char **argv)
{
    struct ttd_live *client = ttd_live_open(&guid, "confined", 8);
    char *range = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *block = malloc(SIZE);
    char name[256] = "";
    size_t more = argc == 3 ? (size_t)atoi(argv[2]) << 20 : 0;
    char *volatile filled = malloc(more);
    if (argc != 3 || !filled || range == MAP_FAILED || !block)
        return 1;
    memset(filled, 'f', more);
    memset(range, 'r', SIZE);
    memset(block, 'h', SIZE);
    tell("at-range", (uintptr_t)range);
    tell("at-block", (uintptr_t)block);
    tell("at-data", (uintptr_t)marked);
    if (!confine(argv[1]))
        return 77;
    tell("heaps", ttd_live_dump_heaps(client));
    tell("range", ttd_live_dump_range(client, range, range + SIZE, true));
    tell("data", ttd_live_dump_module(client, marked, true));
    tell("later", ttd_live_dump_range(client, range, range + SIZE, false));
    tell("name", ttd_live_file_name(client, name, sizeof name));
    tell("event", ttd_live_add_event(client, TTD_LIVE_THREAD, 0, "here", 4));
    /* The C library would end all threads, which is another system call. */
    syscall(SYS_exit, 7);
    return 1;
}
