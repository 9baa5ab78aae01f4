/* SPDX-License-Identifier: MIT */
/* Files, directories and memory for posix.h. Wide functions take all names; buffers are of the
 * longest path that these functions accept. */
#include "common/windows/posix.h"

#include <errno.h>
#include <stdarg.h>

#include "common/windows/posix_wide.h"

#include <aclapi.h>

struct posix_user {
    TOKEN_USER user;
    char room[SECURITY_MAX_SID_SIZE];
};

bool windows_wide(const char *text, wchar_t wide[WIDE_MAX])
{
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, wide, WIDE_MAX) > 0)
        return true;
    errno = GetLastError() == ERROR_INSUFFICIENT_BUFFER ? ENAMETOOLONG : EINVAL;
    return false;
}

int windows_fail(void)
{
    switch (GetLastError()) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_NAME:
    case ERROR_BAD_PATHNAME:
        errno = ENOENT;
        break;
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS:
        errno = EEXIST;
        break;
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION:
    case ERROR_LOCK_VIOLATION:
        errno = EACCES;
        break;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL:
        errno = ENOSPC;
        break;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY:
    case ERROR_COMMITMENT_LIMIT:
        errno = ENOMEM;
        break;
    case ERROR_BROKEN_PIPE:
    case ERROR_NO_DATA:
        errno = EPIPE;
        break;
    case ERROR_INVALID_HANDLE:
        errno = EBADF;
        break;
    case ERROR_DIRECTORY:
        errno = ENOTDIR;
        break;
    default:
        errno = EIO;
    }
    return -1;
}

static HANDLE posix_handle(int descriptor)
{
    return (HANDLE)_get_osfhandle(descriptor);
}

/* ---- Descriptors ---- */

int posix_open(const char *path, int flags, ...)
{
    wchar_t wide[WIDE_MAX];
    if (flags & O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    if (!windows_wide(path, wide))
        return -1;
    DWORD attributes = GetFileAttributesW(wide);
    if (attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY)) {
        errno = EISDIR;
        return -1;
    }
    bool writes = (flags & (O_WRONLY | O_RDWR)) != 0;
    HANDLE file = CreateFileW(wide,
                              flags & O_WRONLY ? GENERIC_WRITE
                              : writes         ? GENERIC_READ | GENERIC_WRITE
                                               : GENERIC_READ,
                              FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                              OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
    if (file == INVALID_HANDLE_VALUE)
        return windows_fail();
    return _open_osfhandle((intptr_t)file, O_BINARY | O_NOINHERIT | (writes ? 0 : O_RDONLY));
}

int64_t posix_lseek(int descriptor, int64_t offset, int whence)
{
    if (GetFileType(posix_handle(descriptor)) == FILE_TYPE_DISK)
        return _lseeki64(descriptor, offset, whence);
    errno = ESPIPE;
    return -1;
}

ssize_t posix_read(int descriptor, void *data, size_t size)
{
    DWORD got = 0;
    if (ReadFile(posix_handle(descriptor), data, size < INT_MAX ? (DWORD)size : INT_MAX, &got,
                 NULL))
        return (ssize_t)got;
    /* The other end of a pipe is closed. */
    return GetLastError() == ERROR_BROKEN_PIPE ? 0 : windows_fail();
}

ssize_t posix_write(int descriptor, const void *data, size_t size)
{
    /* A console takes less at once than a file. */
    enum { AT_ONCE = 1 << 20, CONSOLE = 1 << 13 };
    DWORD done = 0, limit = posix_isatty(descriptor) ? CONSOLE : AT_ONCE;
    if (WriteFile(posix_handle(descriptor), data, size < limit ? (DWORD)size : limit, &done, NULL))
        return (ssize_t)done;
    return windows_fail();
}

ssize_t posix_pread(int descriptor, void *data, size_t size, int64_t offset)
{
    OVERLAPPED at = {.Offset = (DWORD)offset, .OffsetHigh = (DWORD)((uint64_t)offset >> 32)};
    DWORD got = 0;
    int64_t before = posix_lseek(descriptor, 0, SEEK_CUR);
    if (before < 0)
        return -1;
    bool is_read = ReadFile(posix_handle(descriptor), data, size < INT_MAX ? (DWORD)size : INT_MAX,
                            &got, &at) != 0;
    bool is_end = !is_read && GetLastError() == ERROR_HANDLE_EOF;
    (void)(is_read || is_end || windows_fail());
    (void)posix_lseek(descriptor, before, SEEK_SET);
    return is_read ? (ssize_t)got : is_end ? 0 : -1;
}

/* _isatty() takes NUL for a terminal. */
int posix_isatty(int descriptor)
{
    DWORD mode;
    return GetConsoleMode(posix_handle(descriptor), &mode) != 0;
}

/* ---- Names ---- */

int posix_access(const char *path, int mode)
{
    wchar_t wide[WIDE_MAX];
    return windows_wide(path, wide) ? _waccess(wide, mode) : -1;
}

int posix_unlink(const char *path)
{
    wchar_t wide[WIDE_MAX];
    if (!windows_wide(path, wide))
        return -1;
    return DeleteFileW(wide) ? 0 : windows_fail();
}

int posix_rename(const char *path, const char *target)
{
    wchar_t wide[WIDE_MAX], wide_target[WIDE_MAX];
    if (!windows_wide(path, wide) || !windows_wide(target, wide_target))
        return -1;
    return MoveFileExW(wide, wide_target, MOVEFILE_REPLACE_EXISTING) ? 0 : windows_fail();
}

int link(const char *path, const char *target)
{
    wchar_t wide[WIDE_MAX], wide_target[WIDE_MAX];
    if (!windows_wide(path, wide) || !windows_wide(target, wide_target))
        return -1;
    return CreateHardLinkW(wide_target, wide, NULL) ? 0 : windows_fail();
}

FILE *posix_fopen(const char *path, const char *mode)
{
    wchar_t wide[WIDE_MAX];
    if (!windows_wide(path, wide))
        return NULL;
    return _wfopen(wide, *mode == 'r' ? L"rb" : L"wb");
}

/* Sets `own` to this user. */
static bool posix_find_user(struct posix_user *own)
{
    HANDLE token;
    DWORD size;
    if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token))
        return false;
    bool result = GetTokenInformation(token, TokenUser, own, sizeof *own, &size) != 0;
    CloseHandle(token);
    return result;
}

/* Creates a file that only this user may open. */
static int posix_create_private(const char *path, DWORD attributes)
{
    wchar_t wide[WIDE_MAX];
    struct posix_user own;
    DWORD room[64];
    PACL list = (PACL)room;
    SECURITY_DESCRIPTOR descriptor;
    if (!windows_wide(path, wide))
        return -1;
    if (!posix_find_user(&own) || !InitializeAcl(list, sizeof room, ACL_REVISION) ||
        !AddAccessAllowedAce(list, ACL_REVISION, FILE_ALL_ACCESS, own.user.User.Sid) ||
        !InitializeSecurityDescriptor(&descriptor, SECURITY_DESCRIPTOR_REVISION) ||
        !SetSecurityDescriptorDacl(&descriptor, TRUE, list, FALSE) ||
        !SetSecurityDescriptorControl(&descriptor, SE_DACL_PROTECTED, SE_DACL_PROTECTED))
        return windows_fail();
    SECURITY_ATTRIBUTES security = {sizeof security, &descriptor, FALSE};
    HANDLE file = CreateFileW(wide, GENERIC_READ | GENERIC_WRITE | DELETE,
                              FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, &security,
                              CREATE_NEW, attributes, NULL);
    return file == INVALID_HANDLE_VALUE ? windows_fail()
                                        : _open_osfhandle((intptr_t)file, O_BINARY | O_NOINHERIT);
}

static int posix_make_named(char *pattern, DWORD attributes)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345";
    enum { NUMBER_OF_X = 6, TRIES = 100 };
    char *end = pattern + strlen(pattern) - NUMBER_OF_X;
    int descriptor = -1;
    for (int i = 0; i < TRIES && descriptor < 0; i++) {
        unsigned char bytes[NUMBER_OF_X];
        if (getentropy(bytes, sizeof bytes) != 0)
            return -1;
        for (size_t k = 0; k < NUMBER_OF_X; k++)
            end[k] = letters[bytes[k] % (sizeof letters - 1)];
        descriptor = posix_create_private(pattern, attributes);
        if (descriptor < 0 && errno != EEXIST)
            return -1;
    }
    return descriptor;
}

int posix_mkstemp(char *pattern)
{
    return posix_make_named(pattern, FILE_ATTRIBUTE_NORMAL);
}

int mkostemp(char *pattern, int flags)
{
    (void)flags;
    return posix_make_named(pattern, FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE);
}

/* ---- Owners ---- */

static bool posix_is_system(PSID user)
{
    return IsWellKnownSid(user, WinLocalSystemSid) ||
           IsWellKnownSid(user, WinBuiltinAdministratorsSid);
}

static bool posix_is_this_user(PSID user)
{
    struct posix_user own;
    return posix_find_user(&own) && EqualSid(own.user.User.Sid, user);
}

static uint64_t posix_user_number(PSID user)
{
    const unsigned char *bytes = user;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    if (posix_is_this_user(user))
        return geteuid();
    if (posix_is_system(user))
        return 0;
    for (DWORD i = 0; i < GetLengthSid(user); i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash | 2;
}

/* Whether an access list lets somebody write but this user, the owner and the system. No list lets
 * everybody; a kind of entry that is not known here may let anybody. */
static bool posix_others_write(PACL list, PSID owner)
{
    const DWORD writing =
        FILE_WRITE_DATA | FILE_APPEND_DATA | WRITE_DAC | WRITE_OWNER | GENERIC_WRITE | GENERIC_ALL;
    for (DWORD i = 0; list && i < list->AceCount; i++) {
        void *entry;
        if (!GetAce(list, i, &entry))
            return true;
        const ACE_HEADER *header = entry;
        ACCESS_ALLOWED_ACE *allowed = entry;
        PSID user = &allowed->SidStart;
        if (header->AceType == ACCESS_DENIED_ACE_TYPE || (header->AceFlags & INHERIT_ONLY_ACE))
            continue;
        if (header->AceType != ACCESS_ALLOWED_ACE_TYPE)
            return true;
        if ((allowed->Mask & writing) && !EqualSid(user, owner) && !posix_is_this_user(user) &&
            !posix_is_system(user) && !IsWellKnownSid(user, WinCreatorOwnerRightsSid))
            return true;
    }
    return !list;
}

static void posix_stat_owner(HANDLE file, struct posix_stat *result)
{
    PSID owner = NULL;
    PACL list = NULL;
    PSECURITY_DESCRIPTOR descriptor = NULL;
    /* A file whose owner cannot be found belongs to nobody that is known. */
    result->st_uid = UINT64_MAX;
    result->st_mode |= S_IWOTH;
    if (GetSecurityInfo(file, SE_FILE_OBJECT,
                        OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION, &owner, NULL, &list,
                        NULL, &descriptor) != ERROR_SUCCESS)
        return;
    if (owner) {
        result->st_uid = posix_user_number(owner);
        if (!posix_others_write(list, owner))
            result->st_mode &= ~S_IWOTH;
    }
    LocalFree(descriptor);
}

static struct timespec posix_time(FILETIME time)
{
    const int64_t between = INT64_C(116444736000000000), second = 10000000;
    int64_t units = (int64_t)((uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime) - between;
    return (struct timespec){units / second, (long)(units % second * 100)};
}

static int posix_stat_handle(HANDLE file, struct posix_stat *result)
{
    BY_HANDLE_FILE_INFORMATION facts;
    *result = (struct posix_stat){.st_mode = S_IFCHR};
    DWORD type = GetFileType(file);
    if (type == FILE_TYPE_PIPE)
        result->st_mode = S_IFIFO;
    if (type != FILE_TYPE_DISK)
        return 0;
    if (!GetFileInformationByHandle(file, &facts))
        return windows_fail();
    bool is_directory = facts.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY;
    *result = (struct posix_stat){
        .st_dev = facts.dwVolumeSerialNumber,
        .st_ino = (uint64_t)facts.nFileIndexHigh << 32 | facts.nFileIndexLow,
        .st_size = (int64_t)((uint64_t)facts.nFileSizeHigh << 32 | facts.nFileSizeLow),
        .st_mode = is_directory ? S_IFDIR : S_IFREG,
        .st_mtim = posix_time(facts.ftLastWriteTime),
        .st_ctim = posix_time(facts.ftCreationTime),
    };
    posix_stat_owner(file, result);
    return 0;
}

int posix_fstat(int descriptor, struct posix_stat *result)
{
    return posix_stat_handle(posix_handle(descriptor), result);
}

int posix_path_stat(const char *path, struct posix_stat *result)
{
    wchar_t wide[WIDE_MAX];
    if (!windows_wide(path, wide))
        return -1;
    HANDLE file = CreateFileW(wide, FILE_READ_ATTRIBUTES | READ_CONTROL,
                              FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                              OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
    if (file == INVALID_HANDLE_VALUE)
        return windows_fail();
    int status = posix_stat_handle(file, result);
    CloseHandle(file);
    return status;
}

/* ---- Directories ---- */

struct posix_directory {
    _WDIR *directory;
    struct posix_entry entry;
};

struct posix_directory *posix_opendir(const char *path)
{
    wchar_t wide[WIDE_MAX];
    struct posix_directory *result = calloc(1, sizeof *result);
    if (result && windows_wide(path, wide) && (result->directory = _wopendir(wide)))
        return result;
    free(result);
    return NULL;
}

struct posix_entry *posix_readdir(struct posix_directory *directory)
{
    struct _wdirent *entry = _wreaddir(directory->directory);
    if (!entry || !WideCharToMultiByte(CP_UTF8, 0, entry->d_name, -1, directory->entry.d_name,
                                       sizeof directory->entry.d_name, NULL, NULL))
        return NULL;
    return &directory->entry;
}

int posix_closedir(struct posix_directory *directory)
{
    _wclosedir(directory->directory);
    free(directory);
    return 0;
}

/* ---- Mappings ---- */

int memfd_create(const char *name, unsigned flags)
{
    char pattern[1024];
    (void)name;
    if (snprintf(pattern, sizeof pattern, "%s/ttdanalyze.XXXXXX", posix_getenv("TMPDIR")) >=
        (int)sizeof pattern) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return mkostemp(pattern, (int)flags);
}

void *mmap(void *address, size_t size, int protection, int flags, int descriptor, int64_t offset)
{
    (void)address;
    (void)size;
    (void)protection;
    (void)flags;
    HANDLE mapping = CreateFileMappingW(posix_handle(descriptor), NULL, PAGE_READONLY, 0, 0, NULL);
    void *memory = mapping ? MapViewOfFile(mapping, FILE_MAP_READ, (DWORD)((uint64_t)offset >> 32),
                                           (DWORD)offset, 0)
                           : NULL;
    if (!memory)
        windows_fail();
    if (mapping)
        CloseHandle(mapping);
    return memory;
}

int munmap(void *memory, size_t size)
{
    (void)size;
    return UnmapViewOfFile(memory) ? 0 : windows_fail();
}
