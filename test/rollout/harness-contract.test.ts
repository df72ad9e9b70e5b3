/** Every harness that Paddock brings runs the suite of harnesses, as a user's would. */
import { describe, expect, it } from 'vitest'
import { harnessRegistry } from '../../src/rollout/index.ts'
import { harnessContract } from '../../src/testing/harness.ts'

/** Agents of one environment: without its tools or its box they have nothing to say. Each with the reason. */
const needsItsEnvironment: Readonly<Record<string, string>> = {
  'gui-text': 'acts on the screen of a gui box',
  'reex-sql': 'answers in tags that query a database',
  'skyrl-sql': 'answers in tags that query a database',
}

const registry = harnessRegistry()
// As `examples/harness/one-answer.mjs`: one request, whose answer it prints.
const command = `node ${JSON.stringify(new URL('../../examples/harness/one-answer.mjs', import.meta.url).pathname)}`

it('knows each harness, and names no other', () => {
  expect(registry.names.length).toBeGreaterThan(8)
  expect(Object.keys(needsItsEnvironment).filter((name) => !registry.names.includes(name))).toEqual([])
})

describe.each(registry.names.filter((name) => !(name in needsItsEnvironment)))('%s', (name) => {
  harnessContract(registry.get(name, { command }))
})
