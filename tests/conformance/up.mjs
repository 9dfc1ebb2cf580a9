// A `toolgate up` in front of one MCP server whose names pass unchanged.

import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const PATIENCE = 20_000;

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const configuration = (port, upstream) => `port: ${port}
expose:
  prefix: never
mcp_servers:
  - name: fixture
    transport: streamable-http
    url: ${upstream}
policies:
  - name: open
    agent: "*"
    rules:
      - tools: ["*"]
        action: allow
# The suite repeats its calls on purpose.
loop:
  max: 10000
drain:
  seconds: 1
`;

/** Starts `program up` in front of `upstream`; its own URL, and how it is ended. */
export async function startUp(program, upstream) {
  const folder = await mkdtemp(join(tmpdir(), 'toolgate-conformance-'));
  const port = await freePort();
  const file = join(folder, 'toolgate.yaml');
  await writeFile(file, configuration(port, upstream));
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
