import { engineRoot, reason } from '../engines/http.ts'
import type { Replica } from './replica.ts'

/** A replica that does not answer its health route this soon is not healthy. */
const probeLimitMs = 5000

/**
 * Asks a replica's health route (`GET /health` of vLLM, SGLang and most others). Null: healthy; else why not. A server
 * without the route is healthy: it answers.
 */
export async function healthOf(replica: Replica): Promise<string | null> {
  const { engine } = replica
  try {
    const { request } = await import('undici')
    const answer = await request(`${engineRoot(engine.url)}/health`, {
      ...(engine.dispatcher === null ? {} : { dispatcher: engine.dispatcher }),
      headers: engine.apiKey === null ? {} : { authorization: `Bearer ${engine.apiKey}` },
      signal: AbortSignal.timeout(probeLimitMs),
    })
    await answer.body.dump()
    return answer.statusCode >= 500 ? `its health route answers ${answer.statusCode}` : null
  } catch (cause) {
    return reason(cause)
  }
}
