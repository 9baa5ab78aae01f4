// SPDX-License-Identifier: MIT
// The first script of the page: unpacks the styles and the other script, which has all modules behind this one, and
// runs it. The policy has the hashes of all.
import { unpack } from './pairs.js';

async function load() {
  const texts = (await unpack(document.getElementById('viewer').textContent).text()).split('\f');
  const nodes = ['style', 'script'].map((tag) => document.createElement(tag));
  nodes.forEach((node, i) => { node.textContent = texts[i]; });
  nodes[1].type = 'module';
  document.body.append(...nodes);
}

load().catch((error) => {
  document.querySelector('.wait').textContent = `This browser cannot show the report: ${error}`;
});
