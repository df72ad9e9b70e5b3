import type { CallLine } from './contract.ts'
import type { CallOutcome, RunningCall } from './running-call.ts'

/** A settled call in a line, for whoever watches. */
export function callLine(call: RunningCall, outcome: CallOutcome): CallLine {
  const { intent, session } = call.admitted
  const { commit } = outcome
  const messages = commit.choices.map((choice) => readMessage(choice.message))
  return {
    callId: call.id,
    sessionId: session.record.id,
    rolloutId: session.record.rolloutId,
    seq: intent.seq,
    callClass: intent.callClass,
    strategy: intent.strategy,
    model: intent.lineage.modelAsked,
    streamed: intent.streamed,
    status: commit.status,
    fate: commit.fate,
    promptTokens: outcome.promptTokens,
    sampledTokens: outcome.sampledTokens,
    finishReasons: commit.choices.map((choice) => choice.finishReason),
    toolCalls: messages.flatMap((message) => message.tools),
    preview: (messages.find((message) => message.text !== '')?.text ?? '').replace(/\s+/g, ' ').slice(0, 120),
    findings: commit.findings,
    forks: commit.forks.map((fork) => fork.cause),
    durationMs: commit.endedAt - intent.startedAt,
    firstByteMs: commit.firstByteAt === null ? null : commit.firstByteAt - intent.startedAt,
  }
}

function readMessage(text: string): { text: string; tools: string[] } {
  const message: unknown = JSON.parse(text)
  if (typeof message !== 'object' || message === null) return { text: '', tools: [] }
  const content = 'content' in message && typeof message.content === 'string' ? message.content : ''
  const calls = 'tool_calls' in message && Array.isArray(message.tool_calls) ? message.tool_calls : []
  const tools = calls.flatMap((call: unknown) => {
    const fn = typeof call === 'object' && call !== null && 'function' in call ? call.function : null
    return typeof fn === 'object' && fn !== null && 'name' in fn && typeof fn.name === 'string' ? [fn.name] : []
  })
  return { text: content, tools }
}
