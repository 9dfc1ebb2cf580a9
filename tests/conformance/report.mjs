// The tables, and what is wrong in them.

const TITLES = {
  server: 'Server scenarios: against the fixture server, then through the sidecar in front of it.',
  bridge: 'Server scenarios across eras: the fixture behind the sidecar speaks the other era only.',
  client: "Client scenarios: the driver alone, then with the sidecar's upstream side as the suite's client.",
};
const NONE = { passed: 0, failed: ['it did not run'], others: [] };

/** The lines of `expected.txt`: part, revision, scenario, and the reason behind `#`. */
function expectations(text) {
  const lines = text.split('\n').filter((line) => line.trim() && !line.startsWith('#'));
  return lines.map((line) => {
    const [key, reason] = line.split('#').map((side) => side.trim());
    const [part, revision, scenario] = key.split(/\s+/);
    if (!scenario || !reason) throw new Error(`expected.txt: a line needs part, revision, scenario and # reason: ${line}`);
    return { part, revision, scenario, reason };
  });
}

/** Whether something passes directly and does not through the sidecar. */
const isWorse = (direct, through) =>
  direct.failed.length === 0 && (through.failed.length > 0 || through.passed < direct.passed);

const cell = (result) => (result.failed.length ? `${result.passed}, ${result.failed.length} ✗` : `${result.passed}`);

/** The tables as Markdown, and the problems: what is worse through the sidecar for no known reason. */
export function report(parts, order, expected, notRun) {
  const known = expectations(expected);
  const problems = [];
  const used = new Set();
  const sections = Object.entries(TITLES).map(([part, title]) => {
    const columns = parts.filter((one) => one.part === part);
    const names = order.filter((name) => columns.some(({ direct }) => direct.has(name)));
    const rows = names.map((name) => {
      const cells = columns.map(({ revision, direct, through }) => {
        const [alone, behind] = [direct.get(name), through.get(name) ?? NONE];
        if (!alone) return '';
        if (!isWorse(alone, behind)) return `${cell(alone)} / ${cell(behind)}`;
        const line = known.find((one) => one.part === part && one.revision === revision && one.scenario === name);
        if (line) used.add(line);
        else problems.push([`worse through the sidecar: ${part} ${revision} ${name}`, ...behind.failed, ...behind.others].join('\n  '));
        return `${cell(alone)} / **${cell(behind)}**`;
      });
      return `| ${name} | ${cells.join(' | ')} |`;
    });
    const head = `| scenario | ${columns.map(({ revision }) => revision).join(' | ')} |`;
    return [title, '', head, `|---|${columns.map(() => '---|').join('')}`, ...rows].join('\n');
  });
  const reasons = [...new Set(known.map(({ reason }) => reason))];
  const because = reasons.map((reason) => {
    const names = known.filter((one) => one.reason === reason).map(({ part, revision, scenario }) => `${part} ${revision} \`${scenario}\``);
    return `- ${reason}: ${names.join(', ')}.`;
  });
  for (const line of known.filter((one) => !used.has(one))) {
    problems.push(`expected.txt: ${line.part} ${line.revision} ${line.scenario} no longer fails; take the line out`);
  }
  const left = notRun.map(([prefix, reason]) => `- \`${prefix}*\`: ${reason}`).join('\n');
  const legend =
    'A cell says how many checks passed directly / through the sidecar; ✗ are those that failed, bold is what is worse through the sidecar.';
  const worse = because.length ? [`Worse through the sidecar, and why:\n\n${because.join('\n')}`] : [];
  return { text: [legend, ...sections, ...worse, `Not run:\n\n${left}`].join('\n\n'), problems };
}
