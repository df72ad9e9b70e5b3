/**
 * Which file system a directory lies on. SQLite's write-ahead log needs memory that all its users share, and locks that
 * the kernel keeps: neither crosses machines (sqlite.org/wal.html, "WAL does not work over a network filesystem").
 */
import { readFileSync, statfsSync, statSync } from 'node:fs'
import { PaddockError } from '../../core/index.ts'

/** `f_type` of statfs(2), from include/uapi/linux/magic.h and the file systems' own sources, Linux 6.12. */
const networkTypes: ReadonlyMap<number, string> = new Map([
  [0x6969, 'nfs'],
  [0x517b, 'smb'],
  [0xff534d42, 'cifs'],
  [0xfe534d42, 'smb2'],
  [0x01021997, '9p'],
  [0x564c, 'ncp'],
  [0x5346414f, 'afs'],
  [0x6b414653, 'afs'],
  [0x73757245, 'coda'],
  [0x00c36400, 'ceph'],
  [0x0bd00bd0, 'lustre'],
  [0x47504653, 'gpfs'],
  [0x19830326, 'beegfs'],
  [0x01161970, 'gfs2'],
  [0x7461636f, 'ocfs2'],
  [0x786f4256, 'vboxsf'],
  [0xbacbacbc, 'vmhgfs'],
])

/** FUSE: what is behind it is told by the name in /proc/self/mountinfo (proc_pid_mountinfo(5)). */
const fuse = 0x65735546

/** Names under which FUSE serves local disks and overlays of them; any other may be a network. */
const localFuse = new Set([
  'fuseblk',
  'fuse.fuse-overlayfs',
  'fuse.gocryptfs',
  'fuse.encfs',
  'fuse.bindfs',
  'fuse.mergerfs',
  'fuse.ntfs-3g',
  'fuse.zfs',
])

/** What of the system {@link requireLocal} asks. */
export interface FileSystems {
  /** `f_type` of statfs(2). */
  readonly type: (path: string) => number
  /** The name of the file system, as mounted; null: unknown. */
  readonly name: (path: string) => string | null
}

/** Throws `STORE_FILESYSTEM` with the name of the network file system that a directory lies on. */
export function requireLocal(directory: string, systems: FileSystems = ofThisMachine): void {
  const type = systems.type(directory) >>> 0
  const name = type === fuse ? (systems.name(directory) ?? 'fuse') : networkTypes.get(type)
  if (name === undefined || localFuse.has(name)) return
  throw new PaddockError('STORE_FILESYSTEM', `${directory} lies on ${name}, which other machines may write to`, {
    data: { fileSystem: name },
  })
}

const ofThisMachine: FileSystems = {
  type: (path) => statfsSync(path).type,
  name: (path) => mountedAs(readFileSync('/proc/self/mountinfo', 'utf8'), statSync(path).dev),
}

/** The type in the line of mountinfo whose device is `dev`. */
export function mountedAs(mountinfo: string, dev: number): string | null {
  // As glibc's makedev packs them, for the numbers that there are: 8 bits of minor, 12 of major, 12 more of minor.
  const major = Math.floor(dev / 256) % 4096
  const minor = (dev % 256) + 256 * Math.floor(dev / 2 ** 20)
  for (const line of mountinfo.split('\n')) {
    const [before = '', after = ''] = line.split(' - ')
    if (before.split(' ')[2] === `${major}:${minor}`) return after.split(' ')[0] ?? null
  }
  return null
}
