/** 1,000 trajectories through every format of messages and back. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { roundTrip } from '../../src/trajectory/import/round-trip.fixture.ts'

it('gives 1,000 trajectories back by way of every format, equal where the format can say it', async () => {
  const root = await mkdtemp(join(tmpdir(), 'paddock-round-trip-'))
  try {
    await roundTrip(root, 1_000)
  } finally {
    await rm(root, { recursive: true })
  }
  expect.hasAssertions()
})
