import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Segment } from '../../trajectory/index.ts'
import { PathTree } from './path-tree.ts'

let made = 0
const segment = (origin: Segment['origin'], ids: readonly number[], parent: Segment['parent']): Segment => ({
  id: `segment ${(made += 1)}`,
  sessionId: 's',
  callId: null,
  choice: null,
  parent,
  origin,
  tokens: Int32Array.from(ids),
  logprobs: null,
  flags: null,
  logprobKind: 'unknown',
  policySpans: [],
  replayOf: null,
  stopCut: false,
})

/** Hangs a prompt as the record strategy does and returns the place behind it. */
function hang(tree: PathTree, ids: readonly number[], preferred: Segment[] = []): Segment['parent'] {
  const place = tree.place(Int32Array.from(ids), new Set(preferred.map((one) => one.id)))
  const at = place.at === null ? null : { segmentId: place.at.segment.id, offset: place.at.offset }
  if (place.matched === ids.length) return at
  const fresh = segment('prompt', ids.slice(place.matched), at)
  tree.add(fresh)
  return { segmentId: fresh.id, offset: fresh.tokens.length }
}

describe('PathTree', () => {
  it('gives every prompt back, id for id, and stores no prompt token twice', () => {
    const prompts = fc.array(fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 12 }), {
      maxLength: 12,
    })
    fc.assert(
      fc.property(prompts, (all) => {
        const tree = new PathTree()
        const distinct = new Set<string>()
        for (const ids of all) {
          hang(tree, ids)
          for (let i = 1; i <= ids.length; i += 1) distinct.add(ids.slice(0, i).join())
        }
        for (const ids of all) {
          const place = tree.place(Int32Array.from(ids), new Set())
          expect(place.matched).toBe(ids.length)
          const { segment: end, offset } = place.at ?? { segment: segment('prompt', [], null), offset: 0 }
          const path = tree.pathIds(end)
          expect([...path.subarray(0, path.length - end.tokens.length + offset)]).toEqual(ids)
        }
        expect(tree.size).toBe(distinct.size)
      }),
    )
  })

  it('does not choose between equal samples unless the conversation names one', () => {
    const tree = new PathTree()
    const prompt = hang(tree, [1, 2, 3])
    const [a, b] = [segment('sampled', [7, 8], prompt), segment('sampled', [7, 8], prompt)]
    tree.add(a)
    tree.add(b)
    const next = Int32Array.of(1, 2, 3, 7, 8, 9)
    expect(tree.place(next, new Set())).toMatchObject({ matched: 3, ambiguous: true, through: [] })
    expect(tree.place(next, new Set([b.id]))).toMatchObject({ matched: 5, ambiguous: false, through: [b] })
  })

  it('goes the longest way, and runs through a sample only to its end', () => {
    const tree = new PathTree()
    const prompt = hang(tree, [1, 2, 3])
    const [left, right] = [segment('sampled', [7, 8, 1], prompt), segment('sampled', [7, 8, 9, 9], prompt)]
    tree.add(left)
    tree.add(right)
    const place = (ids: readonly number[]) => tree.place(Int32Array.from(ids), new Set())
    expect(place([1, 2, 3, 7, 8, 9])).toMatchObject({ matched: 6, at: { segment: right, offset: 3 }, through: [] })
    expect(place([1, 2, 3, 7, 8, 9, 9, 5])).toMatchObject({ matched: 7, through: [right] })
    expect(place([1, 2, 3, 7, 8, 1])).toMatchObject({ matched: 6, through: [left] })
  })

  it('counts the sampled tokens behind a position', () => {
    const tree = new PathTree()
    const sampled = segment('sampled', [4, 5, 6], hang(tree, [1, 2, 3]))
    tree.add(sampled)
    expect([0, 3, 4, 6].map((position) => tree.sampledBehind(sampled, position))).toEqual([3, 3, 2, 0])
  })
})
