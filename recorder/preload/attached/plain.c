/* SPDX-License-Identifier: MIT */
/*
 * The functions of the C library on memory and strings that this library uses. The C library has
 * several of each, among which its loader chooses; here are plain ones.
 */
#include <stddef.h>
#include <string.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
    void *result = to;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
    return result;
}

void *memmove(void *to, const void *from, size_t size)
{
    char *target = to;
    const char *source = from;
    if (target <= source || target >= source + size)
        return memcpy(to, from, size);
    while (size-- > 0)
        target[size] = source[size];
    return to;
}

void *memset(void *bytes, int value, size_t size)
{
    void *result = bytes;
    __asm__ volatile("rep stosb" : "+D"(bytes), "+c"(size) : "a"(value) : "memory");
    return result;
}

int memcmp(const void *left, const void *right, size_t size)
{
    const unsigned char *a = left, *b = right;
    for (size_t i = 0; i < size; i++)
        if (a[i] != b[i])
            return a[i] - b[i];
    return 0;
}

void *memchr(const void *bytes, int value, size_t size)
{
    const unsigned char *text = bytes;
    for (size_t i = 0; i < size; i++)
        if (text[i] == (unsigned char)value)
            return (void *)(size_t)&text[i];
    return NULL;
}

size_t strlen(const char *text)
{
    size_t size = 0;
    while (text[size] != '\0')
        size++;
    return size;
}

size_t strnlen(const char *text, size_t limit)
{
    size_t size = 0;
    while (size < limit && text[size] != '\0')
        size++;
    return size;
}

int strncmp(const char *left, const char *right, size_t limit)
{
    for (; limit > 0; limit--, left++, right++)
        if (*left != *right || *left == '\0')
            return (unsigned char)*left - (unsigned char)*right;
    return 0;
}

int strcmp(const char *left, const char *right)
{
    return strncmp(left, right, (size_t)-1);
}

char *strchr(const char *text, int c)
{
    for (;; text++) {
        if (*text == (char)c)
            return (char *)(size_t)text;
        if (*text == '\0')
            return NULL;
    }
}

size_t strcspn(const char *text, const char *stops)
{
    size_t size = 0;
    while (text[size] != '\0' && !strchr(stops, text[size]))
        size++;
    return size;
}

size_t strspn(const char *text, const char *accepted)
{
    size_t size = 0;
    while (text[size] != '\0' && strchr(accepted, text[size]))
        size++;
    return size;
}

char *strstr(const char *text, const char *sought)
{
    size_t size = strlen(sought);
    for (; strncmp(text, sought, size) != 0; text++)
        if (*text == '\0')
            return NULL;
    return (char *)(size_t)text;
}

char *strcat(char *restrict to, const char *restrict from)
{
    strcpy(to + strlen(to), from);
    return to;
}

char *strcpy(char *restrict to, const char *restrict from)
{
    return memcpy(to, from, strlen(from) + 1);
}
