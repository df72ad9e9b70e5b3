import type { Digest, Verdict, VerdictDraft } from '../core/index.ts'

/** Who scored, how far the agent was kept from it, and what was looked at. Everything of a draft but its number. */
export interface DraftFacts {
  readonly verifier: { readonly id: string; readonly version: string; readonly sha256: Digest }
  readonly trust: Verdict['trust']
  readonly components?: Readonly<Record<string, number>>
  readonly steps?: Verdict['steps']
  readonly evidence?: string
  readonly artifacts?: Verdict['artifacts']
  readonly costTokens?: number
  /** Of a draft with a number: those of policies that get another one, by name. Default: all get the same. */
  readonly byPolicy?: Readonly<Record<string, number>>
}

/** Most of `evidence` that a verdict keeps, in UTF-16 units. The tail is kept: test output says the result last. */
export const evidenceLimit = 8192

/** A draft with a number. A reward that is not finite is not a reward: it becomes `unscorable`. */
export function scored(reward: number, facts: DraftFacts): VerdictDraft {
  return numbered('scored', reward, facts)
}

/** A draft for an attempt that was seen to cheat; `reward` is what it is given, normally 0. */
export function hacked(reward: number, facts: DraftFacts): VerdictDraft {
  return numbered('hacked', reward, facts)
}

function numbered(status: 'scored' | 'hacked', reward: number, facts: DraftFacts): VerdictDraft {
  const { byPolicy } = facts
  const wrong = [reward, ...Object.values(byPolicy ?? {})].find((number) => !Number.isFinite(number))
  if (wrong !== undefined) return unscored('unscorable', `The reward ${wrong} is not a finite number.`, facts)
  return { status, reward, ...completed(facts), ...(byPolicy === undefined ? {} : { byPolicy }) }
}

/** A draft without a number, and why. Never 0: reward 0 means that the agent failed (invariant I7). */
export function unscored(
  status: Exclude<Verdict['status'], 'scored' | 'hacked'>,
  reason: string,
  facts: DraftFacts,
): VerdictDraft {
  return { status, reward: null, reason, ...completed(facts) }
}

function completed(facts: DraftFacts) {
  return {
    verifier: facts.verifier,
    trust: facts.trust,
    components: facts.components ?? {},
    steps: facts.steps ?? [],
    evidence: (facts.evidence ?? '').slice(-evidenceLimit),
    artifacts: facts.artifacts ?? [],
    costTokens: facts.costTokens ?? 0,
  }
}
