import type { Box } from '../../sandbox/index.ts'

const directory = '/workspace'
const agentUid = 1000

/** Empties the agent's directory of the box and puts these files there, the agent's own. */
export async function placeWorkspace(box: Box, files: Readonly<Record<string, string>>): Promise<void> {
  await box.exec({ command: ['find', directory, '-mindepth', '1', '-delete'], user: 'root', cwd: '/' })
  const put = Object.entries(files).map(([path, data]) => ({
    path,
    data: Buffer.from(data),
    mode: 0o644,
    uid: agentUid,
    gid: agentUid,
  }))
  await box.putFiles(directory, put)
}
