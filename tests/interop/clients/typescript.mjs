// Lists and calls tools with the official TypeScript client; one JSON document in, one out.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const spec = JSON.parse(process.argv[2]);
const client = new Client({ name: 'interop', version: '1' }, { versionNegotiation: { mode: spec.mode } });
const [command, ...args] = spec.command ?? [];
const transport = spec.url
  ? new StreamableHTTPClientTransport(new URL(spec.url))
  : new StdioClientTransport({ command, args, env: { ...process.env, ...spec.env }, stderr: 'ignore' });
await client.connect(transport);
const { tools } = await client.listTools();
const results = [];
for (const call of spec.calls) results.push(await client.callTool(call));
console.log(JSON.stringify({ protocol: client.getNegotiatedProtocolVersion(), tools, results }));
await client.close();
