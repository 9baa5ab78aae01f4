# SPDX-License-Identifier: MIT
"""How much stack each hook needs, at most, by the code of the compiled library: the frames of all
functions on the way, along the worst path over its calls. The manual's figures are these bounds.

Code of others, such as the C library's, does not count: it is called through the PLT or through
pointers, all of which are listed here."""

import os
import re
import shutil
import subprocess
import unittest

HOOKS = re.compile(
    r'(long_|short_|early_|skip_)?('
    r'(__libc_)?(malloc|calloc|realloc|free|cfree|memalign|valloc|pvalloc)|reallocarray|'
    r'posix_memalign|aligned_alloc|free_sized|free_aligned_sized|_Zn[wa]m\w*|_Zd[la]Pv\w*)')

# Functions that call through pointers, and those of the library that they reach so; others reach
# only the C library, as hooks do.
POINTERS = {
    'rules_make': ['module_found', 'module_debug_frame'],
    'modules_debug_frame': ['module_debug_frame'],
    'replaced_each': ['replaced_is_none'],  # patching_add() runs when the program starts
    'realloc_of_libc': [],
    'cxx_plain_new': [],
    'dlclose': [],
    'fatal_signal_unwatch': [],
    'fatal_watch_child': [],
}

# Where the ways begin that a call takes rarely: the first call of a thread or of a library, memory
# of the channel that was not mapped yet or is full, coroutines.
RARE = {'target_enter_slow', 'real_find', 'real_find_all', 'thread_next_chunk', 'record_suspend',
        'held_settle_early', 'channel_map', 'realloc_arena', 'module_found', 'module_debug_frame'}

# The same for calls from new places, and on stacks that are unlike those of the call before.
NEW_PLACES = {'capture_on', 'rules_make'}

USUAL_BYTES, NEW_PLACE_BYTES, RARE_BYTES = 512, 1536, 2304

# A function that calls itself counts twice.
RECURSIVE = {('levels_leave_all',)}

RETURN_ADDRESS = WORD = 8


def number(text):
    value = int(text.lstrip('$'), 16)
    return value - (1 << 64) if value >> 63 else value


class Library:
    """The instructions of a library, by address: name, arguments, and the next address."""

    def __init__(self, path):
        text = subprocess.run(['objdump', '-d', '--no-show-raw-insn', path], check=True,
                              capture_output=True, text=True).stdout
        self.names, self.code, self.bounds, self.ends = {}, {}, {}, {}
        self.pointers, self.recursive = set(), set()
        last = None
        for line in text.splitlines():
            if name := re.match(r'([0-9a-f]+) <(.+)>:$', line):
                self.names.setdefault(int(name[1], 16), name[2])
                begin = int(name[1], 16)
            elif code := re.match(r' *([0-9a-f]+):\t(?:(?:lock|repz?|notrack|bnd) )*(\S+) *(.*)', line):
                address = int(code[1], 16)
                self.ends[begin] = address
                self.code[address] = [code[2], code[3].split(' #')[0].strip(), None]
                if last is not None:
                    self.code[last][2] = address
                last = address
        self.addresses = {name.split('.')[0]: address for address, name in self.names.items()}

    @staticmethod
    def after(name, arguments, depth, frame):
        """The depth of the stack after an instruction; `frame` is the depth that rbp stands for."""
        if name.startswith('push'):
            return depth + WORD
        if name.startswith('pop'):
            return depth - WORD
        if name == 'leave':
            return frame - WORD
        if not re.match(r'(sub|add|and|lea|mov|xchg)', name) or not arguments.endswith(',%rsp'):
            return depth
        operand = arguments[:-len(',%rsp')]
        if name in ('sub', 'add') and operand.startswith('$'):
            return depth + number(operand) * (1 if name == 'sub' else -1)
        if name == 'and':
            return depth - number(operand) - WORD
        if name == 'lea' and (offset := re.match(r'(-?)0x([0-9a-f]+)\(%r([sb])p\)$', operand)):
            moved = int(offset[2], 16) * (-1 if offset[1] else 1)
            return (depth if offset[3] == 's' else frame) - moved
        if name == 'mov' and operand == '%rbp':
            return frame
        raise AssertionError(f'frame of unknown size: {name} {arguments}')

    def walk(self, entry):
        """Follows all ways through a function. Returns its own need, its calls, and whether some of
        them are through pointers."""
        seen, calls, need, has_pointers, tables = {}, [], 0, False, []
        ways = [(entry, 0, None)]
        while ways or tables:
            if not ways:  # the cases of a switch, which an instruction jumps to through a table
                depth, frame = tables.pop()
                ways = [(address, depth, frame) for address in self.code
                        if entry < address <= self.ends[entry] and address not in seen and
                        not re.match(r'nop|xchg|data16|cs|int3', self.code[address][0])]
                continue
            address, depth, frame = ways.pop()
            if address not in self.code or seen.get(address, -1) >= depth:
                continue
            seen[address] = depth
            name, arguments, behind = self.code[address]
            if name == 'mov' and arguments == '%rsp,%rbp':
                frame = depth
            depth = self.after(name, arguments, depth, frame)
            red_zone = re.search(r'-0x([0-9a-f]+)\(%rsp', arguments)
            need = max(need, depth + (int(red_zone[1], 16) if red_zone else 0))
            direct = re.match(r'([0-9a-f]+) <', arguments)
            target = int(direct[1], 16) if direct else None
            if name == 'call':
                calls.append((depth + RETURN_ADDRESS, target))
                has_pointers |= target is None
            elif name.startswith('j') and target is not None:
                ways.append((target, depth, frame))
            elif name.startswith('j') and depth == 0 and not arguments.startswith('*%'):
                has_pointers = True  # a call that the function ends with
            elif name.startswith('j'):
                tables.append((depth, frame))
            if behind and name not in ('ret', 'hlt', 'ud2', 'jmp'):
                ways.append((behind, depth, frame))
        return need, calls, has_pointers

    def bound(self, entry, left_out=frozenset(), way=()):
        """Returns the need of a function with all that it calls, and the worst way."""
        if (entry, left_out) in self.bounds:
            return self.bounds[entry, left_out]
        if entry in way:
            self.recursive.add(tuple(self.names[step] for step in way[way.index(entry):]))
            return self.walk(entry)[0], [self.names[entry]]
        need, calls, has_pointers = self.walk(entry)
        worst = need, [self.names[entry]]
        if has_pointers:
            name = self.names[entry].split('.')[0]
            self.pointers.add(name)
            deepest = max(depth for depth, target in calls if target is None)
            calls += [(deepest, self.addresses[target]) for target in POINTERS.get(name, [])
                      if target in self.addresses]
        for depth, target in calls:
            name = self.names.get(target, '').split('@')
            if len(name) > 1 or target is None or name[0].split('.')[0] in left_out:
                continue
            inner, steps = self.bound(target, left_out, (*way, entry))
            worst = max(worst, (depth + inner, [self.names[entry], *steps]))
        self.bounds[entry, left_out] = worst
        return worst


@unittest.skipUnless(shutil.which('objdump'), 'there is no objdump')
@unittest.skipUnless(os.environ['OPTIMIZATION'] in ('2', '3'), 'the build is not optimized')
class StackUse(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.library = Library(os.environ['PRELOAD'])
        cls.hooks = [address for address, name in cls.library.names.items() if HOOKS.fullmatch(name)]
        names = {name.split('.')[0] for name in cls.library.names.values()}
        cls.absent = sorted({'target_enter_slow', 'thread_next_chunk', 'capture_on',
                              'realloc_arena'} - names)

    def check(self, limit, left_out):
        self.assertGreater(len(self.hooks), 30)
        self.assertEqual(self.absent, [], 'functions that are named here')
        for hook in self.hooks:
            need, way = self.library.bound(hook, frozenset(left_out))
            self.assertLessEqual(need + RETURN_ADDRESS, limit, ' > '.join(way))

    def test_usual_calls(self):
        self.check(USUAL_BYTES, RARE | NEW_PLACES)

    def test_calls_from_new_places(self):
        self.check(NEW_PLACE_BYTES, RARE)

    def test_rare_calls(self):
        self.check(RARE_BYTES, ())
        self.assertLessEqual(self.library.recursive, RECURSIVE)
        others = {name for name in self.library.pointers if not HOOKS.fullmatch(name)}
        self.assertLessEqual(others, set(POINTERS), 'calls through pointers')


if __name__ == '__main__':
    unittest.main()
