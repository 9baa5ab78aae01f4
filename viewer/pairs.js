// SPDX-License-Identifier: MIT
// Packed data in an element: their size, a space, and pairs of digits, each of which has 13 bits of
// the output of raw deflate. The program writes them, and build.py.

const RADIX = 91;
const BITS = 13;
// The first digit is '#'; '!' stands for '<'.
const DIGITS = new Uint8Array(128);
for (let i = 0; i < RADIX; i++) DIGITS[i + 35] = i;
DIGITS[33] = DIGITS[60];

function decodePairs(text) {
  const start = text.indexOf(' ') + 1;
  const data = new Uint8Array(Number(text.slice(0, start)));
  let bits = 0;
  let count = 0;
  let place = 0;
  for (let i = start; i < text.length; i += 2) {
    bits |= (DIGITS[text.charCodeAt(i)] + RADIX * DIGITS[text.charCodeAt(i + 1)]) << count;
    for (count += BITS; count >= 8; count -= 8) {
      data[place++] = bits;
      bits >>>= 8;
    }
  }
  return data;
}

/** Unpacks a text: a response with the data. */
export function unpack(text) {
  const stream = new Blob([decodePairs(text)]).stream();
  return new Response(stream.pipeThrough(new DecompressionStream('deflate-raw')));
}
