/* SPDX-License-Identifier: MIT */
// To be compiled: what counts is how much the compiler allocates for it.
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <random>
#include <regex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>
int main()
{
    std::map<std::string, std::vector<std::function<int(int)>>> table;
    std::regex pattern("a(b|c)*d");
    std::unordered_map<std::string, std::mt19937> generators;
    table["x"].push_back([](int i) { return i + 1; });
    std::cout << std::regex_match("abcd", pattern) << table["x"][0](1) << generators.size() << '\n';
}
