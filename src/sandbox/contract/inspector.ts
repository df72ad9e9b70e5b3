import type { ArchiveLimits, Artifact, FileTree, PutFile } from './files.ts'
import type { ImageRef, KeptImage } from './image.ts'

/**
 * The boxes of a machine as a person sees them, whichever process owns them. What is run here goes beside the owner's
 * supervisor and not into any record; it ends at the latest with the box, or when the owner kills everything in it.
 */
export interface BoxInspector {
  list(): Promise<readonly BoxSight[]>
  /** The one box whose id or rollout starts with `name`. Throws `NOT_FOUND` for none and for several. */
  find(name: string): Promise<BoxSight>
  /** Runs a command as the box's user; resolves with its exit code. */
  exec(box: BoxSight, command: readonly string[], streams: InspectorStreams): Promise<number | null>
  getFiles(box: BoxSight, path: string, limits?: ArchiveLimits): Promise<Artifact>
  putFiles(box: BoxSight, directory: string, files: readonly PutFile[] | FileTree): Promise<void>
  /** Keeps the box's files as `paddock-kept:<name>`, which no sweep removes. */
  snapshot(box: BoxSight, name: string): Promise<ImageRef>
  /** What is kept, by a person or for a run: it outlives whoever made it. Oldest first. */
  kept(): Promise<readonly KeptImage[]>
  /** Removes one of them. Throws `NOT_FOUND`, and `IMAGE_IN_USE` while a box stands on it. */
  drop(kept: Pick<KeptImage, 'image'>): Promise<void>
}

export interface BoxSight {
  readonly id: string
  readonly image: string
  readonly role: string
  readonly run: string | null
  /** Null for a box that waits for its rollout, and for boxes of no rollout. */
  readonly rollout: string | null
  readonly state: string
  /** Uid of its commands. */
  readonly uid: number
  readonly workdir: string
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  readonly owner: { readonly pid: number; readonly isAlive: boolean }
}

export interface InspectorStreams {
  readonly onStdout: (bytes: Uint8Array) => void
  readonly onStderr: (bytes: Uint8Array) => void
  /** A terminal of this size in place of pipes, with these keys. */
  readonly terminal?: {
    readonly columns: number
    readonly rows: number
    readonly keys: AsyncIterable<Uint8Array>
    /** Called once with what changes the size. */
    readonly onResizer: (resize: (columns: number, rows: number) => void) => void
  }
}
