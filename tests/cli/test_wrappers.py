# SPDX-License-Identifier: MIT
"""What stands between a program and the allocator, and below main(): shown short, kept whole."""

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
                          "    #1  void app::operator<< <int>(int, app::Pair<int, int>::Inner) "
                          "(x.cc:1) in demo",
                          "    #2  app::Pair<int, int>::set(int) (x.cc:1) in demo",
                          "    #3  app::name(std::string const&) (x.cc:1) in demo",
                          "    #4  main (x.cc:1) in demo", "    … 3 frames below main"])
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


if __name__ == "__main__":
    support.main()
