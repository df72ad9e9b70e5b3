import { isIP } from 'node:net'
import { PaddockError } from '../../core/index.ts'
import { addressKind, isInNetwork } from './addresses.ts'

/**
 * What a box may reach beside its model path. `none` and `open` speak for themselves (`open` is the public internet).
 * A rule of `allow` is a host (`pkg.example`), all hosts below one (`*.example.org`), an address or a network
 * (`93.184.215.14`, `10.1.0.0/16`, `[2001:db8::]/32`), each with an optional `:port`; without one every port is meant.
 *
 * Private addresses are reached only where a rule names their network, and loopback, link-local and metadata addresses
 * never, whatever a name resolves to.
 */
export type EgressPolicy = 'none' | 'open' | { readonly allow: readonly string[] }

/** Whether something may be reached, by which rule or for which reason not. */
export type EgressDecision =
  | { readonly allowed: true; readonly rule: string; readonly address: string }
  | { readonly allowed: false; readonly rule: string }

interface Rule {
  readonly text: string
  readonly host: string | null
  /** `*.host`. */
  readonly below: string | null
  readonly network: string | null
  readonly port: number | null
}

/** A policy that was checked. */
export interface ParsedEgress {
  readonly policy: EgressPolicy
  readonly rules: readonly Rule[]
}

/** Throws `CONFIG_INVALID`, naming the rule, for one that means nothing. */
export function parseEgress(policy: EgressPolicy): ParsedEgress {
  return { policy, rules: typeof policy === 'string' ? [] : policy.allow.map(parseRule) }
}

/** Why a name must not even be resolved, or null. A name that no rule knows could carry secrets to a name server. */
export function refusedBeforeLookup(egress: ParsedEgress, host: string, port: number): string | null {
  if (egress.policy === 'none') return 'none'
  if (!Number.isInteger(port) || port < 1 || port > 65535 || !isHost(host)) return 'malformed'
  if (egress.policy === 'open' || isIP(host) !== 0) return null
  return egress.rules.some((rule) => namesHost(rule, host, port)) ? null : 'no rule'
}

/** Why a name must not be looked up for whatever port, or null: {@link refusedBeforeLookup} for a query, which has no port. */
export function refusedName(egress: ParsedEgress, host: string): string | null {
  if (egress.policy === 'none') return 'none'
  if (!isHost(host)) return 'malformed'
  if (egress.policy === 'open') return null
  return egress.rules.some((rule) => namesHost(rule, host, rule.port)) ? null : 'no rule'
}

/** Decides over what a name resolved to; the answer names the one address that may be connected to. */
export function decideEgress(
  egress: ParsedEgress,
  host: string,
  port: number,
  addresses: readonly string[],
): EgressDecision {
  const early = refusedBeforeLookup(egress, host, port)
  if (early !== null) return { allowed: false, rule: early }
  const byName = egress.policy === 'open' ? 'open' : egress.rules.find((rule) => namesHost(rule, host, port))?.text
  let reason = addresses.length === 0 ? 'unresolvable' : 'no rule'
  for (const address of addresses) {
    const kind = addressKind(address)
    if (kind === null) continue
    const network = egress.rules.find((rule) => holdsAddress(rule, address, port))?.text
    if (kind === 'loopback' || kind === 'metadata') reason = `${kind} address`
    else if (network !== undefined) return { allowed: true, rule: network, address }
    else if (kind === 'private' && byName !== undefined) reason = 'private address'
    else if (byName !== undefined) return { allowed: true, rule: byName, address }
  }
  return { allowed: false, rule: reason }
}

function namesHost(rule: Rule, host: string, port: number | null): boolean {
  if (rule.port !== null && rule.port !== port) return false
  if (rule.host !== null) return rule.host === host
  return rule.below !== null && host.endsWith(`.${rule.below}`)
}

function holdsAddress(rule: Rule, address: string, port: number): boolean {
  if (rule.network === null || (rule.port !== null && rule.port !== port)) return false
  return isInNetwork(address, rule.network)
}

function parseRule(text: string): Rule {
  const rule = { text, host: null, below: null, network: null }
  const found =
    /^\[(?<six>[0-9a-f:.]+)\](?<bits>\/\d+)?(?::(?<port>\d+))?$/i.exec(text) ??
    /^(?<host>[^:[\]/]+)(?<bits>\/\d+)?(?::(?<port>\d+))?$/.exec(text)
  const { six, host, bits, port: portText } = found?.groups ?? {}
  const port = portText === undefined ? null : Number(portText)
  const place = (six ?? host ?? '').toLowerCase().replace(/\.$/, '')
  const family = isIP(place)
  if (found === null || (port !== null && (port < 1 || port > 65535))) throw invalid(text)
  if (family !== 0) {
    if (bits !== undefined && Number(bits.slice(1)) > (family === 6 ? 128 : 32)) throw invalid(text)
    return { ...rule, network: place + (bits ?? ''), port }
  }
  if (bits !== undefined || six !== undefined) throw invalid(text)
  if (place.startsWith('*.') && isHost(place.slice(2))) return { ...rule, below: place.slice(2), port }
  if (!isHost(place)) throw invalid(text)
  return { ...rule, host: place, port }
}

/** A host name (RFC 1123, with the underscore that some use) or an address. */
function isHost(host: string): boolean {
  if (isIP(host) !== 0) return true
  return (
    host.length <= 253 && /^[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*$/.test(host)
  )
}

function invalid(rule: string): PaddockError {
  return new PaddockError('CONFIG_INVALID', `The egress rule ${JSON.stringify(rule)} means nothing.`, {
    fix: 'Write a host, *.host, an address or a network in CIDR form, with :port where only one is meant.',
  })
}
