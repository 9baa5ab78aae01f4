/* SPDX-License-Identifier: MIT */
#include "symbolize/dwarf/lines.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/grow.h"

static void load_files(struct files *files, Dwarf_Die *unit)
{
    if (dwarf_getsrcfiles(unit, &files->files, &files->count) != 0)
        *files = (struct files){0};
    files->names = grow_new(files->count, sizeof *files->names);
}

static void free_files(struct files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->names[i]);
    free(files->names);
}

static const char *directory_of(Dwarf_Die *unit)
{
    Dwarf_Attribute attribute;
    return dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
}

void lines_load(struct lines *lines, Dwarf_Die *unit, Dwarf_Die *content)
{
    *lines = (struct lines){.unit = unit, .directory = directory_of(unit)};
    if (lines->directory == NULL)
        lines->directory = directory_of(content);
    load_files(&lines->line_files, unit);
    load_files(&lines->call_files, content);
}

void lines_free(struct lines *lines)
{
    free_files(&lines->line_files);
    free_files(&lines->call_files);
}

static char *lines_join_path(const char *directory, const char *name)
{
    if (name[0] == '/' || directory == NULL || directory[0] == '\0')
        directory = "";
    size_t directory_size = strlen(directory);
    size_t name_size = strlen(name);
    char *joined = grow_new(directory_size + name_size + 2, 1);
    memcpy(joined, directory, directory_size);
    if (directory_size > 0 && directory[directory_size - 1] != '/')
        joined[directory_size++] = '/';
    memcpy(joined + directory_size, name, name_size);
    return joined;
}

static const char *lines_file_name(struct lines *lines, struct files *files, size_t index)
{
    if (index >= files->count)
        return NULL;
    if (files->names[index] == NULL) {
        const char *name = dwarf_filesrc(files->files, index, NULL, NULL);
        /* libdw's name for an unknown file. */
        if (name == NULL || strcmp(name, "???") == 0)
            return NULL;
        files->names[index] = lines_join_path(lines->directory, name);
    }
    return files->names[index];
}

static uint32_t valid_line(Dwarf_Word line)
{
    return line <= INT32_MAX ? (uint32_t)line : 0;
}

struct source_location lines_at(struct lines *lines, uint64_t address)
{
    struct source_location location = {0};
    Dwarf_Line *line = dwarf_getsrc_die(lines->unit, address);
    Dwarf_Files *files;
    size_t index;
    int number;
    if (line == NULL || dwarf_line_file(line, &files, &index) != 0 ||
        files != lines->line_files.files)
        return location;
    location.file = lines_file_name(lines, &lines->line_files, index);
    if (location.file != NULL && dwarf_lineno(line, &number) == 0 && number > 0)
        location.line = (uint32_t)number;
    return location;
}

static Dwarf_Word number_attribute(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value;
    if (dwarf_formudata(dwarf_attr(die, name, &attribute), &value) != 0)
        return 0;
    return value;
}

struct source_location lines_of_call(struct lines *lines, Dwarf_Die *inlined)
{
    struct source_location location = {0};
    Dwarf_Attribute attribute;
    if (dwarf_attr(inlined, DW_AT_call_file, &attribute) == NULL)
        return location;
    Dwarf_Word file = number_attribute(inlined, DW_AT_call_file);
    location.file = lines_file_name(lines, &lines->call_files, file);
    if (location.file != NULL)
        location.line = valid_line(number_attribute(inlined, DW_AT_call_line));
    return location;
}
