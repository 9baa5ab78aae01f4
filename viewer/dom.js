// SPDX-License-Identifier: MIT
// Elements. Names from a trace reach the document only as text here.
import { wordsOf } from './format.js';

/** Makes an element: `properties` are attributes, but for `class`, `on` (listeners by type) and
 * `data`; children are nodes or texts. */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    const is_word = name.startsWith('aria-');
    if (value === undefined || value === null || (value === false && !is_word)) continue;
    if (name === 'on') {
      for (const [type, listener] of Object.entries(value)) made.addEventListener(type, listener);
    } else if (name === 'class') {
      made.className = value;
    } else {
      made.setAttribute(name, value === true && !is_word ? '' : String(value));
    }
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** A name as children of an element: lines break between its words. */
export function breakable(name) {
  return wordsOf(name).flatMap((word, i) => (i ? [document.createElement('wbr'), word] : [word]));
}

/** Sets the text of an element, which has the browser lay it out again only if it is another one. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** A figure: a name, a value and a remark; `show` changes the two. */
export function figure(name) {
  const value = document.createTextNode('');
  const more = element('small');
  return {
    node: element('div', {}, element('dt', {}, name), element('dd', {}, value, more)),
    show: (text, remark) => {
      setText(value, text);
      setText(more, ` ${remark}`);
    },
  };
}

/** The node of a figure that stays as it is. */
export function fixedFigure(name, value, more) {
  const made = figure(name);
  made.show(value, more);
  return made.node;
}

/** A button with a text. */
export function button(text, action, properties = {}) {
  return element('button', { type: 'button', ...properties, on: { click: action } }, text);
}

/** A choice of one of several values of the state. `more` are values that change with it. */
export function choice(state, name, label, options, more = {}) {
  const select = element('select', {
    'aria-label': label || name, on: { change: () => state.set({ [name]: select.value, ...more }) },
  }, ...options.map(([key, text]) => element('option', { value: key }, text)));
  const follow = () => {
    const wanted = String(state.get(name));
    const value = options.some(([key]) => key === wanted) ? wanted : options[0][0];
    if (select.value !== value) select.value = value;
  };
  follow();
  state.listen(follow);
  return element('label', { class: 'choice' }, element('span', {}, label), select);
}

/** The same as buttons beside each other. */
export function segments(state, name, label, options, more = {}, current = () => state.get(name)) {
  const list = options.map(([key, text]) => button(text, () => state.set({ [name]: key, ...more })));
  const follow = () => {
    const wanted = String(current());
    const at = options.findIndex(([key]) => key === wanted);
    list.forEach((node, i) => {
      if (node.ariaPressed !== String(i === at)) node.ariaPressed = String(i === at);
    });
  };
  follow();
  state.listen(follow);
  return element('span', { class: 'segments', role: 'group', 'aria-label': label }, ...list);
}

/** A menu with controls in it, which scrolls into the window when it is opened. */
export function menu(text, ...controls) {
  const box = element('div', {}, ...controls);
  return element('details', { class: 'menu', on: { toggle: () => box.scrollIntoView({ block: 'nearest' }) } },
    element('summary', {}, text), box);
}

/** A field for a text of the state. */
export function textField(state, name, label, more = {}) {
  const input = element('input', {
    type: 'search', placeholder: label, 'aria-label': label,
    on: { input: () => state.set({ [name]: input.value, ...more }) },
  });
  const follow = () => {
    if (input.value !== state.get(name)) input.value = state.get(name);
  };
  follow();
  state.listen(follow);
  return input;
}

/** A line with the reasons of uncertainty; null if there are none. */
export function doubts(part) {
  if (!part || part.certain !== false) return null;
  return element('ul', { class: 'doubt', 'aria-label': 'Uncertain' },
    ...(part.reasons || []).map((reason) => element('li', {}, `Uncertain: ${reason}`)));
}

/** Copies a text, and says so at the button. */
export async function copyText(text, at) {
  const before = at.textContent;
  let has_copied = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = element('textarea', { class: 'away' });
    area.value = text;
    document.body.append(area);
    area.select();
    has_copied = document.execCommand('copy');
    area.remove();
  }
  at.textContent = has_copied ? 'Copied' : 'Not copied';
  setTimeout(() => { at.textContent = before; }, 1200);
}

/** Saves data as a file. */
export function saveFile(name, blob) {
  const link = element('a', { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
