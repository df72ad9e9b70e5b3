import type { LooseObject } from '../../session/sampling.ts'
import { tryEngine } from '../http.ts'

/**
 * What a server tells of itself, and which weights it has: the routes of all releases, and where a release has taken them away
 * (they are marked deprecated in `http_server.py`) the ones that took their place. Null where it has neither.
 * Throws `ENGINE_UNREACHABLE`.
 */
export async function serverInfo(root: string, apiKey: string | null): Promise<LooseObject | null> {
  return firstOf(['/get_server_info', '/server_info'], root, apiKey)
}

/** With a `weight_version`. Throws `ENGINE_UNREACHABLE`. */
export async function weightInfo(root: string, apiKey: string | null): Promise<LooseObject | null> {
  return firstOf(['/get_weight_version', '/model_info'], root, apiKey)
}

async function firstOf(paths: readonly string[], root: string, apiKey: string | null): Promise<LooseObject | null> {
  for (const path of paths) {
    const { status, body } = await tryEngine(root, path, apiKey)
    if (status < 300) return body
    if (status !== 404 && status !== 405) return null
  }
  return null
}
