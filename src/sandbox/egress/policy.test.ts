import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { addressKind } from './addresses.ts'
import { decideEgress, type EgressPolicy, parseEgress, refusedBeforeLookup } from './policy.ts'

const decide = (policy: EgressPolicy, target: string, port: number, ...addresses: string[]) => {
  const { allowed, rule } = decideEgress(parseEgress(policy), target, port, addresses)
  return `${allowed} ${rule}`
}

describe('addresses', () => {
  it.each([
    ['93.184.215.14', 'public'],
    ['2606:2800:21f::1', 'public'],
    ['10.1.2.3', 'private'],
    ['172.31.255.255', 'private'],
    ['172.32.0.1', 'public'],
    ['192.168.0.1', 'private'],
    ['100.64.0.1', 'private'],
    ['255.255.255.255', 'private'],
    ['fd12::1', 'private'],
    ['64:ff9b::a00:1', 'private'],
    ['2002:a00:1::', 'private'],
    ['127.0.0.1', 'loopback'],
    ['127.9.9.9', 'loopback'],
    ['0.0.0.0', 'loopback'],
    ['::1', 'loopback'],
    ['::', 'loopback'],
    ['::ffff:127.0.0.1', 'loopback'],
    ['::ffff:7f00:1', 'loopback'],
    ['0:0:0:0:0:ffff:a9fe:a9fe', 'metadata'],
    ['169.254.169.254', 'metadata'],
    ['fe80::1%eth0', 'metadata'],
    ['fd00:ec2::254', 'metadata'],
    ['100.100.100.200', 'metadata'],
    ['127.1', null],
    ['localhost', null],
  ])('%s is %s', (address, kind) => {
    expect(addressKind(address)).toBe(kind)
  })
})

describe('a policy', () => {
  it('none refuses everything, before any lookup', () => {
    expect(decide('none', 'pkg.example', 443, '151.101.0.223')).toBe('false none')
    expect(refusedBeforeLookup(parseEgress('none'), 'pkg.example', 443)).toBe('none')
  })

  it('open is the public internet', () => {
    expect(decide('open', 'pkg.example', 443, '151.101.0.223')).toBe('true open')
    expect(decide('open', 'rebound.example', 80, '10.0.0.1')).toBe('false private address')
    expect(decide('open', 'rebound.example', 80, '127.0.0.1')).toBe('false loopback address')
    expect(decide('open', '169.254.169.254', 80, '169.254.169.254')).toBe('false metadata address')
    expect(decide('open', 'gone.example', 80)).toBe('false unresolvable')
    expect(decide('open', 'mixed.example', 80, '10.0.0.1', '151.101.0.223')).toBe('true open')
  })

  it('an allow-list knows hosts, what is below them, networks and ports', () => {
    const policy = {
      allow: ['pkg.example', '*.example.org:80', '10.1.0.0/16:5432', '[2001:db8::]/32', 'git.corp.example'],
    }
    expect(decide(policy, 'pkg.example', 8443, '151.101.0.223')).toBe('true pkg.example')
    expect(decide(policy, 'evil-pkg.example', 443, '151.101.0.223')).toBe('false no rule')
    expect(decide(policy, 'files.example.org', 80, '151.101.0.223')).toBe('true *.example.org:80')
    expect(decide(policy, 'files.example.org', 443, '151.101.0.223')).toBe('false no rule')
    expect(decide(policy, 'example.org', 80, '151.101.0.223')).toBe('false no rule')
    expect(decide(policy, '10.1.2.3', 5432, '10.1.2.3')).toBe('true 10.1.0.0/16:5432')
    expect(decide(policy, '10.1.2.3', 22, '10.1.2.3')).toBe('false no rule')
    expect(decide(policy, '2001:db8::7', 443, '2001:db8::7')).toBe('true [2001:db8::]/32')
    // A host that a rule names, inside a network that another rule names.
    expect(decide(policy, 'git.corp.example', 5432, '10.1.0.9')).toBe('true 10.1.0.0/16:5432')
    expect(decide(policy, 'git.corp.example', 443, '10.1.0.9')).toBe('false private address')
  })

  it('never looks up a name that no rule knows', () => {
    const egress = parseEgress({ allow: ['pkg.example', '0.0.0.0/0'] })
    expect(refusedBeforeLookup(egress, 'secret.attacker.example', 443)).toBe('no rule')
    expect(refusedBeforeLookup(egress, 'pkg.example', 443)).toBeNull()
  })

  it('reaches no loopback, link-local or metadata address, whatever its rules', () => {
    const address = fc.oneof(
      fc.tuple(fc.constant(127), fc.nat(255), fc.nat(255), fc.nat(255)),
      fc.tuple(fc.constant(169), fc.constant(254), fc.nat(255), fc.nat(255)),
    )
    fc.assert(
      fc.property(address, fc.boolean(), fc.integer({ min: 1, max: 65535 }), (parts, mapped, port) => {
        const target = `${mapped ? '::ffff:' : ''}${parts.join('.')}`
        const allow = ['0.0.0.0/0', '[::]/0', parts.join('.'), 'name.example']
        expect(decide({ allow }, target, port, target)).toMatch(/^false (loopback|metadata) address$/)
        expect(decide({ allow }, 'name.example', port, target)).toMatch(/^false (loopback|metadata) address$/)
      }),
    )
  })

  it.each([
    '',
    'a b',
    'http://pkg.example',
    '*',
    '*.',
    'a..b',
    '10.0.0.0/33',
    'host/8',
    'host:0',
    'host:99999',
    '[zz]',
  ])('refuses the rule %j by name', (rule) => {
    expect(() => parseEgress({ allow: [rule] })).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID' }))
  })

  it('refuses targets that are no host', () => {
    for (const host of ['', 'a b', 'x'.repeat(300), 'a/../b', '-x']) {
      expect(decide('open', host, 80, '151.101.0.223')).toBe('false malformed')
    }
    for (const port of [0, 65536, 1.5])
      expect(decide('open', 'pkg.example', port, '151.101.0.223')).toBe('false malformed')
  })
})
