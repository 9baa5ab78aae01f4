# SPDX-License-Identifier: MIT
"""Functions under the C library's other names, and functions that the program defines itself."""

import os
import subprocess
import unittest

from support import Recording, analyze

LIBC_NAMES = '''
#include <dlfcn.h>
#include <stdlib.h>
void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t), *__libc_valloc(size_t), *__libc_pvalloc(size_t);
void __libc_free(void *);
int main(void)
{
    void *block = malloc(1001);
    __libc_free(block);
    free(__libc_malloc(1002));
    free(__libc_realloc(__libc_calloc(2, 1003), 1004));
    free(__libc_memalign(64, 1005));
    free(__libc_valloc(1006));
    free(__libc_pvalloc(1007));
#ifdef OTHERS
    void *aligned;
    __posix_memalign(&aligned, 64, 1008);
    __libc_cfree(aligned);
#else
    void *library = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    free(((void *(*)(size_t))dlsym(library, "__libc_malloc"))(1008));
#endif
    ((void **)__libc_malloc(1009))[0] = 0;
    return 0;
}
'''

ABOVE_LIBC = '''
#include <string.h>
void *__libc_malloc(size_t), *__libc_realloc(void *, size_t);
void __libc_free(void *);
void *malloc(size_t size) { char *block = __libc_malloc(size + 16); return block + 16; }
void *calloc(size_t count, size_t size) { return memset(malloc(count * size), 0, count * size); }
void free(void *block) { if (block) __libc_free((char *)block - 16); }
void *realloc(void *block, size_t size)
{
    char *moved = __libc_realloc(block ? (char *)block - 16 : 0, size + 16);
    return moved + 16;
}
'''

SMALL = '''
void *malloc(size_t n)
{
    NEXT(void *, malloc, size_t);
    return is_ready && n <= 64 ? TAKE(n) : next(n);
}
void free(void *b)
{
    NEXT(void, free, void *);
    if ((char *)b < memory || (char *)b >= memory + sizeof memory)
        next(b);
}
__attribute__((constructor)) static void begin(void) { is_ready = 1; }
'''
CHUNKS = '''
void *malloc(size_t n)
{
    static char *chunk;
    static size_t left;
    NEXT(void *, malloc, size_t);
    n = (n + 63) / 64 * 64;
    if (n > 4096)
        return next(n);
    if (left < n) {
        left = 65536;
        chunk = next(left);
    }
    left -= n;
    return chunk + left;
}
'''
CHILDREN = '''
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static char memory[1 << 26];
static size_t used;
void *malloc(size_t n) { used += (n + 63) / 64 * 64; return memory + used - (n + 63) / 64 * 64; }
void *calloc(size_t c, size_t n) { return malloc(c * n); }
void *realloc(void *b, size_t n) { void *m = malloc(n); return b ? memcpy(m, b, n) : m; }
void free(void *b) {}
static void run(void) { free(valloc(100)); *(void **)valloc(200) = 0; }
int main(int argc, char **argv)
{
    char *again[] = {argv[0], "child", 0};
    void *block = valloc(50);
    run();
    if (argc > 1)
        return 0;
    if (fork() == 0) {
        free(block);
        run();
        if (fork() == 0)
            run();
        while (wait(0) > 0)
            ;
        return 0;
    }
    if (fork() == 0)
        execv(argv[0], again);
    if (vfork() == 0)
        execv(argv[0], again);
    posix_spawn(0, argv[0], 0, 0, again, environ);
    while (wait(0) > 0)
        ;
    return 0;
}
'''


class Programs(Recording):
    def build(self, source, *options, compiler='COMPILER', name='program'):
        suffix = '.c' if compiler == 'COMPILER' else '.cpp'
        (self.directory / (name + suffix)).write_text(source)
        path = self.directory / name
        built = subprocess.run([*os.environ[compiler].split(), '-w', '-g', '-fno-builtin',
                                '-I', os.environ['SOURCES'], '-o', path, self.directory / (name + suffix), *options],
                               capture_output=True, text=True)
        self.assertEqual(built.returncode, 0, built.stderr)
        return str(path)

    def run_recorded(self, path, *arguments):
        result = self.record(path, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr.decode()


class LibcNames(Programs):
    """__libc_malloc() and its like are malloc() and its like."""

    def check(self, *options):
        self.assertEqual(self.run_recorded(self.build(LIBC_NAMES, *options)), '')
        self.assertEqual(analyze('errors', self.trace)['findings'], [])
        leaks = self.assert_sound()
        self.assertIn((1, 1009), [(group['blocks'], group['bytes']) for group in leaks['groups']
                                  if group['class'] == 'definitely_lost'])
        sizes = [event.get('size') for event in analyze('events', self.trace)]
        for size in range(1001, 1010):
            self.assertEqual(sizes.count(size if size != 1003 else 2006), 1, size)

    def test_plain(self):
        self.check()

    def test_other_allocators(self):
        for library in 'libtcmalloc_minimal.so.4', 'libmimalloc.so.2':
            with self.subTest(library=library):
                try:
                    self.build(LIBC_NAMES, '-DOTHERS', f'-l:{library}')
                except AssertionError:
                    self.skipTest(f'no {library} here')
                self.check('-DOTHERS', f'-l:{library}')

    def test_allocator_above(self):
        """An allocator in a library that calls these functions: each call is one event."""
        library = self.build(ABOVE_LIBC, '-shared', '-fPIC', name='above.so')
        path = self.build('#include <stdlib.h>\nint main(void) { free(malloc(4321)); return 0; }',
                          library)
        self.assertEqual(self.run_recorded(path), '')
        self.assertEqual(analyze('errors', self.trace)['findings'], [])
        sizes = [event.get('size', 0) for event in analyze('events', self.trace)]
        self.assertEqual([size for size in sizes if size >= 4321], [4321])


class LibraryOperators(Programs):
    """Operators of a library, in a program without a C++ runtime."""

    LIBRARY = '''
        #include <cstdlib>
        #include <cstring>
        #include <new>
        void *operator new(size_t size) { return std::memset(std::malloc(size), 90, size); }
        void operator delete(void *block) noexcept { std::free(block); }
    '''
    PROGRAM = '''
        #include <new>
        int main()
        {
            unsigned char *block = static_cast<unsigned char *>(operator new(4321));
            int status = block[4320] == 90 ? 0 : 1;
            operator delete(block);
            return status;
        }
    '''

    def test_are_called(self):
        library = self.build(self.LIBRARY, '-shared', '-fPIC', '-Wl,--as-needed',
                             compiler='COMPILER_CXX', name='operators.so')
        path = self.build(self.PROGRAM, library, '-Wl,--as-needed', compiler='COMPILER_CXX')
        self.assertEqual(self.run_recorded(path), '')
        self.assertEqual(analyze('errors', self.trace)['findings'], [])
        apis = [event['api'] for event in analyze('events', self.trace)
                if event.get('size') == 4321 or event['action'] == 'Free']
        self.assertEqual(apis, ['operator new', 'operator delete'])


# Functions that are built on the C library's, each of which a program may define by itself.
ABOVE = {
    'malloc': 'void *malloc(size_t n) { NEXT(void *, malloc, size_t); return next(n); }',
    'calloc': 'void *calloc(size_t c, size_t n) { NEXT(void *, calloc, size_t, size_t); '
              'return next(c, n); }',
    'realloc': 'void *realloc(void *b, size_t n) { NEXT(void *, realloc, void *, size_t); '
               'return next(b, n); }',
    'free': 'void free(void *b) { NEXT(void, free, void *); next(b); }',
    'cfree': 'void cfree(void *b) { free(b); }',
    'aligned_alloc': 'void *aligned_alloc(size_t a, size_t n) { void *b = 0; '
                     'return posix_memalign(&b, a, n) ? 0 : b; }',
    'posix_memalign': 'int posix_memalign(void **b, size_t a, size_t n) '
                      '{ return (*b = memalign(a, n)) == 0; }',
    'valloc': 'void *valloc(size_t n) { return memalign(4096, n); }',
}
# Functions that serve calls by themselves, and release nothing.
NO_FREE = 'void free(void *b) {} '
NO_COPY = 'void *realloc(void *b, size_t n) { void *m = TAKE(n); return b ? memcpy(m, b, 8) : m; } '
OWN = {
    'malloc': NO_FREE + NO_COPY + 'void *malloc(size_t n) { return TAKE(n); }',
    'calloc': NO_FREE + 'void *calloc(size_t c, size_t n) { return TAKE(c * n); }',
    'realloc': NO_FREE + NO_COPY,
    'free': NO_FREE,
    'aligned_alloc': NO_FREE + 'void *aligned_alloc(size_t a, size_t n) { return TAKE(n); }',
    'valloc': NO_FREE + 'void *valloc(size_t n) { return TAKE(n); }',
    'pool for small blocks': SMALL,
    'pool that begins in main': SMALL.replace('is_ready = 1', 'is_ready = 0'),
    'pool in chunks': NO_FREE + NO_COPY + CHUNKS,
}
IN_C = '''
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#define NEXT(type, name, ...) static type (*next)(__VA_ARGS__); \\
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, #name)
void cfree(void *);
int is_ready;
static _Alignas(4096) char memory[1 << 26];
static size_t used;
#define TAKE(n) memcpy(memory + (used += ((n) + 4159) / 64 * 64) - ((n) + 63) / 64 * 64, "", 1)
FUNCTIONS
int main(void)
{
    void *block;
    is_ready = 1;
    free(calloc(2, 1001));
    free(malloc(8));
    free(realloc(malloc(1002), 2002));
    free(aligned_alloc(64, 64));
    free(valloc(1003));
    posix_memalign(&block, 64, 1004);
    free(block);
    for (int i = 0; i < 5; i++)
        ((char **)malloc(5432))[0] = 0;
    return 0;
}
'''
HEADER = '''
#include <cstdlib>
#include <new>
#include <string>
void *operator new(std::size_t size) {
    char *block = (char *)std::malloc(size + 16);
    if (block == nullptr) throw std::bad_alloc();
    return block + 16;
}
void operator delete(void *block) noexcept { if (block) std::free((char *)block - 16); }
struct alignas(64) wide { char bytes[64]; };
int main() {
    for (int i = 0; i < 3; i++) {
        delete new std::string(100, 'x');
        delete[] new int[10];
        delete[] new std::string[3];
        delete new (std::nothrow) int;
        delete new wide;
    }
    ((char **)operator new(5432))[0] = 0;
}
'''
ONLY_DELETE = '''
#include <cstdlib>
#include <string>
void operator delete(void *block) noexcept { std::free(block); }
int main() {
    delete new std::string(100, 'x');
    delete[] new int[10];
    ((char **)operator new(5432))[0] = 0;
}
'''
POOL_OF_OPERATOR = '''
#include <cstdlib>
#include <new>
#include <string>
static char memory[1 << 26];
static std::size_t used;
void *operator new(std::size_t size) {
    used += (size + 63) / 64 * 64;
    return memory + used - (size + 63) / 64 * 64;
}
void operator delete(void *) noexcept {}
void operator delete(void *, std::size_t) noexcept {}
int main() { delete new std::string(100, 'x'); std::free(std::malloc(4321)); }
'''


# An allocator of the program's, whose functions are long enough to be patched. Each call is counted.
ARENA = r'''
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define OWN __attribute__((noinline, noclone))
struct head { size_t size; struct head *next; };
static _Alignas(64) char memory[1 << 26];
static size_t used;
static struct head *released[64];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int taken, given;
static void *take(size_t n)
{
    int class = 0;
    while ((16ul << class) < n)
        class++;
    pthread_mutex_lock(&lock);
    struct head *head = released[class];
    if (head)
        released[class] = head->next;
    else {
        head = (struct head *)(memory + used);
        used += 16 + (16ul << class);
    }
    taken++;
    *head = (struct head){n, (void *)(uintptr_t)class};
    pthread_mutex_unlock(&lock);
    return head + 1;
}
static void give(void *block)
{
    struct head *head = (struct head *)block - 1;
    pthread_mutex_lock(&lock);
    int class = (int)(uintptr_t)head->next;
    head->next = released[class];
    released[class] = head;
    given++;
    pthread_mutex_unlock(&lock);
}
OWN void *malloc(size_t n) { return n > 1 << 20 ? 0 : take(n); }
OWN void free(void *b) { if (b) give(b); }
OWN void *calloc(size_t c, size_t n) { return memset(take(c * n), 0, c * n); }
OWN void *realloc(void *b, size_t n)
{
    void *moved = take(n);
    size_t old = b ? ((struct head *)b)[-1].size : 0;
    memcpy(moved, b ? b : "", old < n ? old : n);
    if (b)
        give(b);
    return moved;
}
OWN void *memalign(size_t a, size_t n) { return a > 16 ? 0 : take(n); }
OWN int posix_memalign(void **b, size_t a, size_t n) { return (*b = memalign(a, n)) == 0; }
'''
ARENA_USED = ARENA + r'''
static void *work(void *unused)
{
    for (int i = 0; i < 500; i++)
        free(realloc(calloc(10, 10 + i % 10), 3000));
    return strdup("kept") ? 0 : 0;
}
static OWN void lose(void) { strcpy(malloc(1777), "lost"); }
int main(void)
{
    pthread_t threads[3];
    int taken_before = taken, given_before = given;
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], 0);
    for (int i = 0; i < 3; i++)
        lose();
    void *block;
    posix_memalign(&block, 8, 50);
    free(block);
    malloc(1 << 30);
    printf("%d %d\n", taken - taken_before, given - given_before);
    fflush(stdout);
    if (fork() == 0) {
        lose();
        return 0;
    }
    wait(0);
    return 0;
}
'''
THROWS = r'''
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>
#define OWN __attribute__((noinline, noclone))
static char memory[1 << 26];
static std::size_t used;
static volatile std::size_t released;
static void *take(std::size_t n)
{
    std::getenv("calls another module");
    used += (n + 63) / 64 * 64;
    return memory + used - (n + 63) / 64 * 64;
}
OWN void *operator new(std::size_t n) { if (n > 1 << 20) throw std::bad_alloc(); return take(n); }
OWN void operator delete(void *b) noexcept { if (b) released += std::getenv("x") != 0; }
OWN void operator delete(void *b, std::size_t n) noexcept { operator delete(b); }
static OWN int *lose() { int *lost = new int[1234]; *lost = 5; return lost; }
int main()
{
    int caught = 0;
    volatile std::size_t much = 1 << 21;
    std::vector<std::string> strings;
    for (int i = 0; i < 300; i++)
        strings.push_back(std::string(100 + i, 'x'));
    for (int i = 0; i < 10; i++)
        try { delete[] new char[much]; } catch (const std::bad_alloc &) { caught++; }
    *lose() = caught;
    std::printf("%d\n", caught);
}
'''


JEMALLOC = r'''
#include <stddef.h>
#include "attach/until_told.h"
void *NAME(malloc)(size_t), *NAME(calloc)(size_t, size_t), *NAME(realloc)(void *, size_t);
void *NAME(mallocx)(size_t, int), *NAME(rallocx)(void *, size_t, int);
void NAME(free)(void *), NAME(sdallocx)(void *, size_t, int);
int main(void)
{
    wait_until_told();
    for (int i = 0; i < 1000; i++)
        NAME(sdallocx)(NAME(rallocx)(NAME(mallocx)(100 + i % 7, 0), 300, 0), 300, 0);
    NAME(free)(NAME(realloc)(NAME(calloc)(3, 5), 50));
    return NAME(malloc)(10) == 0;
}
'''


class Patched(Programs):
    """Functions of the program's own are recorded from their first instruction on."""

    def check_own(self, path):
        """The output of the program, and its losses."""
        plain = subprocess.run([path], capture_output=True, check=True).stdout
        result = self.record(path)
        self.assertEqual((result.returncode, result.stdout.splitlines()[:1]),
                         (0, plain.splitlines()[:1]), result.stderr)
        self.assertIn(b'operator new of its own: calls before', result.stderr)
        leaks = {}
        for trace in self.directory.glob('trace.bin*'):
            self.assertEqual(analyze('verify', trace)['problems'], [])
            self.assertEqual({finding['kind'] for finding in analyze('errors', trace)['findings']}
                             - {'failed-call'}, set())
            found = analyze('leaks', trace)
            self.assertFalse(found['certain'])
            leaks[trace] = [(group['blocks'], group['bytes'], group['stack'][0]['function'])
                            for group in found['groups'] if group['class'] == 'definitely_lost']
        return plain, leaks

    def test_all_calls(self):
        """As many as the program counts."""
        printed, leaks = self.check_own(self.build(ARENA_USED, '-O2', '-lpthread'))
        taken, given = map(int, printed.split())
        actions = [event['action'] for event in analyze('events', self.trace)
                   if event['result'] != 0]
        moved = actions.count('ReAlloc')
        self.assertEqual(moved, 1500)
        # Some come before main(), or behind the point where the program counts.
        self.assertIn(actions.count('Alloc') + moved - taken, range(10))
        self.assertIn(actions.count('Free') + moved - given, range(10))
        self.assertEqual(len(leaks), 2)
        for lost in leaks.values():
            self.assertIn('lose', [function for _, _, function in lost])
        lost = [size for _, size, function in leaks[self.trace] if function == 'lose']
        self.assertEqual(sum(lost), 3 * 1777)

    def test_names_of_its_own(self):
        """Functions that no other module sees, beside the C library's."""
        for prefix in 'je_', '_rjem_', 'rp':
            with self.subTest(prefix=prefix):
                names = [f'-D{name}={prefix}{name}' for name in
                         ('malloc', 'free', 'calloc', 'realloc', 'memalign', 'posix_memalign')]
                printed, leaks = self.check_own(
                    self.build(ARENA_USED, '-O2', '-lpthread', *names))
                taken, given = map(int, printed.split())
                actions = [event['action'] for event in analyze('events', self.trace)
                           if event['result'] != 0]
                self.assertEqual(actions.count('ReAlloc'), 1500)
                self.assertIn(actions.count('Alloc') + 1500 - taken, range(30))
                self.assertIn(actions.count('Free') + 1500 - given, range(30))
                for lost in leaks.values():
                    self.assertIn('lose', [function for _, _, function in lost])

    def test_jemalloc_linked_in(self):
        """Under its own names, and with a prefix, as in Rust programs."""
        for path in self.build_jemalloc():
            self.check_own(path)
            self.check_jemalloc()

    def build_jemalloc(self):
        libraries = ['-lpthread', '-lm', '-ldl', '-lstdc++']
        try:
            self.build('int main(void) { return 0; }', '-l:libjemalloc.a', *libraries)
        except AssertionError:
            self.skipTest('no libjemalloc.a here')
        found = subprocess.run([*os.environ['COMPILER'].split(), '-print-file-name=libjemalloc.a'],
                               capture_output=True, text=True, check=True).stdout.strip()
        names = ['malloc', 'calloc', 'realloc', 'free', 'aligned_alloc', 'posix_memalign', 'memalign',
                 'valloc', 'malloc_usable_size', 'mallocx', 'rallocx', 'xallocx', 'sallocx',
                 'dallocx', 'sdallocx', 'nallocx', 'mallctl', 'mallctlnametomib', 'mallctlbymib',
                 'malloc_stats_print', 'malloc_conf', 'malloc_message']
        for prefix in '', '_rjem_':
            with self.subTest(prefix=prefix):
                library = self.directory / f'lib{prefix}.a'
                renamed = [f'--redefine-sym={name}={prefix}{name}' for name in names if prefix]
                if subprocess.run(['objcopy', *renamed, found, library]).returncode != 0:
                    self.skipTest('no objcopy here')
                yield self.build(JEMALLOC, f'-DNAME(x)={prefix}##x' if prefix else '-DNAME(x)=x',
                                 '-O2', library, *libraries)

    def check_jemalloc(self):
        calls = [event['api'] for event in analyze('events', self.trace)]
        for api in 'mallocx', 'rallocx', 'sdallocx':
            self.assertEqual(calls.count(api), 1000, api)
        self.assertGreaterEqual(calls.count('calloc'), 1)

    def test_exceptions(self):
        printed, leaks = self.check_own(self.build(THROWS, '-O2', compiler='COMPILER_CXX'))
        self.assertEqual(printed, b'10\n')
        self.assertIn((1, 4936, 'lose()'), leaks[self.trace])


# The compiler leaves values in registers that this operator does not touch.
LEAF = r'''
#include <cstdio>
#include <new>
static char memory[1 << 26];
static std::size_t used;
__attribute__((noinline, noclone)) void *operator new(std::size_t n)
{
    used += (n + 63) / 64 * 64;
    return memory + used - (n + 63) / 64 * 64;
}
__attribute__((noinline, noclone)) void operator delete(void *) noexcept { used -= 64; }
__attribute__((noinline, noclone)) void operator delete(void *, std::size_t) noexcept { used -= 64; }
int main(int argc, char **argv)
{
    unsigned long a = argc, b = a * 3, c = a * 5, d = a * 7, e = a * 11, f = a * 13, g = a * 17;
    for (int i = 0; i < 100; i++) {
        int *made = new int[i + 1];
        made[0] = i;
        a += made[0], b ^= a, c += b, d ^= c, e += d, f ^= e, g += f;
        if (i % 2)
            delete made;
    }
    std::printf("%lx %lx %lx %lx %lx %lx %lx\\n", a, b, c, d, e, f, g);
}
'''


class Replaced(Programs):
    """Functions of the program in place of the C library's and the C++ runtime's: calls that reach
    the C library are recorded, and it is said if there may be others."""

    def assumptions(self, trace):
        return [m['value'] for m in analyze('info', trace)['metadata'] if m['key'] == 'assumed']

    def check_seen(self, path, lost, assumed=1):
        """That they call the C library was tried, which is said."""
        self.assertEqual(self.run_recorded(path), '')
        self.assertEqual(self.assumptions(self.trace), assumed * [
            "the program's own malloc, free or operator new always call the C library's, as they "
            "do at its start and at its end"])
        self.assertEqual(analyze('errors', self.trace)['findings'], [])
        leaks = self.assert_sound()
        self.assertEqual([(group['blocks'], group['bytes']) for group in leaks['groups']
                          if group['class'] == 'definitely_lost'], [lost])

    def check_unseen(self, path, *arguments):
        self.assertIn('malloc, free or operator new of its own', self.run_recorded(path, *arguments))
        for trace in self.directory.glob('trace.bin*'):
            for report in 'leaks', 'errors':
                found = analyze(report, trace)
                self.assertFalse(found['certain'], trace)
                self.assertIn('not all calls are recorded', found['reasons'][0])
            self.assertEqual(found['findings'], [], trace)
            self.assertEqual(self.assumptions(trace), [])

    def in_c(self, functions):
        return self.build(IN_C.replace('FUNCTIONS', functions))

    def test_built_on_the_c_library(self):
        for name, function in ABOVE.items():
            with self.subTest(name=name):
                # The C library has no cfree() any more.
                self.check_seen(self.in_c(function), (5, 5 * 5432), assumed=int(name != 'cfree'))
        with self.subTest(name='all'):
            self.check_seen(self.in_c(' '.join(ABOVE.values())), (5, 5 * 5432))

    def test_of_their_own(self):
        for name, function in OWN.items():
            with self.subTest(name=name):
                self.check_unseen(self.in_c(function))

    def test_operators(self):
        """A header before each block, and the operators that the program does not define."""
        for source, lost in (HEADER, (1, 5448)), (ONLY_DELETE, (1, 5432)):
            self.check_seen(self.build(source, '-std=c++17', compiler='COMPILER_CXX'), lost)

    def test_registers(self):
        path = self.build(LEAF, '-O2', compiler='COMPILER_CXX')
        plain = subprocess.run([path], capture_output=True, check=True).stdout
        self.assertIn('own, whose calls are not all seen', self.run_recorded(path))
        self.assertEqual(self.record(path).stdout, plain)

    def test_operators_of_their_own(self):
        self.check_unseen(self.build(POOL_OF_OPERATOR, compiler='COMPILER_CXX'))

    def test_children(self):
        """Children in every way, with blocks of the parent's and of their own."""
        self.check_unseen(self.build(CHILDREN))
        self.assertEqual(len([*self.directory.glob('trace.bin*')]), 6)


PREFIXED = '''
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static char memory[1 << 20];
static size_t used;
LINKAGE void *NAME(size_t n) { return memory + (used += (n + 63) / 64 * 64); }
#ifdef MAIN
int main(void)
{
    for (int i = 0; i < 10; i++)
        *(void **)NAME(100) = 0;
    *(void **)malloc(5432) = 0;
    if (fork() == 0)
        free(malloc(5));
    wait(0);
    return 0;
}
#else
__attribute__((constructor)) static void begin(void) { free(malloc(6)); }
#endif
'''
LOADS = '''
#include <dlfcn.h>
int main(int argc, char **argv) { return dlopen(argv[1], RTLD_NOW) == 0; }
'''


class Prefixed(Programs):
    """Allocators under names of their own: that their calls are not seen is said, and which blocks
    of the C library's are lost is said as well."""

    def check(self, name, linkage, *options):
        path = self.build(PREFIXED, '-DMAIN', f'-DNAME={name}', f'-DLINKAGE={linkage}', *options)
        said = self.run_recorded(path)
        self.assertIn('the program has another allocator, such as je_malloc(), whose calls', said)
        self.assertIn('1 child process has another allocator', said)
        for trace in self.directory.glob('trace.bin*'):
            for report in 'leaks', 'errors':
                found = analyze(report, trace)
                self.assertFalse(found['certain'], trace)
                self.assertIn('not all calls are recorded', found['reasons'][0])
        groups = analyze('leaks', self.trace)['groups']
        self.assertEqual([(group['class'], group['bytes']) for group in groups],
                         [('definitely_lost', 5432)])

    def test_local(self):
        """A function of the program that no other module sees."""
        hidden = '__attribute__((noinline,used))static'
        for name in '_rjem_malloc', 'je_malloc', 'mi_malloc', 'rpmalloc':
            with self.subTest(name=name):
                self.check(name, hidden)

    def test_exported(self):
        self.check('je_malloc', '', '-rdynamic', '-s')

    def test_plugin(self):
        plugin = self.build(PREFIXED, '-DNAME=rpmalloc', '-DLINKAGE=', '-shared', '-fPIC',
                            name='plugin.so')
        said = self.run_recorded(self.build(LOADS), plugin)
        self.assertIn('another allocator', said)

    def test_other_names(self):
        """A name that only ends like one of these, and one that is only called."""
        self.assertEqual(self.run_recorded(self.build(
            PREFIXED, '-DMAIN', '-DNAME=not_je_malloc', '-DLINKAGE=')), '')


if __name__ == '__main__':
    unittest.main()
