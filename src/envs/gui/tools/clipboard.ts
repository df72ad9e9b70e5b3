import { z } from 'zod'
import type { Tool } from '../../contract.ts'
import { defineTool } from '../../tool.ts'
import type { SessionOf } from './computer.ts'

/** Reads and writes the clipboard that copying and pasting on the screen go through. */
export function clipboardTool(sessionOf: SessionOf): Tool {
  return defineTool({
    name: 'browser_clipboard',
    description: 'Shows the text on the clipboard, or puts one there. Paste it with ctrl+v.',
    input: z.object({
      text: z.string().max(20_000).optional().describe('To put there. Without it: show what is there.'),
    }),
    run: async (context, { text }) => {
      const session = await sessionOf(context)
      return session.work('line', async () => {
        if (session.busy) return { status: 'error', text: 'A dialog is open. Answer it with browser_dialog.' }
        if (text === undefined) {
          const found = await session.clipboard.read()
          return found === '' ? 'The clipboard is empty.' : `The clipboard holds:\n${found.slice(0, 12_000)}`
        }
        await session.clipboard.write(text)
        return 'It is on the clipboard.'
      })
    },
  })
}
