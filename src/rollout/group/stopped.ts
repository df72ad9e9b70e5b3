/** Why an attempt was aborted whose group needs no more of it. */
export class GroupStopped extends Error {
  constructor(why: string) {
    super(`its group stopped early (${why})`)
  }
}
