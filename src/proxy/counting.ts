import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Clock, editObject, PaddockError } from '../core/index.ts'
import type { ProxyLimits } from './contract.ts'
import type { EngineAdapter } from './engines/contract.ts'
import type { GenerationRoute } from './asked-generation.ts'
import { readBody } from './http/body.ts'
import type { LiveSession } from './session/live-session.ts'

/**
 * The counting routes of the dialects: the prompt of a generation request, counted by the engine that would render it.
 * Nothing is generated and nothing is recorded. Throws `ENGINE_INCAPABLE` where the engine counts nothing.
 */
export class Counting {
  private readonly engine: EngineAdapter
  private readonly limits: ProxyLimits
  private readonly clock: Clock

  constructor(engine: EngineAdapter, limits: ProxyLimits, clock: Clock) {
    this.clock = clock
    this.engine = engine
    this.limits = limits
  }

  async serve(
    session: LiveSession,
    route: GenerationRoute,
    http: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const { dialect, path } = route
    const bytes = await readBody(http, this.limits.maxBodyBytes)
    const { chat } = dialect.read({ bytes, headers: http.headers, path, now: this.clock.now(), memory: session })
    const { promptIds } = this.engine
    if (promptIds === undefined || dialect.countBody === undefined) {
      throw new PaddockError('ENGINE_INCAPABLE', `The engine ${this.engine.name} counts no tokens.`, {
        fix: 'Use an engine with a tokenize route, or count in the harness.',
      })
    }
    const { model } = session.record.policy
    const asked = model === null ? chat.bytes : editObject(chat.bytes, { set: { model: JSON.stringify(model) } })
    const body = dialect.countBody((await promptIds(asked)).length)
    if (response.destroyed) return
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
    response.end(body)
  }
}
