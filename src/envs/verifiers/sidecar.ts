import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { PaddockError } from '../../core/index.ts'
import { Asking, jsonOf, type RunningServer, startServer } from '../side-server/index.ts'
import { rowSchema, shownSchema } from './data.ts'

/** Where an environment of verifiers is, and how it is loaded. */
export interface Loading {
  readonly name: string
  readonly load: string
  readonly args: Readonly<Record<string, unknown>>
  readonly python: string
  readonly env: Readonly<Record<string, string>>
  readonly judge: { readonly url: string; readonly model: string; readonly key?: string } | null
  readonly startMs: number | null
  readonly answerMs: number
}

const program = fileURLToPath(new URL('sidecar.py', import.meta.url))

const rowsSchema = z.object({ total: z.int(), rows: z.array(rowSchema) })
const actedSchema = z.object({ over: z.boolean(), text: z.string().nullable() })
/** What the environment's rubric said of an attempt, and the conversation that it said it of. */
export const scoreSchema = z.object({
  reward: z.number(),
  metrics: z.record(z.string(), z.number()),
  stop: z.string().nullable(),
  completion: z.array(z.unknown()),
})
export type Score = z.infer<typeof scoreSchema>

/**
 * A process of Python with the environment in it, for one attempt. It is asked one thing after the other. Whatever fails in it
 * is `ENVIRONMENT_SERVER_FAILED`; an environment that cannot be used is `ENVIRONMENT_INVALID`.
 */
export class Sidecar implements AsyncDisposable {
  readonly #server: RunningServer
  readonly #loading: Loading
  readonly #asking: Asking

  private constructor(server: RunningServer, loading: Loading) {
    this.#server = server
    this.#loading = loading
    this.#asking = new Asking(server, loading.answerMs)
  }

  static async start(loading: Loading, signal: AbortSignal): Promise<Sidecar> {
    const { load, args, judge, python, startMs } = loading
    const server = await startServer(
      {
        command: [python, '-B', program],
        env: {
          // A client that is made without a key fails when it is made; one that asks nobody's server fails when it asks.
          OPENAI_API_KEY: 'none',
          OPENAI_BASE_URL: 'http://127.0.0.1:9/v1',
          HF_DATASETS_DISABLE_PROGRESS_BARS: '1',
          ...loading.env,
          SPEC: JSON.stringify({ load, args, judge }),
        },
        ...(startMs === null ? {} : { startMs }),
      },
      signal,
    )
    return new Sidecar(server, loading)
  }

  rows(asked: { readonly dataset: string; readonly first: number; readonly count: number | null }) {
    return this.#ask('rows', asked, rowsSchema)
  }

  begin(row: Readonly<Record<string, unknown>>, at: number) {
    return this.#ask('begin', { row, at }, shownSchema)
  }

  /** A call of a tool; words, where `tool` is null. */
  act(tool: string | null, args: Readonly<Record<string, unknown>>) {
    return this.#ask('act', { tool, args }, actedSchema)
  }

  /** The agent is gone, and said that at last. */
  finish(text: string | null): Promise<Score> {
    return this.#ask('finish', { text }, scoreSchema)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]()
  }

  #ask<T>(path: string, body: object, schema: z.ZodType<T>): Promise<T> {
    return this.#asking.ask(path, body, ({ status, text }) => {
      const said = z
        .object({ fault: z.string().optional(), refused: z.string().optional() })
        .catch({})
        .parse(jsonOf(text))
      if (status === 422 && said.refused !== undefined) {
        const what = `The environment ${this.#loading.name} cannot be used: ${said.refused}`
        throw new PaddockError('ENVIRONMENT_INVALID', what, { data: { environment: this.#loading.name, part: 'load' } })
      }
      const read = schema.safeParse(jsonOf(text))
      if (status === 200 && read.success) return read.data
      throw this.#asking.failed(said.fault ?? `answered what is not known here: ${text.slice(0, 300)}`)
    })
  }
}
