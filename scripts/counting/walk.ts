/** How many files of `src` a reader has to follow: those in which a function ran. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const root = join(import.meta.dirname, '../..')

/** The report of one thread. */
interface Walked {
  readonly take: number
  readonly process: string
  readonly thread: string
  readonly files: readonly string[]
}

interface Scenario {
  readonly says: string
  walk(directory: string): Promise<readonly Walked[]>
}

export const scenarios: Readonly<Record<string, Scenario>> = {
  call: {
    says: 'one streamed chat call, from its bytes to its commit, in a `serve` that has answered two before (scripted engine); what ran in two of three such calls',
    walk: walkCall,
  },
  run: { says: '`paddock run` of one task of examples/tasks/sql, and `paddock export` of its row', walk: walkRun },
}

/** Each thread with its files, and all of them together. */
export async function walkReport(name: string, isListed: boolean): Promise<string> {
  const scenario = scenarios[name]
  if (scenario === undefined) throw new Error(`There is no scenario ${name}, but ${Object.keys(scenarios).join(', ')}.`)
  const directory = mkdtempSync(join(tmpdir(), 'paddock-walk-'))
  try {
    const walked = await scenario.walk(directory)
    const threads = Map.groupBy(walked, ({ process, thread }) => `${process} ${thread}`)
    const lines = [...threads].map(([thread, takes]) => `${countOf(takes)}  ${thread}`)
    const all = [...new Set(walked.flatMap(({ files }) => files))].toSorted()
    return [
      scenario.says,
      ...lines.toSorted(),
      `${countOf(walked)}  files of src together`,
      ...(isListed ? all.map((file) => `src/${file}`) : []),
    ].join('\n')
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

const countOf = (walked: readonly Walked[]): string =>
  String(new Set(walked.flatMap(({ files }) => files)).size).padStart(5)

function start(directory: string, args: readonly string[]): ChildProcess {
  const probe = join(import.meta.dirname, 'walk-probe.ts')
  return spawn(join(root, 'paddock'), args, {
    cwd: root,
    env: { ...process.env, NODE_OPTIONS: `--import ${probe}`, PADDOCK_WALK: directory },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

const reports = (directory: string): readonly Walked[] =>
  readdirSync(directory)
    .filter((file) => file.endsWith('.json'))
    .map((file) => ({
      ...(JSON.parse(readFileSync(join(directory, file), 'utf8')) as Omit<Walked, 'process'>),
      process: file.split('-')[1] ?? '',
    }))

async function walkCall(directory: string): Promise<readonly Walked[]> {
  const data = join(directory, 'data')
  const served = start(directory, [
    'serve',
    '--json',
    '--no-config',
    '--data',
    data,
    '--port',
    '0',
    '--control-port',
    '0',
  ])
  const lines = linesOf(served, 'stdout')
  const notes = linesOf(served, 'stderr')
  const take = async (): Promise<void> => {
    served.kill('SIGUSR2')
    await until(notes, (line) => line === 'walk: taken')
  }
  try {
    const ready = JSON.parse(await until(lines, (line) => line.includes('"ready"'))) as {
      readonly env: Readonly<Record<string, string>>
    }
    const call = async (): Promise<void> => {
      const { OPENAI_BASE_URL: url = '', OPENAI_API_KEY: key = '', OPENAI_MODEL: model = '' } = ready.env
      const response = await fetch(`${url}/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model, stream: true, max_tokens: 32, messages: [{ role: 'user', content: 'Count.' }] }),
      })
      await response.text()
      await until(lines, (line) => line.includes('"call"'))
    }
    await call()
    await call()
    await take()
    for (let measured = 0; measured < 3; measured += 1) {
      await call()
      await take()
    }
    return ofMost(reports(directory).filter((one) => one.take >= 2 && one.take <= 4))
  } finally {
    served.kill('SIGINT')
    await once(served, 'close')
  }
}

/** What ran in two calls of three at least: a timer that fires during one of them is no part of a call. */
function ofMost(walked: readonly Walked[]): readonly Walked[] {
  return [...Map.groupBy(walked, ({ process, thread }) => `${process} ${thread}`).values()].flatMap((takes) => {
    const counts = Map.groupBy(
      takes.flatMap(({ files }) => files),
      (file) => file,
    )
    const files = [...counts].flatMap(([file, { length }]) => (length < 2 ? [] : [file]))
    return takes.slice(0, 1).map((one) => ({ ...one, files }))
  })
}

async function walkRun(directory: string): Promise<readonly Walked[]> {
  const walked: Walked[] = []
  const data = join(directory, 'data')
  const global = ['--no-config', '--data', data]
  for (const [name, args] of [
    ['run', ['run', 'examples/tasks/sql', '--env', 'sql', '--task', 'orchard-kilos-by-fruit', ...global]],
    ['export', ['export', '--format', 'jsonl', '--out', join(directory, 'out'), ...global]],
  ] as const) {
    const own = join(directory, name)
    mkdirSync(own)
    const child = start(own, args)
    const notes: string[] = []
    child.stderr?.on('data', (chunk: Buffer) => notes.push(chunk.toString()))
    child.stdout?.resume()
    const [code] = (await once(child, 'close')) as [number | null]
    if (code !== 0) throw new Error(`paddock ${name} ended with ${code}: ${notes.join('\n')}`)
    walked.push(...reports(own).map((one) => ({ ...one, process: name })))
  }
  return walked
}

type Lines = AsyncIterableIterator<string>

function linesOf(child: ChildProcess, stream: 'stdout' | 'stderr'): Lines {
  const input = child[stream]
  if (input === null) throw new Error(`no ${stream}`)
  return createInterface({ input })[Symbol.asyncIterator]()
}

async function until(lines: Lines, isIt: (line: string) => boolean): Promise<string> {
  for (;;) {
    const { value, done } = await lines.next()
    if (done === true) throw new Error('The program ended before it said what was waited for.')
    if (isIt(value)) return value
  }
}
