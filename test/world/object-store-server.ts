/** An S3 server of somebody else's: versitygw where it is in the path, else s3rver, installed for the test by npm. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { AwsClient } from 'aws4fetch'
import { freePort } from '../../scripts/free-port.ts'

const run = promisify(execFile)

export interface ObjectStoreServer {
  readonly name: string
  readonly endpoint: string
  readonly region: string
  readonly bucket: string
  readonly keys: { readonly accessKeyId: string; readonly secretAccessKey: string }
  /** Signed requests of another hand than ours. */
  readonly client: AwsClient
  kill(): Promise<void>
  start(): Promise<void>
  stop(): Promise<void>
}

export async function startObjectStore(): Promise<ObjectStoreServer> {
  const folder = await mkdtemp(join(tmpdir(), 'paddock-s3-'))
  const data = join(folder, 'data')
  await mkdir(data)
  const port = await freePort()
  const isVersity = await run('versitygw', ['--version']).then(
    () => true,
    () => false,
  )
  const keys = isVersity
    ? { accessKeyId: 'paddock', secretAccessKey: 'hidden+secret/word' }
    : { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' }
  const command = isVersity
    ? [
        'versitygw',
        '--port',
        `127.0.0.1:${port}`,
        '--access',
        keys.accessKeyId,
        '--secret',
        keys.secretAccessKey,
        'posix',
        data,
      ]
    : [await installed(folder), '--directory', data, '--address', '127.0.0.1', '--port', String(port), '--silent']
  const endpoint = `http://127.0.0.1:${port}`
  const region = 'us-east-1'
  const client = new AwsClient({ ...keys, region, service: 's3', retries: 0 })
  let child: ChildProcess
  const start = async (): Promise<void> => {
    const [program = '', ...args] = command
    child = spawn(program, args, { stdio: ['ignore', 'ignore', 'inherit'] })
    while (
      !(await fetch(endpoint).then(
        () => true,
        () => false,
      ))
    ) {
      if (child.exitCode !== null) throw new Error(`${program} ended with ${child.exitCode}`)
      await setTimeout(50)
    }
  }
  const kill = async (): Promise<void> => {
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }
  await start()
  const made = await client.fetch(`${endpoint}/blobs`, { method: 'PUT' })
  if (!made.ok) throw new Error(`no bucket: ${made.status} ${await made.text()}`)
  return {
    name: isVersity ? 'versitygw' : 's3rver',
    endpoint,
    region,
    bucket: 'blobs',
    keys,
    client,
    kill,
    start,
    stop: async () => {
      await kill()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function installed(folder: string): Promise<string> {
  await run('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund', '--no-save', 's3rver@3.7.1'], {
    cwd: folder,
  })
  return join(folder, 'node_modules/.bin/s3rver')
}
