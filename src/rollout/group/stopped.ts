/** Why an attempt was aborted that nobody wants more of. */
export class Stopped extends Error {}

/** Its group needs no more of it. */
export function groupStopped(why: string): Stopped {
  return new Stopped(`its group stopped early (${why})`)
}
