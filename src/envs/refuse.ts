import type { LoadOptions } from './contract.ts'

/** What becomes of one task of many that cannot be used. */
export type Refuse = (name: string, error: unknown) => void

/** Tells of it and lets the others go on; throws where nobody is told. */
export function refuserOf({ onRefused }: LoadOptions): Refuse {
  return (name, error) => {
    if (onRefused === undefined) throw error
    onRefused(name, error)
  }
}
