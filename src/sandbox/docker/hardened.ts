import type Docker from 'dockerode'
import type { BoxProfile, BoxSpec } from '../contract/index.ts'
import { nameServer } from '../egress/index.ts'
import { containerLabels, type ContainerKind } from './labels.ts'
import { type BoxNames, loopbackAlone } from './names-volume.ts'

const mebibyte = 2 ** 20

const claimed = 'paddock-claimed-'

/** Name of a container whose box was made ahead: labels cannot be changed, so the name says whose it became. */
export function claimedName(rollout: string, boxId: string): string {
  return `${claimed}${rollout}.${boxId.slice(0, 12)}`
}

/** The rollout that {@link claimedName} names, or null. */
export function claimerIn(name: string): string | null {
  return name.startsWith(claimed) ? name.slice(claimed.length, name.lastIndexOf('.')) : null
}

/** Where the in-box programs are mounted. */
export const programsMount = '/.paddock'

/** Port on the box's loopback under which the model path is found unless a spec says otherwise. */
export const defaultModelPort = 7171

/** What a set-up inside an image needs as root, and nothing that reaches beyond the box. */
const rootCapabilities = [
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'SETGID',
  'SETUID',
  'SYS_CHROOT',
] as const

/**
 * What PID 1 of a box without capabilities needs for itself: to drop to the box's user, to take the bounding set from
 * it, to kill, and to run ahead of a box full of processes that it has to kill. Commands have none of it, and as another user they cannot signal, trace or limit PID 1.
 */
const supervisorCapabilities = ['KILL', 'SETGID', 'SETPCAP', 'SETUID', 'SYS_NICE'] as const

/** Uid and gid of a profile's processes. */
export function profileUser(profile: BoxProfile): { readonly uid: number; readonly gid: number } {
  return profile === 'root' ? { uid: 0, gid: 0 } : { uid: 1000, gid: 1000 }
}

/** The same for boxes and relays. */
interface ContainerParts {
  readonly programs: string
  /** Security options. */
  readonly seccomp: readonly string[]
}

/** The container of a box: no capability beyond its profile, no network of its own, no log, gone when it ends. */
export function boxContainer(
  spec: BoxSpec,
  { image, programs, runtime, seccomp }: ContainerParts & { readonly image: string; readonly runtime: string | null },
  { relay, names }: { readonly relay: string | null; readonly names: BoxNames | null },
): CreateOptions {
  const memory = (spec.memoryMb ?? 2048) * mebibyte
  const user = profileUser(spec.profile)
  return {
    ...attached('box', spec.labels),
    Image: image,
    User: '0:0',
    Entrypoint: [`${programsMount}/supervisor`],
    Cmd: [spec.workdir ?? '/workspace', ...(spec.profile === 'user' ? [String(user.uid)] : [])],
    WorkingDir: '/',
    // The daemon would run an image's check beside the supervisor, which then cannot end or freeze it.
    Healthcheck: { Test: ['NONE'] },
    Env: Object.entries({ ...proxyVariables(spec), ...spec.env }).map(([name, value]) => `${name}=${value}`),
    // A joined network namespace brings its own host name.
    ...(relay === null ? { Hostname: 'box' } : {}),
    ...(relay === null && names !== null ? { NetworkDisabled: true } : {}),
    HostConfig: {
      ...locked(seccomp),
      ...(runtime === null ? {} : { Runtime: runtime }),
      CapAdd: [...(spec.profile === 'root' ? rootCapabilities : supervisorCapabilities)],
      NetworkMode: relay === null ? 'none' : `container:${relay}`,
      ...(relay === null && names !== null ? { Sysctls: loopbackAlone } : {}),
      Memory: memory,
      MemorySwap: memory,
      NanoCpus: Math.round((spec.cpus ?? 2) * 1e9),
      PidsLimit: spec.pids ?? 512,
      Ulimits: [
        { Name: 'core', Soft: 0, Hard: 0 },
        ...(spec.fileMb === undefined
          ? []
          : [{ Name: 'fsize', Soft: spec.fileMb * mebibyte, Hard: spec.fileMb * mebibyte }]),
      ],
      Mounts: [
        volume(programs, programsMount),
        ...(spec.mounts ?? []).map((m) => volume(m.bundle.volume, m.target)),
        ...(names?.mounts ?? []),
      ],
    },
  }
}

/** How programs learn of a proxy; the model path itself is reached directly. Both spellings are in use. */
function proxyVariables(spec: BoxSpec): Record<string, string> {
  if ((spec.egress ?? 'none') === 'none' || spec.modelPath === undefined) return {}
  const proxy = `http://127.0.0.1:${spec.modelPath.port ?? defaultModelPort}`
  const direct = 'localhost,127.0.0.1,::1'
  return {
    HTTP_PROXY: proxy,
    HTTPS_PROXY: proxy,
    NO_PROXY: direct,
    http_proxy: proxy,
    https_proxy: proxy,
    no_proxy: direct,
  }
}

/** Whom a relay is, once it has made its namespace. */
const relayUser = 65532

/**
 * What a relay needs to bring every connection of its namespace to itself (NET_ADMIN for the route, SYS_ADMIN for the
 * program in the kernel, which daemons before API 1.42 know no smaller capability for) and to become {@link relayUser},
 * which it does before it says that it is ready and before the box starts.
 */
const catchAllCapabilities = ['NET_ADMIN', 'SYS_ADMIN', 'SETGID', 'SETUID'] as const

/** The container of a relay: one static program, a read-only empty root, the socket's directory (null: it has none, and its stream carries all). */
export function relayContainer(
  spec: BoxSpec,
  { emptyImage: image, programs, seccomp }: ContainerParts & { readonly emptyImage: string },
  socketDirectory: string | null,
  port: number,
  /** Whether the box has files of its own for what a network of the daemon brings. */
  isPlain: boolean,
): CreateOptions {
  const catchesAll = (spec.egress ?? 'none') !== 'none'
  // Lines have windows of their own beside the buffers of connections.
  const memory = (socketDirectory === null ? 192 : 64) * mebibyte
  return {
    ...attached('relay', spec.labels),
    Image: image,
    User: catchesAll ? '0:0' : `${relayUser}:${relayUser}`,
    Hostname: 'box',
    Entrypoint: [`${programsMount}/relay`],
    Cmd: [String(port), socketDirectory === null ? '-' : '/model/sock', ...(catchesAll ? [String(relayUser)] : [])],
    WorkingDir: '/',
    ...(isPlain ? { NetworkDisabled: true } : {}),
    HostConfig: {
      ...locked(seccomp),
      ...(isPlain ? { Sysctls: loopbackAlone } : {}),
      ...(catchesAll ? wayOut : {}),
      NetworkMode: 'none',
      ReadonlyRootfs: true,
      Memory: memory,
      MemorySwap: memory,
      PidsLimit: 4,
      Mounts: [
        volume(programs, programsMount),
        ...(socketDirectory === null
          ? []
          : [{ Type: 'bind', Source: socketDirectory, Target: '/model', ReadOnly: true } as const]),
      ],
    },
  }
}

/** A namespace in which every address is local, and what its resolver file says. Pings are not answered by ourselves. */
const wayOut: Docker.HostConfig = {
  CapAdd: [...catchAllCapabilities],
  Dns: [nameServer],
  ExtraHosts: ['box:127.0.0.1'],
  DnsSearch: ['.'],
  Sysctls: { 'net.ipv4.icmp_echo_ignore_all': '1' },
}

type CreateOptions = Docker.ContainerCreateOptions

/** Lives as long as its attached stdin: when the owner's connection ends, PID 1 ends and the daemon removes it. */
function attached(kind: ContainerKind, about: BoxSpec['labels']): CreateOptions {
  return {
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    OpenStdin: true,
    StdinOnce: true,
    Tty: false,
    Labels: containerLabels(kind, about),
  }
}

function locked(seccomp: ContainerParts['seccomp']): Docker.HostConfig {
  return {
    AutoRemove: true,
    CapDrop: ['ALL'],
    SecurityOpt: ['no-new-privileges', ...seccomp],
    LogConfig: { Type: 'none', Config: {} },
    RestartPolicy: { Name: 'no' },
    IpcMode: 'private',
    Privileged: false,
    // When the whole machine runs out of memory, boxes go before anything else.
    OomScoreAdj: 500,
  }
}

function volume(source: string, target: string): NonNullable<Docker.HostConfig['Mounts']>[number] {
  return { Type: 'volume', Source: source, Target: target, ReadOnly: true, VolumeOptions: noCopy }
}

/** Docker would otherwise fill an empty volume from the image. */
const noCopy: Docker.MountSettings['VolumeOptions'] = {
  NoCopy: true,
  Labels: {},
  DriverConfig: { Name: '', Options: {} },
}
