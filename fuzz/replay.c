/* SPDX-License-Identifier: MIT */
/* Runs a fuzz target over files and the files of directories, given on the command line. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target.h"

#define PATH_SIZE 4096

static int run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        exit(2);
    }
    long size = ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(size > 0 ? (size_t)size : 1);
    if (size < 0 || !bytes || fread(bytes, 1, (size_t)size, file) != (size_t)size) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(2);
    }
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, (size_t)size);
    free(bytes);
    return 1;
}

static int run_directory(DIR *directory, const char *path)
{
    int count = 0;
    struct dirent *entry;
    while ((entry = readdir(directory))) {
        char name[PATH_SIZE];
        if (entry->d_name[0] == '.' || strstr(entry->d_name, ".md"))
            continue;
        if (snprintf(name, sizeof name, "%s/%s", path, entry->d_name) >= (int)sizeof name)
            exit(2);
        fprintf(stderr, "%s\n", name);
        count += run_file(name);
    }
    closedir(directory);
    return count;
}

int main(int argc, char **argv)
{
    int count = 0;
    for (int i = 1; i < argc; i++) {
        DIR *directory = opendir(argv[i]);
        count += directory ? run_directory(directory, argv[i]) : run_file(argv[i]);
    }
    printf("%d inputs\n", count);
    return 0;
}
