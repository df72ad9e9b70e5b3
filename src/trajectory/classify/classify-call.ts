import type { CallClass, Lineage } from '../../core/index.ts'

/** An earlier call of the session with the class that it got. */
export interface ClassifiedCall {
  readonly lineage: Lineage
  readonly callClass: CallClass
}

/** What else is known of a call. */
export interface CallFacts {
  /** The limit that the client asked for, null when it asked for none. */
  readonly maxTokens: number | null
}

/**
 * What harnesses say that a request is for. Codex: `x-openai-subagent` and `x-codex-turn-metadata`, where
 * `collab_spawn` and `review` are work, `compact` and `memory_consolidation` are upkeep. Kinds that are not listed say
 * nothing: an ordinary turn may carry one too.
 */
const kinds: readonly (readonly [RegExp, CallClass])[] = [
  [/compact/i, 'compaction'],
  [/title/i, 'title'],
  [/memory|summar/i, 'other'],
  [/count/i, 'count'],
  [/spawn|review|sub_?agent/i, 'subagent'],
]

/** Programs whose agent always offers tools: what they ask without tools is a side call, also when it comes first. */
const agentPrograms =
  /^(pi \(|(opencode|claude-cli|claude-code|codex|qwen-?code|gemini-?cli|cline|pi-coding-agent)(\b|_))/i

/** A title or label is a line; harnesses ask for it with a small limit. */
const titleTokens = 256

/**
 * What a call is to its rollout, from its lineage and the calls before it. The harness's own word comes first. Else the
 * first calls set the pattern: the first system prompt that carries tools is the agent, and in a session without any
 * tools the first system prompt is. What fits neither is a side call, so that it is not trained as the agent. Pure.
 */
export function classifyCall(
  lineage: Lineage,
  history: readonly ClassifiedCall[],
  facts: CallFacts = { maxTokens: null },
): CallClass {
  const { requestKind } = lineage
  const said = requestKind === null ? undefined : kinds.find(([kind]) => kind.test(requestKind))
  if (said !== undefined) return said[1]
  if (lineage.nativeParent !== null) return 'subagent'
  const withTools = history.find((call) => call.callClass === 'main' && call.lineage.toolCount > 0)
  if (withTools !== undefined) return besideAgent(lineage, withTools.lineage, facts)
  if (lineage.toolCount > 0) return 'main'
  if (agentPrograms.test(lineage.userAgent ?? '')) return sideCall(facts)
  const first = history.find((call) => call.callClass === 'main')
  return first === undefined || first.lineage.systemDigest === lineage.systemDigest ? 'main' : sideCall(facts)
}

/** In a session that has its agent: the agent again, another one by its own id or by prompt and tools both, or aside. */
function besideAgent(lineage: Lineage, agent: Lineage, facts: CallFacts): CallClass {
  const samePrompt = lineage.systemDigest === agent.systemDigest
  if (lineage.toolCount === 0) return samePrompt && lineage.systemDigest !== null ? 'main' : sideCall(facts)
  if (lineage.nativeAgent !== agent.nativeAgent && lineage.nativeAgent !== null) return 'subagent'
  return samePrompt || lineage.toolsDigest === agent.toolsDigest ? 'main' : 'subagent'
}

/** One token is no title: Claude Code asks for it to see whether its key has quota left. */
function sideCall(facts: CallFacts): CallClass {
  if (facts.maxTokens === 1) return 'probe'
  return facts.maxTokens !== null && facts.maxTokens <= titleTokens ? 'title' : 'other'
}
