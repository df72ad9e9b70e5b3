import type { SessionLog } from '../contract/index.ts'

/** Sampled tokens that the engine's usage counts and whose ids never came, over all calls of a session. */
export function unseenTokens(log: SessionLog): number {
  const told = new Map<string, number>()
  for (const { origin, callId, choice, tokens } of log.segments) {
    if (origin !== 'sampled') continue
    const key = `${callId}/${choice}`
    told.set(key, (told.get(key) ?? 0) + tokens.length)
  }
  let unseen = 0
  for (const { intent, commit } of log.calls) {
    for (const { index, claimedTokens } of commit?.choices ?? []) {
      unseen += Math.max(0, (claimedTokens ?? 0) - (told.get(`${intent.id}/${index}`) ?? 0))
    }
  }
  return unseen
}
