import { expect, it } from 'vitest'
import { idMaker, isId, newId } from './ids.ts'

it('an id is the time, a counter and random bytes, written as a UUID of version 7', () => {
  let now = 0x01_23_45_67_89_ab
  const clock = { now: () => now, monotonic: () => 0 }
  const make = idMaker(clock, (bytes) => bytes.forEach((_, at) => (bytes[at] = 0xf0 + at)))
  expect(make()).toBe('01234567-89ab-7000-b8f9-fafbfcfdfeff')
  expect(make()).toBe('01234567-89ab-7001-b8f9-fafbfcfdfeff')
  now -= 1
  expect(make()).toBe('01234567-89ab-7002-b8f9-fafbfcfdfeff')
  now += 2
  expect(make()).toBe('01234567-89ac-7000-b8f9-fafbfcfdfeff')
})

it('ids are increasing and their random bytes are never those of another one', () => {
  const ids = Array.from({ length: 2000 }, () => newId())
  expect(ids.every(isId)).toBe(true)
  expect(ids.toSorted()).toEqual(ids)
  expect(new Set(ids.map((id) => id.slice(19))).size).toBe(ids.length)
})
