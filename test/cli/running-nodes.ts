/** A coordinator and its nodes, as commands that go on. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { launcher, paddock } from './paddock.ts'

export type Line = Readonly<Record<string, string>>

/** A command that goes on, line by line. `through`: a program and its arguments that start it, as `nsenter` does. */
export class Running {
  readonly child: ChildProcess
  readonly lines: Line[] = []
  readonly #ended: Promise<unknown>
  #err = ''
  #hasEnded = false
  readonly #waiting = new Set<() => void>()

  constructor(args: readonly string[], env: Readonly<Record<string, string>> = {}, through: readonly string[] = []) {
    const [program, ...rest] = [...through, launcher, ...args, '--json']
    this.child = spawn(program, rest, {
      env: { ...process.env, ENGINE_URL: '', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#ended = once(this.child, 'close')
    this.child.stderr?.on('data', (chunk: Buffer) => (this.#err += chunk.toString()))
    if (this.child.stdout === null) throw new Error('no output')
    createInterface({ input: this.child.stdout }).on('line', (text) => {
      // A run's result stands on several lines.
      if (text.startsWith('{"')) this.lines.push(JSON.parse(text) as Line)
      this.#hear()
    })
    void this.#ended.then(() => {
      this.#hasEnded = true
      this.#hear()
    })
  }

  #hear(): void {
    for (const hear of this.#waiting) hear()
  }

  /** The first line that is so, said or to come. Rejects when the command ends first, or says no such line for ten minutes. */
  async line(wanted: (line: Line) => boolean): Promise<Line> {
    const { promise, resolve, reject } = Promise.withResolvers<Line>()
    const fail = (why: string): void =>
      reject(new Error(`${why} ${wanted.toString()}. It said ${JSON.stringify(this.lines)} ${this.#err}`))
    const hear = (): void => {
      const found = this.lines.find(wanted)
      if (found !== undefined) resolve(found)
      else if (this.#hasEnded) fail('It ended before')
    }
    const timer = setTimeout(() => fail('Ten minutes without'), 600_000)
    this.#waiting.add(hear)
    hear()
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      this.#waiting.delete(hear)
    }
  }

  said(type: string): Promise<Line> {
    return this.line((line) => line['type'] === type)
  }

  async end(signal: NodeJS.Signals = 'SIGINT'): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      this.child.kill(signal)
      this.child.kill('SIGCONT')
    }
    let isStuck = false
    const timer = setTimeout(() => {
      isStuck = true
      this.child.kill('SIGKILL')
    }, 300_000)
    await this.#ended
    clearTimeout(timer)
    if (isStuck)
      throw new Error(`${signal} did not end it in five minutes. It said ${JSON.stringify(this.lines)} ${this.#err}`)
    return this.child.exitCode
  }
}

const running: Running[] = []
/** Ends all, nodes before their coordinator, for which they would wait. */
export async function stopped(): Promise<void> {
  for (const one of running.splice(0).toReversed()) await one.end()
}
/** Begins a command that {@link stopped} ends. */
export function started(...of: ConstructorParameters<typeof Running>): Running {
  const one = new Running(...of)
  running.push(one)
  return one
}

/** A coordinator as a process of its own. */
export interface Coordinator {
  /** Where it and its nodes have what they need. */
  readonly directory: string
  readonly data: string
  readonly url: string
  readonly process: Running
}

/** Starts one and waits until it serves. */
export async function coordinator(
  directory: string,
  name: string,
  config = 'export default {}\n',
  ...more: readonly string[]
): Promise<Coordinator> {
  const data = join(directory, name)
  const file = join(directory, `${name}.config.mjs`)
  await writeFile(file, config)
  const one = started(['coordinator', '--data', data, '--config', file, '--control-port', '0', ...more])
  const { control = '' } = await one.said('ready')
  return { directory, data, url: control, process: one }
}

/** How a node is started that has a token of its own name. */
export async function nodeArgs(
  { directory, data, url }: Omit<Coordinator, 'process'>,
  name: string,
  places: number,
): Promise<readonly string[]> {
  const file = join(directory, `${name}.token`)
  const made = await paddock(['token', 'create', '--role', 'node', '--name', name, '--data', data])
  if (made.code === 0) await writeFile(file, made.out)
  const own = ['--name', name, '--token-file', file, '--data', join(directory, name), '--places', String(places)]
  return ['node', '--join', url, ...own]
}

/** A node with a token of its own name. */
export async function node(
  here: Coordinator,
  name: string,
  places: number,
  ...more: readonly string[]
): Promise<Running> {
  const one = started([...(await nodeArgs(here, name, places)), ...more])
  await one.said('ready')
  return one
}

/** As `list rollouts` says it. */
export interface Rollout {
  readonly id: string
  readonly slot: number
  readonly attempt: number
  readonly end: string | null
  readonly labels: Readonly<Record<string, string>>
}

export async function rollouts(data: string): Promise<readonly Rollout[]> {
  return JSON.parse((await paddock(['list', 'rollouts', '--limit', '1000', '--json', '--data', data])).out).rollouts
}
