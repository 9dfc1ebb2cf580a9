// Tables in pages of the documentation.

import { readFile, writeFile } from 'node:fs/promises';

/** Puts `text` between the marks `<!-- NAME: … -->` and `<!-- end of NAME -->` of a page. */
export async function replaceSection(file, name, text) {
  const page = await readFile(file, 'utf8');
  const section = new RegExp(`(<!-- ${name}: [^\n]* -->\n)[^]*(<!-- end of ${name} -->)`);
  if (!section.test(page)) throw new Error(`${file} has no section ${name}`);
  await writeFile(file, page.replace(section, (_, start, end) => `${start}\n${text}\n\n${end}`));
}
