import { viewPrompt } from '../chat/prompt-view.ts'
import { answersTo } from './policy.ts'
import { TrieWalk } from './trie.ts'
import type { Engine } from '../engine.ts'

/** Logprob of an id that no answer of the policy has at its place: of all that the vocabulary has, none is likelier. */
function untold(size: number): number {
  return -Math.log(size)
}

/**
 * The logprob of each id of a sequence given those before it, as the policy would have sampled it freely, before temperature and
 * truncation; null for the first. Within the turns of the assistant it is true: log(mass(child) / mass(node)) until the turn leaves every
 * answer that the policy has. Everywhere else, where a model would say something and this policy has nothing to say, all ids of the
 * vocabulary are alike. A turn is scored as if its prompt ended at its header or, where that fits better, behind thinking that a template
 * opens.
 */
export async function scoreIds(ids: Int32Array, engine: Engine): Promise<(number | null)[]> {
  const { vocabulary, grammar } = engine.profile
  const scores: (number | null)[] = Array.from(ids, (_, at) => (at === 0 ? null : untold(vocabulary.size)))
  const start = vocabulary.idOf(grammar.startToken)
  for (let at = ids.indexOf(start); at !== -1; at = ids.indexOf(start, at + 1)) {
    const next = ids.indexOf(start, at + 1)
    const end = next === -1 ? ids.length : next
    // The first place behind the header at which the turn is open and empty.
    let body = at + 1
    const longest = Math.min(end, at + 12)
    while (body <= longest && viewPrompt(ids.subarray(0, body), vocabulary, grammar).open?.length !== 0) body += 1
    if (body > longest) continue
    // A header may have a blank behind it that belongs to it.
    if (body < end && viewPrompt(ids.subarray(0, body + 1), vocabulary, grammar).open?.length === 0) body += 1
    let best: readonly number[] = []
    let from = body
    for (const opened of openings(ids.subarray(body, end), engine)) {
      const found = await scoreTurn(ids, { from: body + opened, end }, engine)
      if (found.length > best.length) {
        best = found
        from = body + opened
      }
    }
    for (const [offset, score] of best.entries()) scores[from + offset] = score
  }
  return scores
}

/** Lengths of what a template may have written at the beginning of a turn. */
function openings(turn: Int32Array, { profile }: Engine): readonly number[] {
  const lengths = [0]
  for (let length = 1; length <= Math.min(8, turn.length); length += 1) {
    const text = profile.vocabulary.decode(turn.subarray(0, length))
    if (text === '<think>\n' || text === '<think>\n\n</think>\n\n') lengths.push(length)
  }
  return lengths
}

/** Logprobs of the ids of a turn from a place in it, as far as the policy has an answer that goes on so. */
async function scoreTurn(
  ids: Int32Array,
  { from, end }: { readonly from: number; readonly end: number },
  engine: Engine,
): Promise<readonly number[]> {
  const view = viewPrompt(ids.subarray(0, from), engine.profile.vocabulary, engine.profile.grammar)
  const { candidates, depth } = await answersTo(view, engine.scripts, engine.profile, { kind: 'free' })
  const walk = new TrieWalk(candidates, depth)
  const found: number[] = []
  for (let at = from; at < end; at += 1) {
    const id = ids[at] ?? -1
    const next = walk.next().find((one) => one.id === id)
    if (next === undefined) break
    found.push(Math.log(next.probability))
    walk.advance(id)
  }
  return found
}
