import { z } from 'zod'
import type { Tool, ToolContext } from '../../contract.ts'
import { defineTool } from '../../tool.ts'
import { actionNames, parseAction, type Screen } from '../actions/index.ts'
import type { GuiSession } from '../session.ts'

/** Finds the attempt of a tool call. */
export type SessionOf = (context: ToolContext) => Promise<GuiSession>

const names = actionNames.filter((name) => name !== 'batch')
const number = z.number().optional()

/** Loose on purpose: what does not fit an action is told in words that say what would. */
const input = z.object({
  action: z.string().describe(`One of ${names.join(', ')}, batch.`),
  x: number.describe('Pixels from the left.'),
  y: number.describe('Pixels from the top.'),
  path: z
    .array(z.object({ x: z.number(), y: z.number() }))
    .optional()
    .describe('drag: the points to drag along.'),
  dx: number.describe('scroll: pixels to the right.'),
  dy: number.describe('scroll: pixels down.'),
  width: number.describe('zoom: width of the region at x, y.'),
  height: number.describe('zoom: height of the region.'),
  text: z.string().optional().describe('type: what to type. answer: the answer.'),
  keys: z.string().optional().describe('key, hold: keys such as Enter, ctrl+a, shift+Tab. Clicks: keys held down.'),
  repeat: number.describe('key: how often.'),
  seconds: number.describe('hold, wait: how long.'),
  reason: z.string().optional().describe('fail: why it cannot be done.'),
  actions: z.array(z.record(z.string(), z.unknown())).optional().describe('batch: actions, done in this order.'),
})

/** What the tool `computer` needs of an attempt: a browser's or a desktop's session, or one of its own. */
export type ComputerSession = Pick<GuiSession, 'screen' | 'pointer' | 'work' | 'act'>
export type ComputerOf = (context: ToolContext) => Promise<ComputerSession>

/** The canonical actions as one tool, in pixels of the screen; most answer with a screenshot. */
export function computerTool(screen: Screen, sessionOf: ComputerOf): Tool {
  return defineTool({
    name: 'computer',
    description:
      `Uses mouse, keyboard and screen (${screen.width}x${screen.height} pixels) and returns a screenshot. ` +
      'End the attempt with action "done", with "answer" and its text where something was asked, or with "fail" when it cannot be done.',
    input,
    run: async (context, given) => {
      const session = await sessionOf(context)
      const parsed = parseAction(given, session.screen)
      if (!parsed.ok) return { status: 'error', text: parsed.error }
      return session.work('picture', () => session.act(parsed.action))
    },
  })
}
