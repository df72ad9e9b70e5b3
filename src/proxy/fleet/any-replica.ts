import type { EngineAdapter } from '../engines/contract.ts'

/**
 * The engine as one, whatever replica answers: questions go to one that serves now, and what an adapter learns from its own
 * answers (versions, parsers) is asked of the adapter that learned it.
 */
export function anyReplica(engine: EngineAdapter, now: () => EngineAdapter): EngineAdapter {
  let known = engine
  const { tokens } = engine
  let knownTokens = tokens
  return {
    ...engine,
    // The first one may have left.
    get url() {
      return now().url
    },
    get apiKey() {
      return now().apiKey
    },
    planChat: (facts) => known.planChat(facts),
    get logprobKind() {
      return known.logprobKind
    },
    async learn(how) {
      const asked = now()
      const facts = await asked.learn(how)
      known = asked
      return facts
    },
    async fingerprint() {
      const asked = now()
      const fingerprint = await asked.fingerprint()
      known = asked
      return fingerprint
    },
    ...(engine.promptIds === undefined
      ? {}
      : { promptIds: (chat) => (now().promptIds ?? engine.promptIds ?? none)(chat) }),
    ...(engine.textIds === undefined ? {} : { textIds: (text) => (now().textIds ?? engine.textIds ?? none)(text) }),
    ...(engine.score === undefined
      ? {}
      : { score: (ids, adapter) => (now().score ?? engine.score ?? none)(ids, adapter) }),
    ...(tokens === undefined || knownTokens === undefined
      ? {}
      : {
          tokens: {
            ...tokens,
            async probe() {
              const asked = now().tokens ?? tokens
              const ability = await asked.probe()
              knownTokens = asked
              return ability
            },
            ask: (question) => (knownTokens ?? tokens).ask(question),
            derenderWhole: (...facts) => (knownTokens ?? tokens).derenderWhole(...facts),
          },
        }),
  }
}

function none(): never {
  throw new TypeError('the replicas of an engine are of one kind')
}
