import type { CallLine } from '../../proxy/index.ts'
import { type Paint, printable } from './colour.ts'
import { duration, shortId, timeOfDay } from './units.ts'

/** One recorded call as `paddock serve` prints it. */
export function callLine(call: CallLine, atMs: number, paint: Paint): string {
  const ok = call.outcome.kind === 'complete'
  const tokens = `${count(call.promptTokens)}→${count(call.sampledTokens)} tokens`
  const what =
    call.toolCalls.length > 0
      ? `calls ${call.toolCalls.map(printable).join(', ')}`
      : printable(call.preview.replace(/\s+/g, ' '))
  const notes = [...call.findings, ...call.forks.map((cause) => `fork ${cause}`)]
  return [
    paint('dim', timeOfDay(atMs)),
    paint('name', shortId(call.sessionId)),
    `call ${call.seq}`,
    call.callClass,
    call.strategy,
    paint(ok ? 'good' : 'bad', `${call.status ?? '–'} ${outcomeWord(call)}`),
    tokens,
    duration(call.durationMs),
    what,
    ...(notes.length === 0 ? [] : [paint('warn', notes.map(printable).join(', '))]),
  ].join('  ')
}

function outcomeWord(call: CallLine): string {
  switch (call.outcome.kind) {
    case 'complete':
      return call.finishReasons.map((reason) => reason ?? '–').join(',')
    case 'engine_error':
    case 'refused':
      return call.outcome.code
    case 'client_gone':
    case 'interrupted':
      return call.outcome.kind
  }
}

function count(tokens: number | null): string {
  return tokens === null ? '?' : String(tokens)
}
