// A `toolgate up` in front of MCP servers, which allows everything.

import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const PATIENCE = 120_000;

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

// The same call again and again is what a test does on purpose.
const configuration = (port, servers, prefix) => `port: ${port}
expose:
  prefix: ${prefix}
mcp_servers: ${JSON.stringify(servers)}
policies:
  - name: open
    agent: "*"
    rules:
      - tools: ["*"]
        action: allow
loop:
  max: 10000
drain:
  seconds: 1
`;

/** Starts `program up` in front of `servers`, as its configuration names them; its own URL, and how it is ended. */
export async function startUp(program, servers, prefix = 'never') {
  const folder = await mkdtemp(join(tmpdir(), 'toolgate-conformance-'));
  const port = await freePort();
  const file = join(folder, 'toolgate.yaml');
  await writeFile(file, configuration(port, servers, prefix));
  const child = spawn(program, ['up', '--config', file, '--data-dir', join(folder, 'state')], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const log = [];
  const ended = new Promise((resolve) => child.on('exit', resolve));
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => log.push(data));
  const stop = async () => {
    child.kill('SIGTERM');
    await ended;
    await rm(folder, { recursive: true, force: true });
  };
  const url = `http://127.0.0.1:${port}`;
  const deadline = Date.now() + PATIENCE;
  while (!(await isConnected(url))) {
    if (Date.now() > deadline || child.exitCode !== null) {
      await stop();
      throw new Error(`toolgate up does not connect:\n${Buffer.concat(log)}`);
    }
    await sleep(50);
  }
  return { url: `${url}/mcp`, log: () => Buffer.concat(log).toString(), stop };
}

async function isConnected(url) {
  try {
    const servers = await (await fetch(`${url}/mcp-servers`)).json();
    return servers.every((server) => server.state === 'connected');
  } catch {
    return false;
  }
}

/** One server over Streamable HTTP, as a configuration names it. */
export const overHttp = (url) => [{ name: 'fixture', transport: 'streamable-http', url }];
