import type { EngineFingerprint } from '../../core/index.ts'
import type { CatalogueReader, SessionLog } from '../contract/index.ts'

/** Texts of token ids as far as they are known, as bytes: a token may hold a part of a character. */
export type TokenTexts = ReadonlyMap<number, Uint8Array>

/** The name under which the texts of a tokenizer's tokens are kept. */
export function tokenizerKey(fingerprint: EngineFingerprint): string {
  return fingerprint.tokenizer ?? `${fingerprint.engine}:${fingerprint.model}`
}

/** The texts that the catalogue knows for the token ids of a session. Works without the engine. */
export async function knownTokenTexts(
  { catalogue }: { readonly catalogue: Pick<CatalogueReader, 'fingerprint' | 'tokenTexts'> },
  log: SessionLog,
): Promise<TokenTexts> {
  const ids = new Set(log.segments.flatMap((segment) => [...segment.tokens]))
  const digests = new Set(log.calls.flatMap(({ intent }) => intent.fingerprint ?? []))
  const texts = new Map<number, Uint8Array>()
  for (const digest of digests) {
    const tokenizer = tokenizerKey(await catalogue.fingerprint(digest))
    for (const [id, text] of await catalogue.tokenTexts(tokenizer, [...ids])) texts.set(id, text)
  }
  return texts
}
