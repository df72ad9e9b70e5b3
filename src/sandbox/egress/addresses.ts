import { BlockList, isIP } from 'node:net'

/** What kind of place an address is; only `public` is reached without being named as a network. */
export type AddressKind = 'public' | 'private' | 'loopback' | 'metadata'

/**
 * Ranges that are not the public internet: IANA special-purpose registries (RFC 6890 and its updates), multicast,
 * carrier-grade NAT, unique-local and translated ranges.
 */
const privateRanges = ranges([
  '10.0.0.0/8',
  '100.64.0.0/10',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '100::/64',
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  'fc00::/7',
  'fec0::/10',
  'ff00::/8',
])

const loopbackRanges = ranges(['0.0.0.0/8', '127.0.0.0/8', '::/128', '::1/128'])

/** Link-local, where clouds answer with credentials, and the other addresses at which some clouds do. */
const metadataRanges = ranges([
  '169.254.0.0/16',
  'fe80::/10',
  '100.100.100.200/32',
  '168.63.129.16/32',
  '192.0.0.192/32',
  'fd00:ec2::/32',
  'fd20:ce::254/128',
])

/** Classifies an address in its usual or IPv4-mapped form. Null for what is no address. */
export function addressKind(address: string): AddressKind | null {
  const plain = unmapped(address)
  const family = isIP(plain)
  if (family === 0) return null
  const type = family === 6 ? 'ipv6' : 'ipv4'
  if (loopbackRanges.check(plain, type)) return 'loopback'
  if (metadataRanges.check(plain, type)) return 'metadata'
  return privateRanges.check(plain, type) ? 'private' : 'public'
}

/** True when `address` lies in `network` (`a.b.c.d/n`, `x::/n` or one address). */
export function isInNetwork(address: string, network: string): boolean {
  const plain = unmapped(address)
  const family = isIP(plain)
  return family !== 0 && ranges([network]).check(plain, family === 6 ? 'ipv6' : 'ipv4')
}

/** `::ffff:1.2.3.4`, in either spelling, is 1.2.3.4. */
function unmapped(address: string): string {
  if (isIP(address) !== 6) return address
  // The URL parser knows the one canonical spelling (WHATWG URL, IPv6 serializer).
  const canonical = new URL(`http://[${address.split('%', 1)[0]}]`).hostname.slice(1, -1)
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(canonical)
  if (mapped === null) return canonical
  const [high, low] = [Number.parseInt(mapped[1] ?? '', 16), Number.parseInt(mapped[2] ?? '', 16)]
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}

function ranges(list: readonly string[]): BlockList {
  const blocks = new BlockList()
  for (const range of list) {
    const [address = '', bits] = range.split('/')
    const type = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    blocks.addSubnet(address, bits === undefined ? (type === 'ipv6' ? 128 : 32) : Number(bits), type)
  }
  return blocks
}
