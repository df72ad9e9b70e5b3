/** Trajectories through every format of messages and back. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { roundTrip } from '../../src/trajectory/import/round-trip.fixture.ts'
import { sized } from './size.ts'

const count = sized(1_000, 300)

it(`gives ${count} trajectories back by way of every format, equal where the format can say it`, async () => {
  const root = await mkdtemp(join(tmpdir(), 'paddock-round-trip-'))
  try {
    await roundTrip(root, count)
  } finally {
    await rm(root, { recursive: true })
  }
  expect.hasAssertions()
})
