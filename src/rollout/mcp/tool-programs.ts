import type { PutFile } from '../../sandbox/index.ts'
import type { Tool } from '../../envs/index.ts'

/** Where the programs stand in a box: on every PATH. */
export const toolProgramsDirectory = '/usr/local/bin'

/**
 * The tools as programs of the box, for agents that have a shell and nothing else: `paddock-tool` (alone it lists them)
 * and one program by the name of each. They speak to the same MCP server, so a call is recorded and answered alike.
 */
export function toolPrograms(modelUrl: string, tools: readonly Tool[]): readonly PutFile[] {
  const { port } = new URL(modelUrl)
  const script = (words: string) => `#!/bin/sh\nexec /.paddock/tool ${port}${words} "$@"\n`
  const named = tools.map(({ name }) => ({ path: name, data: script(` ${name}`) }))
  return [{ path: 'paddock-tool', data: script('') }, ...named].map((file) => ({
    ...file,
    mode: 0o755,
    uid: 0,
    gid: 0,
  }))
}
