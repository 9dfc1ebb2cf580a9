// A client that leaves what it gets as the text that came.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const LEGACY = '2025-11-25';
const MODERN = '2026-07-28';
const PATIENCE = 120_000;
/** How long a modern answer is waited for. */
const PROBE = 60_000;
const CLIENT = { name: 'raw', version: '1' };
const META = {
  'io.modelcontextprotocol/protocolVersion': MODERN,
  'io.modelcontextprotocol/clientInfo': CLIENT,
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** The members of a JSON object, or the elements of an array, as they are written. */
export function parts(text) {
  const found = [];
  let [depth, isText, start] = [0, false, -1];
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (isText) {
      if (character === '\\') at += 1;
      else if (character === '"') isText = false;
    } else if (character === '"') isText = true;
    else if ('[{'.includes(character)) {
      depth += 1;
      if (depth === 1) start = at + 1;
    } else if (']}'.includes(character) || (character === ',' && depth === 1)) {
      if (character !== ',') depth -= 1;
      if (depth === 0 || character === ',') {
        const part = text.slice(start, at).trim();
        if (part) found.push(part);
        start = at + 1;
      }
    }
  }
  return found;
}

/** One member of a JSON object, as it is written. */
export function member(text, name) {
  const key = JSON.stringify(name);
  const found = parts(text).find((part) => part.startsWith(key));
  return found?.slice(key.length).replace(/^\s*:\s*/, '');
}

class RawClient {
  #waiting = new Map();
  #last = 0;

  /** Finds out the era, unless it is given, and opens a session where the era has them. */
  async open(era) {
    this.era = 'modern';
    if (era !== 'legacy') {
      const discovered = await this.ask('server/discover', {}, PROBE).catch(() => ({}));
      if (discovered.result && member(discovered.result, 'supportedVersions')) return this;
    }
    if (era === 'modern') throw new Error('it is not modern');
    this.era = 'legacy';
    const opened = await this.ask('initialize', { protocolVersion: LEGACY, capabilities: {}, clientInfo: CLIENT });
    if (!opened.result) throw new Error(`it does not initialize: ${opened.error}`);
    await this.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    return this;
  }

  /** The raw `result` or the raw `error` of a request. */
  async ask(method, asked, patience = PATIENCE) {
    const id = (this.#last += 1);
    const params = this.era === 'modern' ? { ...asked, _meta: META } : asked;
    let timer;
    const answered = new Promise((resolve, reject) => {
      this.#waiting.set(id, resolve);
      timer = setTimeout(() => reject(new Error(`no answer to ${method}`)), patience);
    });
    try {
      await this.send({ jsonrpc: '2.0', id, method, params });
      return await answered;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Takes in one message. */
  heard(text) {
    if (member(text, 'method') !== undefined) return;
    const take = this.#waiting.get(Number(member(text, 'id')));
    take?.({ result: member(text, 'result'), error: member(text, 'error') });
  }
}

class OverStdio extends RawClient {
  constructor({ command, args = [], env }) {
    super();
    this.child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'ignore'] });
    createInterface({ input: this.child.stdout }).on('line', (line) => line.trim() && this.heard(line));
  }

  async send(message) {
    this.child.stdin.write(`${JSON.stringify(message)}\n`);
  }

  async close() {
    this.child.kill();
  }
}

/** The events of a response, as they come: their names and data. */
async function* events(response) {
  let rest = '';
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    rest += chunk.replaceAll('\r', '');
    for (let end = rest.indexOf('\n\n'); end >= 0; end = rest.indexOf('\n\n')) {
      const lines = rest.slice(0, end).split('\n');
      rest = rest.slice(end + 2);
      const of = (field) => lines.filter((line) => line.startsWith(`${field}:`)).map((line) => line.slice(field.length + 1).replace(/^ /, ''));
      yield { name: of('event')[0] ?? 'message', data: of('data').join('\n') };
    }
  }
}

/** The headers that mirror a modern request. */
function mirrored({ method, params }) {
  const name = params?.name ?? params?.uri;
  return { 'mcp-protocol-version': MODERN, 'mcp-method': method, ...(name && { 'mcp-name': name }) };
}

class OverHttp extends RawClient {
  #session = {};

  constructor({ url }) {
    super();
    this.url = url;
  }

  async send(message) {
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...this.#session };
    if (this.era === 'modern') Object.assign(headers, mirrored(message));
    const response = await fetch(this.url, { method: 'POST', headers, body: JSON.stringify(message) });
    const session = response.headers.get('mcp-session-id');
    if (session) this.#session = { 'mcp-session-id': session, 'mcp-protocol-version': LEGACY };
    if (response.headers.get('content-type')?.startsWith('text/event-stream')) {
      for await (const { data } of events(response)) if (data) this.heard(data);
    } else {
      const text = await response.text();
      if (text) this.heard(text);
    }
  }

  async close() {
    await fetch(this.url, { method: 'DELETE', headers: this.#session }).catch(() => {});
  }
}

class OverSse extends RawClient {
  #abort = new AbortController();

  constructor({ url }) {
    super();
    this.url = url;
  }

  async open() {
    const response = await fetch(this.url, { headers: { accept: 'text/event-stream' }, signal: this.#abort.signal });
    const stream = events(response);
    const { value } = await stream.next();
    this.target = new URL(value.data, this.url);
    this.listening = (async () => {
      for await (const { name, data } of stream) if (name === 'message') this.heard(data);
    })().catch(() => {});
    return super.open('legacy');
  }

  async send(message) {
    const headers = { 'content-type': 'application/json' };
    await (await fetch(this.target, { method: 'POST', headers, body: JSON.stringify(message) })).text();
  }

  async close() {
    this.#abort.abort();
    await this.listening;
  }
}

/** A session with a server, as a configuration names it, in the era that is given or that it speaks. */
export function connect(server, era) {
  const kinds = { stdio: OverStdio, sse: OverSse, 'streamable-http': OverHttp };
  return new kinds[server.transport](server).open(era);
}
