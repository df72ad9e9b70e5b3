import { type Digest, type EngineFingerprint, sha256 } from '../../core/index.ts'

/** The name of an engine fingerprint: SHA-256 over its JSON with sorted keys. */
export function fingerprintDigest(fingerprint: EngineFingerprint): Digest {
  return sha256(JSON.stringify(Object.entries(fingerprint).toSorted(([a], [b]) => (a < b ? -1 : 1))))
}
