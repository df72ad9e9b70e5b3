import type { CallClass, Lineage } from '../../core/index.ts'

/** An earlier call of the session with the class that it got. */
export interface ClassifiedCall {
  readonly lineage: Lineage
  readonly callClass: CallClass
}

/**
 * What a call is to its rollout, from its lineage and the calls before it. The harness's own word comes first; else the
 * first calls set the pattern: with tools, the tool-carrying system prompt is the agent; in a session without any tools
 * the first system prompt is. What fits neither is `other`, so that a title or summary call is not trained as the agent.
 */
export function classifyCall(lineage: Lineage, history: readonly ClassifiedCall[]): CallClass {
  const kind = lineage.requestKind ?? ''
  if (/compact/i.test(kind)) return 'compaction'
  if (/title/i.test(kind)) return 'title'
  if (/memory|summar/i.test(kind)) return 'other'
  if (kind !== '' || lineage.nativeParent !== null) return 'subagent'
  const agents = history.filter((call) => call.callClass === 'main').map((call) => call.lineage)
  const withTools = agents.find((agent) => agent.toolCount > 0)
  if (withTools !== undefined) {
    if (lineage.toolCount === 0) return 'other'
    const same = lineage.systemDigest === withTools.systemDigest || lineage.toolsDigest === withTools.toolsDigest
    return same ? 'main' : 'subagent'
  }
  const [first] = agents
  if (lineage.toolCount > 0 || first === undefined) return 'main'
  return lineage.systemDigest === first.systemDigest ? 'main' : 'other'
}
