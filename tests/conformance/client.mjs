#!/usr/bin/env node
// What the suite starts as the client under test: the official SDK's client does what a scenario asks of a client.
//
// With TOOLGATE set to the program, a `toolgate up` stands between the two, and its upstream side is what is tested.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { overHttp, startUp } from './up.mjs';

const MODERN = '2026-07-28';
const { MCP_CONFORMANCE_SCENARIO: scenario, MCP_CONFORMANCE_PROTOCOL_VERSION: revision, TOOLGATE: program } = process.env;
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');
const upstream = process.argv.at(-1);

/** The answer of a person who takes every default, and says yes to the rest. */
function filledIn({ requestedSchema }) {
  const filled = Object.entries(requestedSchema?.properties ?? {}).map(([name, { default: given, type }]) => [
    name,
    given ?? (type === 'boolean' ? true : 'yes'),
  ]);
  return { action: 'accept', content: Object.fromEntries(filled) };
}

function newClient() {
  const client = new Client(
    { name: 'conformance-driver', version: '1' },
    {
      capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} },
      versionNegotiation: { mode: revision === MODERN ? { pin: MODERN } : 'legacy' },
    },
  );
  client.setRequestHandler('elicitation/create', ({ params }) => filledIn(params));
  client.setRequestHandler('sampling/createMessage', () => ({
    role: 'assistant',
    model: 'none',
    content: { type: 'text', text: 'yes' },
  }));
  client.setRequestHandler('roots/list', () => ({ roots: [{ uri: 'file:///' }] }));
  return client;
}

/** By scenario: what a client does once it has listed the tools. */
const STEPS = {
  initialize: () => {},
  'json-schema-ref-no-deref': () => {},
  'request-metadata': () => {},
  tools_call: (client) => client.callTool({ name: 'add_numbers', arguments: { a: 2, b: 3 } }),
  'sse-retry': (client) => client.callTool({ name: 'test_reconnection', arguments: {} }),
  'elicitation-sep1034-client-defaults': (client) =>
    client.callTool({ name: 'test_client_elicitation_defaults', arguments: {} }),
  'sep-2322-client-request-state': async (client) => {
    await Promise.all(
      ['test_mrtr_echo_state', 'test_mrtr_unrelated'].map((name) => client.callTool({ name, arguments: {} })),
    );
    await client.callTool({ name: 'test_mrtr_no_state', arguments: {} });
    await client.callTool({ name: 'test_mrtr_no_result_type', arguments: {} });
  },
  'http-standard-headers': async (client, tools) => {
    for (const { name } of tools) await client.callTool({ name, arguments: {} });
    for (const { uri } of (await client.listResources()).resources) await client.readResource({ uri });
    for (const { name } of (await client.listPrompts()).prompts) await client.getPrompt({ name });
  },
  'http-custom-headers': async (client) => {
    for (const call of context.toolCalls) await client.callTool(call);
  },
  'http-invalid-tool-headers': async (client, tools) => {
    for (const { name } of tools) await client.callTool({ name, arguments: { region: 'here' } });
  },
  'json-schema-2020-12-preservation': async (client, tools) => {
    const { inputSchema } = tools.find(({ name }) => name === 'json_schema_2020_12_tool');
    await client.callTool({ name: 'json_schema_echo', arguments: { schema: inputSchema } });
  },
};

const up = program ? await startUp(program, overHttp(upstream)) : undefined;
const client = newClient();
try {
  await client.connect(new StreamableHTTPClientTransport(new URL(up?.url ?? upstream)));
  const { tools } = await client.listTools();
  const step = STEPS[scenario];
  if (!step) throw new Error(`no steps for scenario ${scenario}`);
  await step(client, tools);
} catch (error) {
  console.error(up?.log() ?? '');
  throw error;
} finally {
  await client.close().catch(() => {});
  await up?.stop();
}
