import { realpath } from 'node:fs/promises'
import Docker from 'dockerode'
import { expect, it } from 'vitest'
import { requireDocker } from '../../testing/sandbox/index.ts'
import { seesOurFiles } from './near.ts'

it.runIf(process.env['DOCKER_HOST'] === undefined && (await requireDocker()))(
  'an image that another removed in between is passed by, and says nothing of the daemon',
  async () => {
    // What was learned is kept by address: under this name nobody has asked the daemon in this process.
    const docker = new Docker({ socketPath: `/proc/self/root${await realpath('/var/run/docker.sock')}` })
    const removed = `sha256:${'0'.repeat(64)}`
    expect(await seesOurFiles(docker, [removed])).toBeNull()
    expect(await seesOurFiles(docker, [])).toBeNull()
    const images = (await docker.listImages()).map(({ Id }) => Id)
    expect(await seesOurFiles(docker, [removed, ...images])).toBe(true)
  },
)
