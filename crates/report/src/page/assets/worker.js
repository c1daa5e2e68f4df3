"use strict";
// The simulator: a module with one buffer, in which a log or a question is put and an answer found.
let wasm, broken, percent;

const text = (at, bytes) => new TextDecoder().decode(new Uint8Array(wasm.memory.buffer, at, bytes));

function put(bytes) {
  const at = wasm.buffer(bytes.length);
  new Uint8Array(wasm.memory.buffer, at, bytes.length).set(bytes);
}

function progress(share) {
  if (Math.floor(share * 100) > percent) postMessage({ progress: share });
  percent = Math.max(percent, Math.floor(share * 100));
}

function panicked(at, bytes) { broken = text(at, bytes); }

onmessage = ({ data: { module, log, question } }) => {
  if (module) {
    wasm = new WebAssembly.Instance(module, { page: { progress, panicked } }).exports;
    if (log) {
      put(log);
      wasm.give_log();
    }
    return;
  }
  [broken, percent] = ["", 0];
  try {
    put(new TextEncoder().encode(question));
    const bytes = wasm.ask();
    postMessage({ answer: text(wasm.buffer(bytes), bytes) });
  } catch (error) {
    postMessage({ broken: broken || `${error}; perhaps there is not enough memory` });
  }
};
