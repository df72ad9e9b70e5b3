import type Docker from 'dockerode'
import { pack } from 'tar-stream'
import { PassThrough } from 'node:stream'
import { isPaddockError, PaddockError } from '../../core/index.ts'
import type { ImageOptions, ImageRecipe, ImageRef } from '../contract/index.ts'
import { type UsedImage, usedImages, withImages } from '../dockerfile/index.ts'
import { Bases, type FoundImage } from './bases.ts'
import { buildContext } from './build-context.ts'
import { type BuildPlan, builderOf, frontendMissing, planBuild, postBuild, withFrontend } from './builder.ts'
import { ask, messageOf } from './daemon.ts'
import { makeDebian } from './debian.ts'
import { markLabel } from './labels.ts'
import { withLock } from './lock.ts'
import { DaemonWords, follow } from './progress.ts'
import type { PullOptions } from './pull.ts'
import { debianReference, debianSuite, digestOf, ownBase, sandboxSource } from './recipe.ts'
import { type ImageSources, mapped } from './references.ts'

/** Makes images by recipe. One at a time per image on this machine. */
export class Images {
  readonly #docker: Docker
  readonly #bases: Bases

  constructor(docker: Docker, sources: ImageSources = { map: {}, mirrors: [] }) {
    this.#docker = docker
    this.#bases = new Bases(docker, sources)
  }

  async ensure(recipe: ImageRecipe, o: ImageOptions = {}): Promise<ImageRef> {
    switch (recipe.kind) {
      case 'debian': {
        const stands = mapped(debianReference, this.#bases.sources)
        const digest = digestOf(['debian', stands, debianSuite, '1'])
        return this.#once('paddock-debian', digest, o, (tag) => makeDebian(this.#docker, this.#bases, tag, o))
      }
      case 'paddock-base':
        return this.#build('paddock-base', sandboxSource('paddock-base/Dockerfile'), undefined, {}, o)
      case 'dockerfile':
        return this.#build(imageName(recipe.name), recipe.dockerfile, recipe.context, recipe.buildArgs ?? {}, {
          ...o,
          ...(recipe.timeoutMs === undefined ? {} : { timeoutMs: recipe.timeoutMs }),
        })
      case 'reference':
        return this.#reference(recipe.reference, o)
    }
  }

  /** An image without any file: the root of relays, and what bundles are filled through. */
  async empty(o: ImageOptions = {}): Promise<ImageRef> {
    return this.#once('paddock-empty', digestOf(['empty', '1']), o, async (tag) => {
      const tar = pack()
      tar.entry({ name: 'socket', type: 'directory', mode: 0o755 })
      tar.finalize()
      const [repo, version] = tag.split(':')
      const body = tar.pipe(new PassThrough())
      const stream = await ask(
        'import an image',
        this.#docker.importImage(body, { repo, tag: version }),
        'IMAGE_BUILD_FAILED',
      )
      await follow(stream, () => undefined)
    })
  }

  async #build(
    name: string,
    dockerfile: string,
    source: Parameters<typeof buildContext>[0],
    buildArgs: Readonly<Record<string, string>>,
    o: ImageOptions & { readonly timeoutMs?: number },
  ): Promise<ImageRef> {
    // A tag may come to mean another image, and a map may give another one: by what it means now.
    const used = usedImages(dockerfile, buildArgs)
    const meant = await Promise.all(used.map((one) => this.#meant(one, o)))
    const text = withImages(dockerfile, new Map(used.map((one, i) => [one, meant[i]?.tag ?? one.written])))
    const context = await buildContext(source)
    const args = Object.entries(buildArgs)
      .map(([key, value]) => `${key}=${value}`)
      .sort()
    const ids = used.flatMap(({ reference }, i) =>
      ownBase(reference) === null ? [`${reference} is ${meant[i]?.id}`] : [],
    )
    const digest = digestOf([text, context.digest, ...args, ...new Set(ids)])
    return this.#once(name, digest, o, async (tag) => {
      const bound = o.timeoutMs === undefined ? null : AbortSignal.timeout(o.timeoutMs)
      const signals = [o.signal, bound].filter((signal) => signal !== undefined && signal !== null)
      const plan = planBuild(name, text, await builderOf(this.#docker))
      const planned = await this.#withFrontend(name, plan, o)
      const options = {
        version: plan.version,
        t: tag,
        dockerfile: context.dockerfile,
        rm: true,
        forcerm: true,
        labels: { [markLabel]: 'image', 'paddock.recipe': digest },
        buildargs: { ...proxyArguments(), ...buildArgs },
      }
      try {
        const packed = await context.pack(planned, o)
        const stream = await postBuild(this.#docker, packed, options, AbortSignal.any(signals))
        await follow(stream, o.onProgress ?? (() => undefined))
      } catch (error) {
        o.signal?.throwIfAborted()
        if (bound?.aborted === true) {
          throw new PaddockError('IMAGE_BUILD_FAILED', `The image of ${name} was not built within ${o.timeoutMs} ms.`, {
            cause: error,
            fix: 'Raise build_timeout_sec of the task, or make its Dockerfile do less.',
          })
        }
        throw buildFault(name, error)
      }
    })
  }

  async #withFrontend(name: string, plan: BuildPlan, o: ImageOptions): Promise<string> {
    if (plan.fetches === null) return plan.dockerfile
    const { frontend } = plan.fetches
    try {
      return withFrontend(plan, frontend, (await this.#bases.ensure(frontend.reference, o)).tag)
    } catch (error) {
      if (!isPaddockError(error) || error.code !== 'IMAGE_MISSING') throw error
      throw frontendMissing(name, plan.fetches, error.message)
    }
  }

  /** The image that a name in a Dockerfile stands for. */
  async #meant({ reference, platform }: UsedImage, o: ImageOptions): Promise<ImageRef> {
    const own = ownBase(reference)
    return own === null ? this.#reference(reference, { ...o, platform }) : this.ensure({ kind: own }, o)
  }

  async #reference(reference: string, o: PullOptions): Promise<ImageRef> {
    const own = ownBase(mapped(reference, this.#bases.sources))
    const found = own === null ? await this.#bases.ensure(reference, o) : await this.ensure({ kind: own }, o)
    const { tag, id, says, fresh } = found
    const recipeDigest = digestOf(['reference', reference, ...(tag === reference ? [] : [tag])])
    return { tag, id, ...(says && { says }), recipeDigest, fresh }
  }

  async #once(name: string, digest: string, o: ImageOptions, make: (tag: string) => Promise<void>): Promise<ImageRef> {
    const tag = `${name}:${digest.slice(0, 16)}`
    const there = async (): Promise<ImageRef | null> => {
      const found = await this.#bases.found(tag)
      return found === null ? null : { tag, ...found, recipeDigest: digest, fresh: false }
    }
    const found = await there()
    if (found !== null) return found
    return withLock(
      `image-${digest}`,
      async () => {
        const meanwhile = await there()
        if (meanwhile !== null) return meanwhile
        o.onProgress?.(`making image ${tag}`)
        await make(tag)
        return { tag, ...(await this.#require(tag)), recipeDigest: digest, fresh: true }
      },
      o.signal,
    )
  }

  async #require(tag: string): Promise<FoundImage> {
    const found = await this.#bases.found(tag)
    if (found === null) throw new PaddockError('IMAGE_BUILD_FAILED', `The image ${tag} is not there after it was made.`)
    return found
  }
}

/** Repository name for a task's image: what Docker allows, no more. */
function imageName(name: string): string {
  const clean = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
  return `paddock-task-${clean === '' ? 'image' : clean.slice(0, 80)}`
}

/** The host's proxy settings, where it has any; Docker keeps these out of the image. */
function proxyArguments(): Record<string, string> {
  const names = ['http_proxy', 'https_proxy', 'no_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY']
  return Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])))
}

function buildFault(name: string, error: unknown): PaddockError {
  if (isPaddockError(error)) return error
  const words = messageOf(error)
  const log = error instanceof DaemonWords ? `\n${error.log.join('\n')}` : ''
  if (/unknown flag|unknown instruction|dockerfile parse error|heredoc|requires buildkit/i.test(words)) {
    return new PaddockError(
      'IMAGE_DOCKERFILE_UNSUPPORTED',
      `The Dockerfile of ${name} cannot be built here: ${words}`,
      {
        cause: error,
      },
    )
  }
  return new PaddockError('IMAGE_BUILD_FAILED', `The image of ${name} could not be built: ${words}${log}`, {
    cause: error,
  })
}
