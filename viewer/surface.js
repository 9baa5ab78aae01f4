// SPDX-License-Identifier: MIT
// Surfaces to draw on: a canvas, or an SVG text with the same picture.

/** The parts of a colour, written as #rrggbb. */
function channels(color) {
  return [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16));
}

/** A colour that has `part` of one colour, and the rest of another one. */
export function mix(full, plain, part) {
  const [a, b] = [full, plain].map(channels);
  return `#${a.map((value, i) => Math.round(value * part + b[i] * (1 - part)).toString(16)
    .padStart(2, '0')).join('')}`;
}

function brightness(color) {
  const [red, green, blue] = channels(color).map((value) => (value <= 10 ? value / 3294
    : ((value / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** The contrast of two colours, from 1 to 21. */
export function contrast(a, b) {
  const [low, high] = [brightness(a), brightness(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

/** The contrast that texts have at least. */
const LEGIBLE = 4.5;

/** A colour for texts: as near to one as can be read on another. */
function inkOf(color, back, text) {
  let part = 1;
  while (part > 0 && contrast(mix(color, text, part), back) < LEGIBLE) part -= 0.05;
  return mix(color, text, Math.max(0, part));
}

/** Black or white, whichever is easier to read on a colour. */
const inksOn = new Map();
export function inkOn(color) {
  if (!inksOn.has(color)) {
    inksOn.set(color, contrast(color, '#0b0e12') > contrast(color, '#ffffff') ? '#0b0e12' : '#ffffff');
  }
  return inksOn.get(color);
}

/** Five shades between two colours: from little of `full` to all of it. */
function shades(full, plain) {
  return [0.2, 0.4, 0.6, 0.8, 1].map((part) => mix(full, plain, part));
}

const darkness = matchMedia('(prefers-color-scheme: dark)');
let colors = null;
darkness.addEventListener('change', () => { colors = null; });

/** The colours of the page, which follow light and dark. */
export function palette() {
  colors ||= readPalette();
  return colors;
}

function readPalette() {
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(`--${name}`).trim();
  const [back, text] = [color('panel'), color('text')];
  const series = Array.from({ length: 8 }, (_, i) => color(`s${i}`));
  const pale = mix(color('other'), back, 0.55);
  return {
    series, inks: series.map((one) => inkOf(one, back, text)), own: color('own'), pale,
    tints: series.map((one) => mix(one, pale, 0.3)), back, text, dim: color('dim'), line: color('line'),
    accent: color('accent'), range: color('range'), alarm: color('alarm'), mark: color('mark'),
    up: color('up'), down: color('down'), other: color('other'),
    rise: shades(color('rise'), color('other')), fall: shades(color('fall'), color('other')),
    font: style.getPropertyValue('--font').trim(),
  };
}

/** Widths of characters in the font of graphs: adding them up is far cheaper than measuring texts,
 * of which graphs have hundreds in each picture. */
const widths = new Float64Array(0x250);

function widthOf(pen, code) {
  widths[code] ||= pen.measureText(String.fromCharCode(code)).width || 0.01;
  return widths[code];
}

let ellipsis_width = 0;

/** Fits a text into a width, with an ellipsis. */
function fit(text, width, pen) {
  ellipsis_width ||= pen.measureText('…').width;
  const room = width - ellipsis_width;
  let sum = 0;
  let end = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code >= widths.length) return fitMeasured(text, width, (part) => pen.measureText(part).width);
    sum += widthOf(pen, code);
    if (sum <= room) end = i + 1;
    if (sum > width) return end ? `${text.slice(0, end)}…` : '';
  }
  return text;
}

/** The same of a text in which characters may join. */
function fitMeasured(text, width, measure) {
  if (measure(text) <= width) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (measure(`${text.slice(0, middle)}…`) <= width) low = middle;
    else high = middle - 1;
  }
  return low ? `${text.slice(0, low)}…` : '';
}

/** By how much texts and graphs are larger than usual, as style.css has it: on a wide screen. */
let scale = 0;
addEventListener('resize', () => { scale = 0; });
export function scaleOf() {
  scale ||= parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
  return scale;
}

/** The place of the pointer in a graph. */
export function placeOf({ offsetX, offsetY }) {
  return [offsetX / scaleOf(), offsetY / scaleOf()];
}

const sizes = new WeakMap();
const sizeObserver = new ResizeObserver((entries) => entries.forEach(({ target, contentRect }) =>
  sizes.set(target, { width: Math.round(contentRect.width), height: Math.round(contentRect.height) })));

/** The size at which a canvas is shown. It is remembered: asking for it has the browser lay out the
 * page. */
export function sizeOf(canvas) {
  let size = sizes.get(canvas);
  if (!size) sizeObserver.observe(canvas);
  if (!size?.width) {
    size = { width: canvas.clientWidth, height: canvas.clientHeight };
    sizes.set(canvas, size);
  }
  return { width: size.width / scaleOf(), height: size.height / scaleOf() };
}

/** Sets the number of pixels, which also clears a canvas, only where it changes. */
function setSize(canvas, width, height) {
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
}

export class CanvasSurface {
  constructor(canvas, colors, { width, height } = sizeOf(canvas)) {
    const ratio = (devicePixelRatio || 1) * scaleOf();
    Object.assign(this, { canvas, ratio, width, height });
    setSize(canvas, Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio)));
    this.pen = canvas.getContext('2d', { alpha: false });
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.pen.font = `12px ${colors.font}`;
    this.pen.textBaseline = 'middle';
    this.rect(0, 0, this.width, this.height, colors.back);
  }

  /** Copies another surface of this size. */
  copy(surface) {
    this.pen.setTransform(1, 0, 0, 1, 0, 0);
    this.pen.drawImage(surface.canvas, 0, 0);
    this.pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
  }

  /** Shows the part of the picture from a top on. */
  moveDown(top) {
    this.pen.translate(0, -top);
  }

  rect(x, y, width, height, color, opacity = 1) {
    this.pen.globalAlpha = opacity;
    this.pen.fillStyle = color;
    this.pen.fillRect(x, y, width, height);
    this.pen.globalAlpha = 1;
  }

  path(points, is_closed) {
    this.pen.beginPath();
    for (let i = 0; i < points.length; i += 2) this.pen.lineTo(points[i], points[i + 1]);
    if (is_closed) this.pen.closePath();
  }

  area(points, color, opacity = 1) {
    this.path(points, true);
    this.pen.globalAlpha = opacity;
    this.pen.fillStyle = color;
    this.pen.fill();
    this.pen.globalAlpha = 1;
  }

  line(points, color, width = 1, dash = []) {
    this.path(points, false);
    this.pen.strokeStyle = color;
    this.pen.lineWidth = width;
    this.pen.setLineDash(dash);
    this.pen.stroke();
    this.pen.setLineDash([]);
  }

  dot(x, y, radius, color, edge) {
    this.pen.beginPath();
    this.pen.arc(x, y, radius, 0, 2 * Math.PI);
    this.pen.fillStyle = color;
    this.pen.fill();
    this.pen.strokeStyle = edge;
    this.pen.lineWidth = 2;
    this.pen.stroke();
  }

  text(text, x, y, color, { align = 'left', width = Infinity } = {}) {
    const shown = width === Infinity ? text
      : fit(text, width, this.pen);
    this.pen.fillStyle = color;
    this.pen.textAlign = align;
    this.pen.fillText(shown, x, y);
  }
}

const SVG_ESCAPES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

function escapeSvg(text) {
  // XML has no control characters, not even escaped.
  // eslint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u001f\u007f\ufffe\uffff]/g, '\ufffd')
    .replace(/[&<>"]/g, (c) => SVG_ESCAPES[c]);
}

export class SvgSurface {
  constructor(width, height, colors) {
    this.width = width;
    this.height = height;
    this.parts = [];
    this.font = colors.font;
    this.meter = document.createElement('canvas').getContext('2d');
    this.meter.font = `12px ${colors.font}`;
    this.rect(0, 0, width, height, colors.back);
  }

  rect(x, y, width, height, color, opacity = 1) {
    this.parts.push(`<rect x="${x.toFixed(2)}" y="${y.toFixed(2)}" width="${width.toFixed(2)}" ` +
      `height="${height.toFixed(2)}" fill="${color}" fill-opacity="${opacity}"/>`);
  }

  points(list) {
    return Array.from(list, (value) => value.toFixed(2)).join(' ');
  }

  area(points, color, opacity = 1) {
    this.parts.push(`<polygon points="${this.points(points)}" fill="${color}" ` +
      `fill-opacity="${opacity}"/>`);
  }

  line(points, color, width = 1, dash = []) {
    this.parts.push(`<polyline points="${this.points(points)}" fill="none" stroke="${color}" ` +
      `stroke-width="${width}"${dash.length ? ` stroke-dasharray="${dash.join(' ')}"` : ''}/>`);
  }

  dot(x, y, radius, color, edge) {
    this.parts.push(`<circle cx="${x.toFixed(2)}" cy="${y.toFixed(2)}" r="${radius}" fill="${color}" ` +
      `stroke="${edge}" stroke-width="2"/>`);
  }

  text(text, x, y, color, { align = 'left', width = Infinity } = {}) {
    const anchor = { left: 'start', center: 'middle', right: 'end' }[align];
    const shown = width === Infinity ? text
      : fit(text, width, this.meter);
    this.parts.push(`<text x="${x.toFixed(2)}" y="${(y + 4).toFixed(2)}" fill="${color}" ` +
      `text-anchor="${anchor}">${escapeSvg(shown)}</text>`);
  }

  toString() {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" ` +
      `height="${this.height}" font-family="${escapeSvg(this.font)}" font-size="12">\n` +
      `${this.parts.join('\n')}\n</svg>\n`;
  }
}
