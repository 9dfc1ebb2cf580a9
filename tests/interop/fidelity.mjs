// Each server asked directly and through a sidecar, and the raw answers compared.

import { overHttp, startUp } from '../conformance/up.mjs';
import { connect, member, parts } from './raw.mjs';

const LISTS = [
  ['tools/list', 'tools', 'name'],
  ['resources/list', 'resources', 'uri'],
  ['resources/templates/list', 'resourceTemplates', 'uriTemplate'],
  ['prompts/list', 'prompts', 'name'],
];
const MOST_RESOURCES = 3;

/** All entries of a list, over all its pages, by what they are known by; none where there is no such list. */
async function listed(client, [method, key, known]) {
  const entries = new Map();
  for (let cursor; ; ) {
    const { result, error } = await client.ask(method, cursor === undefined ? {} : { cursor });
    if (error) return entries;
    for (const raw of parts(member(result, key))) entries.set(JSON.parse(member(raw, known)), raw);
    const next = member(result, 'nextCursor');
    if (next === undefined) return entries;
    cursor = JSON.parse(next);
  }
}

/** What a server says, as text: by what was asked. */
async function answers(client, { calls, prompts = [], conditional = [] }) {
  const found = new Map();
  for (const list of LISTS) {
    const entries = await listed(client, list);
    for (const [name, raw] of entries) found.set(`${list[0]} ${name}`, raw);
    if (list[1] !== 'resources') continue;
    for (const uri of [...entries.keys()].slice(0, MOST_RESOURCES)) {
      found.set(`resources/read ${uri}`, await outcome(client, 'resources/read', { uri }));
    }
  }
  for (const call of calls) found.set(`tools/call ${call.name}`, await outcome(client, 'tools/call', call));
  // What is offered depends on what the client can do, and Toolgate says that it can do what its agents may.
  for (const name of conditional) found.delete(`tools/list ${name}`);
  for (const name of prompts) found.set(`prompts/get ${name}`, await outcome(client, 'prompts/get', { name }));
  return found;
}

async function outcome(client, method, params) {
  const { result, error } = await client.ask(method, params);
  // How long what is governed may be kept is Toolgate's to say.
  if (result && method === 'resources/read') return member(result, 'contents');
  return result ?? `error ${error}`;
}

async function all(server, asked, era) {
  const client = await connect(server, era);
  try {
    return { era: client.era, found: await answers(client, asked) };
  } finally {
    await client.close();
  }
}

/** What was compared with one server, and how it differs. */
export async function compare(program, one) {
  const { era, found: direct } = await all(one.server, one);
  const up = await startUp(program, [{ name: 'fixture', ...one.server }]);
  try {
    const [server] = overHttp(up.url);
    const { found: through } = await all(server, one, era);
    const differing = [...new Set([...direct.keys(), ...through.keys()])].filter((what) => direct.get(what) !== through.get(what));
    for (const what of differing) console.error(`${one.name}: ${what}\n  direct:  ${direct.get(what)}\n  through: ${through.get(what)}`);
    const count = (method) => [...direct.keys()].filter((what) => what.startsWith(`${method} `)).length;
    const asked = ['tools/list', 'resources/list', 'resources/templates/list', 'prompts/list', 'resources/read', 'tools/call', 'prompts/get'];
    const what = asked.filter(count).map((method) => `${method} ${count(method)}`);
    return { name: one.name, transport: `${one.server.transport}, ${era}`, what, differing };
  } finally {
    await up.stop();
  }
}
