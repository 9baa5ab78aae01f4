-- SPDX-License-Identifier: MIT
-- Prints the ten call sites with the most live bytes in the middle of a trace, by LuaJIT's ffi:
--
--     cc -E -P -xc - <<< '#include <ttdtrace/ttdheap.h>' | sed '/static inline/,/^}/d' > ttdheap.i
--     luajit sites.lua ttdheap.i trace.ttd
--
-- LuaJIT reads the declarations of the header once a compiler has preprocessed it.
local ffi = require("ffi")

if #arg ~= 2 then
    io.stderr:write("usage: sites.lua DECLARATIONS TRACE\n")
    os.exit(2)
end
local file = assert(io.open(arg[1]))
ffi.cdef(file:read("*a"))
file:close()
local lib = ffi.load("libttdheap.so.0")

local failure = ffi.new("struct ttdheap_error")
local function check(status)
    if status ~= ffi.C.TTD_OK then
        io.stderr:write(ffi.string(failure.text), "\n")
        os.exit(1)
    end
end

local opened = ffi.new("struct ttdheap *[1]")
check(lib.ttdheap_open(arg[2], nil, opened, failure))
local heap = ffi.gc(opened[0], lib.ttdheap_close)
local half = ffi.new("struct ttd_position")
check(lib.ttdheap_find(heap, "50%", half, failure))
check(lib.ttdheap_go(heap, half))
local sites = ffi.new("struct ttdheap_groups")
check(lib.ttdheap_groups(heap, ffi.C.TTDHEAP_BY_STACK, sites, failure))
for i = 0, math.min(tonumber(sites.count), 10) - 1 do
    local site = sites.items[i]
    io.write(string.format("%d bytes by %s\n", tonumber(site.bytes),
                           ffi.string(site.name.data, site.name.size)))
end
lib.ttdheap_free(sites.answer)
