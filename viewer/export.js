// SPDX-License-Identifier: MIT
// Saving and copying the contents of a view.
import { button, copyText, element, saveFile } from './dom.js';
import { CanvasSurface, SvgSurface, palette, sizeOf } from './surface.js';

/** A field of CSV. One that a spreadsheet would take for a formula begins with a quote. */
function field(value) {
  let text = value === null || value === undefined ? '' : String(value);
  if (/^[=+@\t\r-]/.test(text) && Number.isNaN(Number(text))) text = `'${text}`;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function toCsv(rows) {
  return rows.map((row) => row.map(field).join(',')).join('\r\n') + '\r\n';
}

/** Buttons that copy and save rows. */
export function csvButtons(name, rows) {
  const copy = button('Copy CSV', () => copyText(toCsv(rows()), copy));
  return element('span', { class: 'tools' }, copy,
    button('Save CSV', () => saveFile(`${name}.csv`, new Blob([toCsv(rows())],
      { type: 'text/csv' }))));
}

/** Buttons that save a graph; `draw` draws it on a surface of that size. */
export function graphButtons(name, canvas, draw, size = () => sizeOf(canvas)) {
  return element('span', { class: 'tools' },
    button('SVG', () => {
      const colors = palette();
      const { width, height } = size();
      const surface = new SvgSurface(width, height, colors);
      draw(surface, colors);
      saveFile(`${name}.svg`, new Blob([surface.toString()], { type: 'image/svg+xml' }));
    }, { 'aria-label': `Save ${name} as SVG` }),
    button('PNG', () => {
      const whole = element('canvas');
      const colors = palette();
      draw(new CanvasSurface(whole, colors, size()), colors);
      whole.toBlob((blob) => saveFile(`${name}.png`, blob));
    },
      { 'aria-label': `Save ${name} as PNG` }));
}
