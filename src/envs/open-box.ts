import type { Box, BoxLabels, BoxSpec, ImageOptions, SandboxProvider } from '../sandbox/index.ts'
import type { BoxNeeds } from './contract.ts'

/** What a caller adds to the needs of a task. */
export interface OpenBoxOptions extends ImageOptions {
  readonly labels: BoxLabels
  readonly modelPath?: NonNullable<BoxSpec['modelPath']>
  readonly mounts?: NonNullable<BoxSpec['mounts']>
  /** Added to the needs' environment; wins over it. */
  readonly env?: Readonly<Record<string, string>>
  readonly deadlineMs?: number
}

/** Makes the image and starts the box that a task needs. Throws what the provider throws. Whoever calls disposes. */
export async function openTaskBox(sandbox: SandboxProvider, needs: BoxNeeds, o: OpenBoxOptions): Promise<Box> {
  const image = await sandbox.ensureImage(needs.image, {
    ...(o.signal === undefined ? {} : { signal: o.signal }),
    ...(o.onProgress === undefined ? {} : { onProgress: o.onProgress }),
  })
  return sandbox.createBox(
    {
      image,
      profile: needs.profile,
      workdir: needs.workdir,
      env: { ...needs.env, ...o.env },
      labels: o.labels,
      egress: needs.network,
      ...(needs.cpus === undefined ? {} : { cpus: needs.cpus }),
      ...(needs.memoryMb === undefined ? {} : { memoryMb: needs.memoryMb }),
      ...(needs.pids === undefined ? {} : { pids: needs.pids }),
      ...(needs.fileMb === undefined ? {} : { fileMb: needs.fileMb }),
      ...(o.modelPath === undefined ? {} : { modelPath: o.modelPath }),
      ...(o.mounts === undefined ? {} : { mounts: o.mounts }),
      ...(o.deadlineMs === undefined ? {} : { deadlineMs: o.deadlineMs }),
    },
    o.signal === undefined ? {} : { signal: o.signal },
  )
}

/** The `openBox` that {@link Environment.verify} asks for: fresh boxes of role `verifier` at this provider. */
export function verifierBoxes(
  sandbox: SandboxProvider,
  o: { readonly labels: Omit<BoxLabels, 'role'>; readonly signal: AbortSignal },
): (needs: BoxNeeds) => Promise<Box> {
  return (needs) => openTaskBox(sandbox, needs, { signal: o.signal, labels: { ...o.labels, role: 'verifier' } })
}
