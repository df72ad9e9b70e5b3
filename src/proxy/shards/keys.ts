import type { Digest } from '../../core/index.ts'
import { keyDigest, newKey } from '../session/keys.ts'
import type { ProxyShard } from './contract.ts'

/**
 * The shard of a session, by its key: a shard gives out only keys that fall to itself, so wherever a request arrives its shard is known
 * without asking anybody, and a session never moves. From 0.
 */
export function shardOfKey(key: Digest, count: number): number {
  return Number.parseInt(key.slice(0, 8), 16) % count
}

/** A fresh key that falls to the shard: it takes as many tries as there are shards. */
export function newKeyOf({ index, count }: Pick<ProxyShard, 'index' | 'count'>): string {
  for (;;) {
    const key = newKey()
    if (shardOfKey(keyDigest(key), count) === index) return key
  }
}
