import type { CallRecord, SessionLog } from '../contract/index.ts'

/**
 * A session's log with the classes that its later calls make plain: a call without tools that came before the agent's
 * first call, under another system prompt, was taken for a plain chat and was a side call (OpenCode asks for a title
 * first). Stored classes stay as they were written; this is a view. Returns the same log when nothing changes.
 */
export function withHindsight(log: SessionLog): SessionLog {
  const agents = log.calls.filter(({ intent }) => intent.callClass === 'main' && intent.lineage.toolCount > 0)
  const [firstAgent] = agents
  if (firstAgent === undefined) return log
  const agentPrompts = new Set(agents.map(({ intent }) => intent.lineage.systemDigest))
  const mistaken = ({ intent }: CallRecord): boolean =>
    intent.callClass === 'main' &&
    intent.lineage.toolCount === 0 &&
    intent.seq < firstAgent.intent.seq &&
    !agentPrompts.has(intent.lineage.systemDigest)
  if (!log.calls.some(mistaken)) return log
  return {
    ...log,
    calls: log.calls.map((call) =>
      mistaken(call) ? { ...call, intent: { ...call.intent, callClass: 'other' } } : call,
    ),
  }
}
