/* SPDX-License-Identifier: MIT */
/* Blocks that the C library allocates, for the program and for itself. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <iconv.h>
#include <locale.h>
#include <netdb.h>
#include <pwd.h>
#include <regex.h>
#include <search.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "case.h"

CASE(environment_own_string)
{
    char *text = block(40);

    strcpy(text, "REACH_NAME=value");
    putenv(text);
}

CASE(environment_own_string_nothing)
{
    static char text[] = "REACH_NAME=value";

    putenv(text);
}

CASE(environment_set)
{
    setenv("REACH_NAME", "a value of some length", 1);
    setenv("REACH_OTHER", "another value", 1);
    setenv("REACH_NAME", "yet another value", 1);
}

CASE(stream_open)
{
    FILE *stream = fopen("/dev/null", "r");

    if (!stream || getc(stream) != EOF)
        abort();
}

CASE(stream_closed)
{
    fclose(fopen("/dev/null", "r"));
}

CASE(stream_own_buffer)
{
    setvbuf(stdout, block(5000), _IOFBF, 5000);
}

CASE(stream_printed)
{
    printf("%s\n", "a line");
}

static FILE *stream_to_memory(void)
{
    static char *text;
    static size_t size;
    FILE *stream = open_memstream(&text, &size);

    fprintf(stream, "%s\n", "a line");
    fflush(stream);
    return stream;
}

CASE(stream_to_memory_closed)
{
    fclose(stream_to_memory());
}

CASE(stream_to_memory_open)
{
    stream_to_memory();
}

CASE(line_kept)
{
    static char *line;
    size_t size = 0;
    FILE *stream = fopen("/etc/passwd", "r");

    if (getline(&line, &size, stream) < 0)
        abort();
    fclose(stream);
}

CASE(line_lost)
{
    char *line = NULL;
    size_t size = 0;
    FILE *stream = fopen("/etc/passwd", "r");

    if (getline(&line, &size, stream) < 0)
        abort();
    fclose(stream);
}

CASE(locale_set)
{
    setlocale(LC_ALL, "C.UTF-8");
}

CASE(locale_object_kept)
{
    kept[0] = newlocale(LC_ALL_MASK, "C.UTF-8", NULL);
}

CASE(locale_object_freed)
{
    freelocale(newlocale(LC_ALL_MASK, "C.UTF-8", NULL));
}

static regex_t expression;

CASE(expression_kept)
{
    if (regcomp(&expression, "a(b|c)*d[e-g]", REG_EXTENDED) != 0 ||
        regexec(&expression, "abcbde", 0, NULL, 0) != 0)
        abort();
}

CASE(expression_freed)
{
    expression_kept();
    regfree(&expression);
}

CASE(expression_lost)
{
    expression_kept();
    memset(&expression, 0, sizeof expression);
}

static struct addrinfo *address(void)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    struct addrinfo *result = NULL;

    if (getaddrinfo("127.0.0.1", "80", &hints, &result) != 0)
        abort();
    return result;
}

CASE(address_kept)
{
    kept[0] = address();
}

CASE(address_lost)
{
    address();
}

CASE(address_freed)
{
    freeaddrinfo(address());
}

CASE(user_looked_up)
{
    if (!getpwuid(0))
        abort();
}

CASE(directory_open)
{
    kept[0] = opendir("/");
}

CASE(directory_lost)
{
    opendir("/");
}

static int is_wanted(const struct dirent *entry)
{
    return strcmp(entry->d_name, "etc") == 0 || strcmp(entry->d_name, "tmp") == 0;
}

CASE(directory_entries_lost)
{
    struct dirent **entries;

    if (scandir("/", &entries, is_wanted, alphasort) != 2)
        abort();
}

CASE(paths_lost)
{
    glob_t paths;

    if (glob("/[e]tc", 0, NULL, &paths) != 0)
        abort();
}

CASE(copies_of_text_lost)
{
    char *text;

    strdup("eight by");
    strndup("eight by", 4);
    wcsdup(L"wide");
    if (asprintf(&text, "%d", 123456) < 0)
        abort();
}

CASE(text_in_parts)
{
    char *text = strdup("one two three");

    strtok(text, " ");
}

static int compare(const void *left, const void *right)
{
    return strcmp(left, right);
}

static void *search_tree(void)
{
    void *root = NULL;

    tsearch("one", &root, compare);
    tsearch("two", &root, compare);
    tsearch("three", &root, compare);
    return root;
}

CASE(search_tree_kept)
{
    kept[0] = search_tree();
}

CASE(search_tree_lost)
{
    search_tree();
}

/* Some pointers of a tree that is not small have a bit set: the colour of a node. */
CASE(large_search_tree_kept)
{
    static char keys[100][2];
    void *root = NULL;

    for (int i = 0; i < 100; i++) {
        keys[i][0] = (char)(1 + i * 37 % 100);
        tsearch(keys[i], &root, compare);
    }
    kept[0] = root;
}

CASE(hash_table)
{
    ENTRY entry = {.key = block(8), .data = block(40)};

    strcpy(entry.key, "key");
    hcreate(10);
    hsearch(entry, ENTER);
}

CASE(hash_table_destroyed)
{
    hash_table();
    hdestroy();
}

CASE(converter_kept)
{
    kept[0] = iconv_open("UTF-16LE", "UTF-8");
}

CASE(time_zone)
{
    time_t now = 1000000000;

    setenv("TZ", "UTC0", 1);
    tzset();
    localtime(&now);
}

CASE(sorted)
{
    void *values = block(200 << 10);

    qsort(values, 200, 1024, compare);
    free(values);
}

CASE(command_read)
{
    FILE *stream = popen("true", "r");

    if (getc(stream) != EOF)
        abort();
    pclose(stream);
}

CASE(buffered_at_end)
{
    FILE *stream = fopen("/dev/null", "w");

    fputs("not flushed", stream);
}
