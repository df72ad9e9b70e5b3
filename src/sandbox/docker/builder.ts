import type Docker from 'dockerode'
import { Readable } from 'node:stream'
import { z } from 'zod'
import { PaddockError } from '../../core/index.ts'
import { type BuildKitPiece, buildKitPieces, type Frontend, frontendOf } from '../dockerfile/index.ts'
import { ask } from './daemon.ts'

/** Who builds images in a daemon. */
export interface Builder {
  /** Version of the daemon. */
  readonly daemon: string
  /** Version of the Dockerfile frontend that BuildKit brings in it; null: the daemon has the classic builder alone. */
  readonly frontend: string | null
}

/** What is given to the daemon. */
export interface BuildPlan {
  readonly dockerfile: string
  /** `version` of `POST /build` (Docker Engine API, "Build an image"). */
  readonly version: '1' | '2'
  /** The frontend that the daemon has to fetch, and what it is needed for; null: its own will do. */
  readonly fetches: { readonly frontend: Frontend; readonly pieces: readonly BuildKitPiece[] } | null
}

/**
 * The frontends that come with BuildKit in the daemon, by the first Docker that has each (moby's `vendor.mod` and BuildKit's
 * release notes).
 */
const frontends: readonly (readonly [docker: string, frontend: string])[] = [
  ['28.0', '1.14'],
  ['27.0', '1.8'],
  ['26.0', '1.7'],
  ['25.0', '1.6'],
  ['24.0', '1.5'],
  ['23.0', '1.4'],
  ['18.9', '1.2'],
]

/** Asks the daemon. `GET /_ping` says `Builder-Version: 1` where BuildKit is switched off. */
export async function builderOf(docker: Docker): Promise<Builder> {
  const { Version, ApiVersion } = versionShape.parse(
    await ask('tell its version', docker.version(), 'IMAGE_BUILD_FAILED'),
  )
  const isOff = (await ask('answer a ping', builderVersion(docker), 'IMAGE_BUILD_FAILED')) === '1'
  const isOld = !isAtLeast(ApiVersion, '1.39')
  const known = frontends.find(([first]) => isAtLeast(Version, first))
  return { daemon: Version, frontend: isOff || isOld || known === undefined ? null : known[1] }
}

const versionShape = z.object({ Version: z.string(), ApiVersion: z.string() })

function builderVersion(docker: Docker): Promise<string | null> {
  return new Promise((resolve, reject) => {
    const call = { path: '/_ping', method: 'GET', isStream: true, statusCodes: { 200: true } }
    // With `isStream` dockerode hands out the response itself.
    docker.modem.dial(call, (error: unknown, response: unknown) => {
      if (error !== null && error !== undefined) return reject(error)
      const { headers, resume } = responseShape.parse(response)
      resume.call(response)
      resolve(headers['builder-version'] ?? null)
    })
  })
}

const responseShape = z.looseObject({
  headers: z.record(z.string(), z.unknown()).transform((all) => ({
    'builder-version': typeof all['builder-version'] === 'string' ? all['builder-version'] : undefined,
  })),
  resume: z.custom<() => void>((value) => typeof value === 'function'),
})

/** Whether `version` is this one or newer, by the numbers before the first letter. */
function isAtLeast(version: string, least: string): boolean {
  const parts = (text: string): readonly number[] => (/^[\d.]+/.exec(text)?.[0] ?? '').split('.').map(Number)
  const [have, want] = [parts(version), parts(least)]
  for (const [i, part] of want.entries()) {
    if ((have[i] ?? 0) !== part) return (have[i] ?? 0) > part
  }
  return true
}

/**
 * How a Dockerfile is built here: by the classic builder unless something in it needs BuildKit, by the daemon's own
 * frontend unless that is too old. Throws `IMAGE_DOCKERFILE_UNSUPPORTED` with each piece that cannot be built, by its line.
 */
export function planBuild(name: string, dockerfile: string, builder: Builder): BuildPlan {
  const pieces = buildKitPieces(dockerfile)
  const frontend = frontendOf(dockerfile)
  const outside = pieces.filter(({ since }) => since === null)
  if (outside.length > 0) {
    throw unsupported(
      name,
      outside,
      'builds are given no secrets, agents, devices or rights of their own',
      'Take what it needs from the build context, or do without it.',
    )
  }
  const foreign = frontend === null || frontend.isOfficial ? null : frontend
  if (builder.frontend === null) {
    const all = foreign === null ? pieces : [syntaxPiece(foreign), ...pieces]
    if (all.length === 0) return { dockerfile, version: '1', fetches: null }
    throw unsupported(
      name,
      all,
      `the Docker daemon (${builder.daemon}) has no BuildKit`,
      'Write it without BuildKit, or switch BuildKit on in the daemon ("features": {"buildkit": true}).',
    )
  }
  if (frontend === null && pieces.length === 0) return { dockerfile, version: '1', fetches: null }
  const late = pieces.filter(({ since }) => since !== null && !isAtLeast(builder.frontend ?? '0', since))
  if (frontend === null && late.length > 0) {
    throw unsupported(
      name,
      late,
      `the Docker daemon (${builder.daemon}) knows Dockerfiles up to version ${builder.frontend}`,
      'Write it in another way, use a newer Docker, or begin the file with `# syntax=docker/dockerfile:1` where that image can be pulled.',
    )
  }
  if (frontend === null) return { dockerfile, version: '2', fetches: null }
  if (foreign !== null || late.length > 0) {
    return { dockerfile, version: '2', fetches: { frontend, pieces: late } }
  }
  // The daemon's own frontend knows all of it, so that nothing has to be fetched.
  const lines = dockerfile.split('\n')
  lines[frontend.line - 1] = `# ${frontend.reference}`
  return { dockerfile: lines.join('\n'), version: '2', fetches: null }
}

const syntaxPiece = ({ line, reference }: Frontend): BuildKitPiece => ({
  line,
  what: `# syntax=${reference}`,
  since: '1.0',
})

const listed = (pieces: readonly BuildKitPiece[]): string =>
  pieces.map(({ line, what, since }) => `line ${line}: ${what}${since === null ? '' : ` (${since})`}`).join('; ')

function unsupported(name: string, pieces: readonly BuildKitPiece[], why: string, fix: string): PaddockError {
  const message = `The Dockerfile of ${name} cannot be built here: ${why}: ${listed(pieces)}`
  return new PaddockError('IMAGE_DOCKERFILE_UNSUPPORTED', message, {
    fix,
    data: { lines: pieces.map(({ line }) => line).join(', ') },
  })
}

/** The file of a plan with its frontend under the name by which the daemon has it. */
export function withFrontend({ dockerfile }: BuildPlan, { line }: Frontend, tag: string): string {
  const lines = dockerfile.split('\n')
  lines[line - 1] = `# syntax=${tag}`
  return lines.join('\n')
}

/** That a frontend could not be had, with what it is needed for. */
export function frontendMissing(name: string, fetches: NonNullable<BuildPlan['fetches']>, words: string): PaddockError {
  const fix =
    'Make the registry of the frontend reachable, name an image for it in sandbox.images.map, use a newer Docker, or write the Dockerfile without what needs it.'
  return unsupported(
    name,
    [syntaxPiece(fetches.frontend), ...fetches.pieces],
    `its frontend cannot be had (${words})`,
    fix,
  )
}

/**
 * Sends a build (`POST /build`) and gives its progress. Not by dockerode's own call, which for BuildKit opens a session that
 * a build which is cut leaves open: images are here before a build begins, so that it has nothing to ask of one.
 */
export function postBuild(
  docker: Docker,
  context: Readable,
  options: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<Readable> {
  return new Promise((resolve, reject) => {
    const call = { path: '/build?', method: 'POST', file: context, options, isStream: true, abortSignal: signal }
    docker.modem.dial({ ...call, statusCodes: { 200: true } }, (error: unknown, response: unknown) => {
      if (error !== null && error !== undefined) return reject(error)
      if (response instanceof Readable) resolve(response)
      else reject(new Error('the daemon gave no progress of the build'))
    })
  })
}
