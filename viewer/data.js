// SPDX-License-Identifier: MIT
// The data of the page: parts with a name each, most of them the JSON of a command.

import { unpack } from './pairs.js';

/** Numbers from 2^53 on are texts in JSON. */
export function numbers(list) {
  return Float64Array.from(list, Number);
}

/** Numbers of which each is written as the difference to the one before. */
export function sums(list) {
  const values = numbers(list);
  for (let i = 1; i < values.length; i++) values[i] += values[i - 1];
  return values;
}

/** Reads the parts in an element: an object of them by name. */
export async function readParts(id) {
  const raw = await unpack(document.getElementById(id).textContent).text();
  const parts = {};
  const heads = [...raw.matchAll(/^#(\w+)\n/gm)];
  heads.forEach((head, i) => {
    const end = i + 1 < heads.length ? heads[i + 1].index : raw.length;
    const body = raw.slice(head.index + head[0].length, end);
    // Marks are a line each.
    parts[head[1]] = head[1] === 'marks'
      ? body.split('\n').filter((line) => line).map((line) => JSON.parse(line))
      : JSON.parse(body);
  });
  return parts;
}
