/* SPDX-License-Identifier: MIT */
// Leaks in functions that are local to the file: in an anonymous namespace, in a lambda, in methods
// and templates; most are inlined when optimised. The argument says how often.
#include <cstdlib>
#include <map>
#include <string.h>
#include <string>
#include <vector>

#ifndef NAME
#define NAME helper
#endif

static void *volatile sink;

namespace app
{
namespace
{
struct Pool {
    int *take(int count)
    {
        return new int[count];
    }
};

template <class T> T *make(int count)
{
    return static_cast<T *>(std::malloc(sizeof(T) * count));
}

char **NAME(int count, const char *const *texts)
{
    char **copy = new char *[count];
    copy[0] = const_cast<char *>(texts[0]);
    return copy;
}
} // namespace

class Server
{
  public:
    struct Request {
        std::string body;
        explicit Request(const char *text) : body(text)
        {
        }
    };
    Request *parse(const char *text) const
    {
        return new Request(text);
    }
    void handle(int count);

  private:
    std::vector<Request *> requests;
    Pool pool;
};

void Server::handle(int count)
{
    static const char *const texts[] = {"a text"};
    requests.push_back(parse("a rather long text that does not fit the small buffer"));
    sink = pool.take(count);
    sink = make<double>(count);
    sink = make<const char *>(count);
    sink = NAME(count, texts);
    auto copy = [count](const char *text) {
        sink = strdup(text);
        return count;
    };
    copy("hello");
}
} // namespace app

int main(int count, char **arguments)
{
    int times = count > 1 ? std::atoi(arguments[1]) : 3;
    static app::Server *server = new app::Server;
    for (int i = 0; i < times; i++)
        server->handle(10 + i);
    static auto *table = new std::map<std::string, std::vector<std::string>>;
    (*table)["x"].push_back("y");
    server = nullptr;
    table = nullptr;
    return 0;
}
