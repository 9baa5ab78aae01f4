// SPDX-License-Identifier: MIT
/* Compiled with -fno-rtti. */
#include "shapes.h"

struct Plain {
    virtual ~Plain()
    {
    }
    virtual int answer()
    {
        return 1;
    }
};

extern "C" void *plain_shape()
{
    return new Plain;
}
