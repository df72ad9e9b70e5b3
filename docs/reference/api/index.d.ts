export interface Clock {
    now(): number;
    monotonic(): number;
}

export type Config = z.output<typeof configSchema>;

export type ConfigInput = z.input<typeof configSchema>;

export interface DaemonOptions {
    readonly socketPath?: string;
    readonly host?: string;
    readonly tls?: {
        readonly ca?: string;
        readonly cert?: string;
        readonly key?: string;
    };
}

export type Digest = string;

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

export interface EnvironmentRegistry {
    readonly names: readonly string[];
    get(name: string): Environment;
}

export type ErrorCode = keyof typeof catalogue;

export type ErrorFamily = 'request' | 'engine' | 'infra' | 'agent';

export type Event = {
    readonly id: Id;
    readonly at: number;
    readonly rolloutId: Id | null;
    readonly sessionId: Id | null;
} & EventBody;

export interface ExportRequest {
    readonly reader: SelectionSource;
    readonly readRequest?: RequestReader;
    readonly exporter: string | Exporter;
    readonly out: string;
    readonly query?: SelectionQuery;
    readonly options?: unknown;
    readonly allow?: Partial<ExportAllowances>;
    readonly replace?: boolean;
    readonly clock?: Clock;
    readonly sideChannels?: Pick<Blobs, 'get'>;
    readonly paddockVersion: string;
    readonly signal?: AbortSignal;
}

export interface HarnessOptions {
    readonly command?: string | null;
    readonly versions?: Readonly<Record<string, string>>;
    readonly shell?: Pick<ShellOptions, 'bundle' | 'env' | 'again'>;
    readonly script?: Pick<ScriptOptions, 'env' | 'pass'>;
}

export interface HarnessRegistry {
    readonly names: readonly string[];
    get(name: string, options?: HarnessOptions): Harness;
}

export type Id = string;

export interface Listener {
    readonly origin: string;
    readonly port: number;
    adopt(socket: Socket, read: Uint8Array): void;
    close(): Promise<void>;
}

export interface LoadConfigOptions {
    readonly cwd: string;
    readonly file?: string | false;
    readonly env?: EnvironmentVariables;
    readonly overrides?: ConfigInput;
}

export interface LoadedConfig {
    readonly config: Config;
    readonly file: string | null;
    readonly directory: string;
}

export interface Manifest {
    readonly schema: 'paddock.manifest/1';
    readonly created_at: string;
    readonly paddock_version: string;
    readonly exporter: {
        readonly name: string;
        readonly version: string;
        readonly needs: string;
        readonly purpose: string;
        readonly trainer: TrainerNeeds;
        readonly options: unknown;
    };
    readonly selection: Readonly<Record<string, unknown>>;
    readonly allowances: Readonly<Record<string, boolean>>;
    readonly tokens: {
        readonly sampled: number;
        readonly trainable: number;
        readonly masked: Readonly<Record<string, number>>;
        readonly not_exported: Readonly<Record<string, number>>;
        readonly by_answer_length: readonly {
            readonly from: number;
            readonly to: number;
            readonly answers: number;
            readonly sampled: number;
            readonly trainable: number;
            readonly share: number;
        }[];
    };
    readonly rows: {
        readonly count: number;
        readonly tokens: number;
        readonly left_out: Readonly<Record<string, number>>;
    };
    readonly rollouts: {
        readonly selected: number;
        readonly exported: number;
        readonly dropped: readonly {
            readonly rollout_id: string;
            readonly reason: string;
            readonly detail: string;
        }[];
    };
    readonly groups: {
        readonly selected: number;
        readonly exported: number;
        readonly sizes: Readonly<Record<string, number>>;
        readonly dropped: readonly {
            readonly group_id: string;
            readonly reason: string;
            readonly rollouts: number;
        }[];
    };
    readonly nulls: Omit<NullShare, 'emptyTools'> & {
        readonly empty_tools: number;
    };
    readonly rewards: ExportFacts['rewards'];
    readonly drift: {
        readonly calls: number;
        readonly should_extend: number;
        readonly extended: number;
        readonly extension_rate: number | null;
        readonly exact: number;
        readonly exactness_rate: number | null;
        readonly forks: Readonly<Record<string, number>>;
    };
    readonly verdicts: {
        readonly statuses: Readonly<Record<string, number>>;
        readonly trusts: Readonly<Record<string, number>>;
        readonly verifiers: ExportFacts['verifiers'];
    };
    readonly tasks: ExportFacts['tasks'];
    readonly harnesses: Readonly<Record<string, number>>;
    readonly ends: Readonly<Record<string, number>>;
    readonly engines: readonly Readonly<Record<string, unknown>>[];
    readonly logprob_kinds: Readonly<Record<string, number>>;
    readonly policies: ExportFacts['policies'];
    readonly rules: {
        readonly token_ownership: string;
        readonly reward_weight: string;
        readonly advantage: string;
    };
    readonly files: readonly {
        readonly name: string;
        readonly size_bytes: number;
        readonly sha256: string;
    }[];
    readonly media: {
        readonly files: number;
        readonly size_bytes: number;
    };
}

export declare class PaddockError extends Error {
    readonly name = "PaddockError";
    readonly code: ErrorCode;
    readonly data: ErrorData;
    readonly fix: string;
    constructor(code: ErrorCode, message: string, options?: {
        data?: ErrorData;
        fix?: string;
        cause?: unknown;
    });
    get family(): ErrorFamily;
    get status(): number;
    line(): string;
    toJSON(): {
        code: ErrorCode;
        family: ErrorFamily;
        message: string;
        fix: string;
        data: ErrorData;
    };
}

export interface Proxy extends EngineSide {
    readonly policies: readonly PolicyFacts[];
    engineOf(policy: string | null): EngineSide;
    openSession(open: OpenSession): Promise<OpenedSession>;
    closeSession(id: Id): Promise<void>;
    closeOpenMode(): Promise<void>;
    sessionStats(id: Id): SessionStats;
    watchAnswers(id: Id, listener: AnswerListener): void;
    holdRequests(id: Id, hold: RequestHold): void;
    sessionHandler(id: Id): SessionHandler;
    listen(options: {
        readonly host?: string;
        readonly port?: number;
    }): Promise<Listener>;
    stats(): ProxyStats;
    shelveSession(id: Id): Promise<number>;
    canShelve(id: Id): boolean;
    resumeSession(id: Id): void;
    drain(): Promise<void>;
    close(): Promise<void>;
}

export interface ProxyOptions {
    readonly recorder: Recorder;
    readonly engine: EngineAdapter | null;
    readonly replicas?: readonly EngineAdapter[];
    readonly fleet?: Partial<FleetLimits>;
    readonly blobs?: Pick<Blobs, 'put'>;
    readonly putFingerprint?: (fingerprint: EngineFingerprint) => Promise<string>;
    readonly clock?: Clock;
    readonly onEvent?: (event: ProxyEvent) => void;
    readonly limits?: Partial<ProxyLimits>;
    readonly openMode?: boolean;
    readonly openPolicy?: Partial<SessionPolicy>;
    readonly revives?: (session: SessionRecord) => boolean | Promise<boolean>;
    readonly policies?: readonly ProxyPolicy[];
    readonly shard?: ProxyShard;
}

export interface RescoreOptions {
    readonly store: Pick<Store, 'catalogue' | 'blobs' | 'recorder'>;
    readonly environment: (name: string) => Environment;
    readonly sandbox: SandboxProvider | null;
    readonly elsewhere?: VerifyElsewhere | null;
    readonly judge?: FindRoleEngine | null;
    readonly rollouts: readonly RolloutView[];
    readonly tasks?: readonly Task[];
    readonly dryRun?: boolean;
    readonly parallel?: number;
    readonly signal: AbortSignal;
    readonly onResult?: (rescored: Rescored) => void;
    readonly clock?: Clock;
    readonly newId?: IdMaker;
}

export type RolloutEnd = 'completed' | 'agent_timeout' | 'budget' | 'context_overflow' | 'horizon' | 'harness_crash' | 'cancelled' | 'infra';

export interface RolloutSummary {
    readonly rolloutId: Id;
    readonly groupId: Id;
    readonly task: {
        readonly name: string;
        readonly digest: Digest;
    };
    readonly slot: number;
    readonly attempt: number;
    readonly harness: string;
    readonly end: RolloutEnd;
    readonly detail: string;
    readonly verdict: Verdict | null;
    readonly unverified: boolean;
    readonly taints: readonly string[];
    readonly emptyToolResults?: number;
    readonly calls: number;
    readonly sampledTokens: number;
    readonly durationMs: number;
    readonly agentMs: number;
    readonly retried: boolean;
}

export interface RunOptions {
    readonly store: Store;
    readonly proxy: Proxy;
    readonly inferenceOrigin?: string | null;
    readonly sandbox: SandboxProvider | null;
    readonly environment: Environment | null;
    readonly tasks: readonly Task[];
    readonly harness: Harness;
    readonly agentHarnesses?: Readonly<Record<string, Harness>>;
    readonly model: string;
    readonly n?: number;
    readonly group?: Omit<GroupRequest, 'n' | 'labels' | 'carry'>;
    readonly chain?: ChainSpec;
    readonly runId?: Id;
    readonly resume?: boolean;
    readonly request?: unknown;
    readonly name?: string;
    readonly promptVariant?: string;
    readonly policy?: Partial<SessionPolicy>;
    readonly labels?: Readonly<Record<string, string>>;
    readonly budgets?: Partial<StageBudgets>;
    readonly limits?: Partial<WorkerLimits>;
    readonly trainingStep?: number | null;
    readonly snapshotEvery?: number | null;
    readonly keepSnapshots?: KeepBounds;
    readonly policyPause?: PolicyPause;
    readonly judge?: FindRoleEngine | null;
    readonly userEngine?: FindRoleEngine | null;
    readonly shelving?: Shelving;
    readonly atWeightUpdate?: AtWeightUpdate;
    readonly infraRetries?: number;
    readonly maxNullShare?: number;
    readonly nullLimits?: NullLimits;
    readonly nodes?: NodesOfRun;
    readonly needs?: readonly string[];
    readonly elsewhere?: VerifyElsewhere | null;
    readonly doneHere?: boolean;
    readonly scriptedEngine?: {
        readonly control: string;
    } | null;
    readonly signal?: AbortSignal;
    readonly onProgress?: (progress: RunProgress) => void;
    readonly clock?: Clock;
    readonly newId?: IdMaker;
}

export type RunProgress = {
    readonly type: 'run';
    readonly runId: Id;
    readonly rollouts: number;
} | {
    readonly type: 'note';
    readonly line: string;
} | {
    readonly type: 'stage';
    readonly rolloutId: Id;
    readonly task: string;
    readonly slot: number;
    readonly attempt: number;
    readonly stage: Stage;
    readonly phase: 'start' | 'end';
}
 | {
    readonly type: 'reward';
    readonly rolloutId: Id;
    readonly parts: Readonly<Record<string, number>>;
} | {
    readonly type: 'ended';
    readonly rollout: RolloutSummary;
};

export interface RunSummary {
    readonly runId: Id;
    readonly cancelled: boolean;
    readonly rollouts: readonly RolloutSummary[];
    readonly groups: readonly GroupSummary[];
    readonly repeats: RepeatSummary | null;
    readonly leftovers: readonly string[];
}

export interface SelectionQuery {
    readonly runIds?: readonly Id[];
    readonly groupIds?: readonly Id[];
    readonly rolloutIds?: readonly Id[];
    readonly taskDigests?: readonly Digest[];
    readonly environments?: readonly string[];
    readonly harnesses?: readonly string[];
    readonly splits?: readonly string[];
    readonly policy?: string;
    readonly verdictStatuses?: readonly VerdictStatus[];
    readonly minReward?: number;
    readonly maxReward?: number;
    readonly trainClasses?: readonly CallClass[];
    readonly includeUntrainedRows?: boolean;
    readonly trainedRowsOnly?: boolean;
    readonly wholeAnswersOnly?: boolean;
    readonly oneRowPerRollout?: OneRowRule;
    readonly includeNullVerdicts?: boolean;
    readonly includeTainted?: boolean;
    readonly includeUnfinished?: boolean;
    readonly includeImported?: boolean;
    readonly view?: RowView;
    readonly includeSpans?: boolean;
    readonly includeEvents?: boolean;
    readonly selector?: Selector;
    readonly minGroupSize?: number;
    readonly exactGroupSize?: number;
    readonly dropZeroVariance?: boolean;
    readonly maskMixedWeights?: boolean;
    readonly weightRule?: WeightRule;
    readonly limit?: number;
}

export interface Store extends AsyncDisposable {
    readonly directory: string;
    readonly recorder: Recorder;
    readonly catalogue: Catalogue;
    readonly queue: Queue;
    readonly trainer: TrainerBook;
    readonly changes: StoreChanges;
    readonly blobs: Blobs;
    readonly recovered: {
        readonly interruptedCalls: number;
        readonly damaged: number;
    };
    close(): Promise<void>;
}

export interface StoreOptions {
    readonly synchronous?: Synchronous;
    readonly clock?: Clock;
    readonly limits?: Partial<ThreadLimits>;
    readonly catalogue?: string | null;
    readonly blobs?: BlobsOptions;
    readonly archive?: ArchiveOptions;
    readonly onRewound?: (error: PaddockError) => void;
    readonly work?: string;
}

export interface StoreReader extends AsyncDisposable {
    readonly directory: string;
    readonly recorder: RecorderReader;
    readonly catalogue: CatalogueReader;
    readonly trainer: TrainerReader;
    readonly blobs: Pick<Blobs, 'get' | 'has' | 'list'>;
    close(): Promise<void>;
}

export interface Task {
    readonly digest: Digest;
    readonly name: string;
    readonly environment: string;
    readonly instruction: string;
    readonly split: string;
    readonly data: unknown;
    readonly source: string;
}

export interface ValidateOptions {
    readonly environment: Environment;
    readonly tasks: readonly Task[];
    readonly refused?: readonly RefusedTask[];
    readonly sandbox: SandboxProvider;
    readonly signal: AbortSignal;
    readonly published?: boolean;
    readonly repeat?: number;
    readonly parallel?: number;
    readonly attempt?: typeof attempt;
    readonly onResult?: (row: ValidationRow) => void;
    readonly onProgress?: (line: string) => void;
}

export type Verdict = VerdictFacts & ({
    readonly status: 'scored' | 'hacked';
    readonly reward: number;
    readonly byPolicy?: Readonly<Record<string, number>>;
} | {
    readonly status: Exclude<VerdictStatus, 'scored' | 'hacked'>;
    readonly reward: null;
    readonly reason: string;
});

export declare function bareTask(o: {
    readonly name: string;
    readonly instruction: string;
    readonly split?: string;
}): Task;

export declare function createProxy(options: ProxyOptions): Proxy;

export declare function defineConfig(config: ConfigInput): ConfigInput;

export declare function dockerProvider(options?: DockerProviderOptions): SandboxProvider;

export declare function environmentRegistry(o?: {
    readonly plugins?: readonly EnvironmentSource[];
    readonly gui?: GuiPlugins;
    readonly directory?: string;
    readonly data?: string;
    readonly trustTasks?: boolean;
    readonly publicNetwork?: PublicNetwork;
}): Promise<EnvironmentRegistry>;

export declare function harnessRegistry(o?: {
    readonly plugins?: readonly Harness[];
}): HarnessRegistry;

export declare function isPaddockError(value: unknown): value is PaddockError;

export declare function loadConfig(options: LoadConfigOptions): Promise<LoadedConfig>;

export declare const newId: IdMaker;

export declare function openReader(directory: string, { catalogue: url }?: {
    readonly catalogue?: string | null;
}): Promise<StoreReader>;

export declare function openStore(directory: string, options?: StoreOptions): Promise<OwnedStore>;

export declare function rescoreRollouts(o: RescoreOptions): Promise<readonly Rescored[]>;

export declare function runExport(request: ExportRequest): Promise<Manifest>;

export declare function runRollouts(asked: RunOptions): Promise<RunSummary>;

export declare function validateTasks(o: ValidateOptions): Promise<readonly ValidationRow[]>;
