import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { z } from 'zod'
import { PaddockError } from '../../../../kits/environment.ts'
import { moduleProgram } from './program.ts'

/** Longest silence of a module, in milliseconds. */
const silenceMs = 120_000

const said = z.union([
  z.strictObject({ done: z.unknown() }),
  z.strictObject({ failed: z.string() }),
  z.looseObject({ ask: z.string() }),
])
/** What a session is asked by a module. */
export type Asked = Readonly<Record<string, unknown>> & { readonly ask: string }

const variant = z.object({
  split: z.string(),
  index: z.int(),
  solves: z.boolean(),
  judges: z.boolean(),
  /** Members of the session that set-up or evaluation use and that are not here. */
  lacks: z.array(z.string()),
  description: z.string().min(1),
  task_id: z.string().nullable(),
  metadata: z.unknown(),
  computer: z.unknown(),
})
/** A task of a module, as `tasks_config` gives it. */
export type Variant = z.infer<typeof variant>

/**
 * A task module of cua-bench, running on the host as a program of the user's: its own Python, with the standard library and
 * what the user has installed. It knows no box; whatever it does to the screen it asks for.
 */
export class CuaModule implements AsyncDisposable {
  readonly variants: readonly Variant[]
  readonly #say: (line: object) => void
  readonly #next: () => Promise<z.infer<typeof said>>
  readonly #end: () => Promise<void>

  private constructor(
    variants: readonly Variant[],
    wire: { say(line: object): void; next(): Promise<z.infer<typeof said>>; end(): Promise<void> },
  ) {
    this.variants = variants
    this.#say = (line) => wire.say(line)
    this.#next = () => wire.next()
    this.#end = () => wire.end()
  }

  /** Throws `TASK_INVALID` for a module that does not load, `TASK_UNSUPPORTED` where there is no Python. */
  static async open(path: string): Promise<CuaModule> {
    const wire = wireTo(path)
    try {
      const first = await wire.next()
      if ('failed' in first) {
        throw new PaddockError('TASK_INVALID', `${path}: ${String(first.failed)}`, {
          data: { file: path },
          fix: 'A task of cua-bench is a main.py with @tasks_config, @setup_task and @evaluate_task that loads by itself.',
        })
      }
      const parsed = z.array(variant).safeParse('done' in first ? first.done : null)
      if (parsed.success) return new CuaModule(parsed.data, wire)
      throw new PaddockError('TASK_INVALID', `${path}: ${z.prettifyError(parsed.error)}`, {
        data: { file: path },
        fix: '@tasks_config gives a list of Task(description, …).',
      })
    } catch (error) {
      await wire.end()
      throw error
    }
  }

  /**
   * Runs one of the module's functions on a variant and gives what it returns; `answer` does what it asks of its session.
   * Throws `ENVIRONMENT_TOOL_FAILED` for what the function throws.
   */
  async run(
    what: 'setup_task' | 'solve_task' | 'evaluate_task',
    { split, index }: Pick<Variant, 'split' | 'index'>,
    answer: (asked: Asked) => Promise<unknown>,
  ): Promise<unknown> {
    this.#say({ do: what, split, index })
    for (;;) {
      const next = await this.#next()
      if ('ask' in next) {
        const reply = await answer({ ...next, ask: String(next.ask) }).then(
          (value) => ({ value: value ?? null }),
          (error: unknown) => ({ error: String(error) }),
        )
        this.#say(reply)
      } else if ('failed' in next) {
        throw new PaddockError('ENVIRONMENT_TOOL_FAILED', `The module's ${what} failed: ${next.failed}`)
      } else return next.done
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end()
  }
}

function wireTo(path: string) {
  const child = spawn('python3', ['-c', moduleProgram, path], { stdio: ['pipe', 'pipe', 'pipe'] })
  const closed = Promise.withResolvers<string>()
  let words = ''
  child.stderr.on('data', (chunk: Buffer) => (words = (words + chunk.toString('utf8')).slice(-500)))
  child.stdin.on('error', () => undefined)
  child.once('error', (cause) => closed.resolve(`python3 does not run: ${cause.message}`))
  child.once('close', (code) => closed.resolve(`the module ended (${String(code)}): ${words.trim()}`))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    say: (line: object) => void child.stdin.write(`${JSON.stringify(line)}\n`),
    next: async () => {
      const late = Promise.withResolvers<never>()
      const timer = setTimeout(() => late.reject(fault(path, `says nothing for ${silenceMs / 1000} s`)), silenceMs)
      try {
        const { value, done } = await Promise.race([lines.next(), late.promise])
        if (done !== true) return said.parse(JSON.parse(value))
        throw fault(path, await closed.promise)
      } finally {
        clearTimeout(timer)
      }
    },
    end: async () => {
      child.kill('SIGKILL')
      await closed.promise
    },
  }
}

function fault(path: string, what: string): PaddockError {
  const fix = 'Modules of cua-bench need python3 on this machine.'
  if (what.startsWith('python3 does not run')) return new PaddockError('TASK_UNSUPPORTED', `${path}: ${what}`, { fix })
  return new PaddockError('ENVIRONMENT_TOOL_FAILED', `${path}: ${what}`)
}
