// Real clients: each asks each server directly and through a sidecar in front of all of them.

import { spawn } from 'node:child_process';
import { bin, file, NODE, venv } from './programs.mjs';

const PATIENCE = 240_000;

const python = (environment, ...script) => (spec) => [venv(environment, 'python'), file(...script), JSON.stringify(spec)];
const typescript = (mode) => (spec) => [NODE, file('interop/clients/typescript.mjs'), JSON.stringify({ ...spec, mode })];

/** By name: the command that asks, and prints what it got. */
const CLIENTS = {
  'Python mcp 1': { command: python('clients-1', 'python', 'client_1.py') },
  'Python mcp 2': { command: python('clients-2', 'python', 'client_2.py') },
  FastMCP: { command: python('interop-fastmcp', 'interop', 'clients', 'fastmcp_client.py') },
  LangChain: { command: python('interop-langchain', 'interop', 'clients', 'langchain_client.py') },
  'TypeScript, legacy': { command: typescript('legacy') },
  'TypeScript, modern': { command: typescript('auto') },
  'Inspector CLI': { ask: inspect },
};

async function output([program, ...args]) {
  const child = spawn(program, args, {
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1', PYTHONPATH: '' },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: PATIENCE,
  });
  const [printed, complained] = [[], []];
  child.stdout.on('data', (data) => printed.push(data));
  child.stderr.on('data', (data) => complained.push(data));
  const code = await new Promise((resolve) => child.on('close', resolve));
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} ends with ${code}:\n${Buffer.concat(complained)}`);
  return JSON.parse(Buffer.concat(printed).toString());
}

/** The inspector answers one method each time that it is run. */
async function inspect({ url, command, calls }) {
  const target = url ? [url, '--transport', 'http'] : command;
  const cli = [NODE, bin('mcp-inspector'), '--cli', ...target, '--method'];
  const { tools } = await output([...cli, 'tools/list']);
  const results = [];
  for (const { name, arguments: args } of calls) {
    const pairs = Object.entries(args).flatMap(([key, value]) => ['--tool-arg', `${key}=${value}`]);
    results.push(await output([...cli, 'tools/call', '--tool-name', name, ...pairs]));
  }
  return { tools, results };
}

const asks = (client, spec) => (client.ask ? client.ask(spec) : output(client.command(spec)));

/** How a client reaches a server without a sidecar. */
function directly({ server, calls }) {
  const { url, command, args, env = {} } = server;
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  return url ? { url, calls } : { command: ['env', ...variables, command, ...args], calls };
}

/** JSON with the members of objects in one order: servers write them otherwise in each era. */
const canonical = (value) =>
  JSON.stringify(value, (_, part) => {
    const isObject = typeof part === 'object' && part !== null && !Array.isArray(part);
    return isObject ? Object.fromEntries(Object.entries(part).sort(([one], [other]) => (one < other ? -1 : 1))) : part;
  });

/** What a client made of an answer, without what an era adds to it. */
const essence = ({ content, structuredContent, isError }) => canonical({ content, structuredContent, isError: isError ?? false });

const declared = ({ description, inputSchema }) => canonical({ description, inputSchema });

/** The tools that a server offers to every client, whatever the client can do. */
const unconditional = ({ conditional = [] }, tools, prefix = '') =>
  tools.filter(({ name }) => !conditional.some((own) => name === prefix + own));

/** How what a client got through the sidecar differs from what it got directly. */
function differences(one, declaredTools, direct, through) {
  const differing = [];
  const prefix = `${one.name}.`;
  const seen = new Map(through.tools.map((tool) => [tool.name, tool]));
  for (const tool of declaredTools) {
    const other = seen.get(prefix + tool.name);
    if (!other || declared(other) !== declared(tool)) differing.push(`tool ${tool.name}: ${declared(tool)} / ${declared(other ?? {})}`);
  }
  const listed = unconditional(one, [...seen.values()].filter(({ name }) => name.startsWith(prefix)), prefix);
  if (listed.length !== declaredTools.length) differing.push('number of tools');
  for (const [index, result] of direct.results.entries()) {
    if (result.isError) differing.push(`call ${one.calls[index].name} fails: ${essence(result)}`);
    if (essence(through.results[index]) !== essence(result)) {
      differing.push(`call ${one.calls[index].name}: ${essence(result)} / ${essence(through.results[index])}`);
    }
  }
  return differing;
}

/** Each client with each server: the number of tools and calls compared, and what differs. */
export async function pairs(servers, url) {
  const rows = new Map(servers.map(({ name }) => [name, new Map()]));
  for (const [name, client] of Object.entries(CLIENTS)) {
    const prefixed = servers.flatMap((one) => one.calls.map((call) => ({ ...call, name: `${one.name}.${call.name}` })));
    const through = await asks(client, { url, calls: prefixed });
    const known = new Map();
    let at = 0;
    for (const one of servers) {
      const direct = known.get(one.reference) ?? (await asks(client, directly(one)));
      known.set(one.name, direct);
      const results = through.results.slice(at, (at += one.calls.length));
      const tools = unconditional(one, direct.tools);
      const differing = differences(one, tools, direct, { ...through, results });
      for (const what of differing) console.error(`${name} with ${one.name}: ${what}`);
      rows.get(one.name).set(name, { tools: tools.length, calls: one.calls.length, differing });
    }
  }
  return { clients: Object.keys(CLIENTS), rows };
}
