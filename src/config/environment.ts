import type { LogLevel } from '../core/index.ts'
import type { ConfigInput } from './schema.ts'

/** The environment variables that Paddock reads. Read here and nowhere else; `docs/reference/config.md` lists them. */
export const environmentVariables = {
  ENGINE_URL: 'engine.url',
  ENGINE_API_KEY: 'engine.apiKey',
  MODEL: 'engine.model',
  PADDOCK_CONFIG: 'path of the configuration file',
  PADDOCK_DATA: 'store.directory',
  PADDOCK_CATALOGUE: 'store.catalogue',
  PADDOCK_HOST: 'proxy.host',
  PADDOCK_PORT: 'proxy.port',
  PADDOCK_CONTROL_HOST: 'control.host',
  PADDOCK_CONTROL_PORT: 'control.port',
  PADDOCK_CONTROL_TOKEN: 'control.token',
  PADDOCK_TLS_CERT: 'tls.cert',
  PADDOCK_TLS_KEY: 'tls.key',
  PADDOCK_TLS_CA: 'tls.ca',
  PADDOCK_PLAIN_HTTP: 'tls.plainHttp',
  PADDOCK_LOG: 'log.level',
  PADDOCK_LOG_FILE: 'log.file',
  AWS_ACCESS_KEY_ID: 'key of the object store (`blobs.s3`, `archive.s3`)',
  AWS_SECRET_ACCESS_KEY: 'its secret',
  AWS_SESSION_TOKEN: 'its session, where it has one',
  NO_COLOR: 'no colour in the output',
} as const

export type EnvironmentVariables = Readonly<Partial<Record<keyof typeof environmentVariables, string>>>

/** Who asks an object store. Never a part of the configuration, which is logged. */
export interface ObjectStoreKeys {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken: string | null
}

/** Null where they are not set. */
export function objectStoreKeys(env: EnvironmentVariables = process.env): ObjectStoreKeys | null {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = env
  if (!accessKeyId || !secretAccessKey) return null
  return { accessKeyId, secretAccessKey, sessionToken: env.AWS_SESSION_TOKEN || null }
}

/** The part of the configuration that comes from the environment. Empty variables count as unset. */
export function configFromEnvironment(env: EnvironmentVariables): ConfigInput {
  const control = {
    ...text('host', env.PADDOCK_CONTROL_HOST),
    ...number('port', env.PADDOCK_CONTROL_PORT),
    ...text('token', env.PADDOCK_CONTROL_TOKEN),
  }
  return {
    engine: { ...engineUrls(env.ENGINE_URL), ...text('apiKey', env.ENGINE_API_KEY), ...text('model', env.MODEL) },
    proxy: { ...text('host', env.PADDOCK_HOST), ...number('port', env.PADDOCK_PORT) },
    control,
    tls: {
      ...text('cert', env.PADDOCK_TLS_CERT),
      ...text('key', env.PADDOCK_TLS_KEY),
      ...text('ca', env.PADDOCK_TLS_CA),
      ...flag('plainHttp', env.PADDOCK_PLAIN_HTTP),
    },
    store: { ...text('directory', env.PADDOCK_DATA), ...text('catalogue', env.PADDOCK_CATALOGUE) },
    log: { ...logLevel(env.PADDOCK_LOG), ...text('file', env.PADDOCK_LOG_FILE) },
  }
}

/** Several replicas are separated by commas; `none` stands for no engine before a trainer names one. */
export function engineUrls(value: string | undefined): { url?: string | string[] } {
  if (!value) return {}
  if (value === 'none') return { url: [] }
  const list = value.split(',').map((url) => url.trim())
  return { url: list.length === 1 ? value : list }
}

function text<K extends string>(key: K, value: string | undefined): { [P in K]?: string } {
  const part: { [P in K]?: string } = {}
  if (value) part[key] = value
  return part
}

/** `1` or `true`, `0` or `false`; anything else is judged by the schema, which names the place. */
function flag<K extends string>(key: K, value: string | undefined): { [P in K]?: boolean } {
  const part: { [P in K]?: boolean } = {}
  const known = new Map<string, boolean>([
    ['1', true],
    ['true', true],
    ['0', false],
    ['false', false],
  ])
  if (value) part[key] = known.get(value) ?? (value as unknown as boolean)
  return part
}

/** NaN for what is not a number, so that validation names the place. */
function number<K extends string>(key: K, value: string | undefined): { [P in K]?: number } {
  const part: { [P in K]?: number } = {}
  if (value) part[key] = Number(value)
  return part
}

/** Taken as it is: the schema judges it with the rest, and names the place. */
function logLevel(value: string | undefined): { level?: LogLevel } {
  return value ? { level: value as LogLevel } : {}
}
