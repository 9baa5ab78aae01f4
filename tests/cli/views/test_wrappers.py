# SPDX-License-Identifier: MIT
"""Wrappers around the allocator, and frames below main(): shown short, kept whole."""

import os

import support
from support import Script, TestCase, run

PUSH = "_ZNSt6vectorIN3app7RequestESaIS1_EE9push_backERKS1_"
PUSH_NAME = "std::vector<app::Request, std::allocator<app::Request> >::push_back(app::Request const&)"
STRING = "_ZN3app4nameERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
STRING_NAME = ("app::name(std::__cxx11::basic_string<char, std::char_traits<char>, "
               "std::allocator<char> > const&)")
SHIFT = "_ZN3applsIiEEvT_NS_4PairIiiE5InnerE"
SHORT = "_ZN3app4PairIiiE3setEi"


class Short(TestCase):
    def setUp(self):
        super().setUp()
        script = Script()
        for number, path in enumerate(("/opt/app/demo", "/usr/lib/libc.so.6")):
            begin = (number + 1) << 24
            script.add("module", path=path, bias=begin, begin=begin, end=begin + 0x10000,
                       position="0:0")
        script.add("thread", os=1, position="0:0").add("heap", name="malloc")
        names = [(1, "_start"), (2, "__libc_start_main_impl"), (2, "__libc_start_call_main"),
                 (1, "main"), (1, STRING), (1, SHORT), (1, SHIFT), (1, PUSH)]
        for number, (module, name) in enumerate(names):
            script.add("stack", parent=number, module=module, offset=0x10 * (number + 1))
            script.add("symbol", module=module, offset=0x10 * (number + 1), frames=f"{name}@x.cc@1")
        script.alloc(0x1000, 100, stack=8)
        script.alloc(0x2000, 10, stack=4)
        script.alloc(0x3000, 5, stack=3)
        self.trace = self.write(script.close())

    def test_text(self):
        text = self.run_ok("leaks", self.trace).text
        self.assertEqual(text.split("\n\n")[1].split("\n")[1:],
                         ["    #0  std::vector<…>::push_back(app::Request const&) (x.cc:1) in demo",
                          "    #1  void app::operator<< <int>(…) (x.cc:1) in demo",
                          "    #2  app::Pair<int, int>::set(int) (x.cc:1) in demo",
                          "    #3  app::name(std::string const&) (x.cc:1) in demo",
                          "    #4  main (x.cc:1) in demo", "    … 3 frames below main",
                          "  group 1:   block 0x1000"])
        # Without main() nothing is below it.
        self.assertIn("    #0  __libc_start_call_main (x.cc:1) in libc.so.6\n"
                      "    #1  __libc_start_main_impl (x.cc:1) in libc.so.6\n"
                      "    #2  _start (x.cc:1) in demo\n", text)
        self.assertIn("std::vector<…>::push_back(", self.run_ok("hot", "--tree", "bottom-up",
                                                                self.trace).text)

    def test_full_stacks(self):
        text = self.run_ok("leaks", "--full-stacks", self.trace).text
        self.assertIn(f"    #0  {PUSH_NAME} (x.cc:1) in demo\n", text)
        self.assertIn(f"    #3  {STRING_NAME} (x.cc:1) in demo\n", text)
        self.assertIn("    #7  _start (x.cc:1) in demo\n", text)
        self.assertNotIn("…", text)

    def test_other_formats_are_whole(self):
        names = [frame["function"] for frame in self.json_of("leaks", self.trace)["groups"][0]["stack"]]
        self.assertEqual((len(names), names[0], names[3], names[7]),
                         (8, PUSH_NAME, STRING_NAME, "_start"))
        self.assertEqual(self.run_ok("leaks", "-f", "csv", self.trace).csv[0]["stack"],
                         ";".join(names))
        folded = self.run_ok("leaks", "-f", "folded", self.trace).text
        self.assertIn(PUSH_NAME, folded)
        self.assertIn("_start", folded)


class Shapes(TestCase):
    """A function that no list names as a wrapper, but that looks like one, is offered."""

    def script_of(self, function, calls):
        """Blocks of (caller, size, address of the call in the function)."""
        script = Script()
        script.add("module", path="/opt/demo", bias=1 << 24, begin=1 << 24, end=2 << 24,
                   position="0:0")
        script.add("thread", os=1, position="0:0").add("heap", name="malloc")
        script.add("stack", parent=0, module=1, offset=0x10)
        script.add("symbol", module=1, offset=0x10, frames="main@x.cc@1")
        for number, (caller, size, call) in enumerate(calls):
            offset = 0x100 * (number + 1)
            script.add("stack", parent=1, module=1, offset=offset)
            script.add("symbol", module=1, offset=offset, frames=f"{caller}@x.cc@2")
            script.add("stack", parent=2 * number + 2, module=1, offset=call)
            script.alloc(0x1000 * (number + 1), size, stack=2 * number + 3)
        for call in {call for _, _, call in calls}:
            script.add("symbol", module=1, offset=call, frames=f"{function}@x.cc@3")
        return script

    def leaks(self, function, calls, options=()):
        script = self.script_of(function, calls)
        path = self.write(script.close(), f"{function}.{len(os.listdir(self.folder))}")
        return (self.run_ok("leaks", *options, path).text,
                self.json_of("leaks", path, *options)["wrapper"])

    CALLS = ("parse", 10, 0x20), ("read", 20, 0x20), ("load", 30, 0x20)

    def test_offered(self):
        text, found = self.leaks("grab", self.CALLS)
        self.assertIn("\nMost of these come through grab(): --skip grab shows its callers\n", text)
        self.assertEqual(found, {"function": "grab", "groups": 3, "bytes": 60})
        path = self.path("grab.0")
        self.assertIn("\nMost of these come through grab(): --skip grab shows its callers\n",
                      self.run_ok("hot", path).text)
        self.assertEqual(self.json_of("hot", path)["wrapper"], found)

    def test_offered_by_each_command(self):
        """The summary says it once, with a command that takes the option."""
        self.leaks("grab", self.CALLS)
        path = self.path("grab.0")
        found = self.json_of("leaks", path)["wrapper"]
        for command in "peak", "state":
            self.assertEqual(self.json_of(command, path)["wrapper"], found)
            self.assertIn("\nMost of these come through grab(): --skip grab shows its callers\n",
                          self.run_ok(command, path).text)
            self.assertNotIn("come through", self.run_ok(command, "--by", "thread", path).text)
        for options in [], ["--brief"]:
            text = self.run_ok("summary", *options, path).text
            self.assertRegex(text, r"(?m)^leaks .*\n?.* by grab \(x.cc:3\)\n"
                             "           perhaps a wrapper: leaks --skip grab shows its callers\n")
            self.assertEqual(text.count("--skip"), 1)

    def test_the_summary_with_a_long_name(self):
        self.leaks("_ZN4shop12_GLOBAL__N_17acquireEm", self.CALLS)
        text = self.run_ok("summary", self.path("_ZN4shop12_GLOBAL__N_17acquireEm.0")).text
        self.assertIn("\n           perhaps a wrapper:\n           leaks --skip "
                      "'shop::(anonymous namespace)::acquire' shows its callers\n", text)

    def test_the_summary_of_the_peak(self):
        """Released blocks are in the peak only; another function of the program is no wrapper."""
        text = self.summary_of_released("grab")
        self.assertIn("\n           perhaps a wrapper: peak --skip grab shows its callers\n", text)
        self.assertNotIn("--skip", self.summary_of_released("xmalloc"))

    def summary_of_released(self, function):
        script = self.script_of(function, self.CALLS)
        for number in range(len(self.CALLS)):
            script.free(0x1000 * (number + 1))
        return self.run_ok("summary", self.write(script.close(), f"{function}.released")).text

    def test_a_long_name(self):
        text, found = self.leaks("_ZN4shop12_GLOBAL__N_17acquireEm", self.CALLS)
        self.assertIn("\nMost of these come through shop::(anonymous namespace)::acquire():\n"
                      "--skip 'shop::(anonymous namespace)::acquire' shows its callers\n", text)
        self.assertEqual(found["function"], "shop::(anonymous namespace)::acquire")

    def test_skipped(self):
        text, found = self.leaks("grab", self.CALLS, ("--skip", "grab"))
        self.assertNotIn("come through", text)
        self.assertIsNone(found)

    def test_other_shapes(self):
        for function, calls in (
                ("xmalloc", self.CALLS),  # a list has it
                ("__libc_pvalloc", self.CALLS),  # the table of APIs has them
                ("mallocx", self.CALLS),
                ("node_new", [(caller, 16, 0x20) for caller, _, _ in self.CALLS]),
                ("work", [("parse", 10, 0x20), ("read", 20, 0x30), ("load", 30, 0x20)]),
                ("grab", [*self.CALLS[:2], ("read", 30, 0x20)])):  # from two functions
            with self.subTest(function):
                text, found = self.leaks(function, calls)
                self.assertNotIn("come through", text)
                self.assertIsNone(found)


class Long(TestCase):
    """Names with more bytes than a demangler takes at once."""

    def setUp(self):
        super().setUp()
        box = "3BoxI" * 400 + "i" + "E" * 400
        self.box = "Box<" * 400 + "int" + " >" * 400
        self.box = self.box.replace("int >", "int>")
        names = ["main", f"_Z4evalI{box}Evv", f"_ZNSt6vectorI{box}SaIS0_EE9push_backEv"]
        script = Script()
        script.add("module", path="/opt/app/demo", bias=0x10000, begin=0x10000, end=0x20000,
                   position="0:0")
        script.add("thread", os=1, position="0:0").add("heap", name="malloc")
        for number, name in enumerate(names):
            script.add("stack", parent=number, module=1, offset=0x10 * (number + 1))
            script.add("symbol", module=1, offset=0x10 * (number + 1), frames=f"{name}@x.cc@1")
        script.alloc(0x1000, 100, stack=3)
        self.trace = self.write(script.close())

    def test_whole_in_json(self):
        stack = self.json_of("leaks", self.trace)["groups"][0]["stack"]
        self.assertEqual(stack[1]["function"], f"void eval<{self.box} >()")

    def test_short_in_text(self):
        text = self.run_ok("leaks", self.trace).text
        self.assertIn("    #0  std::vector<…>::push_back() (x.cc:1) in demo\n"
                      "    #1  void eval<…>() (x.cc:1) in demo\n", text)

    def test_looked_through(self):
        text = self.run_ok("state", "--by", "function", self.trace).text
        self.assertIn("    void eval<…>() in demo\n", text)
        text = self.run_ok("state", "--skip", "eval<*", "--by", "function", self.trace).text
        self.assertIn("    main in demo\n", text)


def wrapped():
    """Four call sites of a program, all but one behind wrappers; main() calls work()."""
    script = Script()
    for number, path in enumerate(("/opt/app/demo", "/usr/lib/libc.so.6")):
        begin = (number + 1) << 24
        script.add("module", path=path, bias=begin, begin=begin, end=begin + 0x10000,
                   position="0:0")
    script.add("thread", os=1, position="0:0").add("heap", name="malloc")
    # Of each stack: its parent, and the frames at its address.
    stacks = ((0, 1, "main@main.c@1"),                                 # 1
              (1, 1, "work@work.c@1"),                                 # 2
              (2, 1, "ztrymalloc_usable_internal@zmalloc.c@1,zmalloc@zmalloc.c@9"),  # 3
              (2, 1, "zrealloc@zmalloc.c@3"),                          # 4
              (1, 1, "my_alloc@my.c@7"),                               # 5
              (5, 1, "xmalloc@x.c@3"),                                 # 6
              (2, 2, "strdup@strdup.c@42"),                            # 7
              (2, 1, f"{PUSH}@vector@5,refill@work.c@70"),             # 8
              (0, 2, "strdup@strdup.c@42"))                            # 9
    for number, (parent, module, frames) in enumerate(stacks):
        script.add("stack", parent=parent, module=module, offset=0x10 * (number + 1))
        script.add("symbol", module=module, offset=0x10 * (number + 1), frames=frames)
    for number, stack in enumerate((3, 4, 6, 7, 8, 9)):
        script.alloc(0x1000 * (number + 1), 1 << number, stack=stack)
    return script.close()


class Beginnings(TestCase):
    """The name of a group of functions: the first function of the program that is no wrapper."""

    def function_of(self, *names):
        """The group of a block that these functions allocate, outermost first."""
        script = Script()
        script.add("module", path="/opt/app/demo", bias=0x10000, begin=0x10000, end=0x20000,
                   position="0:0")
        script.add("thread", os=1, position="0:0").add("heap", name="malloc")
        for number, name in enumerate(names):
            script.add("stack", parent=number, module=1, offset=0x10 * (number + 1))
            script.add("symbol", module=1, offset=0x10 * (number + 1), frames=f"{name}@x.cc@1")
        script.alloc(0x1000, 100, stack=len(names))
        trace = self.write(script.close(), f"{len(os.listdir(self.folder))}.ttd")
        (group,) = self.json_of("state", trace, "--by", "function")["groups"]
        return group["function"]

    def test_wrappers_in_namespaces(self):
        for wrapper in ("_ZN4shop7xmallocEm", "_ZN4shop4util8xreallocEPvm", "shop::xstrdup"):
            with self.subTest(wrapper):
                self.assertEqual(self.function_of("main", "work", wrapper), "work")
        self.assertEqual(self.function_of("main", "shop::xmallocs"), "shop::xmallocs")

    def test_library_of_rust(self):
        legacy = "17h0123456789abcdefE"

        def method(part, name):
            return f"_ZN{len(part)}{part}{len(name)}{name}" + legacy

        for library in ("_ZN5alloc3vec12Vec$LT$T$GT$13with_capacity" + legacy,
                        "_ZN9hashbrown3raw5alloc8do_alloc" + legacy,
                        method("_$LT$T$u20$as$u20$alloc..string..ToString$GT$", "to_string"),
                        "_RNvMs_NtCs1234_5alloc3vecINtB4_3VechE13with_capacity",
                        "_RNvMs0_NtCs1234_5alloc5sliceSh6repeat",
                        "_RNvNtCs1234_5alloc3fmt6format"):
            with self.subTest(library):
                self.assertEqual(self.function_of("main", "_ZN1r4work" + legacy, library), "r::work")
        self.assertEqual(self.function_of("main", "_ZN1r4work" + legacy,
                                          "_ZN4core6engine" + legacy), "r::work")
        # Without Rust's hash a namespace of C++.
        self.assertEqual(self.function_of("main", "_ZN4core6engineEv"), "core::engine()")
        # The program's type, or its trait.
        own = method("_$LT$r..Thing$u20$as$u20$core..clone..Clone$GT$", "clone")
        self.assertEqual(self.function_of("main", own), "<r::Thing as core::clone::Clone>::clone")

    def test_split_main_is_main(self):
        script = Script()
        script.add("module", path="/opt/app/demo", bias=0x10000, begin=0x10000, end=0x20000,
                   position="0:0")
        script.add("thread", os=1, position="0:0").add("heap", name="malloc")
        for number, name in enumerate(("_start", "main.cold", "work")):
            script.add("stack", parent=number, module=1, offset=0x10 * (number + 1))
            script.add("symbol", module=1, offset=0x10 * (number + 1), frames=f"{name}@x.cc@1")
        script.alloc(0x1000, 100, stack=3)
        self.assertIn("    … 1 frame below main\n",
                      self.run_ok("leaks", self.write(script.close())).text)


class Wrappers(TestCase):
    def setUp(self):
        super().setUp()
        self.trace = self.write(wrapped())

    def sums(self, member, *arguments):
        return {group[member]: group["bytes"] for group in
                self.json_of("leaks", self.trace, *arguments)["groups"]}

    def test_first_function_of_the_program(self):
        self.assertEqual(self.sums("function", "--by", "function"),
                         {"work": 1 + 2 + 8, "my_alloc": 4, "refill": 16, "strdup": 32})
        self.assertEqual(self.sums("file", "--by", "file"),
                         {"work.c": 1 + 2 + 8 + 16, "my.c": 4, "strdup.c": 32})
        self.assertEqual(self.sums("module", "--by", "module"),
                         {"/opt/app/demo": 31, "/usr/lib/libc.so.6": 32})
        # Stacks are whole.
        found = self.json_of("leaks", self.trace)["groups"]
        self.assertEqual([f["function"] for f in found[-1]["stack"]],
                         ["ztrymalloc_usable_internal", "zmalloc", "work", "main"])

    def stacks(self, *arguments):
        return {tuple(frame["function"] for frame in group["stack"]):
                (group["blocks"], group["bytes"])
                for group in self.json_of("leaks", self.trace, *arguments)["groups"]}

    def test_skip(self):
        self.assertEqual(self.sums("function", "--by", "function", "--skip", "my_alloc")["main"], 4)
        self.assertEqual(self.stacks("--skip", "z*alloc*", "--skip", "xmalloc", "--skip", "my_?lloc"),
                         {("work", "main"): (2, 3), ("main",): (1, 4),
                          ("strdup", "work", "main"): (1, 8), ("strdup",): (1, 32),
                          (PUSH_NAME, "refill", "work", "main"): (1, 16)})
        # A part of what is inlined at one address; a name with parameters, or without.
        self.assertIn(("zmalloc", "work", "main"),
                      self.stacks("--skip", "ztrymalloc_usable_internal"))
        for name in (PUSH_NAME, "std::vector*::push_back"):
            self.assertIn(("refill", "work", "main"), self.stacks("--skip", name))
        # What calls nothing but that remains, and a name is a whole one.
        self.assertIn(("strdup",), self.stacks("--skip", "strdup"))
        self.assertEqual(self.stacks("--skip", "malloc"), self.stacks())

    def test_skip_everywhere(self):
        options = ("--skip", "zmalloc", "--skip", "ztry*")
        text = self.run_ok("leaks", *options, self.trace).text
        self.assertNotIn("zmalloc (", text)
        self.assertIn("1 byte in 1 block, allocated at 0:2\n    #0  work (work.c:1) in demo\n", text)
        rows = self.run_ok("leaks", "-f", "csv", *options, self.trace).csv
        self.assertEqual([row["stack"] for row in rows if row["bytes"] == "1"], ["work;main"])
        self.assertIn("main;work 1\n", self.run_ok("leaks", "-f", "folded", *options,
                                                   self.trace).text)
        found = self.json_of("leaks", self.trace, "--tree", "bottom-up", *options)
        self.assertEqual({n["function"] for n in found["nodes"] if not n["depth"]},
                         {"work", "zrealloc", "xmalloc", "strdup", PUSH_NAME})
        self.assertIn("--skip 'nothing'", run("leaks", "--skip", "nothing", self.trace).errors)
        # Filters and baselines go by whole stacks.
        self.assertEqual(self.stacks("--include", "zmalloc", *options),
                         {("work", "main"): (1, 1), ("zrealloc", "work", "main"): (1, 2)})
        path = self.path("baseline")
        self.run_ok("leaks", "--write-baseline", path, self.trace)
        self.assertEqual(self.stacks("--baseline", path, *options), {})


if __name__ == "__main__":
    support.main()
