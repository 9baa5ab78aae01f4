/* SPDX-License-Identifier: MIT */
/* A test that succeeds, and loses a block. */
#include <stdlib.h>
#include <string.h>

static char *greet(const char *name)
{
    char *text = malloc(strlen(name) + sizeof "hello ");
    if (!text)
        abort();
    return strcat(strcpy(text, "hello "), name);
}

int main(void)
{
    return strlen(greet("world")) == strlen("hello world") ? 0 : 1;
}
