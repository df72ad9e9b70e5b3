import { describe, expect, it } from 'vitest'
import { editsBetween, editsOfPrompt, type PromptEdit } from './edits.ts'

/** Numbers below `bound` from a seed (mulberry32). */
function randomOf(seed: number): (bound: number) => number {
  let state = seed
  return (bound) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound
  }
}

function applied(full: Int32Array, edits: readonly PromptEdit[]): number[] {
  const out: number[] = []
  let from = 0
  for (const { start, end, ids } of edits) {
    out.push(...full.subarray(from, start), ...ids)
    from = end
  }
  return [...out, ...full.subarray(from)]
}

describe('editsBetween', () => {
  it('gives the other render exactly, wherever and however often something was put in', () => {
    const random = randomOf(7)
    for (let round = 0; round < 2000; round += 1) {
      // Few different ids, so that the same runs of them come again and again.
      const kinds = 2 + random(40)
      const clean = Array.from({ length: random(120) }, () => random(kinds))
      const full = [...clean]
      for (let put = random(4); put > 0; put -= 1) {
        full.splice(random(full.length + 1), random(3), ...Array.from({ length: 1 + random(30) }, () => random(kinds)))
      }
      const edits = editsBetween(Int32Array.from(full), Int32Array.from(clean))
      expect(applied(Int32Array.from(full), edits)).toEqual(clean)
      for (const [at, { start, end }] of edits.entries()) {
        expect(end).toBeGreaterThanOrEqual(start)
        expect(start).toBeGreaterThanOrEqual(edits[at - 1]?.end ?? 0)
      }
    }
  })

  it('finds few words between two texts', () => {
    const words = (from: number, count: number) => Array.from({ length: count }, (_, at) => from + at)
    const clean = [...words(0, 20), ...words(100, 7), ...words(200, 40)]
    const full = [...words(0, 20), ...words(500, 30), ...words(100, 7), ...words(600, 30), ...words(200, 40)]
    expect(editsBetween(Int32Array.from([...full, 1]), Int32Array.from([...clean, 2]))).toEqual([
      { start: 20, end: 50, ids: [] },
      { start: 57, end: 87, ids: [] },
      { start: 127, end: 128, ids: [2] },
    ])
  })

  it('touches nothing between two places, and what a tokenizer writes otherwise at their borders', () => {
    const words = (from: number, count: number) => Array.from({ length: count }, (_, at) => from + at)
    const clean = [...words(0, 50), 900, ...words(100, 50), 901, ...words(200, 30)]
    const full = [
      ...words(0, 50),
      910,
      ...words(500, 20),
      911,
      ...words(100, 50),
      901,
      ...words(600, 9),
      ...words(200, 30),
    ]
    expect(editsBetween(Int32Array.from(full), Int32Array.from(clean))).toEqual([
      { start: 50, end: 72, ids: [900] },
      { start: 123, end: 132, ids: [] },
    ])
  })
})

describe('editsOfPrompt', () => {
  const rendered = Int32Array.from([1, 2, 3, 4, 5, 6, 7, 8])
  const edits = [
    { start: 1, end: 2, ids: [] },
    { start: 6, end: 7, ids: [9] },
  ]

  it('is the same for the same ids', () => {
    expect(editsOfPrompt(rendered, rendered, edits)).toEqual(edits)
  })

  it('of a spliced prompt are those of its rendered end, at their places there', () => {
    expect(editsOfPrompt(Int32Array.from([1, 2, 3, 40, 41, 42, 6, 7, 8]), rendered, edits)).toEqual([
      { start: 7, end: 8, ids: [9] },
    ])
  })
})
