export interface BoxHarness extends HarnessFacts {
    readonly place: 'box';
    readonly bundle: HarnessBundle | null;
    readonly listsTools?: boolean;
    readonly resumes?: HarnessResume;
    readonly again?: {
        configure(context: LaunchContext): HarnessLaunch;
    };
    configure(context: LaunchContext): HarnessLaunch;
    parseResult(exit: HarnessExit): HarnessReport;
}

export interface FailurePattern {
    readonly pattern: RegExp;
    readonly end: Exclude<HarnessReport['end'], 'completed'>;
    readonly fault?: HarnessFault;
    readonly detail: string;
}

export type Harness = BoxHarness | HostHarness;

export interface HarnessBundle {
    readonly name: string;
    readonly version: string;
    build(directory: string, o: ImageOptions): Promise<void>;
}

export interface HarnessExit {
    readonly exitCode: number | null;
    readonly signal: string | null;
    readonly oom: boolean;
    readonly stdout: string;
    readonly stderr: string;
}

export interface HarnessFacts {
    readonly name: string;
    readonly apiVersion: 1;
    readonly version: string;
    readonly dialect: 'chat' | 'responses' | 'messages' | 'gemini';
    readonly actsInText?: true;
    readonly replays?: true;
}

export type HarnessFault = 'auth' | 'unknown_model' | 'context_overflow' | 'network' | 'engine' | 'limit';

export interface HarnessLaunch {
    readonly command: readonly string[] | string;
    readonly env: Readonly<Record<string, string>>;
    readonly files: readonly PutFile[];
    readonly stdin: string | null;
}

export interface HarnessReport {
    readonly end: 'completed' | 'horizon' | 'context_overflow' | 'harness_crash';
    readonly detail: string;
    readonly answer: string | null;
    readonly fault?: HarnessFault;
}

export interface HostContext {
    readonly task: Task;
    readonly attempt: Attempt;
    readonly prompt: string;
    readonly systemPrompt: string | null;
    readonly baseUrl: string;
    readonly apiKey: string;
    readonly model: string;
    readonly agents?: AgentPlaces;
    readonly box: Box | null;
    readonly tools: readonly Tool[];
    readonly goesOn: Uint8Array | null;
    readonly hear: ((said: string | null) => Promise<string | null>) | null;
    readonly signal: AbortSignal;
    readonly emit: (event: EventBody) => void;
    readonly keep: (bytes: Uint8Array) => Promise<Digest>;
    readonly onOutput: (stream: 'stdout' | 'stderr', chunk: Uint8Array) => void;
}

export interface HostHarness extends HarnessFacts {
    readonly place: 'host';
    readonly box: 'tools' | 'none';
    readonly restores?: true;
    readonly converses?: true;
    run(context: HostContext): Promise<HarnessReport>;
}

export interface LaunchContext {
    readonly task: Task;
    readonly prompt: string;
    readonly systemPrompt: string | null;
    readonly origin: string;
    readonly apiKey: string;
    readonly model: string;
    readonly agents?: AgentPlaces;
    readonly mcp: {
        readonly name: string;
        readonly url: string;
    } | null;
    readonly bundlePath: string | null;
    readonly home: string;
    readonly workdir: string;
}

export interface NpmBundleOptions {
    readonly name: string;
    readonly package: string;
    readonly version: string;
    readonly spec?: string;
    readonly node?: boolean;
    readonly files?: Readonly<Record<string, string>>;
    readonly executables?: readonly string[];
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

export interface Tool {
    readonly name: string;
    readonly description: string;
    readonly spoken?: string;
    readonly input: z.ZodType;
    readonly inputSchema: Readonly<Record<string, unknown>>;
    readonly nativeToHarness?: true;
    readonly deferred?: (context: ToolContext, input: unknown) => Deferral | null;
    run(context: ToolContext, input: unknown): Promise<ToolOutcome>;
}

export interface ToolOutcome {
    readonly status: 'ok' | 'error' | 'timeout' | 'infra';
    readonly text: string;
    readonly pictures?: readonly ToolPicture[];
    readonly fault?: PaddockError;
    readonly facts?: Readonly<Record<string, number | string>>;
    readonly rewards?: Readonly<Record<string, number>>;
}

export declare function defineHarness<H extends Harness>(spec: H): H;

export declare function nodeCommand(o: {
    readonly bundlePath: string;
    readonly package: string;
    readonly script: string;
    readonly flags?: readonly string[];
}): readonly string[];

export declare function npmBundle(o: NpmBundleOptions): HarnessBundle;

export declare function reportExit(exit: HarnessExit, patterns: readonly FailurePattern[], answer: string | null): HarnessReport;

export declare function runToolCall(tools: readonly Tool[], call: {
    readonly name: string;
    readonly argumentsText: string;
}, context: ToolContext): Promise<ToolOutcome>;
