// SPDX-License-Identifier: MIT
// The boxes of a flame graph, and drawing them.
import { baseName, percent } from './format.js';
import { inkOn } from './surface.js';

const HEIGHT = 24;
/** A box at least so wide has its share at the right. */
const SHARE_ROOM = 130;
const SHARE = 44;
const NARROWEST = 2;

/** Levels that are drawn: browsers limit the height of a canvas. */
export const LEVELS_MAX = 800;

/** Calls with one callee only are one box with it, so that all from _start() to main() takes one
 * line; but neither the program's own nor the calls of a box that was opened. */
function fold(tree, node, opened) {
  let last = node;
  while (last && !opened.has(last) && tree.children[last].length === 1 && !tree.isLeaf[last] &&
      !tree.function(last).own && !tree.function(tree.children[last][0]).own) {
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
 * box without a node. `opened` has calls that are drawn by themselves. */
export function layOut(tree, total, root, whole, width, opened = new Set()) {
  const boxes = [];
  const narrowest = NARROWEST / width;
  markLeaves(tree);
  const place = (node, x, depth) => {
    const last = fold(tree, node, opened);
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

/** The calls of a box that is folded, outermost first. */
export function foldedOf(tree, box) {
  const list = [];
  for (let node = box.node; node !== box.last; [node] = tree.children[node]) list.push(node);
  return [...list, box.last];
}

export function labelOf(tree, box) {
  if (box.node < 0) return '…';
  const { plain } = tree.function(box.last);
  if (box.node === box.last) return plain;
  return `${tree.function(box.node).plain} → ${plain} (${foldedOf(tree, box).length} frames, click to open)`;
}

/** The texts of a box: its name, and its share if there is room. */
function drawTexts(surface, box, x, y, width, color, picture) {
  const share = picture.tree && width > SHARE_ROOM && box.node >= 0 ? SHARE : 0;
  const ink = inkOn(color);
  surface.text(labelOf(picture.tree, box), x + 6, y + HEIGHT / 2, ink, { width: width - 12 - share });
  if (share) {
    surface.text(percent(picture.sums.total[box.node], picture.whole), x + width - 7, y + HEIGHT / 2, ink,
      { align: 'right' });
  }
}

/** @param seen  the part of the picture that is drawn, from a top to a bottom; all without it */
export function drawBoxes(surface, boxes, picture, seen = [0, Infinity]) {
  for (const box of boxes) {
    const y = topOf(box, picture);
    if (y + HEIGHT < seen[0] || y > seen[1]) continue;
    const x = box.x * surface.width;
    const width = box.width * surface.width;
    const color = box.node < 0 ? picture.colors.pale : picture.colorOf(box);
    surface.rect(x, y, Math.max(0.5, width - 1), HEIGHT - 1, color);
    if (box.node >= 0 && (box.node === picture.selected || picture.isFound?.(box))) {
      const edge = width > 3 ? 1 : 0;
      surface.line([x + edge, y + 1, x + width - 2, y + 1, x + width - 2, y + HEIGHT - 2,
        x + edge, y + HEIGHT - 2, x + edge, y + 1],
      picture.colors.text, 2);
    }
    if (width > 30) drawTexts(surface, box, x, y, width, color, picture);
  }
}

/** The lines that describe a box. */
export function boxLines(tree, box, sums, whole, format) {
  if (box.node < 0) return ['Calls that are too small to draw'];
  const made = tree.function(box.last);
  const folded = foldedOf(tree, box).slice(0, -1).map((node) => tree.function(node).plain);
  return [made.short, [format(sums.total[box.node]), percent(sums.total[box.node], whole),
    made.module ? `in ${baseName(made.module)}` : ''].filter((text) => text).join(' · '),
  sums.self[box.last] && sums.self[box.last] !== sums.total[box.node]
    ? `${format(sums.self[box.last])} of that allocated here` : '',
  folded.length ? `called by ${folded.slice(-4).join(' → ')}` : ''].filter((line) => line);
}
