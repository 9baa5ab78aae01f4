/* SPDX-License-Identifier: MIT */
/* make_vectors DIRECTORY: writes all vector files, and the README that says what they are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vectors/vectors.h"

#define PATH_SIZE 4096

static FILE *create(const char *directory, const char *name, const char *ending)
{
    char path[PATH_SIZE];
    FILE *file = NULL;
    if (snprintf(path, sizeof path, "%s/%s%s", directory, name, ending) < (int)sizeof path)
        file = fopen(path, "wb");
    if (!file) {
        perror(name);
        exit(1);
    }
    return file;
}

static void finish(FILE *file)
{
    if (fclose(file) != 0) {
        perror("write");
        exit(1);
    }
}

static void describe(FILE *readme, const struct vector *of)
{
    fprintf(readme, "| %s | %s | %s | ", of->name, of->purpose,
            of->requirements ? of->requirements : "");
    if (of->status == TTD_OK)
        fprintf(readme, "reads to the end");
    else
        fprintf(readme, "%s: %s", ttd_status_text(of->status), of->what);
    if (of->chunk >= 0 && of->status != TTD_OK)
        fprintf(readme, ", at chunk %d", of->chunk);
    if (of->verify_what)
        fprintf(readme, "; verify: %s", of->verify_what);
    if (of->tolerant_events)
        fprintf(readme, "; tolerant: %u events", of->tolerant_events);
    fprintf(readme, " |\n");
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: make_vectors DIRECTORY\n");
        return 2;
    }
    FILE *readme = create(argv[1], "README", ".md");
    fprintf(
        readme,
        "<!-- SPDX-License-Identifier: MIT -->\n"
        "Small files that a reader of the format must read (`good-`), files that are wrong\n"
        "(`bad-`), and files of a kind that it cannot know (`unsupported-`). A reader refuses\n"
        "the latter two, but for those that the list says it reads to the end: there a checker\n"
        "of traces (`verify`) reports what is wrong. Texts are those of the library; where two\n"
        "rules are broken, another reader may tell the other one. `make_vectors` writes the\n"
        "files and this list; the tests check that they are up to date, and that the library\n"
        "says of each what is said here. Chunks are counted by their place in the file, from 0.\n"
        "The numbers of requirements are those of spec/format.md.\n\n"
        "| File | For | Requirements | Strict reading |\n|---|---|---|---|\n");
    for (const struct vector *const *table = vectors_all; *table; table++) {
        for (const struct vector *v = *table; v->name; v++) {
            struct vector_file file = vector_make(v);
            FILE *output = create(argv[1], v->name, ".trace");
            fwrite(file.data, 1, file.size, output);
            finish(output);
            free(file.data);
            describe(readme, v);
        }
    }
    finish(readme);
    return 0;
}
