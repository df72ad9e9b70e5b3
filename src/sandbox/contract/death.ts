/** Why a box is no more. */
export interface BoxDeath {
  readonly why: 'destroyed' | 'deadline' | 'oom' | 'relay_died' | 'unresponsive' | 'daemon' | 'exited'
  readonly detail: string
}
