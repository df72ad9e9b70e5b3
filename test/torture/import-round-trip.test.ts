/** 1,000 trajectories through every format of messages and back. */
import { expect, it } from 'vitest'
import { roundTrip } from '../../src/trajectory/import/round-trip.fixture.ts'
import { tempDir } from '../fixtures/temp-dir.ts'

it('gives 1,000 trajectories back by way of every format, equal where the format can say it', async () => {
  const root = tempDir()
  await roundTrip(root, 1_000)
  expect.hasAssertions()
})
