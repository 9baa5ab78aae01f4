/* SPDX-License-Identifier: MIT */
/* A build without the engine has this instead of the engine. */
#include "cli/page/page.h"

const struct page_engine page_engine = {.size = 0};
