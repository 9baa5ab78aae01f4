#!/bin/sh
# SPDX-License-Identifier: MIT
# make_wrapped.sh OUTPUT PROGRAM [WRAPPER...]: writes a script that runs a program of a cross build
# under its exe wrapper, for tests that execute it by its path.
output=$1
program=$2
shift 2
printf '#!/bin/sh\nexec %s "%s" "$@"\n' "$*" "$program" >"$output"
chmod 755 "$output"
