import { z } from 'zod'
import type { Tool } from '../../contract.ts'
import { defineTool } from '../../tool.ts'
import type { ActionAdapter } from '../adapters/index.ts'
import { parseAction, type Screen } from '../actions/index.ts'
import type { ComputerOf } from './computer.ts'

/** What a schema says stands in its own members, or in `text` where it is a text. */
const input = z.looseObject({ text: z.string().optional() })

/** Canonical actions that are always understood: few schemas have words for the end of an attempt, or for a first look. */
const always = new Set<string>(['done', 'answer', 'fail', 'screenshot'])

/** The tool `computer` in the words of a schema that models are trained on; what it does are the canonical actions. */
export function adaptedTool(adapter: ActionAdapter, screen: Screen, sessionOf: ComputerOf): Tool {
  return defineTool({
    name: 'computer',
    description:
      `Uses mouse, keyboard and screen by the schema ${adapter.name}: its arguments as they are, or its text as "text". ` +
      `${adapter.places(screen)} Returns a screenshot. ` +
      'End the attempt with {"action": "done"}, with {"action": "answer", "text": …} where something was asked, or with {"action": "fail"}.',
    ...(adapter.spoken === undefined ? {} : { spoken: adapter.spoken(screen) }),
    input,
    run: async (context, given) => {
      const session = await sessionOf(context)
      const scene = { screen: session.screen, pointer: session.pointer }
      const members = Object.keys(given)
      const said = members.length === 1 && given.text !== undefined ? given.text : given
      const plain = parseAction(given, session.screen)
      const parsed = plain.ok && always.has(plain.action.action) ? plain : adapter.read(said, scene)
      if (!parsed.ok) return { status: 'error', text: parsed.error }
      return session.work('picture', () => session.act(parsed.action))
    },
  })
}

/** The scale at which pictures of the screen are what the schema counts on; 1 where it does not shrink them. */
export function pictureScale(adapter: ActionAdapter, screen: Screen): number {
  const { width, height } = adapter.picture(screen)
  const [across, down] = [width / screen.width, height / screen.height]
  return across < 1 && Math.abs(across - down) < 0.02 ? across : 1
}
