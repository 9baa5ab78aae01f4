# SPDX-License-Identifier: MIT
"""Holds so many megabytes of different bytes in blocks of 64 kB until its input ends."""
import os
import sys

blocks = [os.urandom(65536 - 64) for _ in range(int(sys.argv[1]) * 16)]
print('ready', flush=True)
sys.stdin.read()
