import { execFile } from 'node:child_process'
import { dirname, resolve } from 'node:path'
import { promisify } from 'node:util'
import { z } from 'zod'
import { PaddockError } from '../../core/index.ts'
import { type Answer, Asking, jsonOf, type RunningServer, serverFault, startServer } from '../side-server/index.ts'
import { conversation, type Said } from './response.ts'

/** Where a resources server is, and how it is started. */
export interface Served {
  readonly name: string
  readonly app: string
  readonly settings: Readonly<Record<string, unknown>>
  readonly others: Readonly<Record<string, unknown>>
  readonly python: string
  readonly env: Readonly<Record<string, string>>
  readonly startMs: number | null
  readonly answerMs: number
}

// nemo-gym 0.7.0, nemo_gym/base_resources_server.py: BaseVerifyResponse; nemo_gym/judge.py: judge_failsafe.
const verifiedSchema = z.looseObject({
  reward: z.number(),
  mask_sample: z.boolean().default(false),
  failure_kind: z.string().nullish(),
  failure_reason: z.string().nullish(),
  _ng_failure_class: z.string().nullish(),
})

/** What the server said of an attempt, and the conversation that it said it of. */
export const scoreSchema = z.object({
  reward: z.number(),
  components: z.record(z.string(), z.number()),
  output: z.array(z.unknown()),
})
export type Score = z.infer<typeof scoreSchema>

/** The file of the server's program: `app` itself, or that of the module. Throws `ENVIRONMENT_SERVER_FAILED`. */
export async function programOf({ app, python, env }: Pick<Served, 'app' | 'python' | 'env'>): Promise<string> {
  if (app.endsWith('.py')) return resolve(app)
  const find = 'import importlib.util, sys; print(importlib.util.find_spec(sys.argv[1]).origin)'
  try {
    const { stdout } = await promisify(execFile)(python, ['-c', find, app], { env: { ...process.env, ...env } })
    return stdout.trim()
  } catch (cause) {
    throw serverFault(`is not found: ${python} has no module ${app}`, cause)
  }
}

/**
 * A resources server of its own for one attempt, and its session there: started as NeMo Gym starts one, seeded, asked by its routes, and asked to verify at last. Whatever fails in it is
 * `ENVIRONMENT_SERVER_FAILED`.
 */
export class Session implements AsyncDisposable {
  readonly #server: RunningServer
  readonly #asking: Asking
  readonly #row: Readonly<Record<string, unknown>>
  readonly #said: Said[] = []
  /** By name. The server knows the session by them. */
  readonly #cookies = new Map<string, string>()

  private constructor(server: RunningServer, row: Readonly<Record<string, unknown>>, answerMs: number) {
    this.#server = server
    this.#asking = new Asking(server, answerMs)
    this.#row = row
  }

  static async begin(served: Served, row: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<Session> {
    const program = await programOf(served)
    // What `gym env start` tells a server (nemo-gym 0.7.0, nemo_gym/cli/env.py); a port that is a text is taken too.
    const own = { entrypoint: 'app.py', domain: 'other', ...served.settings, host: '127.0.0.1', port: '{port}' }
    const config = {
      ...served.others,
      head_server: { host: '127.0.0.1', port: 9 },
      dry_run: false,
      [served.name]: { resources_servers: { [served.name]: own } },
    }
    const server = await startServer(
      {
        command: [served.python, '-B', program],
        cwd: dirname(program),
        env: {
          PYTHONWARNINGS: 'ignore',
          ...served.env,
          NEMO_GYM_CONFIG_DICT: JSON.stringify(config),
          NEMO_GYM_CONFIG_PATH: served.name,
        },
        ...(served.startMs === null ? {} : { startMs: served.startMs }),
      },
      signal,
    )
    const session = new Session(server, row, served.answerMs)
    try {
      await session.#seed(served.name)
      return session
    } catch (error) {
      await server[Symbol.asyncDispose]()
      throw error
    }
  }

  /**
   * A call of a tool. What the server refuses of it is the agent's to correct; so is a 500, which arguments can bring about: NeMo Gym's
   * own agent hands it to the model likewise.
   */
  act(
    tool: string,
    args: Readonly<Record<string, unknown>>,
  ): Promise<{ readonly text: string; readonly refused: boolean }> {
    return this.#post(tool, args, ({ status, text }) => {
      this.#said.push({ tool, args, text })
      return { text, refused: status >= 400 }
    })
  }

  /** The agent is gone, and said that at last. */
  verify(text: string | null): Promise<Score> {
    const response = conversation(this.#row, this.#said, text)
    return this.#post('verify', { ...this.#row, response }, (answer) => {
      const read = verifiedSchema.safeParse(jsonOf(answer.text))
      if (answer.status !== 200 || !read.success) {
        throw this.#asking.failed(`gave no number (${answer.status}): ${answer.text.slice(0, 300)}`)
      }
      const { reward, mask_sample: masked, failure_kind: kind, failure_reason: reason, ...rest } = read.data
      const failed = rest._ng_failure_class ?? null
      if (masked || failed !== null) {
        throw this.#asking.failed(
          `says that its number means nothing: ${[failed, kind, reason].filter(Boolean).join(': ')}`,
        )
      }
      return { reward, components: this.#numbersAmong(rest), output: response.output }
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]()
  }

  async #seed(name: string): Promise<void> {
    const offers = await this.#post('seed_session', this.#row, ({ status, text }) => {
      const read = z.looseObject({ mcp: z.unknown().optional() }).safeParse(jsonOf(text))
      if (status === 200 && read.success) return read.data
      throw this.#asking.failed(`seeds no session (${status}): ${text.slice(0, 300)}`)
    })
    const { tools = [] } = this.#row['responses_create_params'] as { readonly tools?: readonly unknown[] }
    if (offers.mcp == null || tools.length > 0) return
    const what = `The environment ${name} has tools over MCP alone, and those are not read`
    throw new PaddockError('ENVIRONMENT_INVALID', what, { data: { environment: name, part: 'tools' } })
  }

  #post<T>(path: string, body: unknown, read: (answer: Answer) => T): Promise<T> {
    const cookies = (): Record<string, string> =>
      this.#cookies.size === 0 ? {} : { cookie: [...this.#cookies].map((each) => each.join('=')).join('; ') }
    return this.#asking.ask(
      path,
      body,
      (answer) => {
        for (const set of answer.headers.getSetCookie()) {
          const [, name = '', value = ''] = /^([^=;]+)=([^;]*)/.exec(set) ?? []
          this.#cookies.set(name, value)
        }
        return read(answer)
      },
      cookies,
    )
  }

  /** Numbers and truths that the server adds to what it was sent. */
  #numbersAmong(rest: Readonly<Record<string, unknown>>): Record<string, number> {
    const own = z.record(z.string(), z.number()).catch({}).parse(rest['reward_components'])
    const added = Object.entries(rest).filter(([name]) => !(name in this.#row))
    const numbers = added.filter(([, value]) => typeof value === 'number' || typeof value === 'boolean')
    return { ...Object.fromEntries(numbers.map(([name, value]) => [name, Number(value)])), ...own }
  }
}
