import type { RuleResult } from '../rule.ts'
import { normaliseAnswer } from './normalise.ts'

/** How much of the gold evidence is among what was found: distinct, order does not count. 1 when no evidence is known. */
export function evidenceRecall(gold: readonly string[], found: Iterable<string>): RuleResult {
  const wanted = new Set(gold)
  if (wanted.size === 0) return { value: 1, why: 'no evidence is known' }
  const hits = new Set([...found].filter((id) => wanted.has(id))).size
  return { value: hits / wanted.size, why: `${hits} of ${wanted.size} pieces of evidence` }
}

/**
 * The share of citations that name something which was really shown to the agent in this attempt. 0 without any
 * citation. Citing one thing twice counts once.
 */
export function citationsGrounded(citations: readonly string[], shown: ReadonlySet<string>): RuleResult {
  const cited = new Set(citations)
  if (cited.size === 0) return { value: 0, why: 'nothing is cited' }
  const unseen = [...cited].filter((id) => !shown.has(id))
  const value = (cited.size - unseen.length) / cited.size
  return {
    value,
    why: unseen.length === 0 ? 'all citations were read' : `never shown: ${unseen.slice(0, 5).join(', ')}`,
  }
}

/** 1 when one of the cited texts says the answer, both normalised. */
export function answerInEvidence(answer: string, texts: readonly string[]): RuleResult {
  const given = normaliseAnswer(answer)
  const says = given !== '' && texts.some((text) => ` ${normaliseAnswer(text)} `.includes(` ${given} `))
  return { value: says ? 1 : 0, why: says ? 'a citation says it' : 'no citation says it' }
}
