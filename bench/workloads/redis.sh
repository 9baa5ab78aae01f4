#!/bin/sh
# SPDX-License-Identifier: MIT
# Fills a redis server with keys, and ends it: redis.sh DIRECTORY KEYS
socket=$1/redis.sock
redis-server --port 0 --unixsocket "$socket" --save '' --appendonly no --dir "$1" \
    --enable-debug-command yes >/dev/null &
until redis-cli -s "$socket" ping >/dev/null 2>&1; do sleep 0.05; done
redis-cli -s "$socket" debug populate "$2" >/dev/null
redis-cli -s "$socket" shutdown nosave >/dev/null 2>&1
wait
