import type { Event } from '../../core/index.ts'
import type { SessionLog } from '../../trajectory/index.ts'

/** Of a rollout that began with time used: how much, in milliseconds. */
export const usedLabel = 'agent_ms_before'

/** Milliseconds of its own that an agent had used when it asked a call, as far as the log tells: time with the model is not its own. */
export function agentMsAt({ calls }: Pick<SessionLog, 'calls'>, events: readonly Event[], callId: string): number {
  const label = events.find((event) => event.kind === 'label' && event.name === usedLabel)
  const before = label?.kind === 'label' ? Number(label.value) : 0
  const started = events.find((event) => event.kind === 'stage' && event.stage === 'agent' && event.phase === 'start')
  const at = calls.find(({ intent }) => intent.id === callId)?.intent
  if (started === undefined || at === undefined || at.startedAt < started.at) return before
  let until = started.at
  let own = 0
  for (const { intent, commit } of calls) {
    if (intent.startedAt < started.at || intent.seq > at.seq) continue
    own += Math.max(0, intent.startedAt - until)
    until = Math.max(until, commit?.endedAt ?? intent.startedAt)
  }
  return before + own
}
