/** Coordinators, one PostgreSQL, nodes and jobs, as a simulation: what waits for what, and what becomes of work when nodes go and come back. */
import { type Costs, type Cost, habits, measured } from './costs.ts'
import { type Chance, chanceFrom, quantile, Station, Timeline, Turn } from './events.ts'

export interface World {
  readonly seed: number
  readonly nodes: number
  /** Rollouts at once of a node. */
  readonly places: number
  /** Each owns a data directory and the runs in it; nodes are shared out among them. */
  readonly coordinators: number
  readonly postgresCores: number
  /** Of one rollout on its node, and the width of its tail: see `Chance.lognormal`. */
  readonly rolloutSeconds: number
  readonly tail: number
  readonly handInMb: number
  /** Jobs of all runs; more than the time allows keeps all places full. */
  readonly jobs: number
  /** Mean time of a node between failures; null: it never fails. Half of them are kills, half are cuts of its network. */
  readonly failsEverySeconds: number | null
  readonly killedSeconds: number
  readonly cutSeconds: number
  /** How long is simulated, and from when on it counts. */
  readonly seconds: number
  readonly fromSeconds: number
  readonly costs?: Costs
}

export interface Outcome {
  readonly settledPerSecond: number
  /** Of one core of each coordinator, and of all cores of PostgreSQL; 1 is saturated. */
  readonly coordinator: number
  readonly postgres: number
  /** Share of the time in which a coordinator's claims and hand-ins, which come one after the other, had one under way. */
  readonly turn: number
  /** Share of places with an agent at work. */
  readonly working: number
  /** From the question to its answer, in seconds. */
  readonly claim: { readonly p50: number; readonly p99: number }
  readonly handIn: { readonly p50: number; readonly p99: number }
  /** Of the agents' time: work that was begun and does not count. */
  readonly lost: number
  readonly refused: number
  /** The most at one time, of one coordinator. */
  readonly waitingMb: number
  readonly settled: number
  readonly secondsToSettle: number
}

interface Job {
  state: 'ready' | 'leased' | 'done'
  /** Counts claims: who claimed it last has this number. */
  token: number
}

interface Held {
  readonly job: Job
  readonly token: number
  readonly began: number
  endedAt: number | null
}

interface Node {
  readonly at: Coordinator
  readonly held: Set<Held>
  isUp: boolean
  isCut: boolean
  /** Counts starts: what an earlier process had asked for is nobody's. */
  start: number
  leaseEnds: number
  /** All its places are taken: it claims when one is free. */
  isFull: boolean
  /** What waits until it is reached again. */
  readonly later: (() => void)[]
}

interface Coordinator {
  readonly loop: Station
  /** Claims and hand-ins come one after the other, claims first. */
  readonly turn: Turn
  readonly ready: Job[]
  /** Claims that found nothing. */
  readonly waiting: Set<() => void>
  readonly nodes: Node[]
  waitingMb: number
}

/** Throws where a job settles twice, or is lost. */
export function simulate(world: World): Outcome {
  return new Simulation(world).run()
}

class Simulation {
  readonly #world: World
  readonly #costs: Costs
  readonly #chance: Chance
  readonly #time = new Timeline()
  readonly #postgres: Station
  readonly #coordinators: readonly Coordinator[]
  readonly #jobs: readonly Job[]
  #claims: number[] = []
  #handIns: number[] = []
  #settled = 0
  #settledBefore = 0
  #refused = 0
  #agents = 0
  #agentsSince = 0
  #workSeconds = 0
  #lostSeconds = 0
  #mostWaitingMb = 0
  #lastSettledAt = 0

  constructor(world: World) {
    this.#world = world
    this.#costs = world.costs ?? measured
    this.#chance = chanceFrom(world.seed)
    this.#postgres = new Station(this.#time, world.postgresCores)
    this.#coordinators = Array.from({ length: world.coordinators }, () => ({
      loop: new Station(this.#time),
      turn: new Turn(this.#time),
      ready: [],
      waiting: new Set(),
      nodes: [],
      waitingMb: 0,
    }))
    this.#jobs = Array.from({ length: world.jobs }, () => ({ state: 'ready', token: 0 }))
    for (const [n, job] of this.#jobs.entries()) this.#shard(n).ready.push(job)
    for (let n = 0; n < world.nodes; n += 1) this.#join(this.#shard(n))
    for (const one of this.#coordinators) this.#sweep(one)
  }

  run(): Outcome {
    const { seconds, fromSeconds, nodes, places } = this.#world
    this.#time.run(fromSeconds)
    for (const { loop, turn } of this.#coordinators) {
      loop.forget()
      turn.forget()
    }
    this.#postgres.forget()
    this.#claims = []
    this.#handIns = []
    this.#settledBefore = this.#settled
    this.#running(0)
    this.#workSeconds = this.#lostSeconds = this.#refused = 0
    this.#time.run(seconds)
    this.#running(0)
    this.#requireWhole()
    const span = seconds - fromSeconds
    const mean = (values: readonly number[]): number => values.reduce((sum, one) => sum + one, 0) / values.length
    const quantiles = (of: readonly number[]) => ({ p50: quantile(of, 0.5), p99: quantile(of, 0.99) })
    return {
      settledPerSecond: (this.#settled - this.#settledBefore) / span,
      coordinator: mean(this.#coordinators.map(({ loop }) => loop.utilisation(span))),
      postgres: this.#postgres.utilisation(span),
      turn: mean(this.#coordinators.map(({ turn }) => turn.utilisation(span))),
      working: this.#workSeconds / (span * nodes * places),
      claim: quantiles(this.#claims),
      handIn: quantiles(this.#handIns),
      lost: this.#lostSeconds / Math.max(1, this.#workSeconds),
      refused: this.#refused,
      waitingMb: this.#mostWaitingMb,
      settled: this.#settled,
      secondsToSettle: this.#lastSettledAt,
    }
  }

  #shard(n: number): Coordinator {
    const one = this.#coordinators[n % this.#coordinators.length]
    if (one === undefined) throw new Error('there is no coordinator')
    return one
  }

  #join(at: Coordinator): void {
    const node: Node = {
      at,
      held: new Set(),
      isUp: true,
      isCut: false,
      start: 0,
      leaseEnds: 0,
      isFull: false,
      later: [],
    }
    at.nodes.push(node)
    // Nodes are started over a minute, or all at once where there are a few.
    this.#time.after(this.#chance.uniform() * Math.min(60, this.#world.nodes / 10), () => this.#begin(node))
    this.#fail(node)
  }

  #begin(node: Node): void {
    node.start += 1
    node.leaseEnds = this.#time.now + habits.leaseSeconds
    this.#claim(node, node.start)
    this.#beat(node, node.start)
  }

  /** The coordinator's loop, and then PostgreSQL. */
  #ask({ at }: Node, { coordinator, postgres }: Cost, answered: () => void): void {
    at.loop.serve(coordinator, () => this.#postgres.serve(postgres, answered))
  }

  /** Now, or when the node's network is there again. A process that was killed asks no more. */
  #reached(node: Node, start: number, work: () => void): void {
    if (node.start !== start || !node.isUp) return
    if (node.isCut) node.later.push(() => this.#reached(node, start, work))
    else work()
  }

  #claim(node: Node, start: number): void {
    this.#reached(node, start, () => this.#attempt(node, start, this.#time.now + habits.claimWaitSeconds))
  }

  /** Where there is nothing, the claim waits at the coordinator until it is rung for, or is asked anew. */
  #attempt(node: Node, start: number, until: number): void {
    const { at } = node
    const asked = this.#time.now
    const free = Math.min(64, this.#world.places - node.held.size)
    node.isFull = free === 0
    if (node.isFull) return
    const tried = (leave: () => void): void => {
      const isThere = node.start === start && node.isUp && !node.isCut
      const jobs = isThere ? taken(at.ready, free) : []
      for (const job of jobs) this.#work(node, start, job)
      leave()
      // There may be more, for somebody else.
      if (!isThere || jobs.length === free) this.#ring(at)
      if (isThere) this.#claims.push(this.#time.now - asked)
      if (isThere && jobs.length === 0 && this.#time.now < until) this.#wait(node, start, until)
      else this.#time.after(0, () => this.#claim(node, start))
    }
    at.turn.take((leave) => this.#ask(node, this.#costs.claim, () => tried(leave)), { ahead: true })
  }

  #wait(node: Node, start: number, until: number): void {
    const { waiting } = node.at
    const wake = (): void => {
      waiting.delete(wake)
      this.#attempt(node, start, until)
    }
    waiting.add(wake)
    this.#time.after(until - this.#time.now, () => {
      if (waiting.delete(wake)) this.#claim(node, start)
    })
  }

  /** There may be something to claim: one of those that wait is tried. */
  #ring({ waiting }: Coordinator): void {
    const [first] = waiting
    first?.()
  }

  #work(node: Node, start: number, job: Job): void {
    job.state = 'leased'
    job.token += 1
    const held: Held = { job, token: job.token, began: this.#time.now, endedAt: null }
    node.held.add(held)
    this.#running(1)
    const { rolloutSeconds, tail } = this.#world
    this.#time.after(this.#chance.lognormal(rolloutSeconds, tail), () => {
      if (node.start !== start || !node.isUp || !node.held.has(held)) return
      held.endedAt = this.#time.now
      this.#running(-1)
      this.#handIn(node, start, held)
    })
  }

  /** Agents at work, by so many more. */
  #running(more: number): void {
    this.#workSeconds += this.#agents * (this.#time.now - this.#agentsSince)
    this.#agentsSince = this.#time.now
    this.#agents += more
  }

  get #since(): number {
    return this.#time.now > this.#world.fromSeconds ? this.#world.fromSeconds : 0
  }

  #handIn(node: Node, start: number, held: Held): void {
    this.#reached(node, start, () => {
      const { handInMb } = this.#world
      const { rollout, perMb } = this.#costs
      const { at } = node
      const asked = held.endedAt ?? this.#time.now
      at.waitingMb += handInMb
      this.#mostWaitingMb = Math.max(this.#mostWaitingMb, at.waitingMb)
      const cost = {
        coordinator: rollout.coordinator + perMb.coordinator * handInMb,
        postgres: rollout.postgres + perMb.postgres * handInMb,
      }
      at.turn.take((leave) => {
        at.waitingMb -= handInMb
        // Asked for once more by a node that came back meanwhile: it was answered.
        if (!node.held.has(held)) return leave()
        // Refused before anything is ingested: another has it by now.
        const isOurs = held.job.token === held.token
        this.#ask(node, isOurs ? cost : this.#costs.claim, () => {
          if (isOurs) this.#settle(held.job)
          else this.#lose(held)
          if (!isOurs) this.#refused += 1
          this.#handIns.push(this.#time.now - asked)
          this.#release(node, held)
          leave()
        })
      })
    })
  }

  /** A place is free. */
  #release(node: Node, held: Held): void {
    node.held.delete(held)
    if (!node.isFull) return
    node.isFull = false
    const { start } = node
    this.#time.after(0, () => this.#claim(node, start))
  }

  #settle(job: Job): void {
    if (job.state === 'done') throw new Error('a job settles twice')
    job.state = 'done'
    this.#settled += 1
    this.#lastSettledAt = this.#time.now
  }

  #lose({ began, endedAt }: Held): void {
    this.#lostSeconds += Math.max(0, (endedAt ?? this.#time.now) - Math.max(began, this.#since))
  }

  #beat(node: Node, start: number): void {
    this.#reached(node, start, () =>
      this.#ask(node, this.#costs.beat, () => {
        if (node.start !== start || !node.isUp) return
        node.leaseEnds = this.#time.now + habits.leaseSeconds
        for (const held of node.held) {
          // An agent whose job is another's is stopped; what has ended is handed in and refused.
          if (held.endedAt !== null || held.job.token === held.token) continue
          this.#running(-1)
          this.#lose(held)
          this.#release(node, held)
        }
        this.#time.after(habits.leaseSeconds / habits.beatsPerLease, () => this.#beat(node, start))
      }),
    )
  }

  /** Jobs of nodes that are silent go to whoever claims them first. */
  #sweep(at: Coordinator): void {
    for (const node of at.nodes) {
      if (node.leaseEnds > this.#time.now) continue
      for (const { job, token } of node.held) if (job.token === token) this.#free(at, job)
    }
    this.#time.after(habits.leaseSeconds / habits.sweepsPerLease, () => this.#sweep(at))
  }

  #free(at: Coordinator, job: Job): void {
    if (job.state !== 'leased') return
    job.state = 'ready'
    at.ready.push(job)
    this.#ring(at)
  }

  #fail(node: Node): void {
    const { failsEverySeconds, killedSeconds, cutSeconds } = this.#world
    if (failsEverySeconds === null) return
    this.#time.after(this.#chance.exponential(failsEverySeconds), () => {
      if (this.#chance.uniform() < 0.5) this.#kill(node, killedSeconds)
      else this.#cut(node, cutSeconds)
      this.#fail(node)
    })
  }

  /** What was under way is lost; what had ended is handed in by the next start. */
  #kill(node: Node, seconds: number): void {
    if (!node.isUp || node.isCut) return
    node.isUp = false
    for (const held of node.held) {
      if (held.endedAt !== null) continue
      this.#running(-1)
      this.#lose(held)
    }
    this.#time.after(seconds, () => {
      node.isUp = true
      this.#begin(node)
      for (const held of node.held) {
        if (held.endedAt !== null) this.#handIn(node, node.start, held)
        else {
          if (held.job.token === held.token) this.#free(node.at, held.job)
          node.held.delete(held)
        }
      }
    })
  }

  #cut(node: Node, seconds: number): void {
    if (!node.isUp || node.isCut) return
    node.isCut = true
    this.#time.after(seconds, () => {
      node.isCut = false
      for (const work of node.later.splice(0)) work()
    })
  }

  #requireWhole(): void {
    const count = { ready: 0, leased: 0, done: 0 }
    for (const { state } of this.#jobs) count[state] += 1
    const isReady = ({ state }: Job): boolean => state === 'ready'
    const listed = this.#coordinators.reduce((sum, { ready }) => sum + ready.filter(isReady).length, 0)
    if (
      count.done !== this.#settled ||
      count.ready !== listed ||
      count.ready + count.leased + count.done !== this.#world.jobs
    ) {
      throw new Error(`jobs were lost: ${JSON.stringify({ ...count, listed, settled: this.#settled })}`)
    }
  }
}

/** Jobs that are still to be done: one that was given up and handed in late all the same is not. */
function taken(ready: Job[], limit: number): readonly Job[] {
  const jobs: Job[] = []
  while (jobs.length < limit) {
    const job = ready.pop()
    if (job === undefined) break
    if (job.state === 'ready') jobs.push(job)
  }
  return jobs
}
