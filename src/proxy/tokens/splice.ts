import type { Id } from '../../core/index.ts'
import type { SessionPolicy } from '../../trajectory/index.ts'
import type { GeneratedPart, TokenAbility, TokenEngine } from '../engines/token-engine.ts'
import type { Upstream, UpstreamSink } from '../upstream.ts'
import { ChatBody, hasMedia } from './chat-body.ts'
import type { Closings } from './closings.ts'
import type { StreamCount } from './derender-steps.ts'
import type { OutgoingCall, PastCall, TokenStrategyDriver } from './contract.ts'
import { planPrompt, type PromptPlan, type ShapedPrompt, thoughtsIn } from './prompt-plan.ts'
import { type CallNotes, RecordedTree } from './recorded-tree.ts'
import { TokenExchange } from './token-exchange.ts'

/** What the strategy works with. */
export interface SpliceParts {
  readonly sessionId: Id
  /** The strategy `record` by token routes: every prompt is what the template renders. */
  readonly records: boolean
  readonly history: SessionPolicy['history']
  readonly engine: TokenEngine
  readonly readsChat: (sink: UpstreamSink) => UpstreamSink
  /** Null while it is not known, or known to be missing: calls are recorded then. */
  readonly ability: () => TokenAbility | null
  /** It has token routes that are of no use: that is a finding of the calls that are recorded instead. */
  readonly isVoid: () => boolean
  readonly closings: Closings
  readonly streams: StreamCount
  readonly upstream: Upstream
}

/**
 * Strategy `splice`: tokens in, tokens out. Where a conversation goes on from recorded answers, the engine is asked with
 * the ids that were sampled, not with what a template makes of their text, so that each prompt extends the one before.
 */
export function spliceStrategy(parts: SpliceParts): TokenStrategyDriver {
  return new SpliceStrategy(parts)
}

/** What is known about a running call. */
interface Running {
  readonly chat: ChatBody
  plan: PromptPlan | null
  readonly findings: string[]
  readonly weightVersions: Map<number, GeneratedPart['weightVersions']>
}

class SpliceStrategy implements TokenStrategyDriver {
  private readonly parts: SpliceParts
  private readonly tree: RecordedTree
  private readonly running = new Map<Id, Running>()
  private readonly shaped = new Map<Id, ShapedPrompt>()

  constructor(parts: SpliceParts) {
    this.parts = parts
    this.tree = new RecordedTree(parts.sessionId)
  }

  strategyFor(messages: readonly unknown[]): 'record' | 'splice' {
    return this.parts.records || this.parts.ability() === null || hasMedia(messages) ? 'record' : 'splice'
  }

  send(call: OutgoingCall, sink: Parameters<TokenStrategyDriver['send']>[1]): ReturnType<TokenStrategyDriver['send']> {
    const { upstream, engine, readsChat, closings, streams, history, records } = this.parts
    const ability = this.parts.ability()
    const running: Running = { chat: new ChatBody(call.body), plan: null, findings: [], weightVersions: new Map() }
    this.running.set(call.callId, running)
    if ((call.strategy === 'record' && !records) || ability === null) {
      if (this.parts.isVoid()) running.findings.push('splice_void')
      return upstream.send(call.path, call.body, call, readsChat(sink))
    }
    return new TokenExchange({
      call,
      chat: running.chat,
      engine,
      ability,
      upstream,
      readsChat,
      sink,
      streams,
      plan: async (rendered, render) =>
        records
          ? { ids: rendered, way: 'rendered', forked: null }
          : planPrompt(
              {
                tree: this.tree,
                closings,
                history,
                render,
                endsTurns: ability.endsTurns,
                shaped: ({ node }) => (node.callId === null ? undefined : this.shaped.get(node.callId)),
              },
              { chat: running.chat, match: call.match, rendered },
            ),
      notes: {
        planned: (plan) => {
          running.plan = plan
        },
        fellBack: (why) => {
          if (!records) running.findings.push(why)
        },
        untold: () => running.findings.push('derender_failed'),
        faulted: (fault) => running.findings.push(fault),
        versions: (spans) => {
          running.weightVersions.set(0, spans)
        },
        generated: (part) => {
          if (part.weightVersions.length > 0) running.weightVersions.set(part.index, part.weightVersions)
        },
      },
    })
  }

  add(call: Parameters<TokenStrategyDriver['add']>[0]): ReturnType<TokenStrategyDriver['add']> {
    const running = this.running.get(call.callId)
    this.running.delete(call.callId)
    const notes: CallNotes = {
      forked: running?.plan?.forked ?? null,
      findings: running?.findings ?? [],
      weightVersions: running?.weightVersions ?? new Map(),
    }
    const tokens = this.tree.add(call, notes)
    if (running !== undefined) this.keepShape(call.callId, running.chat, call.messages)
    return tokens
  }

  takeUp(call: PastCall): void {
    this.tree.takeUp(call)
    this.keepShape(call.callId, new ChatBody(call.body), call.messages)
  }

  /** Behind the call's own place in the tree: that says which of its messages are recorded answers. */
  private keepShape(callId: Id, { renderDigest }: ChatBody, messages: readonly unknown[]): void {
    const [answer] = this.tree.known([{ callId, choice: 0 }])
    const recorded = answer === undefined ? [] : this.tree.answersBefore(answer)
    this.shaped.set(callId, { renderDigest, thoughts: thoughtsIn(messages, recorded) })
  }
}
