import type { EventBody } from '../../core/index.ts'
import type { Box, BoxLabels, BoxSpec, WarmSpec } from './box.ts'
import type { BundleRef, BundleSpec, ImageOptions, ImageRecipe, ImageRef } from './image.ts'
import type { ModelSocket } from './model-socket.ts'

/** A box that will soon be asked for; see {@link SandboxProvider.prefetch}. */
export type BoxWish = Disposable & AsyncDisposable

/** Boxes that stand still until this is disposed, which throws when one of them cannot go on. */
export interface BoxPause extends AsyncDisposable {
  /** Those that go on all the same, each with what the runtime said. */
  readonly missed: readonly { readonly boxId: string; readonly why: unknown }[]
}

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
   * takes no processor time and its deadlines stand still. Pauses nest. What else holds a box, holds it on. Does not
   * throw: a box that cannot be stopped is told in the answer.
   */
  pauseBoxes(): Promise<BoxPause>
  /** Opens a unix socket on the host that one box at a time can be given as its model path. */
  openModelSocket(): Promise<ModelSocket>
  /** Removes (or with `dryRun` only lists) what owners that are dead left behind. Never touches objects of the living. */
  sweep(o?: {
    readonly dryRun?: boolean
    /** Whether to measure what builds have cached, which can take a daemon long. */
    readonly buildCache?: boolean
  }): Promise<SweepReport>
  /** Destroys every box and socket of this provider. Idempotent. */
  close(): Promise<void>
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
  /** How a box reaches its model socket: mounted, or over the stream of its relay; null where it is not known yet. */
  readonly modelPath: 'socket' | 'stream' | null
  /** One line for each image that stands for another, and for each mirror. */
  readonly images: readonly string[]
  readonly problems: readonly SandboxProblem[]
}

export interface SandboxProblem {
  readonly code: string
  readonly what: string
  readonly fix: string
  /** `fatal`: no box can run. `warning`: something is weaker or slower than it could be. */
  readonly weight: 'fatal' | 'warning'
}

export interface SweepReport {
  readonly removed: readonly SweptObject[]
  /** Objects of living owners, for `gc --dry-run`. */
  readonly kept: readonly SweptObject[]
  readonly failed: readonly (SweptObject & { readonly error: string })[]
  /** What all builds in the daemon have cached, ours and others, which no sweep removes; null: not asked, or not told. */
  readonly buildCacheBytes: number | null
}

export interface SweptObject {
  readonly kind: 'container' | 'volume' | 'network' | 'image' | 'directory'
  readonly id: string
  /** Why it is removed or kept. */
  readonly why: string
}

/** Told of each box and of each command with an `eventRole`. */
export type SandboxEventSink = (event: EventBody, about: BoxLabels) => void
