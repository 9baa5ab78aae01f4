/* SPDX-License-Identifier: MIT */
// Containers that grow by allocating, copying and releasing, and others that do not.
#include <deque>
#include <list>
#include <map>
#include <string>
#include <vector>

#define APART __attribute__((noinline))

APART void grow_vector()
{
    std::vector<long> numbers;
    for (long i = 0; i < 2000000; i++)
        numbers.push_back(i);
}

APART void grow_string()
{
    std::string text;
    for (int i = 0; i < 100000; i++)
        text += 'x';
}

APART void grow_deque()
{
    std::deque<int> numbers;
    for (int i = 0; i < 1000000; i++)
        numbers.push_back(i);
}

APART void grow_strings()
{
    std::vector<std::string> texts;
    for (int i = 0; i < 1000; i++)
        texts.push_back(std::string(50, 'x'));
}

APART void do_not_grow()
{
    std::list<int> list;
    std::map<int, int> map;
    std::vector<int> vector;
    vector.reserve(1000);
    for (int i = 0; i < 1000; i++) {
        list.push_back(i);
        map[i] = i;
        vector.push_back(i);
    }
    std::vector<std::string> texts(3);
    for (std::string &text : texts)
        text = std::string(100, 'x');
}

int main()
{
    grow_vector();
    grow_string();
    grow_deque();
    grow_strings();
    do_not_grow();
}
