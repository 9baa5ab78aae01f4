// SPDX-License-Identifier: MIT
// The first script of the page: unpacks the other one, which has all modules behind this one, and
// runs it. The policy has the hashes of both.
import { unpack } from './pairs.js';

async function load() {
  const script = document.createElement('script');
  script.type = 'module';
  script.textContent = await unpack(document.getElementById('viewer').textContent).text();
  document.body.append(script);
}

load().catch((error) => {
  document.querySelector('.wait').textContent = `This browser cannot show the report: ${error}`;
});
