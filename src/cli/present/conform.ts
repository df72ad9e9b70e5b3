import type { Conformance, RetryFacts } from '../conform/contract.ts'
import type { Paint } from './colour.ts'
import { table } from './table.ts'
import { duration } from './units.ts'

/** One column of the matrix: its title and its cell of a harness. */
interface Fact {
  readonly title: string
  /** For the page: how to read it. */
  readonly means: string
  readonly cell: (one: Conformance) => string
}

const facts: readonly Fact[] = [
  { title: 'dialect', means: 'of its recorded calls', cell: ({ dialects }) => dialects.join(', ') || 'none' },
  { title: 'streams', means: 'whether its generation calls ask for a stream', cell: ({ streams }) => streams },
  { title: 'tools', means: 'most tools that one of its main calls offers', cell: ({ tools }) => String(tools) },
  {
    title: 'parallel',
    means: 'both results of two calls in one answer come back in one request',
    cell: ({ parallel }) => (parallel === null ? '-' : parallel ? 'yes' : 'no'),
  },
  {
    title: 'text',
    means: 'how the text of its answers stands in later requests',
    cell: ({ echo }) => counts(echo.text),
  },
  {
    title: 'arguments',
    means:
      'the same for arguments of tool calls: same bytes, the same JSON in other bytes, another value, or gone; `messages` and ' +
      '`gemini` carry JSON values, so the bytes are whoever writes them',
    cell: ({ echo }) => counts(echo.arguments),
  },
  {
    title: 'append-only',
    means:
      'main calls behind the first whose prompt extends what was sampled, over three sessions with `record` (awkward text; `cd` into the ' +
      'working directory, blanks at edges, a heredoc; thirty turns), and causes of the others',
    cell: ({ appendOnly: { turns, extended, causes } }) =>
      [`${extended}/${turns}`, ...Object.entries(causes).map(([cause, count]) => `${cause} ${count}`)].join(', '),
  },
  {
    title: 'side calls',
    means: 'calls over all probes that are neither `main` nor `subagent`, by class',
    cell: ({ classes }) =>
      Object.entries(classes)
        .filter(([name]) => name !== 'main' && name !== 'subagent')
        .map(([name, count]) => `${name} ${count}`)
        .join(', ') || 'none',
  },
  {
    title: '429',
    means: 'after one refusal with 429 and `retry-after: 1`',
    cell: ({ retries }) => retry(retries.limited),
  },
  { title: '500', means: 'after one 500 of the engine', cell: ({ retries }) => retry(retries.failed) },
  { title: 'cut', means: 'after one answer that was cut in its middle', cell: ({ retries }) => retry(retries.cut) },
  {
    title: 'sub-agents',
    means: 'the tool that starts another agent, and calls that got the class `subagent`',
    cell: ({ subagents }) => (subagents === null ? 'none' : `${subagents.tool}: ${subagents.calls}`),
  },
  {
    title: 'replay',
    means: 'whether it asks the same when it is started anew and told the same, so that its rollouts can be forked',
    cell: ({ replay }) =>
      replay === null ? '-' : replay.differs === null ? 'same' : `differs in ${replay.differs.replace(/ was .*/s, '')}`,
  },
  {
    title: 'copied box',
    means: 'whether it asks the same in a copy of its box, by `state` or `graft`, and the engine reads the same ids',
    cell: ({ copied }) =>
      copied === null
        ? '-'
        : copied.differs === null
          ? `${copied.way}: same`
          : `${copied.way}: differs in ${copied.differs.replace(/ was .*/s, '')}`,
  },
  {
    title: 'delivered',
    means: 'part of the sampled tokens that reached it, clean probes',
    cell: ({ delivered }) => share(delivered),
  },
  {
    title: 'exact, record',
    means: "part of the trainable tokens whose row up to them is what the engine's journal says",
    cell: ({ exact }) => share(exact.record),
  },
  { title: 'exact, splice', means: 'the same with `splice`', cell: ({ exact }) => share(exact.splice) },
]

/** The matrix for a terminal: facts down, harnesses across, so that it stays readable with ten of them. */
export function conformText(found: readonly Conformance[], paint: Paint, columns: number | null): string {
  const names = found.map(({ harness, version }) => `${harness} ${version}`)
  const matrix = table(
    ['', ...names].map((title) => ({ title })),
    facts.map(({ title, cell }) => [title, ...found.map(cell)]),
    { paint, columns },
  )
  return [matrix, ...troubles(found)].join('\n')
}

/** The page `docs/reference/conform.md`. */
export function conformMarkdown(found: readonly Conformance[]): string {
  const row = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  const titles = ['', ...found.map(({ harness, version }) => `${harness} ${version}`)]
  const notes = troubles(found)
  return [
    '# What harnesses do on the wire',
    '',
    'The last matrix of `paddock conform --markdown`: each harness, unmodified, against the scripted engine',
    '(`scripted-hermes`, vLLM wire). Every cell is read from the store and from the engine\u2019s journal.',
    '',
    row(titles),
    row(titles.map(() => '---')),
    ...facts.map(({ title, cell }) => row([`**${title}**`, ...found.map(cell)])),
    '',
    ...(notes.length === 0
      ? []
      : ['Attempts that did not come to their end:', '', ...notes.map((note) => `- ${note}`), '']),
    '## How to read it',
    '',
    ...facts.map(({ title, means }) => `- **${title}**: ${means}.`),
    '',
    'In the rows 429, 500 and cut: how often the request was repeated (`marked`: it said that it is a retry), how long after,',
    'and whether the attempt came to its end; waits include whatever else the machine did. A rollout whose harness met a fault is tainted and leaves RL exports either way.',
  ].join('\n')
}

function troubles(found: readonly Conformance[]): readonly string[] {
  return found.flatMap(({ harness, ends }) =>
    ends
      .filter(({ end }) => end !== 'completed')
      .map(({ probe, end, detail, calls }) => `${harness}, probe ${probe}: ${end} after ${calls} calls: ${detail}`),
  )
}

function counts(counted: Readonly<Record<string, number>>): string {
  const told = Object.entries(counted).filter(([, count]) => count > 0)
  return told.map(([kind, count]) => `${kind} ${count}`).join(', ') || '-'
}

function retry(facts: RetryFacts | null): string {
  if (facts === null || facts.struck === null) return '-'
  const { struck, repeats, marked, afterMs, recovered } = facts
  const asked =
    afterMs === null
      ? 'asks no more'
      : repeats === 0
        ? `asks something else after ${duration(afterMs)}`
        : `repeats ${repeats}${marked > 0 ? ` (${marked} marked)` : ''} after ${duration(afterMs)}`
  const side = struck === 'main' ? '' : `${struck} call: `
  return `${side}${asked}, ${recovered ? 'recovers' : 'gives up'}`
}

function share(part: number | null): string {
  return part === null ? '-' : part === 1 ? '1.0' : part.toFixed(3)
}
