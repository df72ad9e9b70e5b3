import { z } from 'zod'
import type { Tool } from '../../contract.ts'
import { defineTool } from '../../tool.ts'
import type { SessionOf } from './computer.ts'

const maxCharacters = 12_000

/** A shell beside the browser, for tasks that need both; it runs as the agent's user, who cannot reach the browser. */
export function terminalTool(sessionOf: SessionOf): Tool {
  return defineTool({
    name: 'terminal_run',
    description: 'Runs a line in bash, in /workspace, beside the browser. Returns what it printed.',
    input: z.object({ command: z.string().min(1).max(8000) }),
    run: async (context, { command }) => {
      const session = await sessionOf(context)
      return session.work('line', async () => {
        const result = await context.box.exec({
          command,
          user: 'agent',
          cwd: '/workspace',
          timeoutMs: 60_000,
          eventRole: 'tool',
        })
        const printed = [result.stdout, result.stderr].map((bytes) => Buffer.from(bytes).toString('utf8')).join('')
        const cut = printed.length > maxCharacters ? '\n[cut]' : ''
        const end = result.kind === 'exited' ? `[exit code ${result.code}]` : `[${result.kind}]`
        const text = `${printed.slice(0, maxCharacters)}${cut}\n${end}`
        return { status: result.kind === 'box_dead' ? 'infra' : 'ok', text }
      })
    },
  })
}
