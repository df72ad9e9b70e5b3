import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { EventBody, Id } from '../core/index.ts'
import type { EgressPolicy } from './egress/index.ts'

/** A box that will soon be asked for; see {@link SandboxProvider.prefetch}. */
export type BoxWish = Disposable & AsyncDisposable

/**
 * A place where boxes come from. Built in: Docker. `sandboxContract` (src/testing/sandbox) is what every provider passes.
 *
 * Faults of the place itself throw a PaddockError of family `infra` (`SANDBOX_UNAVAILABLE`, `SANDBOX_TIMEOUT`,
 * `IMAGE_BUILD_FAILED`, `BUNDLE_FAILED`, `BOX_DEAD`); what a box's own commands do is never thrown but told in {@link ExecResult}.
 */
export interface SandboxProvider extends AsyncDisposable {
  readonly name: string
  /** Asks the daemon who it is. Never throws: an unreachable daemon is a problem in the answer. */
  probe(o?: { readonly signal?: AbortSignal }): Promise<SandboxFacts>
  /** Makes the image unless it is there. One build at a time per image, also across processes. */
  ensureImage(recipe: ImageRecipe, o?: ImageOptions): Promise<ImageRef>
  /** Makes a read-only volume unless it is there; `build` fills an empty host directory. Once per name and version. */
  ensureBundle(spec: BundleSpec, o?: ImageOptions): Promise<BundleRef>
  /** Starts a box and waits until its supervisor answers. */
  createBox(spec: BoxSpec, o?: { readonly signal?: AbortSignal }): Promise<Box>
  /**
   * Says that such a box will soon be asked for, so that it may be made ahead; {@link createBox} hands it out when the
   * specs agree. Only a hint: nothing is promised, nothing is thrown. Dispose what is not wanted any more; disposed
   * asynchronously, a box that was made for it is gone then.
   */
  prefetch(spec: WarmSpec): BoxWish
  /**
   * Stops every box of role `agent` that is handed out, until the answer is disposed: while the policy updates, an agent
   * takes no processor time and its deadlines stand still. Pauses nest. What else holds a box, holds it on.
   */
  pauseBoxes(): Promise<AsyncDisposable>
  /** Opens a unix socket on the host that one box at a time can be given as its model path. */
  openSlot(): Promise<Slot>
  /** Removes (or with `dryRun` only lists) what owners that are dead left behind. Never touches objects of the living. */
  sweep(o?: { readonly dryRun?: boolean }): Promise<SweepReport>
  /** Destroys every box and slot of this provider. Idempotent. */
  close(): Promise<void>
}

/**
 * The boxes of a machine as a person sees them, whichever process owns them. What is run here goes beside the owner's
 * supervisor and not into any record; it ends at the latest with the box, or when the owner kills everything in it.
 */
export interface BoxDesk {
  list(): Promise<readonly BoxSight[]>
  /** The one box whose id or rollout starts with `name`. Throws `NOT_FOUND` for none and for several. */
  find(name: string): Promise<BoxSight>
  /** Runs a command as the box's user; resolves with its exit code. */
  exec(box: BoxSight, command: readonly string[], streams: DeskStreams): Promise<number | null>
  getFiles(box: BoxSight, path: string, limits?: ArchiveLimits): Promise<Artifact>
  putFiles(box: BoxSight, directory: string, files: readonly PutFile[] | FileTree): Promise<void>
  /** Keeps the box's files as `paddock-kept:<name>`, which no sweep removes. */
  snapshot(box: BoxSight, name: string): Promise<ImageRef>
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

export interface DeskStreams {
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

/** What `doctor` prints. */
export interface SandboxFacts {
  readonly reachable: boolean
  readonly version: string | null
  readonly apiVersion: string | null
  readonly cgroup: 'v1' | 'v2' | 'unknown'
  readonly storageDriver: string | null
  readonly cpus: number
  readonly memoryBytes: number
  /** Free bytes where images are stored; null where that place is not on this machine. */
  readonly diskFreeBytes: number | null
  readonly problems: readonly SandboxProblem[]
}

export interface SandboxProblem {
  readonly code: string
  readonly what: string
  readonly fix: string
  /** `fatal`: no box can run. `warning`: something is weaker or slower than it could be. */
  readonly weight: 'fatal' | 'warning'
}

export interface ImageOptions {
  readonly signal?: AbortSignal
  /** One line at a time, for a terminal. */
  readonly onProgress?: (line: string) => void
}

/** How an image comes to be. Its digest (recipe, files, bases) names the image, so a change makes a new one. */
export type ImageRecipe =
  /** Plain Debian: pulled by digest when a registry answers, else made with debootstrap from the host's own mirror. */
  | { readonly kind: 'debian' }
  /** Debian with the programs that terminal tasks use, user `agent` (1000) and `/workspace`. */
  | { readonly kind: 'paddock-base' }
  /** A public image, by reference. Pulled when it is not there. */
  | { readonly kind: 'reference'; readonly reference: string }
  /** A Dockerfile and its context. `FROM paddock-base` and `FROM paddock-debian` mean the two above. */
  | {
      readonly kind: 'dockerfile'
      readonly name: string
      readonly dockerfile: string
      readonly context?: string | readonly ContextFile[]
      readonly buildArgs?: Readonly<Record<string, string>>
    }

/** A file of a build context: of memory, of the host under its known hash, or of an npm package; read when needed. */
export type ContextFile =
  | { readonly path: string; readonly data: Uint8Array | string; readonly mode?: number }
  | { readonly path: string; readonly file: string; readonly sha256: string }
  | { readonly path: string; readonly npm: NpmFile }

/** A file of one exact version of a package, by its path in it. */
export interface NpmFile {
  readonly package: string
  readonly version: string
  readonly file: string
}

export interface ImageRef {
  /** Name to start boxes from. */
  readonly tag: string
  /** The image's own content id, `sha256:…`. */
  readonly id: string
  /** What named it: hex SHA-256 of the recipe. */
  readonly recipeDigest: string
  /** True when this call made or pulled it. */
  readonly fresh: boolean
}

export interface BundleSpec {
  /** Lower case, digits and dashes. */
  readonly name: string
  /** Anything that changes when the content should: a version, a lock file's digest. */
  readonly version: string
  build(directory: string, o: ImageOptions): Promise<void>
}

/** A read-only volume, mountable into any box. */
export interface BundleRef {
  readonly volume: string
  readonly fresh: boolean
}

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
  /** Makes this slot reachable inside as `http://127.0.0.1:<port>`; nothing else is. */
  readonly modelPath?: { readonly slot: Slot; readonly port?: number }
  readonly mounts?: readonly { readonly bundle: BundleRef; readonly target: string }[]
  /**
   * Default `none`. With anything else every connection of the box, and every name query, comes to the slot as a CONNECT
   * where the kernel can do that ({@link Box.wayOut}); and its programs are told (`HTTP_PROXY` and its kin) that the model
   * path is a proxy too. Whoever serves the slot puts an {@link EgressGate} behind it, which decides. Needs a model path.
   */
  readonly egress?: EgressPolicy
  /** The box is destroyed after this time, whatever it does. Default 6 h. */
  readonly deadlineMs?: number
}

/** A box as far as it is known before its rollout: which slot it will serve comes later, which port is known. */
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
  readonly labels: BoxLabels
  /** Where the slot is seen from inside (`http://127.0.0.1:<port>`), or null. */
  readonly modelUrl: string | null
  /**
   * How its programs reach what its egress allows: not at all; by asking the proxy that they are told of; or by simply
   * connecting, because every connection to any address and every name query comes to the gate.
   */
  readonly wayOut: 'none' | 'asked' | 'transparent'
  /**
   * Runs one command to its end and kills everything it started. Resolves for every fate of the command, also when the
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
  /**
   * Every path that may differ from the box's image, but for what was deleted together with its directory; cheap. Null
   * where only {@link Box.changes} can tell.
   */
  touched(): Promise<readonly string[] | null>
  /** Paths whose files differ from the box's image, works frozen too. Mounts are not looked at. May take a second. */
  changes(): Promise<readonly BoxChange[]>
  /**
   * All that differs from the box's image, as it is, where that stays within the limits; else null. For
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

export interface BoxDeath {
  readonly why: 'destroyed' | 'deadline' | 'oom' | 'relay_died' | 'unresponsive' | 'daemon' | 'exited'
  readonly detail: string
}

export interface ExecSpec {
  /** Program and arguments, or a line for `bash -c` (`sh -c` where there is no bash). */
  readonly command: readonly string[] | string
  readonly env?: Readonly<Record<string, string>>
  /** Default: the box's workdir. */
  readonly cwd?: string
  /** Name or uid. Only in `root` boxes can it differ from the box's user. */
  readonly user?: string
  readonly stdin?: Uint8Array | string | AsyncIterable<Uint8Array>
  /** SIGTERM goes to the whole tree at the deadline. Default 60 s. */
  readonly timeoutMs?: number
  /** SIGKILL follows after this. Default 2 s. */
  readonly graceMs?: number
  /** What is kept per stream; the rest is counted. Default 10 MiB. */
  readonly maxOutputBytes?: number
  /** Told of each piece as it comes; nothing more is read from the box meanwhile. */
  readonly onStdout?: (chunk: Uint8Array) => void
  readonly onStderr?: (chunk: Uint8Array) => void
  /**
   * `kept` (default): in the result, up to `maxOutputBytes`. `told`: to the listeners only, however much it is: a stream
   * that lives as long as its command. What a listener is told then holds during its call only: copy what is to stay.
   */
  readonly output?: 'kept' | 'told'
  /** `kill` (default): nothing outlives the command. `keep`: what it left running lives until {@link Box.killBackground}. */
  readonly background?: 'kill' | 'keep'
  /** Role under which the command is told to the event sink; without it no event is written. */
  readonly eventRole?: Extract<EventBody, { kind: 'exec' }>['role']
  /** What the event shows in place of the command line (for commands that carry secrets or are long). */
  readonly eventCommand?: string
}

export type ExecOutcome =
  | { readonly kind: 'exited'; readonly code: number }
  | { readonly kind: 'signaled'; readonly signal: string }
  | { readonly kind: 'timed_out' }
  /** The kernel killed the command for memory (its own limit, not the machine's). */
  | { readonly kind: 'oom' }
  /** An infra fate: the command has no result. */
  | { readonly kind: 'box_dead'; readonly why: BoxDeath }

export type ExecResult = ExecOutcome & {
  readonly stdout: Uint8Array
  readonly stderr: Uint8Array
  /** Bytes beyond `maxOutputBytes`. */
  readonly truncated: { readonly stdout: number; readonly stderr: number }
  /** Processes that the command left behind and that were killed. */
  readonly killed: number
  /** Processes of the box that the kernel killed for memory meanwhile, also when the command survived it. */
  readonly oomKills: number
  /** Milliseconds since the epoch, host clock. */
  readonly startedAt: number
  /** Measured in the box, without transport. */
  readonly durationMs: number
  /**
   * Why the program could not even begin (`exited` 126 or 127): it is not there, is none, or what it is loaded by (its C
   * library, its interpreter) is not there. Said by the supervisor: no command can fake it.
   */
  readonly notStarted?: string
}

export interface SnapshotOptions {
  /** The call after which it was taken, for the event. */
  readonly callId?: Id
}

/** Lives until it is disposed, its provider is closed, or a sweep finds its owner dead. */
export interface Snapshot extends AsyncDisposable {
  /** What `BoxSpec.image` takes. */
  readonly image: ImageRef
  /** Tag of the image that its box was started from. */
  readonly parent: string
  /** How many snapshots lie on each other: 1 for one of a box from an ordinary image. */
  readonly depth: number
}

export interface TerminalSpec {
  /** Default: a login shell of the command's user, `bash -l` or `sh -l`. */
  readonly command?: readonly string[] | string
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly user?: string
  /** Default 80 by 24. */
  readonly columns?: number
  readonly rows?: number
  /** Everything in the terminal is killed after this. Default 1 h. */
  readonly timeoutMs?: number
  /** What the recording keeps at most; later output is on the screen only. Default 8 MiB. */
  readonly maxRecordingBytes?: number
}

/** A session in a box: keys go in, a screen comes out. Ends with its command, with {@link Terminal.close} or with the box. */
export interface Terminal extends AsyncDisposable {
  /** Sends keys as a terminal does (`\r` is Enter, `\x03` is Ctrl-C). */
  write(keys: string | Uint8Array): void
  resize(columns: number, rows: number): void
  /** What a person would see now. */
  screen(): Promise<TerminalScreen>
  /** Resolves with the first screen that the test accepts; rejects with the signal's reason, or `BOX_DEAD` at the end. */
  screenWhere(accepts: (screen: TerminalScreen) => boolean, signal?: AbortSignal): Promise<TerminalScreen>
  /** Everything so far as an asciicast v2 file (docs.asciinema.org/manual/asciicast/v2). */
  recording(): string
  /** Told of each piece of output, as it comes. Call the result to leave. */
  onOutput(listener: (bytes: Uint8Array) => void): () => void
  /** The command's own end; its streams are empty. */
  readonly ended: Promise<ExecResult>
  /** Kills everything in the terminal. Idempotent. */
  close(): Promise<ExecResult>
}

export interface TerminalScreen {
  /** One per row, without trailing blanks. */
  readonly lines: readonly string[]
  readonly cursor: { readonly column: number; readonly row: number }
  readonly columns: number
  readonly rows: number
}

export interface PutFile {
  /** Relative; no `..`. One that ends in `/` is a directory, left as it is where there is one; its data is not looked at. */
  readonly path: string
  readonly data: Uint8Array | string
  /** Default 0o644. */
  readonly mode?: number
  readonly uid?: number
  readonly gid?: number
}

/** A directory of the host, copied with its modes; links are kept only if they stay inside. */
export interface FileTree {
  readonly fromDirectory: string
  readonly uid?: number
  readonly gid?: number
}

export interface ArchiveLimits {
  /** Default 64 MiB for all files together. */
  readonly maxBytes?: number
  /** Default 10,000. */
  readonly maxEntries?: number
}

/** What was taken out of a box. Paths are relative to the asked path; for a single file the path is its name. */
export interface Artifact {
  readonly found: boolean
  readonly entries: readonly ArchiveEntry[]
  readonly refused: readonly RefusedEntry[]
  /** True when what was refused went so far over the limits that the rest was not looked at. */
  readonly cutShort: boolean
  readonly totalBytes: number
}

export interface RefusedEntry {
  readonly path: string
  readonly reason: RefusedReason
  /** Where a refused link pointed, as it was written. */
  readonly target?: string
}

export type ArchiveEntry =
  | { readonly type: 'file'; readonly path: string; readonly mode: number; readonly data: Uint8Array }
  | { readonly type: 'directory'; readonly path: string; readonly mode: number }
  /** Relative link whose target stays inside the artifact. */
  | { readonly type: 'symlink'; readonly path: string; readonly target: string }

export type RefusedReason =
  | 'absolute_path'
  | 'parent_path'
  | 'link_out'
  | 'hard_link'
  | 'device'
  | 'through_link'
  | 'duplicate'
  | 'too_large'
  | 'too_many'

/** A unix socket of the host. What it serves can change while boxes are connected. */
export interface Slot extends AsyncDisposable {
  /** Short, unique on this machine. */
  readonly id: string
  readonly socketPath: string
  /** From now on requests go here. */
  serve(handlers: SlotHandlers): void
  /** Back to 503 for everything, and open connections are cut. */
  unbind(): void
  close(): Promise<void>
}

export interface SlotHandlers {
  request(request: IncomingMessage, response: ServerResponse): void
  /** CONNECT; without it a CONNECT is answered 403. */
  connect?(request: IncomingMessage, socket: Duplex, head: Buffer): void
}

export interface SweepReport {
  readonly removed: readonly SweptObject[]
  /** Objects of living owners, for `gc --dry-run`. */
  readonly kept: readonly SweptObject[]
  readonly failed: readonly (SweptObject & { readonly error: string })[]
}

export interface SweptObject {
  readonly kind: 'container' | 'volume' | 'network' | 'image' | 'directory'
  readonly id: string
  /** Why it is removed or kept. */
  readonly why: string
}

/** Told of each box and of each command with an `eventRole`. */
export type SandboxEventSink = (event: EventBody, about: BoxLabels) => void
