# SPDX-License-Identifier: MIT
"""Two builds of a program, in other folders and with other addresses, have the same call sites by
the fingerprints of their digests."""
import json
import subprocess
import unittest

from support import ANALYZER, PATIENCE, Recording

SOURCE = '''#include <stdlib.h>
#include <string.h>
{before}
__attribute__((noinline)) static char *make(size_t size) {{ return malloc(size); }}
__attribute__((noinline)) static void keep(char **blocks) {{ blocks[0] = make(100); }}
__attribute__((noinline)) static void drop(void) {{ free(make(200)); }}
{between}
char *kept[2];
int main(void)
{{
    keep(kept);
    for (int i = 0; i < 5; i++)
        drop();
    kept[1] = strdup("text");
    return 0;
}}
'''
CHANGED = {'before': '\n\n\nint added(int x);\nint added(int x) { return x * 7; }',
           'between': '\n/* Other lines. */\nint more(int);\nint more(int x) { return added(x); }'}


class Digests(Recording):
    def digest(self, folder, parts, *options):
        build = self.directory / folder
        build.mkdir()
        (build / 'program.c').write_text(SOURCE.format(**parts))
        subprocess.run(['cc', '-g', '-O0', *options, '-o', build / 'program', build / 'program.c'],
                       check=True)
        self.record(build / 'program')
        result = subprocess.run([ANALYZER, 'digest', '--sites', '0', self.trace],
                                capture_output=True, text=True, check=True, timeout=PATIENCE)
        return json.loads(result.stdout)

    def test_two_builds(self):
        old = self.digest('a', {'before': '', 'between': ''})
        new = self.digest('a_longer_name', CHANGED, '-fno-omit-frame-pointer')
        self.assertNotEqual(old['trace_id'], new['trace_id'])
        self.assertNotEqual(old['build_id'], new['build_id'])
        self.assertEqual(old['program'], new['program'])
        self.assertTrue(old['certain'])
        self.assertEqual(old['sites'], new['sites'])
        self.assertEqual({(site['function'], site['allocations'], site['live_bytes'])
                          for site in old['sites']},
                         {('make', 1, 100), ('make', 5, 0), ('main', 1, 5)})


if __name__ == '__main__':
    unittest.main()
