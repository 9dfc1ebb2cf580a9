// The real servers, what they are given to work on, and what is asked of them. Everything asked only reads.

import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect as dial } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { bin, NODE, venv } from './programs.mjs';

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function listens(port) {
  for (let tries = 0; tries < 300; tries += 1) {
    const isOpen = await new Promise((resolve) => {
      const socket = dial(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false));
      socket.unref();
    });
    if (isOpen) return;
    await sleep(50);
  }
  throw new Error(`nothing listens on port ${port}`);
}

/** What server-everything offers only to clients that can answer its questions. */
const EVERYTHING_CONDITIONAL = ['get-roots-list', 'trigger-elicitation-request', 'trigger-elicitation-request-async', 'trigger-sampling-request', 'trigger-sampling-request-async', 'trigger-url-elicitation'];

/** server-everything on a port of its own. */
async function everything(mode, path, running) {
  const port = await freePort();
  const child = spawn(NODE, [bin('mcp-server-everything'), mode], { env: { ...process.env, PORT: port }, stdio: 'ignore' });
  running.push(() => child.kill());
  await listens(port);
  return `http://127.0.0.1:${port}/${path}`;
}

/** A page for the server that fetches. */
async function page(running) {
  const server = createServer((request, response) => {
    const isPage = request.url === '/page';
    response.writeHead(isPage ? 200 : 404, { 'content-type': 'text/html' });
    response.end(isPage ? '<html><body><h1>Bread</h1><p>and coffee, né?</p></body></html>' : '');
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  running.push(() => server.close());
  return `http://127.0.0.1:${server.address().port}/page`;
}

function material(folder) {
  const note = join(folder, 'note.txt');
  writeFileSync(note, 'bread and coffee, né?\n');
  const repository = join(folder, 'repository');
  mkdirSync(repository);
  writeFileSync(join(repository, 'a.txt'), 'a\n');
  const git = (...args) => execFileSync('git', ['-C', repository, '-c', 'user.name=t', '-c', 'user.email=t@example.com', ...args]);
  git('init', '-q', '-b', 'main');
  git('add', 'a.txt');
  git('commit', '-q', '-m', 'First');
  const memory = join(folder, 'memory.jsonl');
  writeFileSync(memory, '{"type":"entity","name":"Ada","entityType":"person","observations":["counts"]}\n');
  const database = join(folder, 'notes.db');
  const db = new DatabaseSync(database);
  db.exec("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT); INSERT INTO notes (text) VALUES ('bread'), ('coffee, né?')");
  db.close();
  const cluster = join(folder, 'kubeconfig');
  writeFileSync(
    cluster,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'none', cluster: { server: 'http://127.0.0.1:1' } }],
      users: [{ name: 'nobody', user: {} }],
      contexts: [{ name: 'none', context: { cluster: 'none', user: 'nobody' } }],
      'current-context': 'none',
    }),
  );
  return { note, repository, memory, database, cluster };
}

const node = (program, ...args) => ({ transport: 'stdio', command: NODE, args: [bin(program), ...args] });
const python = (environment, program, ...args) => ({ transport: 'stdio', command: venv(environment, program), args });
const call = (name, args) => ({ name, arguments: args });

/** All servers, running where they have to; each with what is asked of it. */
export async function servers(folder, running) {
  const { note, repository, memory, database, cluster } = material(folder);
  const asked = {
    // Offered to clients with roots, sampling or elicitation alone; which of them Toolgate offers is not compared here.
    conditional: EVERYTHING_CONDITIONAL,
    calls: [call('get-sum', { a: 2, b: 40 }), call('echo', { message: 'well, né?' })], prompts: ['simple-prompt'],
  };
  const select = 'SELECT id, text FROM notes ORDER BY id';
  return [
    { name: 'everything-stdio', server: node('mcp-server-everything', 'stdio'), ...asked },
    { name: 'everything-sse', server: { transport: 'sse', url: await everything('sse', 'sse', running) }, ...asked, reference: 'everything-stdio' },
    { name: 'everything-http', server: { transport: 'streamable-http', url: await everything('streamableHttp', 'mcp', running) }, ...asked },
    { name: 'filesystem', server: node('mcp-server-filesystem', folder), calls: [call('read_text_file', { path: note })] },
    { name: 'memory', server: { ...node('mcp-server-memory'), env: { MEMORY_FILE_PATH: memory } }, calls: [call('search_nodes', { query: 'Ada' })] },
    { name: 'git', server: python('servers', 'mcp-server-git', '--repository', repository), calls: [call('git_log', { repo_path: repository })] },
    {
      name: 'time',
      server: python('servers', 'mcp-server-time', '--local-timezone', 'UTC'),
      calls: [call('convert_time', { source_timezone: 'Europe/Berlin', time: '12:00', target_timezone: 'Asia/Tokyo' })],
    },
    {
      name: 'fetch',
      server: python('interop-fetch', 'mcp-server-fetch', '--ignore-robots-txt', '--allow-private-ips'),
      calls: [call('fetch', { url: await page(running) })],
    },
    { name: 'sqlite', server: python('interop-sqlite', 'mcp-server-sqlite', '--db-path', database), calls: [call('read_query', { query: select })] },
    { name: 'dbhub', server: node('dbhub', '--transport', 'stdio', '--dsn', `sqlite://${database}`), calls: [call('execute_sql', { sql: select })] },
    { name: 'kubernetes', server: node('kubernetes-mcp-server', '--kubeconfig', cluster), calls: [call('configuration_view', {})] },
  ];
}
