/* SPDX-License-Identifier: MIT */
/* The library that is attached: its file, its place in the process near the modules that need
 * gates, and the channel. */
#include "attach/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/parts.h"
#include "channel.h"
#include "messages.h"

/* The file is part of the installation: it is checked for mistakes, not for malice. */
enum { PAGE = 4096, FILE_MAX = 64 << 20 };

static uint8_t *attach_image_read_file(const char *path, size_t *size)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    uint8_t *bytes = NULL;
    if (file >= 0 && fstat(file, &status) == 0 && status.st_size > 0 && status.st_size < FILE_MAX &&
        (bytes = malloc((size_t)status.st_size))) {
        *size = (size_t)status.st_size;
        if (read(file, bytes, *size) != (ssize_t)*size) {
            free(bytes);
            bytes = NULL;
        }
    }
    if (file >= 0)
        close(file);
    return bytes;
}

/* Puts the segments where they are to be. */
static bool image_place(struct attach_image *image, const uint8_t *file, size_t file_size)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)file;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(file + header->e_phoff);
    for (unsigned i = 0; i < header->e_phnum; i++)
        if (segments[i].p_type == PT_LOAD)
            image->size = (segments[i].p_vaddr + segments[i].p_memsz + PAGE - 1) / PAGE * PAGE;
    image->bytes = calloc(image->size, 1);
    if (!image->bytes)
        return false;
    for (unsigned i = 0; i < header->e_phnum; i++) {
        const Elf64_Phdr *segment = &segments[i];
        if (segment->p_type == PT_TLS)
            image->thread_size = segment->p_memsz;
        if (segment->p_type != PT_LOAD)
            continue;
        if (segment->p_offset + segment->p_filesz > file_size)
            return false;
        memcpy(image->bytes + segment->p_vaddr, file + segment->p_offset, segment->p_filesz);
        if (segment->p_flags & PF_W)
            image->data = segment->p_vaddr / PAGE * PAGE;
    }
    memcpy(image->bytes + ATTACHED_MARK_AT, ATTACHED_MARK, strlen(ATTACHED_MARK));
    return image->data != 0;
}

/* The tables for relocating the image. */
struct image_tables {
    const Elf64_Sym *symbols;
    size_t symbol_count;
    const char *names;
    const Elf64_Rela *relocations[2];
    size_t counts[2];
};

static void image_find_tables(const struct attach_image *image, struct image_tables *tables)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)image->bytes;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(image->bytes + header->e_phoff);
    *tables = (struct image_tables){0};
    for (unsigned i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type != PT_DYNAMIC)
            continue;
        const Elf64_Dyn *entry = (const Elf64_Dyn *)(image->bytes + segments[i].p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++) {
            const uint8_t *table = image->bytes + entry->d_un.d_ptr;
            if (entry->d_tag == DT_SYMTAB)
                tables->symbols = (const Elf64_Sym *)table;
            else if (entry->d_tag == DT_STRTAB)
                tables->names = (const char *)table;
            else if (entry->d_tag == DT_RELA)
                tables->relocations[0] = (const Elf64_Rela *)table;
            else if (entry->d_tag == DT_RELASZ)
                tables->counts[0] = entry->d_un.d_val / sizeof(Elf64_Rela);
            else if (entry->d_tag == DT_JMPREL)
                tables->relocations[1] = (const Elf64_Rela *)table;
            else if (entry->d_tag == DT_PLTRELSZ)
                tables->counts[1] = entry->d_un.d_val / sizeof(Elf64_Rela);
        }
    }
    /* The names follow the symbols, as the linker lays them out. */
    if (tables->symbols && tables->names)
        tables->symbol_count =
            (size_t)((const char *)tables->names - (const char *)tables->symbols) /
            sizeof *tables->symbols;
}

/* Sets addresses within the image to their offsets, until it is relocated. */
static void image_set_offsets(struct attach_image *image)
{
    struct image_tables tables;
    image_find_tables(image, &tables);
    for (size_t i = 0; i < tables.counts[0]; i++) {
        const Elf64_Rela *relocation = &tables.relocations[0][i];
        if (ELF64_R_TYPE(relocation->r_info) == R_X86_64_RELATIVE)
            memcpy(image->bytes + relocation->r_offset, &relocation->r_addend,
                   sizeof relocation->r_addend);
    }
}

/* Finds the struct attached, by its symbol. */
static bool image_find_own(struct attach_image *image)
{
    struct image_tables tables;
    image_find_tables(image, &tables);
    for (size_t i = 0; i < tables.symbol_count; i++)
        if (tables.symbols[i].st_shndx != SHN_UNDEF &&
            strcmp(tables.names + tables.symbols[i].st_name, ATTACHED_SYMBOL) == 0)
            image->own = tables.symbols[i].st_value;
    return image->own != 0 && attach_image_own(image)->magic == ATTACHED_MAGIC;
}

bool attach_image_load(struct attach_image *image, const char *path)
{
    size_t size = 0;
    *image = (struct attach_image){0};
    uint8_t *file = attach_image_read_file(path, &size);
    bool is_loaded = file && size >= sizeof(Elf64_Ehdr) && memcmp(file, ELFMAG, SELFMAG) == 0 &&
                     image_place(image, file, size) && image_find_own(image);
    if (is_loaded) {
        ((Elf64_Ehdr *)image->bytes)->e_entry = image->own;
        image_set_offsets(image);
        image->call = attach_image_own(image)->borrowed.call;
        image->run = attach_image_own(image)->run;
        image->hooks =
            (const struct attached_hook *)(image->bytes + attach_image_own(image)->hooks);
        image->hook_count = (attach_image_own(image)->hooks_end - attach_image_own(image)->hooks) /
                            sizeof *image->hooks;
        image->copy = attach_image_own(image)->borrowed.copy;
        image->stack_end = attach_image_own(image)->borrowed.stack_end;
    }
    free(file);
    if (!is_loaded) {
        message("'%s' cannot be used; is the installation complete?", path);
        attach_image_free(image);
    }
    return is_loaded;
}

void attach_image_free(struct attach_image *image)
{
    free(image->bytes);
    *image = (struct attach_image){0};
}

/* Returns the offset of the image's own function for a static program; 0 if it has none. */
static uint64_t image_find_static(const struct image_tables *tables, const char *name)
{
    const size_t size = sizeof ATTACHED_STATIC - 1;
    for (size_t i = 1; i < tables->symbol_count; i++) {
        const char *own = tables->names + tables->symbols[i].st_name;
        if (tables->symbols[i].st_shndx != SHN_UNDEF && strncmp(own, ATTACHED_STATIC, size) == 0 &&
            strcmp(own + size, name) == 0)
            return tables->symbols[i].st_value;
    }
    return 0;
}

const char *attach_image_import(const struct attach_image *image, size_t number, bool is_static)
{
    struct image_tables tables;
    image_find_tables(image, &tables);
    for (size_t i = 1; i < tables.symbol_count; i++) {
        const char *name = tables.names + tables.symbols[i].st_name;
        if (tables.symbols[i].st_shndx == SHN_UNDEF &&
            (!is_static || image_find_static(&tables, name) == 0) && number-- == 0)
            return name;
    }
    return NULL;
}

static uint64_t image_find_import(struct attach_modules *modules, const char *name)
{
    static const char *const files[] = {"libc.so.6", "ld-linux-x86-64.so.2"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct attach_module *module = attach_modules_named(modules, files[i]);
        uint64_t address = module ? attach_module_symbol(module, name) : 0;
        if (address != 0)
            return address;
    }
    return 0;
}

const char *attach_image_relocate(struct attach_image *image, uint64_t base, int64_t thread_block,
                                  struct attach_modules *modules, struct attach_module *program)
{
    struct image_tables tables;
    uint64_t own;
    image_find_tables(image, &tables);
    for (size_t table = 0; table < 2; table++)
        for (size_t i = 0; i < tables.counts[table]; i++) {
            const Elf64_Rela *relocation = &tables.relocations[table][i];
            const Elf64_Sym *symbol = &tables.symbols[ELF64_R_SYM(relocation->r_info)];
            const char *name = tables.names + symbol->st_name;
            uint64_t value = base + symbol->st_value;
            if (symbol->st_shndx == SHN_UNDEF && symbol->st_name != 0) {
                if (!program)
                    value = image_find_import(modules, name);
                else if ((own = image_find_static(&tables, name)) != 0)
                    value = base + own;
                else
                    value = attach_module_any_symbol(program, name);
                if (value == 0)
                    return name;
            }
            switch (ELF64_R_TYPE(relocation->r_info)) {
            case R_X86_64_RELATIVE:
                value = base + (uint64_t)relocation->r_addend;
                break;
            case R_X86_64_TPOFF64:
                value = (uint64_t)(thread_block + relocation->r_addend);
                break;
            case R_X86_64_64:
                value += (uint64_t)relocation->r_addend;
                break;
            case R_X86_64_GLOB_DAT:
            case R_X86_64_JUMP_SLOT:
                break;
            default:
                return "a relocation";
            }
            memcpy(image->bytes + relocation->r_offset, &value, sizeof value);
        }
    return NULL;
}

/* Bytes behind the heap that stay free, for it to grow. */
#define HEAP_ROOM (UINT64_C(1) << 36)

/* Programs have a right to addresses below this one. */
#define LOWEST_ROOM (UINT64_C(1) << 20)

#define REACH ((UINT64_C(1) << 31) - (UINT64_C(64) << 20))

static bool reserve_is_failed(struct attachment *attachment, int64_t result, const char *what)
{
    if (result >= 0 || result < -4095)
        return false;
    attachment->is_to_wait = result == -EAGAIN;
    if (result == -EAGAIN)
        attach_refuse(attachment, "none of its threads is where it can be interrupted; try again");
    else
        attach_refuse(attachment, "%s failed there: %s", what, strerror((int)-result));
    return true;
}

/* Writes the image. Its header comes last: another recorder finds it by the header: whatever has it
 * is complete, should this recorder be killed. */
static bool reserve_write_found(struct attachment *attachment)
{
    struct attach_image *image = &attachment->image;
    struct attached *own = attach_image_own(image);
    if (getrandom(&own->key, sizeof own->key, 0) != sizeof own->key)
        return attach_refuse(attachment, "there are no random numbers");
    own->key = (own->key | UINT64_C(1) << 63) & ~UINT64_C(0xffffffff);
    own->recorder = (uint32_t)getpid();
    attachment->key = own->key;
    return (attach_write(attachment, attachment->base + ATTACH_PAGE, image->bytes + ATTACH_PAGE,
                         image->size - ATTACH_PAGE) &&
            attach_write(attachment, attachment->base, image->bytes, ATTACH_PAGE)) ||
           attach_refuse(attachment, "its memory cannot be written");
}

/* Maps the image, and makes its data writable, by the code in a cave. It is written at once, so
 * that it can be found and removed. */
static bool reserve_map_parts(struct attachment *attachment, struct threads *threads,
                              const struct attach_cave *cave)
{
    const struct attach_image *image = &attachment->image;
    if (attachment->base == 0) {
        int64_t base = attach_call(threads, &cave->code, SYS_mmap,
                                   (const uint64_t[6]){0, image->size, PROT_READ | PROT_EXEC,
                                                       MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0});
        if (reserve_is_failed(attachment, base, "mmap()"))
            return false;
        attachment->base = (uint64_t)base;
        attachment->size = image->size;
        attachment->own = image->own;
        if (!reserve_write_found(attachment))
            return false;
    }
    uint64_t begin = attachment->base + image->data, size = image->size - image->data;
    int64_t result = attach_call(threads, &cave->code, SYS_mprotect,
                                 (const uint64_t[6]){begin, size, PROT_READ | PROT_WRITE, 0, 0, 0});
    return !reserve_is_failed(attachment, result, "mprotect()");
}

static bool reserve_map_image(struct attachment *attachment, struct threads *threads)
{
    struct attach_cave cave;
    if (attachment->is_mapped)
        return true;
    if (!attach_cave_open(attachment, threads, &cave))
        return false;
    attachment->is_mapped = reserve_map_parts(attachment, threads, &cave);
    attach_cave_close(attachment, threads, &cave);
    return attachment->is_mapped;
}

/* Returns free memory in reach of a module: below it, where nothing grows. */
static uint64_t reserve_find_room(const struct maps *maps, const struct attach_module *module,
                                  uint64_t size)
{
    uint64_t found = 0;
    for (size_t i = 1; i < maps->count; i++) {
        const struct mapping *below = &maps->items[i - 1], *above = &maps->items[i];
        uint64_t page = above->begin - size - ATTACH_PAGE;
        bool grows = (strcmp(below->name, "[heap]") == 0 && page - below->end < HEAP_ROOM) ||
                     strncmp(above->name, "[stack", 6) == 0;
        if (above->begin - below->end >= size + 3 * ATTACH_PAGE && !grows && page < module->begin &&
            module->end - page < REACH)
            found = page;
    }
    if (found == 0 && maps->count > 0 && module->end - maps->items[0].begin < REACH &&
        maps->items[0].begin > LOWEST_ROOM + size)
        found = maps->items[0].begin - size - ATTACH_PAGE;
    return found;
}

/* Returns the size of the memory for the gates of the functions of a module; this is its first. */
static uint64_t reserve_area_size(const struct attachment *attachment, size_t first)
{
    size_t end = first;
    while (end < attachment->function_count &&
           attachment->functions[end].module == attachment->functions[first].module)
        end++;
    return ((end - first) * ATTACH_GATE_SIZE + ATTACH_PAGE - 1) & -(uint64_t)ATTACH_PAGE;
}

/* Maps memory for the gates of a module's functions. Another thread may take the place first. */
static bool reserve_map_area(struct attachment *attachment, struct threads *threads,
                             const struct attach_module *module, struct attached_area *area)
{
    enum { TRIES = 16 };
    const struct borrowed_code code = attach_own_code(attachment);
    int64_t result = -EEXIST;
    for (int i = 0; i < TRIES && result == -EEXIST; i++) {
        struct maps maps;
        if (!maps_read(&maps, attachment->pid, attach_living(threads)))
            return attach_refuse(attachment, "its mappings cannot be read");
        area->begin = reserve_find_room(&maps, module, area->size);
        maps_free(&maps);
        if (area->begin == 0)
            return attach_refuse(attachment, "there is no room near '%s'", module->path);
        if (!attach_write_undo(attachment))
            return false;
        result = attach_call(threads, &code, SYS_mmap,
                             (const uint64_t[6]){area->begin, area->size, PROT_READ | PROT_EXEC,
                                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                                                 UINT64_MAX, 0});
    }
    return !reserve_is_failed(attachment, result, "mmap()");
}

/* Maps memory for the gates of the functions of all modules. */
static bool reserve_map_areas(struct attachment *attachment, struct threads *threads)
{
    struct attached_undo *undo = &attachment->undo;
    const struct attach_module *module = NULL;
    size_t number = 0;
    for (size_t i = 0; i < attachment->function_count; i++) {
        struct attached_area area = {.size = reserve_area_size(attachment, i)};
        if (attachment->functions[i].module == module)
            continue;
        module = attachment->functions[i].module;
        if (number++ < undo->area_count)
            continue;
        if (undo->area_count == ATTACHED_AREAS)
            return attach_refuse(attachment, "it has too many allocators");
        undo->areas[undo->area_count] = area;
        undo->area_count++;
        if (!reserve_map_area(attachment, threads, module, &undo->areas[undo->area_count - 1])) {
            undo->area_count--;
            return false;
        }
    }
    return true;
}

/* Takes a descriptor of the channel's file, or opens that anew: the list of descriptors of a first
 * thread that has ended is empty. Returns -1 with errno if neither is possible. */
static int reserve_begin_take_channel(const struct attachment *attachment, uint32_t tid)
{
    char path[64];
    int process = (int)syscall(SYS_pidfd_open, (pid_t)attachment->pid, 0);
    int taken = process >= 0 ? (int)syscall(SYS_pidfd_getfd, process, attachment->file, 0) : -1;
    if (process >= 0)
        close(process);
    if (taken >= 0) {
        fcntl(taken, F_SETFD, FD_CLOEXEC);
        return taken;
    }
    snprintf(path, sizeof path, "/proc/%u/task/%u/fd/%d", attachment->pid, tid, attachment->file);
    return open(path, O_RDWR | O_CLOEXEC);
}

/* Opens the channel's file there anew, in place of the descriptor that made it: only a file that
 * was opened counts as held, also by a child that has not allocated anything yet (host_is_held()).
 */
static void reserve_reopen_channel(const struct attachment *attachment, struct threads *threads,
                                   uint64_t address)
{
    const struct borrowed_code code = attach_own_code(attachment);
    char path[64];
    int size = snprintf(path, sizeof path, "/proc/thread-self/fd/%d", attachment->file);
    if (!attach_write(attachment, address, path, (size_t)size + 1))
        return;
    int64_t file =
        attach_call(threads, &code, SYS_openat,
                    (const uint64_t[6]){(uint64_t)AT_FDCWD, address, O_RDWR | O_CLOEXEC, 0, 0, 0});
    if (file < 0)
        return;
    attach_call(
        threads, &code, SYS_dup3,
        (const uint64_t[6]){(uint64_t)file, (uint64_t)attachment->file, O_CLOEXEC, 0, 0, 0});
    attach_call(threads, &code, SYS_close, (const uint64_t[6]){(uint64_t)file, 0, 0, 0, 0, 0});
}

/* Makes the channel's file there, and takes a descriptor of it. */
static bool reserve_make_channel(struct attachment *attachment, struct threads *threads)
{
    static const char name[] = CHANNEL_FILE;
    const struct borrowed_code code = attach_own_code(attachment);
    /* The list of modules is not needed yet. */
    uint64_t address = attach_own_address(attachment) + offsetof(struct attached, modules);
    uint64_t note = attach_own_address(attachment) + offsetof(struct attached, file);
    if (!attach_write(attachment, address, name, sizeof name))
        return attach_refuse(attachment, "its memory cannot be written");
    int64_t file =
        attach_call(threads, &code, SYS_memfd_create,
                    (const uint64_t[6]){address, MFD_CLOEXEC | MFD_ALLOW_SEALING, 0, 0, 0, 0});
    if (reserve_is_failed(attachment, file, "memfd_create()"))
        return false;
    attachment->file = (int)file;
    attach_write(attachment, note, &attachment->file, sizeof attachment->file);
    attachment->channel = reserve_begin_take_channel(attachment, attach_living(threads));
    if (attachment->channel < 0)
        return attach_refuse(attachment, "its descriptors cannot be taken over: %s",
                             strerror(errno));
    reserve_reopen_channel(attachment, threads, address);
    return true;
}

/* Goes on where it was refused the last time. */
static bool attach_reserve_threads(struct attachment *attachment, struct threads *threads)
{
    attachment->is_to_wait = false;
    return reserve_map_image(attachment, threads) && reserve_map_areas(attachment, threads) &&
           reserve_make_channel(attachment, threads);
}

bool attach_reserve(struct attachment *attachment)
{
    for (int tries = 0; tries < ATTACH_TRIES; tries++) {
        attachment->reason[0] = '\0';
        /* At first a few threads, if these are where they can be interrupted. */
        if (tries == 0 ? attach_stopped_some(attachment, attach_reserve_threads)
                       : attach_stopped(attachment, attach_reserve_threads))
            return true;
        if (!attachment->is_to_wait)
            return false;
        attach_pause();
    }
    return attach_refuse(attachment,
                         "a thread is on its way back from another recorder; try again");
}
