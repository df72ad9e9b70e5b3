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
      /** How long its build may take, of this process's time. Default: no bound. */
      readonly timeoutMs?: number
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

/** An image of a box's files that stays until somebody removes it. */
export interface KeptImage {
  /** Its tag. */
  readonly image: string
  /** Whose box it was, and after which call it was taken; null: nobody's, a person kept it. */
  readonly run: string | null
  readonly rollout: string | null
  readonly call: string | null
  /** What it added to what it lies on; null: nobody measured it. */
  readonly sizeBytes: number | null
  /** Milliseconds since the epoch. */
  readonly createdAt: number
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
  /** Left out: the provider does not know. */
  readonly says?: ImageSays
}

/** What an image says of the commands that run in it. */
export interface ImageSays {
  /** Where they begin: `/` where it does not say. */
  readonly workdir: string
  /** Whom they run as: a name or number, perhaps with `:group`; null: root. */
  readonly user: string | null
  /** What runs before them; empty: nothing. */
  readonly entrypoint: readonly string[]
  /** Absolute directories of its `PATH`; left out: it is not known. */
  readonly path?: readonly string[]
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
