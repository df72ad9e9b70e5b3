/** Where images come from beside the place that their names say. */
export interface ImageSources {
  /** An image as a task names it, and the one that stands for it. */
  readonly map: Readonly<Record<string, string>>
  /** Registries with the images of Docker Hub, `host[:port][/path]`, the first one that has an image before Docker Hub. */
  readonly mirrors: readonly string[]
}

interface Reference {
  readonly domain: string
  readonly path: string
  /** `:tag`, `@digest`, or both. */
  readonly version: string
}

const hub = 'docker.io'

/** `ubuntu` is `docker.io/library/ubuntu:latest` (distribution reference, as the Docker command line reads names). */
function parse(text: string): Reference {
  const [, name = text, tag, digest] = /^(.*?)(?::([\w][\w.-]*))?(?:@(\w+:[0-9a-f]+))?$/.exec(text) ?? []
  const slash = name.indexOf('/')
  const first = slash === -1 ? '' : name.slice(0, slash)
  const isDomain = /[.:]/.test(first) || first === 'localhost'
  const domain = !isDomain || first === `index.${hub}` ? hub : first
  const rest = isDomain ? name.slice(slash + 1) : name
  const path = domain === hub && !rest.includes('/') ? `library/${rest}` : rest
  const version = `${tag === undefined ? '' : `:${tag}`}${digest === undefined ? '' : `@${digest}`}`
  return { domain, path, version: version === '' ? ':latest' : version }
}

/** The whole name; two names of one image are equal in it. */
export function canonical(text: string): string {
  const { domain, path, version } = parse(text)
  return `${domain}/${path}${version}`
}

/** With a tag or digest: a daemon that is asked to pull a bare name pulls all its tags. */
export function withVersion(text: string): string {
  return text.endsWith(parse(text).version) ? text : `${text}${parse(text).version}`
}

/** What stands for an image by the map, else itself. */
export function mapped(text: string, { map }: ImageSources): string {
  const wanted = canonical(text)
  return Object.entries(map).find(([name]) => canonical(name) === wanted)?.[1] ?? text
}

/** The names of an image in the mirrors; none for one that is not of Docker Hub. */
export function mirrored(text: string, { mirrors }: ImageSources): readonly string[] {
  const { domain, path, version } = parse(text)
  return domain === hub ? mirrors.map((mirror) => `${mirror}/${path}${version}`) : []
}
