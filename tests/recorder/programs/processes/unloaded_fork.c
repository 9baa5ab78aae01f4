/* SPDX-License-Identifier: MIT */
/* Forks after the C library itself has loaded and unloaded a module, which no hook of ours sees. */
#include <iconv.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    int status = 0;
    for (int i = 0; i < 5; i++) {
        iconv_t converter = iconv_open("UTF-16", "EBCDIC-US");
        char in[] = "text", out[64];
        char *from = in, *to = out;
        size_t in_left = sizeof in, out_left = sizeof out;
        if (converter == (iconv_t)-1)
            return 77;
        iconv(converter, &from, &in_left, &to, &out_left);
        iconv_close(converter);
        pid_t child = fork();
        if (child == 0) {
            free(malloc(10));
            _exit(3);
        }
        if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 3)
            return 1;
    }
    return 0;
}
