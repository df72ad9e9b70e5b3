import { readFileSync } from 'node:fs'
import { PaddockError } from '../../../core/index.ts'
import type { Ranked } from '../index/index.ts'
import type { NearestQuestion } from './wire.ts'

/** Vectors of a corpus's passages, read once per file and kept. */
export class VectorFiles {
  readonly #known = new Map<string, Float32Array>()

  /** Exact: every vector is looked at. Equal cosines are ranked by place. Throws `STORE_CORRUPT`. */
  nearest({ path, dimensions, vector, topk }: NearestQuestion, documents: number): readonly Ranked[] {
    const all = this.#read(path, dimensions * documents)
    const best: Ranked[] = []
    for (let document = 0; document < documents; document += 1) {
      const start = document * dimensions
      let sum = 0
      for (let i = 0; i < dimensions; i += 1) sum += (all[start + i] ?? 0) * (vector[i] ?? 0)
      const score = Math.fround(sum)
      const last = best.at(-1)
      if (best.length === topk && last !== undefined && score <= last.score) continue
      const place = best.findIndex((one) => one.score < score)
      best.splice(place === -1 ? best.length : place, 0, { document, score })
      if (best.length > topk) best.pop()
    }
    return best
  }

  #read(path: string, length: number): Float32Array {
    const found = this.#known.get(path)
    if (found !== undefined) return found
    const bytes = readFileSync(path)
    if (bytes.length !== 4 * length) {
      throw new PaddockError('STORE_CORRUPT', `${path} has ${bytes.length} bytes and not ${4 * length}`, {
        data: { path },
        fix: 'Remove the file; the vectors are made again at their next use.',
      })
    }
    const vectors = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length))
    this.#known.set(path, vectors)
    return vectors
  }
}
