import { mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import type { Command } from 'commander'
import { PaddockError } from '../../core/index.ts'
import type { Artifact, BoxInspector, BoxSight, KeptImage } from '../../sandbox/index.ts'
import type { Cli, CommandContext } from '../cli.ts'
import { type ExitCode, exitCode } from '../exit.ts'
import { eventLines } from '../present/events.ts'
import { table } from '../present/table.ts'
import { bytes, shortId } from '../present/units.ts'
import { daemonOf } from '../sandbox.ts'
import { openForReading } from '../store.ts'
import { attachTerminal } from '../terminal.ts'
import { gc } from './gc.ts'

/** `paddock box …`: looks into the boxes of this machine, whichever process owns them. */
export function addBox(program: Command, cli: Cli): void {
  const box = program
    .command('box')
    .description('look into the boxes of this machine: list, run, attach, logs, copy, keep')
    .addHelpText(
      'after',
      '\nA box is named by the start of its id, or by a part of the id of its rollout.\n\nExample:\n  $ paddock box ls',
    )
  const command = (name: string, description: string, body: Body): Command =>
    box
      .command(name)
      .description(description)
      .action(async (...given: unknown[]) => {
        // Commander passes the arguments, the options and, last, the command itself.
        const self = given.at(-1) as Command
        await cli.run(self, {}, async (context) => {
          const { dockerInspector } = await import('../../sandbox/index.ts')
          return body(context, dockerInspector(daemonOf(context.loaded.config)), self.processedArgs.flat())
        })
      })
  command('ls', 'list the boxes of this machine', listBoxes)
  command('exec', "run a command in a box, as the box's user; exit code 1 when it fails", runIn)
    .argument('<box>')
    .argument('<command...>', 'program and arguments (put -- before them)')
    .addHelpText('after', '\nExample:\n  $ paddock box exec 5f3a -- ps -ef')
  command('attach', 'open a shell in a box; it ends with the box or with `exit`', attach).argument('<box>')
  command('logs', 'print what Paddock itself ran in a box, and what became of it', logs).argument('<box>')
  command('cp', 'copy files out of a box or into one', copy)
    .argument('<from>', '<box>:<path>, or a path here')
    .argument('<to>', 'a directory: a path here, or <box>:<path>')
    .addHelpText(
      'after',
      '\nExample:\n  $ paddock box cp 5f3a:/workspace out/\n  $ paddock box cp notes.txt 5f3a:/workspace',
    )
  command('snap', "keep a box's files as the image paddock-kept:<name>, which no clean-up removes", keep)
    .argument('<box>')
    .argument('<name>', 'lower case, digits, dashes')
  command('kept', 'list what is kept of boxes: by `snap`, and by runs with `run.keepSnapshots`', listKept)
  command('drop', 'remove what is kept of boxes; one that a box stands on stays', drop)
    .argument('<kept...>', 'images, or ids of runs or rollouts: all that is kept of those')
    .addHelpText('after', '\nExample:\n  $ paddock box drop paddock-kept:9f3c1a0b22d4')
  gc(box.command('gc'), cli)
}

type Body = (context: CommandContext, inspector: BoxInspector, given: readonly string[]) => Promise<ExitCode>

async function listBoxes(context: CommandContext, inspector: BoxInspector): Promise<ExitCode> {
  const boxes = await inspector.list()
  context.result({ boxes }, () => {
    if (boxes.length === 0) return 'No boxes.'
    const titles = ['box', 'rollout', 'role', 'image', 'state', 'age', 'owner'].map((title) => ({ title }))
    return table(titles, boxes.map(row), { paint: context.paint, columns: context.io.columns })
  })
  return exitCode.ok
}

function row(box: BoxSight): string[] {
  const seconds = Math.max(0, Math.round((Date.now() - box.createdAt) / 1000))
  const age = seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`
  const owner = `${box.owner.pid}${box.owner.isAlive ? '' : ' (dead)'}`
  return [box.id.slice(0, 12), box.rollout ?? '-', box.role, box.image, box.state, age, owner]
}

async function runIn(
  context: CommandContext,
  inspector: BoxInspector,
  [name = '', ...command]: readonly string[],
): Promise<ExitCode> {
  const box = await inspector.find(name)
  const kept = { stdout: new Array<Uint8Array>(), stderr: new Array<Uint8Array>() }
  const code = await inspector.exec(box, command, {
    onStdout: (bytes) => (context.json ? void kept.stdout.push(bytes) : void process.stdout.write(bytes)),
    onStderr: (bytes) => (context.json ? void kept.stderr.push(bytes) : void process.stderr.write(bytes)),
  })
  if (context.json) {
    const [stdout, stderr] = [kept.stdout, kept.stderr].map((chunks) => Buffer.concat(chunks).toString('utf8'))
    context.result({ box: box.id, exitCode: code, stdout, stderr }, () => '')
  } else if (code !== 0) context.notice(`exit code ${code}`)
  return code === 0 ? exitCode.ok : exitCode.problems
}

async function attach(
  context: CommandContext,
  inspector: BoxInspector,
  [name = '']: readonly string[],
): Promise<ExitCode> {
  if (!process.stdin.isTTY || context.json) {
    throw new PaddockError('USAGE', 'attach needs a terminal.', { fix: 'Use `paddock box exec <box> -- <command>`.' })
  }
  const box = await inspector.find(name)
  await attachTerminal(inspector, box)
  return exitCode.ok
}

async function logs(
  context: CommandContext,
  inspector: BoxInspector,
  [name = '']: readonly string[],
): Promise<ExitCode> {
  const box = await inspector.find(name)
  if (box.rollout === null) {
    throw new PaddockError('NOT_FOUND', `The box ${box.id.slice(0, 12)} belongs to no rollout yet.`, {
      fix: 'Ask again once its rollout has begun; `paddock box ls` shows it.',
    })
  }
  const store = await openForReading(context)
  try {
    const events = await store.recorder.events({ rolloutId: box.rollout })
    context.result({ box: box.id, rollout: box.rollout, events }, () => eventLines(events, context.paint))
    return exitCode.ok
  } finally {
    await store.close()
  }
}

async function copy(
  context: CommandContext,
  inspector: BoxInspector,
  [from = '', to = '']: readonly string[],
): Promise<ExitCode> {
  const [source, target] = [placeOf(from), placeOf(to)]
  if (source.box !== null && target.box === null) {
    const artifact = await inspector.getFiles(await inspector.find(source.box), source.path, { maxBytes: 4 * 2 ** 30 })
    if (!artifact.found)
      throw new PaddockError('NOT_FOUND', `There is no ${source.path} in the box.`, {
        fix: `\`paddock box exec ${source.box ?? ''} -- ls -la ${dirname(source.path)}\` shows what is there.`,
      })
    await unpack(artifact, resolve(context.io.cwd, target.path))
    const { entries, refused, totalBytes } = artifact
    context.result({ files: entries.length, totalBytes, refused }, () =>
      [`${entries.length} copied`, ...refused.map(({ path, reason }) => `left out: ${path} (${reason})`)].join('\n'),
    )
    return refused.length === 0 ? exitCode.ok : exitCode.problems
  }
  if (source.box === null && target.box !== null) {
    const box = await inspector.find(target.box)
    const path = resolve(context.io.cwd, source.path)
    const facts = await stat(path).catch(() => null)
    if (facts === null)
      throw new PaddockError('NOT_FOUND', `There is no ${source.path} here.`, {
        fix: 'Give a file or folder of this machine.',
      })
    const one = async () => [{ path: basename(path), data: await readFile(path), mode: facts.mode & 0o777 }]
    await inspector.putFiles(box, target.path, facts.isDirectory() ? { fromDirectory: path } : await one())
    context.result({ box: box.id, path: target.path }, () => 'copied')
    return exitCode.ok
  }
  throw new PaddockError('USAGE', 'One of the two places must be in a box, the other here.', {
    fix: 'Write <box>:<path> for the place in the box.',
  })
}

/** `<box>:<path>`; a path here holds no colon before its first slash. */
function placeOf(text: string): { readonly box: string | null; readonly path: string } {
  const found = /^([^/:]+):(\/.*)$/.exec(text)
  return found === null ? { box: null, path: text } : { box: found[1] ?? '', path: found[2] ?? '' }
}

/** Writes what came out of a box. Its paths and links stay inside: that is what {@link Artifact} promises. */
async function unpack(artifact: Artifact, directory: string): Promise<void> {
  await mkdir(directory, { recursive: true })
  for (const entry of artifact.entries) {
    const path = join(directory, entry.path)
    await mkdir(entry.type === 'directory' ? path : dirname(path), { recursive: true })
    if (entry.type === 'file') await writeFile(path, entry.data, { mode: entry.mode & 0o777, flag: 'wx' })
    if (entry.type === 'symlink') await symlink(entry.target, path)
  }
}

async function keep(
  context: CommandContext,
  inspector: BoxInspector,
  [name = '', tag = '']: readonly string[],
): Promise<ExitCode> {
  if (!/^[a-z0-9][a-z0-9-]{0,60}$/.test(tag)) {
    throw new PaddockError('USAGE', `${JSON.stringify(tag)} is no name.`, { fix: 'Use lower case, digits and dashes.' })
  }
  const image = await inspector.snapshot(await inspector.find(name), tag)
  context.result(image, () => `kept as ${image.tag}`)
  return exitCode.ok
}

async function listKept(context: CommandContext, inspector: BoxInspector): Promise<ExitCode> {
  const kept = await inspector.kept()
  context.result({ kept }, () => {
    if (kept.length === 0) return 'Nothing is kept.'
    const titles = ['image', 'run', 'rollout', 'call', 'size', 'since'].map((title) => ({ title }))
    const short = (id: string | null): string => (id === null ? '-' : shortId(id))
    const rows = kept.map(({ image, run, rollout, call, sizeBytes, createdAt }) => [
      image,
      short(run),
      short(rollout),
      short(call),
      sizeBytes === null ? '-' : bytes(sizeBytes),
      new Date(createdAt).toISOString(),
    ])
    return table(titles, rows, { paint: context.paint, columns: context.io.columns })
  })
  return exitCode.ok
}

async function drop(context: CommandContext, inspector: BoxInspector, names: readonly string[]): Promise<ExitCode> {
  const kept = await inspector.kept()
  const dropped: KeptImage[] = []
  for (const name of names) {
    const meant = kept.filter((one) => isCalled(one, name))
    if (meant.length === 0) {
      throw new PaddockError('NOT_FOUND', `Nothing is kept as ${name}.`, { fix: '`paddock box kept` lists what is.' })
    }
    // The newest lie on the older ones.
    for (const one of meant.toReversed()) {
      await inspector.drop(one)
      dropped.push(one)
    }
  }
  context.result({ dropped }, () => dropped.map(({ image }) => `removed ${image}`).join('\n'))
  return exitCode.ok
}

function isCalled({ image, run, rollout }: KeptImage, name: string): boolean {
  return image === name || [run, rollout].some((id) => id !== null && (id === name || shortId(id) === name))
}
