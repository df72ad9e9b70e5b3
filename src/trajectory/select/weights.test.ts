import { expect, it } from 'vitest'
import type { Row } from '../rows-contract.ts'
import { rowWeights } from './weights.ts'

/** Rows with so many trained tokens each. */
const rowsOf = (trained: readonly number[]): readonly Row[] =>
  trained.map((count) => ({ mask: Uint8Array.from({ length: 6 }, (_, at) => (at < count ? 1 : 0)) }) as unknown as Row)

it.each([
  ['full', [0, 1, 1, 0]],
  ['1/K', [0, 0.5, 0.5, 0]],
  ['per-token', [0, 0.25, 0.75, 0]],
  ['first-owner', [0, 1, 0, 0]],
] as const)('by %s, a row with nothing to train carries none of the reward', (rule, weights) => {
  expect(rowWeights(rowsOf([0, 1, 3, 0]), rule)).toEqual(weights)
  expect(rowWeights(rowsOf([0, 0]), rule)).toEqual([0, 0])
})
