/* SPDX-License-Identifier: MIT */
/* Shared memory whose pages a thread of the program provides, one after the other for each that the
 * program writes to, in steps of a tenth of a second. */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 64, NOT_PERMITTED = 77 };

static int faults;

static void *provide(void *unused)
{
    static char page[PAGE];
    struct uffd_msg fault;

    while (read(faults, &fault, sizeof fault) == sizeof fault) {
        struct uffdio_copy copy = {.dst = fault.arg.pagefault.address / PAGE * PAGE,
                                   .src = (unsigned long)page,
                                   .len = PAGE};

        ioctl(faults, UFFDIO_COPY, &copy);
    }
    return unused;
}

int main(int argc, char **argv)
{
    static void *volatile kept;
    int steps = argc > 1 ? atoi(argv[1]) : 0;
    struct uffdio_api api = {.api = UFFD_API};
    pthread_t thread;
    char *memory =
        mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register area = {.range = {(unsigned long)memory, PAGES * PAGE},
                                   .mode = UFFDIO_REGISTER_MODE_MISSING};

    faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    if (memory == MAP_FAILED || faults < 0 || ioctl(faults, UFFDIO_API, &api) != 0 ||
        ioctl(faults, UFFDIO_REGISTER, &area) != 0)
        return NOT_PERMITTED;
    if (pthread_create(&thread, NULL, provide, NULL) != 0)
        return 1;
    kept = malloc(40);
    for (int i = 0; i < steps; i++) {
        memory[i % PAGES * PAGE]++;
        usleep(100000);
    }
    puts(kept ? "provided" : "no memory");
    return 0;
}
