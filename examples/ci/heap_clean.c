/* SPDX-License-Identifier: MIT */
/* A test that releases its blocks; it fails if it has an argument. */
#include <stdlib.h>
#include <string.h>

int main(int count, char **arguments)
{
    char *copy = strdup(arguments[0]);
    int status = copy && count == 1 ? 0 : 1;
    free(copy);
    return status;
}
