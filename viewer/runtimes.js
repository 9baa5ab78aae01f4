// SPDX-License-Identifier: MIT
// Runtimes that run code of which stacks show only the interpreter, or nothing.

/** Functions that run code of a language: its name, and theirs. */
const INTERPRETERS = [
  ['Python', /^_?Py(Eval|_Run|_Bytes|Run_|Object_Call|Vectorcall)|^_PyEval_|^_PyFunction_Vectorcall/],
  ['JavaScript', /^Builtins_|^v8::internal::Execution|^js::(Interpret|RunScript)|^JS_Call/],
  ['Ruby', /^(rb_)?vm_exec|^rb_ec_exec/], ['Java', /^JavaCalls::call|^jni_Call/],
  ['Lua', /^luaV_execute|^lua_pcall/], ['Perl', /^Perl_run(ops|_)|^perl_run$/],
  ['PHP', /^execute_ex$|^zend_execute/], ['R', /^(Rf_eval|bcEval)/], ['.NET', /^mono_(jit|runtime)_|^coreclr_/],
];
/** Generated code has neither a name nor a module. */
const NAMELESS = /^\?\+/;
/** The part of all allocated bytes from which on it is worth a sentence. */
const WORTH = 0.2;

/** Which part of the allocated bytes has a function in its chain of calls; and the first such one. */
function partWith(calls, heap, pattern) {
  const has = calls.functions.map(({ name }) => pattern.test(name));
  const matching = calls.functions.filter((_, number) => has[number]);
  const first = matching.find(({ name }) => /eval|exec/i.test(name)) || matching[0];
  if (!first) return { part: 0 };
  const found = new Uint8Array(calls.parent.length);
  for (let i = 0; i < found.length; i++) {
    found[i] = has[calls.functionAt(i)] || (calls.parent[i] >= 0 && found[calls.parent[i]]) ? 1 : 0;
  }
  const sums = [0, 0];
  heap.sites.forEach((node, site) => {
    sums[0] += heap.usage.bytes[site];
    if (node >= 0 && found[node]) sums[1] += heap.usage.bytes[site];
  });
  return { part: sums[1] / (sums[0] || 1), name: first.plain };
}

/** The sentences about them. */
export function runtimesOf(calls, heap) {
  const percentOf = (part) => `${(100 * part).toFixed(0)} %`;
  const lines = INTERPRETERS.flatMap(([language, pattern]) => {
    const { part, name } = partWith(calls, heap, pattern);
    return part < WORTH ? [] : [`${language} allocates ${percentOf(part)} of all bytes here: its stacks show ` +
      `functions of the interpreter, such as ${name}, and not those of the ${language} program.`];
  });
  const { part } = partWith(calls, heap, NAMELESS);
  return part < WORTH ? lines : [...lines, `${percentOf(part)} of all bytes are allocated below code without ` +
    'a name or module, as compilers make at run time: it stands as ?+address.'];
}
