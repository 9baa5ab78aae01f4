// SPDX-License-Identifier: MIT
// The boxes of a flame graph, and drawing them.
import { baseName, percent } from './format.js';

const HEIGHT = 19;
const NARROWEST = 2;

/** Levels that are drawn: browsers limit the height of a canvas. */
export const LEVELS_MAX = 800;

/** Calls with one callee only are one box with it, so that _start() to main() take one line. */
function fold(tree, node) {
  let last = node;
  while (last && tree.children[last].length === 1 && tree.parent[last] >= 0 &&
      !tree.isLeaf[last]) {
    last = tree.children[last][0];
  }
  return last;
}

/** Nodes at which a call site ends: their own part may be above 0. */
function markLeaves(tree) {
  if (tree.isLeaf) return;
  tree.isLeaf = new Uint8Array(tree.parent.length);
  tree.leaf.forEach((node) => { tree.isLeaf[node] = 1; });
}

/** Lays out the boxes below `root`: their places are parts of the width of 1. Siblings stay in the
 * order in which they were met first, so that they do not jump; those that are too narrow are one
 * box without a node. */
export function layOut(tree, total, root, whole, width) {
  const boxes = [];
  const narrowest = NARROWEST / width;
  markLeaves(tree);
  const place = (node, x, depth) => {
    const last = fold(tree, node);
    boxes.push({ node, last, x, width: total[node] / whole, depth });
    below(last, x, depth + 1);
  };
  const below = (node, x, depth) => {
    if (depth >= LEVELS_MAX) return;
    let left = 0;
    for (const child of tree.children[node]) {
      const part = total[child] / whole;
      if (part <= 0) continue;
      if (part < narrowest) {
        left += part;
      } else {
        place(child, x, depth);
        x += part;
      }
    }
    if (left >= narrowest / 2) boxes.push({ node: -1, last: -1, x, width: left, depth });
  };
  if (whole > 0 && total[root] > 0) {
    if (root) place(root, 0, 0);
    else below(0, 0, 0);
  }
  return boxes;
}

export function depthOf(boxes) {
  return boxes.reduce((most, box) => Math.max(most, box.depth + 1), 0);
}

export function flameHeight(boxes) {
  return Math.max(4, depthOf(boxes)) * HEIGHT + 2;
}

/** The top of a box: the outermost call is at the bottom of a flame graph. */
function topOf(box, picture) {
  return picture.is_icicle ? box.depth * HEIGHT : picture.height - (box.depth + 1) * HEIGHT;
}

export function boxAt(boxes, x, y, picture) {
  return boxes.find((box) => {
    const top = topOf(box, picture);
    const left = box.x * picture.width;
    return y >= top && y < top + HEIGHT && x >= left && x < left + box.width * picture.width;
  });
}

export function labelOf(tree, box) {
  if (box.node < 0) return '…';
  const { short } = tree.function(box.last);
  return box.node === box.last ? short : `… ${short}`;
}

function colorOf(box, picture) {
  if (box.node < 0) return [picture.colors.other, 0.35];
  const made = picture.tree.function(box.last);
  const found = picture.search && made.name.toLowerCase().includes(picture.search);
  if (picture.search) return found ? [picture.colors.mark, 1] : [picture.colors.other, 0.35];
  /* Functions beside each other differ a little, also in one module. */
  const shade = (picture.tree.label[box.last] * 7 % 5) * 0.06;
  return [picture.colorOf(box, made), (made.own ? 1 : 0.6) - shade];
}

export function drawBoxes(surface, boxes, picture) {
  const place = { ...picture, height: surface.height };
  for (const box of boxes) {
    const x = box.x * surface.width;
    const width = box.width * surface.width;
    const y = topOf(box, place);
    surface.rect(x, y, Math.max(0.5, width - 1), HEIGHT - 1, ...colorOf(box, picture));
    if (box.node >= 0 && box.node === picture.selected) {
      surface.line([x, y, x + width, y, x + width, y + HEIGHT - 1, x, y + HEIGHT - 1, x, y],
        picture.colors.text, 2);
    }
    if (width > 24) {
      surface.text(labelOf(picture.tree, box), x + 4, y + HEIGHT / 2, picture.colors.boxText,
        { width: width - 8 });
    }
  }
}

/** The lines that describe a box. */
export function boxLines(tree, box, sums, whole, format) {
  if (box.node < 0) return ['Calls that are too small to draw'];
  const made = tree.function(box.last);
  const folded = [];
  for (let node = box.node; node !== box.last;) {
    folded.push(tree.function(node).short);
    [node] = tree.children[node];
  }
  return [made.name, made.module ? `in ${baseName(made.module)}` : '',
    `${format(sums.total[box.node])} (${percent(sums.total[box.node], whole)})`,
    `${format(sums.self[box.last])} of that allocated here`,
    folded.length ? `called by ${folded.slice(-6).join(' → ')}` : ''].filter((line) => line);
}
