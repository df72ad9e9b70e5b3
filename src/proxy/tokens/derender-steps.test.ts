import { expect, it } from 'vitest'
import { StreamCount } from './derender-steps.ts'

it('many streams make steps larger up to a bound, and whoever leaves twice left once', () => {
  const streams = new StreamCount()
  const leave = Array.from({ length: 16 }, () => streams.join())
  expect(streams.tokens).toBe(4)
  for (const one of leave.slice(0, 8)) {
    one()
    one()
  }
  expect(streams.tokens).toBe(2)
  for (const one of leave) one()
  expect(streams.tokens).toBe(0)
  for (let stream = 0; stream < 1000; stream += 1) streams.join()
  expect(streams.tokens).toBe(16)
})
