import type { Id } from '../../core/index.ts'
import {
  commonPrefix,
  type ReadMessage,
  readMessage,
  type SegmentMask,
  type TokenCounts,
  tokenCounts,
  type TokenTexts,
} from '../../read/index.ts'
import { requestMessages } from '../../proxy/index.ts'
import type { CallRecord, Segment, SessionLog } from '../../trajectory/index.ts'
import { type Paint, printable, printableText } from './colour.ts'
import { tokenStrip } from './tokens.ts'
import { duration, plural, timeOfDay } from './units.ts'

export interface ConversationView {
  readonly paint: Paint
  readonly texts: TokenTexts
  readonly masks: ReadonlyMap<Id, SegmentMask>
  /** How many tokens of an answer are printed; the rest is counted. */
  readonly mostTokens: number
  /** How many lines of a message are printed. */
  readonly mostLines: number
}

/**
 * The calls of a session in order: what was new in each prompt, the answers, their tokens with masks. A message that an
 * earlier call already carried is printed once.
 */
export function conversation(log: SessionLog, view: ConversationView): string {
  const counts = tokenCounts(log)
  const segments = new Map(log.segments.map((segment) => [segment.id, segment]))
  const earlier: { readonly call: CallRecord; readonly messages: readonly unknown[] }[] = []
  const blocks = log.calls.map((call) => {
    const messages = requestMessages(call.intent)
    const text = [
      callHeader(call, counts.get(call.intent.id), view),
      ...newMessages(messages, call, earlier, view),
      ...answers(call, segments, view),
    ].join('\n')
    earlier.push({ call, messages })
    return text
  })
  return blocks.join('\n\n')
}

function callHeader(call: CallRecord, counts: TokenCounts | undefined, { paint }: ConversationView): string {
  const { intent, commit } = call
  const parts = [
    paint('strong', `call ${intent.seq}`),
    paint('name', intent.callClass),
    timeOfDay(intent.startedAt),
    promptText(counts),
    sampledText(counts),
    outcomeText(call),
    ...(commit === null ? [] : [duration(commit.endedAt - intent.startedAt)]),
    intent.strategy,
    ...(intent.retryOf === null ? [] : ['retry']),
    ...(call.superseded ? ['superseded'] : []),
  ]
  const notes = [
    ...(commit?.findings ?? []).map((finding) => paint('warn', `  finding: ${printable(finding)}`)),
    ...(commit?.forks ?? []).map((fork) =>
      paint(
        'warn',
        `  fork: ${fork.cause} at token ${fork.position}, ${plural(fork.tokensAffected, 'token')} affected`,
      ),
    ),
  ]
  return [`── ${parts.join(' · ')}`, ...notes].join('\n')
}

function promptText(counts: TokenCounts | undefined): string {
  if (counts === undefined || counts.prompt === null) return 'prompt without ids'
  return `prompt ${counts.prompt} (+${counts.promptNew})`
}

function sampledText(counts: TokenCounts | undefined): string {
  if (counts !== undefined && counts.replayed > 0) return `replayed ${counts.replayed}`
  return counts === undefined || counts.sampled === null ? 'no sampled ids' : `sampled ${counts.sampled}`
}

function outcomeText({ commit }: CallRecord): string {
  if (commit === null) return 'in flight'
  const { outcome } = commit
  switch (outcome.kind) {
    case 'complete':
      return commit.choices.map((choice) => choice.finishReason ?? 'complete').join(', ') || 'complete'
    case 'client_gone':
      return `client gone (upstream ${outcome.upstream})`
    case 'engine_error':
    case 'refused':
      return `${outcome.kind} ${outcome.code}`
    case 'interrupted':
      return 'interrupted'
  }
}

/** Messages behind the longest prefix that an earlier call of the session already showed; its echoed answer is skipped. */
function newMessages(
  messages: readonly unknown[],
  call: CallRecord,
  earlier: readonly { readonly call: CallRecord; readonly messages: readonly unknown[] }[],
  view: ConversationView,
): string[] {
  let shown = 0
  for (const before of earlier) {
    if (before.call.intent.callClass !== call.intent.callClass) continue
    const common = commonPrefix(messages, before.messages)
    const echoesAnswer = common === before.messages.length && readMessage(messages[common] ?? {}).role === 'assistant'
    shown = Math.max(shown, echoesAnswer && messages.length > common ? common + 1 : common)
  }
  return messages.slice(shown).map((message) => messageText(readMessage(message), view))
}

function messageText(message: ReadMessage, view: ConversationView): string {
  const { paint } = view
  const label = message.toolCallId === null ? message.role : `${message.role} (${printable(message.toolCallId)})`
  return [
    ...(message.reasoning === null || message.reasoning === ''
      ? []
      : [block(paint('dim', `${message.role} thinks`), paint('dim', clipped(message.reasoning, view)))]),
    ...(message.text === '' && message.toolCalls.length > 0
      ? []
      : [block(paint('name', label), clipped(message.text, view))]),
    ...message.toolCalls.map((tool) =>
      block(paint('name', `${message.role} calls ${printable(tool.name)}`), clipped(tool.argumentsText, view)),
    ),
  ].join('\n')
}

function answers(call: CallRecord, segments: ReadonlyMap<Id, Segment>, view: ConversationView): string[] {
  const { commit } = call
  if (commit === null) return []
  const { outcome } = commit
  const said =
    outcome.kind === 'engine_error' || outcome.kind === 'refused'
      ? [view.paint('bad', `  ${printable(outcome.message)}`)]
      : []
  return [
    ...said,
    ...commit.choices.flatMap((choice) => {
      const title = commit.choices.length > 1 ? [view.paint('dim', `  choice ${choice.index}`)] : []
      const segment = choice.segmentId === null ? undefined : segments.get(choice.segmentId)
      const tokens = segment === undefined || segment.tokens.length === 0 ? [] : [segmentText(segment, view)]
      return [...title, messageText(readMessage(jsonOrText(choice.message)), view), ...tokens]
    }),
  ]
}

function segmentText(segment: Segment, view: ConversationView): string {
  const mask = view.masks.get(segment.id) ?? { trained: false, reason: null }
  const word = mask.trained ? 'trained' : `masked${mask.reason === null ? '' : ` (${mask.reason})`}`
  const title = `${plural(segment.tokens.length, 'token')} ${word}`
  const tokens = [...segment.tokens].map((id) => ({ id, trained: mask.trained }))
  return block(view.paint('dim', title), tokenStrip(tokens, view.texts, view.mostTokens, view.paint))
}

function block(label: string, text: string): string {
  const lines = text.split('\n')
  if (lines.length === 1) return `  ${label}: ${text}`
  return [`  ${label}:`, ...lines.map((line) => `    ${line}`)].join('\n')
}

function clipped(text: string, { mostLines, paint }: ConversationView): string {
  const lines = printableText(text.replace(/\n+$/, '')).split('\n')
  if (lines.length <= mostLines) return lines.join('\n')
  return [...lines.slice(0, mostLines), paint('dim', `… ${lines.length - mostLines} more lines`)].join('\n')
}

function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return { role: 'assistant', content: text }
  }
}
