import type { Digest, EventBody, Task } from '../../core/index.ts'
import type { Attempt, Tool } from '../../envs/index.ts'
import type { Box, ImageOptions, PutFile } from '../../sandbox/index.ts'

/**
 * The agent program that owns the loop, as Paddock launches it. Black box: nothing is asked of it but that it takes a
 * base URL. Made by {@link defineHarness}.
 */
export type Harness = BoxHarness | HostHarness

/** What every harness says of itself. */
export interface HarnessFacts {
  /** Lower case, digits and dashes; `Rollout.harness`. */
  readonly name: string
  readonly apiVersion: 1
  /** Of the program; stored with the run. */
  readonly version: string
  /** The client-side wire API that it speaks. */
  readonly dialect: 'chat' | 'responses' | 'messages' | 'gemini'
  /** True: its model calls no tools, what it does is the text of its answers. Default: it calls tools. */
  readonly actsInText?: true
  /**
   * True: started anew, and given the same answers and the same results of its tools, it asks the same, but for what the model is
   * never shown. Its rollouts can be forked by replay, which checks each request. Default: nobody knows.
   */
  readonly replays?: true
}

/** A program that runs as one command inside the task's box and sees only the model path. */
export interface BoxHarness extends HarnessFacts {
  readonly place: 'box'
  /** A read-only volume with the program; null: the task's image has it. */
  readonly bundle: HarnessBundle | null
  /**
   * True: where it is given an MCP server, it asks that for its tools before it works. An attempt in which it never did is a
   * fault of its connection and no work of the agent. Default: it may use them or not.
   */
  readonly listsTools?: boolean
  /** How it goes on with its own session in a copy of its box. Absent: nobody measured that of this version. */
  readonly resumes?: HarnessResume
  /**
   * How it is asked again in the conversation that it had last in this very box: `prompt` is what the user says. Default: as it
   * {@link resumes}.
   */
  readonly again?: { configure(context: LaunchContext): HarnessLaunch }
  /** Pure: what to put into the box and what to run. */
  configure(context: LaunchContext): HarnessLaunch
  /** Reads the program's own account of how it ended. Must not throw. */
  parseResult(exit: HarnessExit): HarnessReport
}

/** What is known of a program that resumes its session, so that its rollouts can be forked by `graft`. */
export interface HarnessResume {
  /** Pure: as `configure`, but it resumes its last session; `prompt` is a text that stands for what is recorded. */
  configure(context: LaunchContext): HarnessLaunch
  /** Paths below its home that name processes of the box that was copied; removed before it starts. */
  readonly stale: readonly string[]
  /**
   * A program that asks before it has written down what it asks: where that will stand below its home, and the text that says so of
   * the result of a tool call. A box is kept once all of them are there. Absent: it writes first.
   */
  readonly transcript?: { readonly directory: string; readonly holds: (toolCallId: string) => string }
}

/** A loop on the host: the reference agent, or a user's script. Its calls go over its session URL like any other's. */
export interface HostHarness extends HarnessFacts {
  readonly place: 'host'
  /** `tools`: the environment's tools run in the task's box. `none`: no box is made and nothing can be verified. */
  readonly box: 'tools' | 'none'
  /** True: given a request of its own ({@link HostContext.goesOn}), it asks that first and goes on from it. Its rollouts can be forked by `state`. */
  readonly restores?: true
  /** True: it goes on with what the user replies to its answers ({@link HostContext.hear}). */
  readonly converses?: true
  /**
   * Runs the attempt to its end. Rejects with the signal's reason on abort; throws errors of family `infra` for faults
   * that say nothing of the agent; every other fault of its own is a report.
   */
  run(context: HostContext): Promise<HarnessReport>
}

/** Which version of its program a preset fetches. */
export interface PinnedVersion {
  /** Exact, as npm knows it. Default: the one that the preset was written and tested with. */
  readonly version?: string
}

export interface HarnessBundle {
  /** Lower case, digits and dashes. */
  readonly name: string
  /** Changes whenever the content should. */
  readonly version: string
  /** Fills an empty directory of the host, which then becomes the volume. Throws `BUNDLE_FAILED`. */
  build(directory: string, o: ImageOptions): Promise<void>
}

export interface LaunchContext {
  readonly task: Task
  /** What the agent is asked to do. */
  readonly prompt: string
  /** What the environment adds to the harness's own system prompt, null for nothing. */
  readonly systemPrompt: string | null
  /** `http://127.0.0.1:<port>`, as seen inside; the dialect's own suffix is the harness's business. */
  readonly origin: string
  /** A placeholder that clients insist on: the socket authorises, no key enters a box. */
  readonly apiKey: string
  readonly model: string
  /** Where each agent of the task asks, and which of them the program is. Absent: the task has one. */
  readonly agents?: AgentPlaces
  /** The environment's tools as an MCP server (streamable HTTP) inside the box; null where it has none to offer. */
  readonly mcp: { readonly name: string; readonly url: string } | null
  /** Where the bundle is mounted, null without one. */
  readonly bundlePath: string | null
  /** A writable directory of the harness's own. */
  readonly home: string
  readonly workdir: string
}

/** The agents of a task that has several. */
export interface AgentPlaces {
  /** Whose program this is; null: of all of them. */
  readonly own: string | null
  readonly all: readonly {
    readonly name: string
    readonly baseUrl: string
    readonly apiKey: string
    readonly model: string
  }[]
}

export interface HarnessLaunch {
  /** Program and arguments, or a line for the box's shell. */
  readonly command: readonly string[] | string
  readonly env: Readonly<Record<string, string>>
  /** Configuration files, relative to `home`. */
  readonly files: readonly PutFile[]
  readonly stdin: string | null
}

/** How the program left, never masked: no pipe, no shell trap stands between. */
export interface HarnessExit {
  readonly exitCode: number | null
  readonly signal: string | null
  readonly oom: boolean
  /** Tails, UTF-8. */
  readonly stdout: string
  readonly stderr: string
}

/** How a harness says that it ended. Timeouts, budgets, cancellation and infra faults are judged by the rollout. */
export interface HarnessReport {
  readonly end: 'completed' | 'horizon' | 'context_overflow' | 'harness_crash'
  readonly detail: string
  /** Its last words, null when it has none. */
  readonly answer: string | null
  /** What it failed of, where its own output says so. */
  readonly fault?: HarnessFault
}

/** What a program can say that it failed of. `engine`: the model's server answered with a fault of its own. */
export type HarnessFault = 'auth' | 'unknown_model' | 'context_overflow' | 'network' | 'engine' | 'limit'

/** An end that can be read from a program's output: the first pattern that matches wins. */
export interface FailurePattern {
  readonly pattern: RegExp
  readonly end: Exclude<HarnessReport['end'], 'completed'>
  readonly fault?: HarnessFault
  readonly detail: string
}

export interface HostContext {
  readonly task: Task
  /** For the tools, which may keep state by it. */
  readonly attempt: Attempt
  readonly prompt: string
  readonly systemPrompt: string | null
  /** `http://127.0.0.1:<port>/s/<session>/v1`. */
  readonly baseUrl: string
  readonly apiKey: string
  readonly model: string
  /** As in {@link LaunchContext}. */
  readonly agents?: AgentPlaces
  /** Null for `box: 'none'` and for tasks without an environment. */
  readonly box: Box | null
  readonly tools: readonly Tool[]
  /** Its first request, as it asked that in the rollout that this one goes on from; null: it begins at the beginning. */
  readonly goesOn: Uint8Array | null
  /**
   * What the user of the task replies to the answer that a turn ended with, which is the next prompt; null: the conversation is over.
   * Null: there is nobody to hear it.
   */
  readonly hear: ((said: string | null) => Promise<string | null>) | null
  readonly signal: AbortSignal
  readonly emit: (event: EventBody) => void
  /** Stores the bytes of a picture that a tool gave; its event names them by this digest. */
  readonly keep: (bytes: Uint8Array) => Promise<Digest>
  /** Output of a program, kept as an artifact. */
  readonly onOutput: (stream: 'stdout' | 'stderr', chunk: Uint8Array) => void
}
