import type { OpenedSession, Proxy, SessionStats } from '../../proxy/index.ts'

/** The sessions of one rollout's agents as one: the first agent's first. */
export class AgentSessions {
  readonly all: readonly OpenedSession[]
  readonly #proxy: Pick<Proxy, 'sessionStats' | 'shelveSession' | 'resumeSession' | 'canShelve'>

  constructor(proxy: AgentSessions['shelvable'] & Pick<Proxy, 'sessionStats'>, all: readonly OpenedSession[]) {
    this.#proxy = proxy
    this.all = all
  }

  /** Counts are sums; the first fault and the first budget that is used up stand for all. */
  stats(): SessionStats {
    const each = this.all.map(({ session }) => this.#proxy.sessionStats(session.id))
    const [first, ...others] = each
    if (first === undefined) throw new Error('a rollout has a session')
    return others.reduce(
      (one, other) => ({
        sessionId: one.sessionId,
        open: one.open || other.open,
        calls: one.calls + other.calls,
        answered: one.answered + other.answered,
        inFlight: one.inFlight + other.inFlight,
        sampledTokens: one.sampledTokens + other.sampledTokens,
        modelWaitMs: one.modelWaitMs + other.modelWaitMs,
        exhausted: one.exhausted ?? other.exhausted,
        taints: [...new Set([...one.taints, ...other.taints])],
        unsound: one.hasSound || other.hasSound ? null : (one.unsound ?? other.unsound),
        hasSound: one.hasSound || other.hasSound,
        lastError: one.lastError ?? other.lastError,
        replaying: one.replaying || other.replaying,
      }),
      first,
    )
  }

  /** What puts an agent aside puts all of them aside. */
  get shelvable(): Pick<Proxy, 'shelveSession' | 'resumeSession' | 'canShelve'> {
    const ids = this.all.map(({ session }) => session.id)
    const proxy = this.#proxy
    return {
      shelveSession: async () => {
        const ended = await Promise.all(ids.map((id) => proxy.shelveSession(id)))
        return ended.reduce((sum, one) => sum + one, 0)
      },
      resumeSession: () => ids.forEach((id) => proxy.resumeSession(id)),
      canShelve: () => ids.every((id) => proxy.canShelve(id)),
    }
  }
}
