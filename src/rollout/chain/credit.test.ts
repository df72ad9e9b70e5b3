import { describe, expect, it } from 'vitest'
import { type LinkRollout, shareOf } from './credit.ts'

interface Told {
  readonly from?: string
  readonly used?: readonly string[] | null
  readonly wrote?: readonly string[]
  /** Null: it has no number. */
  readonly reward?: number | null
  readonly status?: 'scored' | 'hacked'
}

/** A member of a link, as far as credit looks at it. */
function member(
  rolloutId: string,
  { from, used = [], wrote = [], reward = 1, status = 'scored' }: Told = {},
): LinkRollout {
  const verdict = reward === null ? null : { status, reward }
  const library = { kind: 'library', given: null, left: 'd', from: from ?? null, files: 1, used, wrote, refused: [] }
  return { rollout: { rolloutId, verdict }, member: 0, library } as unknown as LinkRollout
}

const first = member('a', { wrote: ['tool'] })
const share = (...later: readonly (readonly LinkRollout[])[]) => shareOf([[first], ...later], 0, first)

describe('the credit of a library', () => {
  it('is the mean over later links of who solved them with a file of it', () => {
    const used = (id: string, more: Told = {}) => member(id, { from: 'a', used: ['tool'], ...more })
    expect(share([used('b')])).toBe(1)
    expect(share([used('b'), used('c', { reward: 0 })], [used('d')])).toBe(0.75)
    expect(share([used('b', { reward: 0.5 })])).toBe(0)
  })

  it('is nothing for what was not read, was read and is of somebody else, or was cheated with', () => {
    expect(share([member('b', { from: 'a', used: [] })])).toBe(0)
    expect(share([member('b', { from: 'a', used: ['other'] })])).toBe(0)
    expect(share([member('b', { from: 'a', used: ['tool'], status: 'hacked' })])).toBe(0)
  })

  it('leaves out who solved them with unknown files, and counts who did not solve them', () => {
    const unknown = (id: string, reward: number) => member(id, { from: 'a', used: null, reward })
    expect(share([unknown('b', 1)])).toBe(null)
    expect(share([unknown('b', 0)])).toBe(0)
    expect(share([unknown('b', 1), member('c', { from: 'a', used: ['tool'] }), unknown('d', 0)])).toBe(0.5)
  })

  it('goes over links in between, and to nobody whose library did not go on', () => {
    const between = member('b', { from: 'a', reward: 0, wrote: ['other'] })
    expect(share([between], [member('c', { from: 'b', used: ['tool'] })])).toBe(0.5)
    expect(share([member('b', { from: 'z', used: ['tool'] })])).toBe(null)
  })

  it('goes to who wrote what was read, not to who wrote it before', () => {
    const anew = member('b', { from: 'a', used: ['tool'], wrote: ['tool'] })
    const reads = member('c', { from: 'b', used: ['tool'] })
    expect(share([anew], [reads])).toBe(0.5)
    expect(shareOf([[first], [anew], [reads]], 1, anew)).toBe(1)
  })

  it('leaves out what machines failed', () => {
    const failed = member('b', { from: 'a', reward: null })
    expect(share([failed])).toBe(null)
    expect(share([failed, member('c', { from: 'a', used: ['tool'] })])).toBe(1)
    expect(share([failed], [member('c', { from: 'a', used: ['tool'] })])).toBe(1)
  })
})
