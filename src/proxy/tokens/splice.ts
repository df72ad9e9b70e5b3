import type { Id } from '../../core/index.ts'
import type { SessionPolicy } from '../../trajectory/index.ts'
import type { GeneratedPart, TokenAbility, TokenEngine } from '../engines/token-engine.ts'
import type { Upstream, UpstreamSink } from '../upstream.ts'
import { ChatBody, hasMedia } from './chat-body.ts'
import type { Closings } from './closings.ts'
import type { OutgoingCall, PastCall, TokenStrategyDriver } from './contract.ts'
import { planPrompt, type PromptPlan } from './prompt-plan.ts'
import { type CallNotes, RecordedTree } from './recorded-tree.ts'
import { TokenExchange } from './token-exchange.ts'

/** What the strategy works with. */
export interface SpliceParts {
  readonly sessionId: Id
  readonly history: SessionPolicy['history']
  readonly engine: TokenEngine
  readonly readsChat: (sink: UpstreamSink) => UpstreamSink
  /** Null while it is not known, or known to be missing: calls are recorded then. */
  readonly ability: () => TokenAbility | null
  readonly closings: Closings
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
  /** What shaped the prompt of each call beside its messages. */
  private readonly renderedWith = new Map<Id, string>()

  constructor(parts: SpliceParts) {
    this.parts = parts
    this.tree = new RecordedTree(parts.sessionId)
  }

  strategyFor(messages: readonly unknown[]): 'record' | 'splice' {
    return this.parts.ability() === null || hasMedia(messages) ? 'record' : 'splice'
  }

  send(call: OutgoingCall, sink: Parameters<TokenStrategyDriver['send']>[1]): ReturnType<TokenStrategyDriver['send']> {
    const { upstream, engine, readsChat, closings, history } = this.parts
    const ability = this.parts.ability()
    const running: Running = { chat: new ChatBody(call.body), plan: null, findings: [], weightVersions: new Map() }
    this.running.set(call.callId, running)
    if (call.strategy === 'record' || ability === null) {
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
      plan: (rendered, render) =>
        planPrompt(
          {
            tree: this.tree,
            closings,
            history,
            render,
            endsTurns: ability.endsTurns,
            renderedWith: (answer) =>
              answer.node.callId === null ? undefined : this.renderedWith.get(answer.node.callId),
          },
          { chat: running.chat, match: call.match, rendered },
        ),
      notes: {
        planned: (plan) => {
          running.plan = plan
        },
        fellBack: (why) => running.findings.push(why),
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
    if (running !== undefined) this.renderedWith.set(call.callId, running.chat.renderDigest)
    const notes: CallNotes = {
      forked: running?.plan?.forked ?? null,
      findings: running?.findings ?? [],
      weightVersions: running?.weightVersions ?? new Map(),
    }
    return this.tree.add(call, notes)
  }

  takeUp(call: PastCall): void {
    this.renderedWith.set(call.callId, new ChatBody(call.body).renderDigest)
    this.tree.takeUp(call)
  }
}
