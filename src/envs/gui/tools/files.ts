import { basename } from 'node:path'
import { z } from 'zod'
import type { Box } from '../../../sandbox/index.ts'
import type { Tool, ToolOutcome } from '../../contract.ts'
import { defineTool } from '../../tool.ts'
import { browserUser, CdpRefusal, downloadDirectory, nothing, uploadDirectory } from '../browser/index.ts'
import type { GuiSession } from '../session.ts'
import type { SessionOf } from './computer.ts'

/** Largest file that goes from the workspace to a page, or from a page to the workspace, in bytes. */
const maxFileBytes = 16 << 20
/** Longest wait for a download to end. */
const downloadMs = 5000
const agentUser = 'agent'
const browserUid = 990
const error = (text: string): ToolOutcome => ({ status: 'error', text })

/** Files between pages and the box's /workspace: what the agent may read can be uploaded, what was downloaded can be kept. */
export function fileTools(sessionOf: SessionOf): readonly Tool[] {
  return [
    defineTool({
      name: 'browser_upload',
      description: 'Chooses files of /workspace in a file field of the page.',
      input: z.object({
        target: z.string().min(1).max(500).describe('The file field, as for browser_click.'),
        files: z.array(z.string().min(1).max(500)).min(1).max(8).describe('Paths; relative ones are in /workspace.'),
      }),
      run: async (context, { target, files }) => {
        const session = await sessionOf(context)
        return session.work('tree', () => upload(session, context.box, target, files))
      },
    }),
    defineTool({
      name: 'browser_save_download',
      description: 'Copies a file that a page has downloaded into /workspace.',
      input: z.object({ name: z.string().min(1).max(200).describe('As the list of downloads names it.') }),
      run: async (context, { name }) => {
        const session = await sessionOf(context)
        return session.work('line', () => saveDownload(session, context.box, name))
      },
    }),
  ]
}

async function upload(session: GuiSession, box: Box, target: string, files: readonly string[]) {
  if (session.busy) return error('A dialog is open. Answer it with browser_dialog.')
  const aimed = await session.aim(target)
  if (!aimed.ok) return error(aimed.error)
  const chosen: string[] = []
  for (const file of files) {
    const read = await readAs(box, agentUser, file)
    if (typeof read === 'string') return error(read)
    const directory = `${uploadDirectory}/${chosen.length}`
    const path = basename(file)
    await box.putFiles(directory, [{ path, data: read, mode: 0o600, uid: browserUid, gid: browserUid }])
    await box.exec({ command: ['chown', '-R', `${browserUser}:`, uploadDirectory], user: 'root', cwd: '/' })
    chosen.push(`${directory}/${path}`)
  }
  try {
    const { backendNodeId } = aimed.node
    await session.page.send('DOM.setFileInputFiles', { files: chosen, backendNodeId }, nothing)
    return `Chose ${chosen.map((path) => basename(path)).join(', ')}.`
  } catch (cause) {
    if (cause instanceof CdpRefusal) return error(`${target} is no file field that takes this.`)
    throw cause
  }
}

async function saveDownload(session: GuiSession, box: Box, name: string) {
  const named = () => session.browser.downloads.findLast((one) => one.name === name)
  const ended = () => (named()?.state ?? 'running') !== 'running'
  // What the last action began may still be on its way.
  await session.page.when(ended, AbortSignal.timeout(downloadMs))
  const found = named()
  if (found === undefined) return error(`There is no download ${JSON.stringify(name)}.`)
  if (found.state !== 'completed') return error(`The download ${JSON.stringify(name)} is ${found.state}.`)
  const read = await readAs(box, browserUser, `${downloadDirectory}/${found.guid}`)
  if (typeof read === 'string') return error(read)
  const safe = basename(name)
    .replaceAll(/[^\w. -]/g, '_')
    .replace(/^\.+/, '_')
  const path = `/workspace/${safe}`
  // Written with the agent's own rights: what it has put there in the place of a directory leads nowhere else.
  const { kind } = await box.exec({ command: ['tee', path], user: agentUser, stdin: read, maxOutputBytes: 0 })
  return kind === 'exited' ? `It is ${path}, ${read.length} bytes.` : error(`It could not be written to ${path}.`)
}

/** A file as this user may read it; a text says why not. */
async function readAs(box: Box, user: string, path: string): Promise<Uint8Array | string> {
  const command = ['head', '-c', String(maxFileBytes + 1), '--', path]
  const result = await box.exec({ command, user, cwd: '/workspace', maxOutputBytes: maxFileBytes + 1 })
  if (result.kind !== 'exited' || result.code !== 0) return `The file ${path} cannot be read.`
  return result.stdout.length > maxFileBytes
    ? `The file ${path} is larger than ${maxFileBytes >> 20} MB.`
    : result.stdout
}
