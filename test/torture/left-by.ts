import Docker from 'dockerode'
import { readdirSync, readFileSync } from 'node:fs'

const docker = new Docker()

/** Containers, volumes, networks, snapshots and directories of sockets that name this owner. */
export async function leftBy(owner: string): Promise<string[]> {
  const filters = { label: ['paddock.owner'] }
  const [containers, { Volumes }, networks, images] = await Promise.all([
    docker.listContainers({ all: true, filters }),
    docker.listVolumes({ filters }),
    docker.listNetworks({ filters }),
    docker.listImages({ all: true, filters }),
  ])
  const labelled = [
    ...containers.map(({ Id, Labels }) => ({ id: `container ${Id}`, labels: Labels })),
    ...(Volumes ?? []).map(({ Name, Labels }) => ({ id: `volume ${Name}`, labels: Labels })),
    ...networks.map(({ Id, Labels }) => ({ id: `network ${Id}`, labels: Labels })),
    ...images.map(({ Id, Labels }) => ({ id: `image ${Id}`, labels: Labels })),
  ]
  return [
    ...labelled.filter(({ labels }) => labels?.['paddock.owner']?.startsWith(owner)).map(({ id }) => id),
    ...sockets()
      .filter((name) => readOwner(name).startsWith(owner))
      .map((name) => `directory ${name}`),
  ]
}

/** Directories of sockets have their owner beside them. */
function sockets(): string[] {
  return readdirSync('/run/paddock').filter((name) => name.endsWith('.owner'))
}

function readOwner(name: string): string {
  try {
    return readFileSync(`/run/paddock/${name}`, 'utf8')
  } catch {
    return ''
  }
}
