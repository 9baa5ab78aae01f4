/* SPDX-License-Identifier: MIT */
/* Executes the arguments with an environment in which LD_PRELOAD stands twice, with nothing and
 * with many separators. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MANY = 60000 };

static const char name[] = "LD_PRELOAD=";

int main(int count, char **arguments)
{
    static char few[] = "LD_PRELOAD=", many[sizeof name + MANY];
    char *environment[] = {few, many, NULL};
    if (count < 2)
        return 2;
    memcpy(many, name, sizeof name - 1);
    memset(many + sizeof name - 1, ':', MANY);
    execve(arguments[1], arguments + 1, environment);
    perror("execve");
    return 1;
}
