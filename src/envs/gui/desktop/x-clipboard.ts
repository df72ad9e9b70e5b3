import { PaddockError } from '../../../core/index.ts'
import type { Box } from '../../../sandbox/index.ts'
import { browserUser } from '../browser/index.ts'
import type { Surface } from '../surface.ts'

/** The clipboard of an X server, through `xclip`, which keeps what it was given until another program copies. */
export function xClipboard(box: Box, env: Readonly<Record<string, string>>): Surface['clipboard'] {
  const run = { user: browserUser, cwd: '/', env, timeoutMs: 10_000 }
  return {
    read: async () => {
      const result = await box.exec({ ...run, command: ['xclip', '-selection', 'clipboard', '-o'] })
      // It fails where nothing was copied yet, or nothing that is text.
      return result.kind === 'exited' && result.code === 0 ? Buffer.from(result.stdout).toString('utf8') : ''
    },
    write: async (text) => {
      const command = 'xclip -selection clipboard -i >/dev/null 2>&1'
      const result = await box.exec({ ...run, command, stdin: text, background: 'keep' })
      if (result.kind !== 'exited' || result.code !== 0) {
        throw new PaddockError('BROWSER_GONE', `The X server took no text for its clipboard (${result.kind})`)
      }
    },
  }
}
