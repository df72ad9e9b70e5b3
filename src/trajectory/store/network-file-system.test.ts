import { describe, expect, it } from 'vitest'
import { mountedAs, requireLocal } from './network-file-system.ts'

const fuse = 0x65735546

describe('a data directory', () => {
  it.each([
    ['nfs', 0x6969, null],
    ['cifs', 0xff534d42, null],
    ['smb2', -0x1acb2be, null],
    ['9p', 0x01021997, null],
    ['ceph', 0x00c36400, null],
    ['fuse.sshfs', fuse, 'fuse.sshfs'],
    ['fuse.rclone', fuse, 'fuse.rclone'],
    ['virtiofs', fuse, 'virtiofs'],
    ['fuse', fuse, null],
  ])('on %s is refused by that name', (name, type, mounted) => {
    expect(() => requireLocal('/data', { type: () => type, name: () => mounted })).toThrow(
      expect.objectContaining({ code: 'STORE_FILESYSTEM', data: { fileSystem: name } }) as Error,
    )
  })

  it.each([
    ['ext4', 0xef53, null],
    ['tmpfs', 0x01021994, null],
    ['overlay', 0x794c7630, null],
    ['fuse-overlayfs', fuse, 'fuse.fuse-overlayfs'],
  ])('on %s is taken', (_name, type, mounted) => {
    requireLocal('/data', { type: () => type, name: () => mounted })
  })

  it('is looked up among the mounts by its device', () => {
    const mounts = [
      '24 30 0:22 / /proc rw - proc proc rw',
      '40 30 0:66 / /mnt/a\\040b rw,nosuid shared:1 - fuse.sshfs me@there:/ rw',
    ].join('\n')
    expect(mountedAs(mounts, 66)).toBe('fuse.sshfs')
    expect(mountedAs(mounts, 22)).toBe('proc')
    expect(mountedAs(mounts, 1)).toBeNull()
    expect(() => requireLocal('/tmp')).not.toThrow()
  })
})
