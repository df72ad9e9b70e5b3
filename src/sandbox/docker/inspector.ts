import type Docker from 'dockerode'
import type { Duplex, Readable } from 'node:stream'
import { PaddockError, sha256, isOwnerAlive } from '../../core/index.ts'
import type {
  ArchiveLimits,
  Artifact,
  BoxInspector,
  BoxSight,
  InspectorStreams,
  FileTree,
  ImageRef,
  PutFile,
} from '../contract/index.ts'
import { packFiles, packTree } from './archive-in.ts'
import { readArchive } from './archive-out.ts'
import { ask, connectDaemon, statusOf } from './daemon.ts'
import type { DaemonOptions } from './place.ts'
import { AttachReader } from './frames.ts'
import { claimerIn } from './hardened.ts'
import { keptImages, removeKept } from './kept.ts'
import {
  bytesLabel,
  callLabel,
  keptAtLabel,
  markLabel,
  ownerLabel,
  providerLabel,
  rolloutLabel,
  runLabel,
} from './labels.ts'

/** The boxes that the Docker daemon of this machine runs. */
export function dockerInspector(o: DaemonOptions = {}): BoxInspector {
  return new DockerInspector(connectDaemon(o))
}

class DockerInspector implements BoxInspector {
  readonly #docker: Docker

  constructor(docker: Docker) {
    this.#docker = docker
  }

  async list(): Promise<readonly BoxSight[]> {
    const filters = { label: [`${markLabel}=box`] }
    const list = await ask('list containers', this.#docker.listContainers({ all: true, filters }))
    return list.map(sightOf).toSorted((a, b) => a.createdAt - b.createdAt)
  }

  async find(name: string): Promise<BoxSight> {
    const boxes = await this.list()
    const found = boxes.filter((box) => box.id.startsWith(name) || box.rollout?.includes(name) === true)
    if (found.length === 1 && found[0] !== undefined && name !== '') return found[0]
    throw new PaddockError('NOT_FOUND', `${found.length === 0 ? 'No box' : 'More than one box'} is called ${name}.`, {
      fix: '`paddock box ls` shows the boxes of this machine.',
    })
  }

  async exec(box: BoxSight, command: readonly string[], streams: InspectorStreams): Promise<number | null> {
    const { terminal } = streams
    const exec = await ask(
      'run a command',
      this.#docker.getContainer(box.id).exec({
        Cmd: [...command],
        User: `${box.uid}:${box.uid}`,
        WorkingDir: box.workdir,
        AttachStdin: terminal !== undefined,
        AttachStdout: true,
        AttachStderr: true,
        Tty: terminal !== undefined,
        ...(terminal === undefined ? {} : { Env: ['TERM=xterm-256color'] }),
      }),
      'BOX_DEAD',
    )
    const start = { hijack: true, stdin: terminal !== undefined, Tty: terminal !== undefined }
    const stream: Duplex = await ask('run a command', exec.start(start), 'BOX_DEAD')
    const over = new Promise<void>((resolve) => stream.once('close', resolve).once('end', resolve))
    stream.on('error', () => undefined)
    if (terminal === undefined) {
      const reader = new AttachReader(streams.onStdout, streams.onStderr)
      stream.on('data', (chunk: Buffer) => reader.push(chunk))
    } else {
      stream.on('data', streams.onStdout)
      const resize = (w: number, h: number): void => void exec.resize({ w, h }).catch(() => undefined)
      resize(terminal.columns, terminal.rows)
      terminal.onResizer(resize)
      // Keys that end in whatever way are the end of typing, not of the session.
      feed(stream, terminal.keys).catch(() => undefined)
    }
    await over
    return (await ask('look at a command', exec.inspect(), 'BOX_DEAD')).ExitCode
  }

  async getFiles(box: BoxSight, path: string, limits?: ArchiveLimits): Promise<Artifact> {
    try {
      // The daemon answers with a stream of tar; the typings say less.
      const tar = (await this.#docker.getContainer(box.id).getArchive({ path })) as Readable
      return await readArchive(tar, limits)
    } catch (error) {
      if (statusOf(error) !== 404) return ask('read files of a box', Promise.reject(error), 'BOX_DEAD')
      return { found: false, entries: [], refused: [], cutShort: false, totalBytes: 0 }
    }
  }

  async putFiles(box: BoxSight, directory: string, files: readonly PutFile[] | FileTree): Promise<void> {
    const tar = 'fromDirectory' in files ? packTree(files, box.uid, box.uid) : packFiles(files, box.uid, box.uid)
    await ask('write files', this.#docker.getContainer(box.id).putArchive(tar, { path: directory }), 'BOX_DEAD')
  }

  async snapshot(box: BoxSight, name: string): Promise<ImageRef> {
    const tag = `paddock-kept:${name}`
    // No owner and no run: a person made it, and a person removes it. What the box stands on may have labels of its own.
    const none = [ownerLabel, providerLabel, runLabel, rolloutLabel, callLabel, bytesLabel].map((name) => `${name}=""`)
    const changes = `LABEL ${markLabel}="kept" ${keptAtLabel}="${Date.now()}" ${none.join(' ')}`
    const commit = { repo: 'paddock-kept', tag: name, pause: true, changes }
    await ask('commit a box', this.#docker.getContainer(box.id).commit(commit), 'BOX_DEAD')
    const { Id: id } = await ask('look at an image', this.#docker.getImage(tag).inspect())
    return { tag, id, recipeDigest: sha256(id), fresh: true }
  }

  kept(): ReturnType<BoxInspector['kept']> {
    return keptImages(this.#docker)
  }

  drop(kept: Parameters<BoxInspector['drop']>[0]): Promise<void> {
    return removeKept(this.#docker, kept)
  }
}

async function feed(stream: Duplex, keys: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const bytes of keys) if (stream.writable) stream.write(bytes)
}

function sightOf(info: Docker.ContainerInfo): BoxSight {
  const owner = info.Labels[ownerLabel] ?? ''
  // The command line is what hardened.ts gave PID 1: program, work directory, uid unless it is root's box.
  const [, workdir = '/', uid = '0'] = /^\S+ (.*?)(?: (\d+))?$/.exec(info.Command) ?? []
  const claimer = info.Names.map((name) => claimerIn(name.replace(/^\//, ''))).find((rollout) => rollout !== null)
  return {
    id: info.Id,
    image: info.Image,
    role: info.Labels['paddock.role'] ?? '',
    run: info.Labels['paddock.run'] ?? null,
    rollout: info.Labels['paddock.rollout'] ?? claimer ?? null,
    state: info.State,
    uid: Number(uid),
    workdir,
    createdAt: info.Created * 1000,
    owner: { pid: Number(owner.split(':')[0]), isAlive: isOwnerAlive(owner) },
  }
}
