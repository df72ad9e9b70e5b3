import { PaddockError } from '../../core/index.ts'
import type { EngineAdapter } from './contract.ts'

function none(): never {
  throw new PaddockError('ENGINE_NONE', 'Paddock has no engine yet.')
}

/** In the place of an engine that a trainer names later: nothing can be asked of it. */
export const noEngine: EngineAdapter = {
  name: 'none',
  url: '',
  apiKey: null,
  gives: { tokenIds: false, logprobs: false },
  logprobKind: 'unknown',
  dispatcher: null,
  planChat: none,
  fingerprint: () => Promise.reject(new PaddockError('ENGINE_NONE', 'Paddock has no engine yet.')),
  learn: () => Promise.reject(new PaddockError('ENGINE_NONE', 'Paddock has no engine yet.')),
}

/** One object for an engine that may become another one: each member is that of `now` when it is looked at. */
export function standFor(now: () => EngineAdapter): EngineAdapter {
  // Every member is answered by the handler; the target has none.
  return new Proxy({} as EngineAdapter, { get: (_, member): unknown => Reflect.get(now(), member) })
}
