// SPDX-License-Identifier: MIT
// A client made with the official TypeScript SDK of the Model Context Protocol:
// node sdk.cjs SDK COMMAND [ARG...], where SDK is the package to use. It prints
// one JSON object; what the SDK's own checks of each message find goes into
// "errors".
"use strict";

const [pkg, command, ...args] = process.argv.slice(2);
const modern = pkg.endsWith("/client");
const { Client } = require(modern ? pkg : pkg + "/client/index.js");
const { StdioClientTransport } =
  require(modern ? pkg + "/stdio" : pkg + "/client/stdio.js");

async function main() {
  const options = { capabilities: {} };
  if (modern) options.versionNegotiation = { mode: "auto" };
  const client = new Client({ name: "test", version: "1" }, options);
  const transport = new StdioClientTransport({
    command, args, env: process.env, stderr: "inherit" });
  const seen = { errors: [], progress: 0 };
  client.onerror = (e) => seen.errors.push(String(e));
  await client.connect(transport);
  seen.server = client.getServerVersion();
  seen.instructions = client.getInstructions();
  seen.tools = (await client.listTools()).tools.map((t) => t.name);
  const tool = (name, given, options) => {
    const params = { name, arguments: given };
    return modern ? client.callTool(params, options)
                  : client.callTool(params, undefined, options);
  };
  seen.ran = await tool("run_cell", { code: "x = 6\nprint('hello')\nx * 7" });
  seen.raised = await tool("run_cell", { code: "1/0" });
  seen.long = await tool("run_cell", {
    code: "import time\nfor i in range(25):\n print(i)\n time.sleep(0.1)" },
    { onprogress: () => seen.progress++ });
  seen.written = await tool("write_file",
    { path: "d/a b\n.txt", text: "h\u00e9" });
  seen.read = await tool("read_file", { path: "d/a b\n.txt" });
  seen.files = await tool("list_files", {});
  seen.undone = await tool("undo", {});
  seen.reset = await tool("reset", {});
  seen.resources = (await client.listResources()).resources;
  seen.templates = (await client.listResourceTemplates()).resourceTemplates;
  seen.contents = await client.readResource({ uri: seen.resources[0].uri });
  const abort = new AbortController();
  const endless = tool("run_cell", { code: "while True: pass" },
    { signal: abort.signal });
  setTimeout(() => abort.abort("enough"), 300);
  seen.cancelled = await endless.then(() => "answered", (e) => String(e));
  seen.after = await tool("run_cell", { code: "6 * 7" });
  seen.unknown = await tool("nonsense", {}).then(
    () => "answered", (e) => e.code);
  await client.close();
  console.log(JSON.stringify(seen));
}

main().catch((e) => { console.error(e); process.exit(1); });
