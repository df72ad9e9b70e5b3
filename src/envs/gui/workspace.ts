import { sha256 } from '../../core/index.ts'
import type { Box } from '../../sandbox/index.ts'
import type { Files } from './application/index.ts'

const directory = '/workspace'
const agentUid = 1000
/** What stands for a directory in place of a digest. */
const folder = 'directory'

/** Empties the agent's directory of the box and puts these files there, the agent's own. */
export async function placeWorkspace(box: Box, files: Files): Promise<void> {
  await box.exec({ command: ['find', directory, '-mindepth', '1', '-delete'], user: 'root', cwd: '/' })
  const folders = Object.keys(files).filter((path) => path.endsWith('/'))
  if (folders.length > 0) await box.exec({ command: ['mkdir', '-p', '--', ...folders], user: 'agent', cwd: directory })
  const put = Object.entries(files)
    .filter(([path]) => !path.endsWith('/'))
    .map(([path, data]) => ({ path, data: Buffer.from(data), mode: 0o644, uid: agentUid, gid: agentUid }))
  await box.putFiles(directory, put)
}

/**
 * What the agent's directory holds once nothing of the agent's runs any more: for each path its digest, or what it is where
 * it is no file. What could not be read stands there too, so that it is never taken for what was asked for.
 */
export async function filesOf(box: Box): Promise<Readonly<Record<string, string>>> {
  await box.killBackground()
  const { entries, refused, cutShort } = await box.getFiles(directory)
  const found = entries.map((entry) => [entry.path, entry.type === 'file' ? sha256(entry.data) : entry.type])
  const left = refused.map(({ path, reason }) => [path, reason])
  return Object.fromEntries([...found, ...left, ...(cutShort ? [['', 'more']] : [])])
}

/** What {@link filesOf} gives where these files are there, and nothing else. */
export function digestsOf(files: Files): Readonly<Record<string, string>> {
  const paths = Object.entries(files).flatMap(([path, data]) => {
    const parts = path.split('/').slice(0, -1)
    const above = parts.map((_, at) => [parts.slice(0, at + 1).join('/'), folder])
    return path.endsWith('/') ? above : [...above, [path, sha256(data)]]
  })
  return Object.fromEntries([['.', folder], ...paths])
}
