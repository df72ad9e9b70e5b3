import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { Admission, mostBehind } from './admission.ts'

it('lets what comes behind go when no call waits, a few at once', async () => {
  const admission = new Admission(1, 10)
  const went: string[] = []
  const note = (name: string) => () => went.push(name)
  admission.enter(note('first'))
  void admission.enterBehind().then(note('behind'))
  admission.enter(note('second'))
  await nextTurn()
  expect(went).toEqual(['first'])
  admission.leave()
  await nextTurn()
  expect(went).toEqual(['first', 'second'])
  admission.leave()
  await nextTurn()
  expect(went).toEqual(['first', 'second', 'behind'])
  // A call waits for its place as for any other.
  admission.enter(note('third'))
  expect(admission.queued).toBe(1)
  admission.leaveBehind()
  expect(went.at(-1)).toBe('third')
  admission.leave()
  expect(admission.inFlight).toBe(0)

  const roomy = new Admission(100, 10)
  let through = 0
  for (let one = 0; one < mostBehind + 2; one += 1) void roomy.enterBehind().then(() => (through += 1))
  await nextTurn()
  expect(through).toBe(mostBehind)
  roomy.leaveBehind()
  await nextTurn()
  expect(through).toBe(mostBehind + 1)
})
