import { expect, it } from 'vitest'
import type { EventBody } from '../../core/index.ts'
import { Floor, type TurnRules } from './floor.ts'

const agents = (...names: string[]) => names.map((name) => ({ name, prompt: `You are ${name}.` }))

function floorOf(rules: TurnRules): { readonly floor: Floor; readonly events: EventBody[] } {
  const events: EventBody[] = []
  return { floor: new Floor(rules, (event) => void events.push(event)), events }
}

it('gives the floor in order: each hears what was said since its own last turn', async () => {
  const { floor, events } = floorOf({ agents: agents('a', 'b'), maxTurns: 3 })
  const first = floor.turnOf('b')
  expect(await floor.turnOf('a')).toBe('')
  const next = floor.pass('a', 'The door is red.')
  expect(await first).toBe('The door is red.')
  const answered = floor.pass('b', 'Then 4.')
  expect(await next).toBe('Then 4.')
  expect(await floor.pass('a', 'It is open.')).toBeNull()
  expect(await answered).toBeNull()
  expect(floor.talk.map(({ agent, text }) => [agent, text])).toEqual([
    ['a', 'The door is red.'],
    ['b', 'Then 4.'],
    ['a', 'It is open.'],
  ])
  expect(events.map((event) => (event.kind === 'agent_turn' ? [event.turn, event.agent, event.over] : []))).toEqual([
    [1, 'a', null],
    [2, 'b', null],
    [3, 'a', 'max_turns'],
  ])
})

it('of three, each is told who said what', async () => {
  const { floor } = floorOf({ agents: agents('a', 'b', 'c'), maxTurns: 9 })
  const [second, third] = [floor.turnOf('b'), floor.turnOf('c')]
  void floor.pass('a', 'one')
  expect(await second).toBe('a: one')
  void floor.pass('b', 'two')
  expect(await third).toBe('a: one\n\nb: two')
})

it('is over with the word for it, and with a turn without words', async () => {
  const word = floorOf({ agents: agents('a', 'b'), maxTurns: 9, doneWord: 'DONE' })
  expect(await word.floor.pass('a', 'It is DONE now.')).toBeNull()
  expect(await word.floor.turnOf('b')).toBeNull()
  expect(word.events).toMatchObject([{ over: 'done' }])
  const silent = floorOf({ agents: agents('a', 'b'), maxTurns: 9 })
  expect(await silent.floor.pass('a', null)).toBeNull()
  expect(silent.events).toMatchObject([{ over: 'silent', said: '' }])
})
