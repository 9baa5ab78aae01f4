// SPDX-License-Identifier: MIT
// Surfaces to draw on: a canvas, or an SVG text with the same picture.

/** The colours of the page, which follow light and dark. */
export function palette() {
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    back: color('panel'), text: color('text'), dim: color('dim'), line: color('line'),
    accent: color('accent'), range: color('range'), alarm: color('alarm'), mark: color('mark'),
    up: color('up'), down: color('down'), boxText: color('box-text'), other: color('other'),
    series: Array.from({ length: 8 }, (_, i) => color(`s${i}`)),
    font: style.getPropertyValue('--font').trim(),
  };
}

/** Fits a text into a width, with an ellipsis. */
function fit(text, width, measure) {
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

export class CanvasSurface {
  constructor(canvas, colors) {
    const ratio = devicePixelRatio || 1;
    this.width = canvas.clientWidth;
    this.height = canvas.clientHeight;
    canvas.width = Math.max(1, Math.round(this.width * ratio));
    canvas.height = Math.max(1, Math.round(this.height * ratio));
    this.pen = canvas.getContext('2d');
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.pen.font = `12px ${colors.font}`;
    this.pen.textBaseline = 'middle';
    this.rect(0, 0, this.width, this.height, colors.back);
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

  text(text, x, y, color, { align = 'left', width = Infinity } = {}) {
    const shown = width === Infinity ? text
      : fit(text, width, (part) => this.pen.measureText(part).width);
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

  text(text, x, y, color, { align = 'left', width = Infinity } = {}) {
    const anchor = { left: 'start', center: 'middle', right: 'end' }[align];
    const shown = width === Infinity ? text
      : fit(text, width, (part) => this.meter.measureText(part).width);
    this.parts.push(`<text x="${x.toFixed(2)}" y="${(y + 4).toFixed(2)}" fill="${color}" ` +
      `text-anchor="${anchor}">${escapeSvg(shown)}</text>`);
  }

  toString() {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" ` +
      `height="${this.height}" font-family="${escapeSvg(this.font)}" font-size="12">\n` +
      `${this.parts.join('\n')}\n</svg>\n`;
  }
}
