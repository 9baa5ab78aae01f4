/* SPDX-License-Identifier: MIT */
/*
 * Compares the size of every instruction in files with objdump's, whose program is the first
 * argument. A file that is not there is skipped.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "patch/instruction.h"

enum { LINE_MAX_SIZE = 4096, SHOWN_MAX = 20 };

static unsigned long long known, unknown, different;

/* Reads the bytes of a line of objdump's; returns how many there are, and what follows them. */
static size_t read_bytes(const char *line, uint8_t *bytes, const char **rest)
{
    size_t count = 0;
    const char *at = strchr(line, ':');
    *rest = "";
    if (!at || at[1] != '\t')
        return 0;
    at += 2;
    for (; count <= INSTRUCTION_MAX && isxdigit((unsigned char)at[0]) &&
           isxdigit((unsigned char)at[1]) && at[2] == ' ';
         at += 3)
        bytes[count++] = (uint8_t)strtoul(at, NULL, 16);
    *rest = at + strspn(at, " \t");
    return count;
}

/* Whether objdump shows no whole instruction: data in the code, or a prefix by itself. */
static int is_no_instruction(const char *text)
{
    size_t size = strcspn(text, "\n");
    while (size > 0 && text[size - 1] == ' ')
        size--;
    size_t word = size;
    while (word > 0 && text[word - 1] != ' ')
        word--;
    return strstr(text, "(bad)") || strstr(text, ".byte") || size == 0 ||
           strncmp(text + word, "rex", 3) == 0;
}

static void compare(const char *line)
{
    uint8_t bytes[INSTRUCTION_MAX + 1 + INSTRUCTION_MAX] = {0};
    struct instruction instruction;
    const char *text;
    size_t size = read_bytes(line, bytes, &text);
    if (size == 0 || size > INSTRUCTION_MAX || is_no_instruction(text))
        return;
    /* objdump takes fwait as the beginning of some others. */
    if (bytes[0] == 0x9b && size > 1)
        memmove(bytes, bytes + 1, --size);
    /* With more behind it, and with no byte more or fewer than it has. */
    if (!instruction_decode(bytes, sizeof bytes, &instruction)) {
        if (unknown++ < SHOWN_MAX)
            printf("unknown: %s", line);
        return;
    }
    known++;
    struct instruction exact;
    if (instruction.size != size || !instruction_decode(bytes, size, &exact) ||
        instruction_decode(bytes, size - 1, &exact)) {
        if (different++ < SHOWN_MAX)
            printf("%u bytes: %s", instruction.size, line);
    }
}

static int compare_file(const char *objdump, const char *file)
{
    char command[LINE_MAX_SIZE], line[LINE_MAX_SIZE];
    unsigned long long before = known;
    if (access(file, R_OK) != 0)
        return 1;
    snprintf(command, sizeof command, "'%s' -d -w -- '%s'", objdump, file);
    FILE *output = popen(command, "r");
    if (!output)
        return 0;
    while (fgets(line, sizeof line, output))
        compare(line);
    printf("%s: %llu instructions\n", file, known - before);
    return pclose(output) == 0 && known > before;
}

int main(int argc, char **argv)
{
    int is_right = argc > 2;
    for (int i = 2; i < argc; i++)
        if (!compare_file(argv[1], argv[i])) {
            printf("%s: objdump fails\n", argv[i]);
            is_right = 0;
        }
    printf("%llu as objdump has them, %llu different, %llu unknown\n", known - different, different,
           unknown);
    return is_right && known > 0 && different == 0 && unknown == 0 ? 0 : 1;
}
