export interface Box extends AsyncDisposable {
    readonly id: string;
    readonly image: string;
    readonly profile: BoxProfile;
    readonly workdir: string;
    readonly imageUser?: string | null;
    readonly imagePath?: readonly string[];
    readonly labels: BoxLabels;
    readonly modelUrl: string | null;
    readonly wayOut: 'none' | 'asked' | 'transparent';
    exec(command: ExecSpec, o?: {
        readonly signal?: AbortSignal;
    }): Promise<ExecResult>;
    openTerminal(spec?: TerminalSpec): Terminal;
    killBackground(): Promise<void>;
    putFiles(directory: string, files: readonly PutFile[] | FileTree): Promise<void>;
    getFiles(path: string, limits?: ArchiveLimits): Promise<Artifact>;
    exists(path: string): Promise<boolean>;
    touched(o?: {
        readonly except?: readonly string[];
    }): Promise<readonly string[] | null>;
    changes(): Promise<readonly BoxChange[]>;
    takeLayer(limits?: ArchiveLimits): Promise<BoxLayer | null>;
    applyLayer(layer: BoxLayer): Promise<void>;
    freeze(): Promise<void>;
    thaw(): Promise<void>;
    snapshot(o?: SnapshotOptions): Promise<Snapshot>;
    destroy(): Promise<void>;
    readonly died: Promise<BoxDeath>;
}

export interface BoxLayer {
    readonly tar: Uint8Array;
    readonly deleted: readonly string[];
}

export type BoxProfile = 'user' | 'root';

export type BoxRole = 'agent' | 'verifier' | 'oracle' | 'setup' | 'probe';

export interface BoxSpec {
    readonly image: ImageRef | string;
    readonly profile: BoxProfile;
    readonly workdir?: string;
    readonly env?: Readonly<Record<string, string>>;
    readonly memoryMb?: number;
    readonly cpus?: number;
    readonly pids?: number;
    readonly fileMb?: number;
    readonly diskMb?: number;
    readonly labels: BoxLabels;
    readonly modelPath?: {
        readonly socket: ModelSocket;
        readonly port?: number;
    };
    readonly mounts?: readonly {
        readonly bundle: BundleRef;
        readonly target: string;
    }[];
    readonly egress?: EgressPolicy;
    readonly deadlineMs?: number;
}

export interface BundleRef {
    readonly volume: string;
    readonly fresh: boolean;
}

export interface BundleSpec {
    readonly name: string;
    readonly version: string;
    build(directory: string, o: ImageOptions): Promise<void>;
}

export interface DaemonOptions {
    readonly socketPath?: string;
    readonly host?: string;
    readonly tls?: {
        readonly ca?: string;
        readonly cert?: string;
        readonly key?: string;
    };
}

export interface DockerProviderOptions extends DaemonOptions {
    readonly clock?: Clock;
    readonly onEvent?: SandboxEventSink;
    readonly warmBoxes?: number;
    readonly parkWarmBoxes?: boolean;
    readonly reaper?: boolean;
    readonly diskWatermark?: number;
    readonly runtime?: string;
    readonly images?: Partial<ImageSources>;
}

export interface EgressGate {
    readonly policy: EgressPolicy;
    set(policy: EgressPolicy): void;
    connect(request: IncomingMessage, socket: Duplex, head: Buffer): void;
    request(request: IncomingMessage, response: ServerResponse): void;
    close(): void;
}

export interface EgressGateOptions {
    readonly policy?: EgressPolicy;
    readonly onAttempt: (attempt: EgressAttempt) => void;
    readonly resolve?: (host: string) => Promise<readonly string[]>;
}

export type EgressPolicy = 'none' | 'open' | {
    readonly allow: readonly string[];
};

export type ExecOutcome = {
    readonly kind: 'exited';
    readonly code: number;
} | {
    readonly kind: 'signaled';
    readonly signal: string;
} | {
    readonly kind: 'timed_out';
}
 | {
    readonly kind: 'oom';
}
 | {
    readonly kind: 'box_dead';
    readonly why: BoxDeath;
};

export type ExecResult = ExecOutcome & {
    readonly stdout: Uint8Array;
    readonly stderr: Uint8Array;
    readonly truncated: {
        readonly stdout: number;
        readonly stderr: number;
    };
    readonly killed: number;
    readonly oomKills: number;
    readonly startedAt: number;
    readonly durationMs: number;
    readonly notStarted?: string;
};

export interface ExecSpec {
    readonly command: readonly string[] | string;
    readonly env?: Readonly<Record<string, string>>;
    readonly cwd?: string;
    readonly user?: string;
    readonly stdin?: Uint8Array | string | AsyncIterable<Uint8Array>;
    readonly timeoutMs?: number;
    readonly graceMs?: number;
    readonly maxOutputBytes?: number;
    readonly onStdout?: (chunk: Uint8Array) => void;
    readonly onStderr?: (chunk: Uint8Array) => void;
    readonly output?: 'kept' | 'told';
    readonly background?: 'kill' | 'keep';
    readonly eventRole?: Extract<EventBody, {
        kind: 'exec';
    }>['role'];
    readonly eventCommand?: string;
}

export interface FileTree {
    readonly fromDirectory: string;
    readonly uid?: number;
    readonly gid?: number;
}

export interface ImageOptions {
    readonly signal?: AbortSignal;
    readonly onProgress?: (line: string) => void;
}

export type ImageRecipe = 
{
    readonly kind: 'debian';
}
 | {
    readonly kind: 'paddock-base';
}
 | {
    readonly kind: 'reference';
    readonly reference: string;
}
 | {
    readonly kind: 'dockerfile';
    readonly name: string;
    readonly dockerfile: string;
    readonly context?: string | readonly ContextFile[];
    readonly buildArgs?: Readonly<Record<string, string>>;
    readonly timeoutMs?: number;
};

export interface ImageRef {
    readonly tag: string;
    readonly id: string;
    readonly recipeDigest: string;
    readonly fresh: boolean;
    readonly says?: ImageSays;
}

export interface ModelSocket extends AsyncDisposable {
    readonly id: string;
    readonly socketPath: string;
    serve(handlers: ModelSocketHandlers): void;
    unbind(): void;
    close(): Promise<void>;
}

export interface ModelSocketHandlers {
    request(request: IncomingMessage, response: ServerResponse): void;
    connect?(request: IncomingMessage, socket: Duplex, head: Buffer): void;
}

export interface PutFile {
    readonly path: string;
    readonly data: Uint8Array | string;
    readonly mode?: number;
    readonly uid?: number;
    readonly gid?: number;
}

export type SandboxEventSink = (event: EventBody, about: BoxLabels) => void;

export interface SandboxFacts {
    readonly reachable: boolean;
    readonly version: string | null;
    readonly apiVersion: string | null;
    readonly cgroup: 'v1' | 'v2' | 'unknown';
    readonly storageDriver: string | null;
    readonly cpus: number;
    readonly memoryBytes: number;
    readonly diskFreeBytes: number | null;
    readonly modelPath: 'socket' | 'stream' | null;
    readonly images: readonly string[];
    readonly problems: readonly SandboxProblem[];
}

export interface SandboxProblem {
    readonly code: string;
    readonly what: string;
    readonly fix: string;
    readonly weight: 'fatal' | 'warning';
}

export interface SandboxProvider extends AsyncDisposable {
    readonly name: string;
    probe(o?: {
        readonly signal?: AbortSignal;
    }): Promise<SandboxFacts>;
    ensureImage(recipe: ImageRecipe, o?: ImageOptions): Promise<ImageRef>;
    ensureBundle(spec: BundleSpec, o?: ImageOptions): Promise<BundleRef>;
    createBox(spec: BoxSpec, o?: {
        readonly signal?: AbortSignal;
    }): Promise<Box>;
    prefetch(spec: WarmSpec): BoxWish;
    pauseBoxes(): Promise<BoxPause>;
    openModelSocket(): Promise<ModelSocket>;
    sweep(o?: {
        readonly dryRun?: boolean;
        readonly buildCache?: boolean;
    }): Promise<SweepReport>;
    close(): Promise<void>;
}

export interface Snapshot extends AsyncDisposable {
    readonly image: ImageRef;
    readonly parent: string;
    readonly depth: number;
    readonly kept: boolean;
}

export interface SnapshotOptions {
    readonly callId?: Id;
    readonly request?: Digest;
    readonly without?: readonly string[];
    readonly keep?: KeepBounds;
}

export interface SweepReport {
    readonly removed: readonly SweptObject[];
    readonly kept: readonly SweptObject[];
    readonly failed: readonly (SweptObject & {
        readonly error: string;
    })[];
    readonly buildCacheBytes: number | null;
}

export interface Terminal extends AsyncDisposable {
    write(keys: string | Uint8Array): void;
    resize(columns: number, rows: number): void;
    screen(): Promise<TerminalScreen>;
    screenWhere(accepts: (screen: TerminalScreen) => boolean, signal?: AbortSignal): Promise<TerminalScreen>;
    recording(): string;
    onOutput(listener: (bytes: Uint8Array) => void): () => void;
    readonly ended: Promise<ExecResult>;
    close(): Promise<ExecResult>;
}

export interface TerminalScreen {
    readonly lines: readonly string[];
    readonly cursor: {
        readonly column: number;
        readonly row: number;
    };
    readonly columns: number;
    readonly rows: number;
}

export interface TerminalSpec {
    readonly command?: readonly string[] | string;
    readonly env?: Readonly<Record<string, string>>;
    readonly cwd?: string;
    readonly user?: string;
    readonly columns?: number;
    readonly rows?: number;
    readonly timeoutMs?: number;
    readonly maxRecordingBytes?: number;
}

export declare function dockerProvider(options?: DockerProviderOptions): SandboxProvider;

export declare function egressGate(options: EgressGateOptions): EgressGate;

export declare function parseEgress(policy: EgressPolicy): ParsedEgress;
