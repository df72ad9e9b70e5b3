import type { EgressPolicy } from '../egress/index.ts'
import type { Digest, Id } from '../../core/index.ts'
import type { ExecResult, ExecSpec, Terminal, TerminalSpec } from './command.ts'
import type { BoxDeath } from './death.ts'
import type { ArchiveLimits, Artifact, FileTree, PutFile } from './files.ts'
import type { BundleRef, ImageRef } from './image.ts'
import type { ModelSocket } from './model-socket.ts'

/**
 * `user`: everything runs as uid 1000 without any capability. `root`: uid 0 with the few capabilities that set-up inside
 * an image needs; commands may drop to another user.
 */
export type BoxProfile = 'user' | 'root'

export type BoxRole = 'agent' | 'verifier' | 'oracle' | 'setup' | 'probe'

export interface BoxSpec {
  readonly image: ImageRef | string
  readonly profile: BoxProfile
  /** Default directory of commands; made when it is missing. Default `/workspace`. */
  readonly workdir?: string
  readonly env?: Readonly<Record<string, string>>
  /** Limits. Defaults: 2048 MB without swap, 2 cpus, 512 processes. */
  readonly memoryMb?: number
  readonly cpus?: number
  readonly pids?: number
  /** Largest file a command may write, in MB (RLIMIT_FSIZE). */
  readonly fileMb?: number
  /**
   * What all files of the box may take together beyond its image, in MB. Commands that run while it is more are ended, a
   * second or two later, as `signaled SIGXFSZ`; what deletes enough meanwhile helps.
   */
  readonly diskMb?: number
  readonly labels: BoxLabels
  /** Makes this socket reachable inside as `http://127.0.0.1:<port>`; nothing else is. */
  readonly modelPath?: { readonly socket: ModelSocket; readonly port?: number }
  readonly mounts?: readonly { readonly bundle: BundleRef; readonly target: string }[]
  /**
   * Default `none`. With anything else every connection of the box, and every name query, comes to the socket as a CONNECT
   * where the kernel can do that ({@link Box.wayOut}); and its programs are told (`HTTP_PROXY` and its kin) that the model
   * path is a proxy too. Whoever serves the socket puts an {@link EgressGate} behind it, which decides. Needs a model path.
   */
  readonly egress?: EgressPolicy
  /** The box is destroyed after this time, whatever it does. Default 6 h. */
  readonly deadlineMs?: number
}

/** A box as far as it is known before its rollout: which socket it will serve comes later, which port is known. */
export type WarmSpec = Omit<BoxSpec, 'labels' | 'modelPath' | 'deadlineMs'> & {
  readonly labels: Omit<BoxLabels, 'rollout'>
  readonly modelPath?: { readonly port?: number }
}

export interface BoxLabels {
  readonly role: BoxRole
  readonly run?: Id
  readonly rollout?: Id
}

/** One running container with its supervisor. */
export interface Box extends AsyncDisposable {
  readonly id: string
  readonly image: string
  readonly profile: BoxProfile
  readonly workdir: string
  /** Whom the image runs commands as ({@link ImageSays.user}); null or left out: nobody but root, or it is not known. */
  readonly imageUser?: string | null
  /** Where the image looks for programs ({@link ImageSays.path}); left out: it is not known. */
  readonly imagePath?: readonly string[]
  readonly labels: BoxLabels
  /** Where the socket is seen from inside (`http://127.0.0.1:<port>`), or null. */
  readonly modelUrl: string | null
  /**
   * How its programs reach what its egress allows: not at all; by asking the proxy that they are told of; or by simply
   * connecting, because every connection to any address and every name query comes to the gate.
   */
  readonly wayOut: 'none' | 'asked' | 'transparent'
  /**
   * Runs one command to its end and kills everything it started. Resolves however the command ends, also when the
   * box dies; rejects with the signal's reason (after the kill) on abort and with `BOX_COMMAND_REFUSED` for a malformed spec.
   */
  exec(command: ExecSpec, o?: { readonly signal?: AbortSignal }): Promise<ExecResult>
  /** Starts a command in a terminal of its own: what programs with a screen need. */
  openTerminal(spec?: TerminalSpec): Terminal
  /** Kills what commands with `background: 'keep'` left running: the end of a phase. */
  killBackground(): Promise<void>
  /** Unpacks into `directory` (made when missing), owned by the box's user unless an entry says otherwise. */
  putFiles(directory: string, files: readonly PutFile[] | FileTree): Promise<void>
  /** Packs a path, with everything unsafe or too big left out and named. Never throws for what the box put there. */
  getFiles(path: string, limits?: ArchiveLimits): Promise<Artifact>
  /** Whether something stands at an absolute path, works frozen too. What leads nowhere, or to itself, does not. */
  exists(path: string): Promise<boolean>
  /**
   * Every path that may differ from the box's image (of a box from snapshots, from the image under them), but for what was deleted together with its directory; cheap. Null
   * where only {@link Box.changes} can tell. `except`: directories into which it does not look. Throws `BOX_FILES_UNFIT`
   * for more files than anybody should list.
   */
  touched(o?: { readonly except?: readonly string[] }): Promise<readonly string[] | null>
  /**
   * Paths whose files differ from the box's image, works frozen too; what snapshots under it hold is told as `modified`. Mounts are not looked at. May take a second. Throws
   * `BOX_FILES_UNFIT` where the files themselves make that impossible.
   */
  changes(): Promise<readonly BoxChange[]>
  /**
   * All that differs from the box's image, as it is, where that stays within the limits; else, and of a box from a snapshot, null. For
   * {@link Box.applyLayer}, and for nothing else: an agent may have written it. Mounts are not looked at.
   */
  takeLayer(limits?: ArchiveLimits): Promise<BoxLayer | null>
  /**
   * Brings a fresh `root` box of the same image to where the layer was taken. Throws `VERIFIER_FAILED` when the image
   * cannot (it needs `rm`).
   */
  applyLayer(layer: BoxLayer): Promise<void>
  /** Stops every process; deadlines stand still. */
  freeze(): Promise<void>
  thaw(): Promise<void>
  /**
   * Keeps the box's files as an image that boxes can be started from: a fork. Processes and memory are not kept, nor what
   * lies in mounts; a box whose image declares volumes is refused (`SANDBOX_CAPABILITY`). The box stands still meanwhile.
   * What was written may be as large as the box's `diskMb` (default 10,240), holes counted as if they were written, because
   * a copy fills them; else `BOX_FILES_UNFIT`, as for files that cannot be copied. `SANDBOX_DISK_FULL` where the host has no room.
   */
  snapshot(o?: SnapshotOptions): Promise<Snapshot>
  /** Ends the box and everything in it; resolves when the daemon has forgotten it. Idempotent. */
  destroy(): Promise<void>
  /** Resolves when the box is gone for whatever reason; never rejects. */
  readonly died: Promise<BoxDeath>
}

export interface BoxChange {
  /** Absolute. The directories above a change are `modified` too. */
  readonly path: string
  readonly kind: 'added' | 'modified' | 'deleted'
}

/** What a box has beyond its image. */
export interface BoxLayer {
  /** Relative to the root, with owners, modes, times and links. */
  readonly tar: Uint8Array
  /** Absolute. */
  readonly deleted: readonly string[]
}

export interface SnapshotOptions {
  /** The call after which it was taken, and the digest of the request that waits for it, for the event. */
  readonly callId?: Id
  readonly request?: Digest
  /** What its copies go without, for the event: a line for each. */
  readonly without?: readonly string[]
  /** It outlives its owner, where those of the box's run are fewer and smaller than this. Default: it does not. */
  readonly keep?: KeepBounds
}

/** How many snapshots of a run are kept, and how many bytes they may have added to what they lie on. */
export interface KeepBounds {
  readonly most: number
  readonly mostBytes: number
}

/** Lives until it is disposed, its provider is closed, or a sweep finds its owner dead; one that is kept, until somebody removes it. */
export interface Snapshot extends AsyncDisposable {
  /** What `BoxSpec.image` takes. */
  readonly image: ImageRef
  /** Tag of the image that its box was started from. */
  readonly parent: string
  /** How many snapshots lie on each other: 1 for one of a box from an ordinary image. */
  readonly depth: number
  /** It stays until somebody removes it: disposing it does nothing. */
  readonly kept: boolean
}
