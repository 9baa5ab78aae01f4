// SPDX-License-Identifier: MIT
// The worker of an exact page: unpacks trace and engine, and hands questions to the engine.
import { unpack } from './pairs.js';

/** Milliseconds between two messages of progress at least: the page draws each. */
const PROGRESS_INTERVAL = 100;

let engine = null;
let lastProgress = 0;

function tellProgress(events) {
  const now = performance.now();
  if (now - lastProgress < PROGRESS_INTERVAL) return;
  lastProgress = now;
  postMessage({ progress: events });
}

/** Imports of the engine: progress from the page, time and random numbers from the system. */
function imports() {
  const view = () => new DataView(engine.memory.buffer);
  return {
    page: { progress: tellProgress },
    wasi_snapshot_preview1: {
      clock_time_get: (clock, precision, place) => {
        view().setBigUint64(place, BigInt(Math.round(performance.now() * 1e6)), true);
        return 0;
      },
      random_get: (place, size) => {
        crypto.getRandomValues(new Uint8Array(engine.memory.buffer, place, size));
        return 0;
      },
    },
  };
}

function textAt(place) {
  const bytes = new Uint8Array(engine.memory.buffer, place);
  return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
}

/** Hands over the numbers of the stacks whose blocks count. */
function filter(stacks) {
  const place = engine.engine_stacks(stacks.length) >>> 0;
  if (!place) throw new Error('there is not enough memory');
  new Uint32Array(engine.memory.buffer, place, stacks.length).set(stacks);
  if (engine.engine_filter()) throw new Error('there is not enough memory');
}

async function open({ program, trace, stacks }) {
  const [made, data] = await Promise.all([
    unpack(program).arrayBuffer().then((code) => WebAssembly.instantiate(code, imports())),
    unpack(trace).arrayBuffer(),
  ]);
  engine = made.instance.exports;
  engine._initialize();
  const place = engine.engine_reserve(data.byteLength) >>> 0;
  if (!place) throw new Error('there is not enough memory');
  new Uint8Array(engine.memory.buffer, place, data.byteLength).set(new Uint8Array(data));
  const status = engine.engine_open(data.byteLength);
  if (status) throw new Error(textAt(engine.engine_error()) || `status ${status}`);
  if (stacks) filter(stacks);
}

/** Calls a function of the engine: a number, a text, or the values of its answer. */
function call([name, ...given]) {
  const result = engine[`engine_${name}`](...given) >>> 0;
  if (name === 'api' || name === 'action') return textAt(result);
  if (/^(find|before|after)/.test(name)) return result;
  return new BigUint64Array(engine.memory.buffer, engine.engine_values() >>> 0, result).slice();
}

onmessage = async ({ data }) => {
  try {
    if (data.calls) postMessage({ id: data.id, answers: data.calls.map(call) });
    else {
      await open(data);
      postMessage({ ready: true });
    }
  } catch (error) {
    postMessage({ id: data.id, failed: error.message });
  }
};
