import { PaddockError } from '../../core/index.ts'

/** Where a judge answers. */
export interface JudgeServer {
  /** OpenAI-compatible, with `/v1`: any server, or a session of role `judge` at Paddock's own proxy. */
  readonly baseUrl: string
  readonly apiKey: string
  readonly model: string
}

/** A judge's place on the record of one verification: opened when it is first asked for. Throws `ENGINE_*`, `STORE_*`. */
export type FindJudgeServer = () => Promise<JudgeServer>

/** The header by which a recorded judge's call says what it was asked for. */
export const purposeHeader = 'x-paddock-purpose'

/** Throws `RangeError` for an address of which a part is missing. */
export function ownServer(o: Partial<JudgeServer>): JudgeServer | null {
  const { baseUrl, apiKey, model } = o
  if (baseUrl !== undefined && apiKey !== undefined && model !== undefined) return { baseUrl, apiKey, model }
  if (baseUrl === undefined && apiKey === undefined && model === undefined) return null
  throw new RangeError('A judge is named by baseUrl, apiKey and model, all three or none.')
}

/** Throws `ENGINE_INCAPABLE`: nobody says where it answers. */
export function noServer(): PaddockError {
  return new PaddockError('ENGINE_INCAPABLE', 'No engine is configured for the role judge.', {
    fix: 'Name it in `engines.judge.url` of the configuration, or give the judge `baseUrl`, `apiKey` and `model`.',
  })
}
