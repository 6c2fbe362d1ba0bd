// SPDX-License-Identifier: MIT
// A client of fetch(), which Node and browsers have: each line of its input is
// a request in JSON, each line that it writes an answer, or a piece of one.
"use strict";

const bytes = (text) => Buffer.from(text, "base64");
const say = (what) => console.log(JSON.stringify(what));

function bodyOf(q) {
  if (q.form !== undefined) {
    const form = new FormData();
    form.append("file", new Blob([bytes(q.form)]), q.name);
    return { body: form };
  }
  if (q.pieces !== undefined) {
    const pieces = q.pieces.map(bytes);
    return { duplex: "half", body: new ReadableStream({
      pull(to) { pieces.length ? to.enqueue(pieces.shift()) : to.close(); } }) };
  }
  return q.body === undefined ? {} : { body: bytes(q.body) };
}

async function ask(q) {
  const options = { method: q.method, headers: q.headers, ...bodyOf(q) };
  if (q.give_up) options.signal = AbortSignal.timeout(q.give_up * 1000);
  const r = await fetch(q.url, options);
  if (q.stream) {
    for await (const piece of r.body)
      say({ piece: Buffer.from(piece).toString("base64") });
    return say({});
  }
  const body = Buffer.from(await r.arrayBuffer()).toString("base64");
  say({ status: r.status, headers: Object.fromEntries(r.headers), body });
}

(async () => {
  for await (const line of require("readline").createInterface(
    { input: process.stdin }))
    await ask(JSON.parse(line)).catch((e) => say({ error: e.name }));
})();
