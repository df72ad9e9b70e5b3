export interface ArtifactItem {
    readonly path: string;
    readonly content: Artifact;
}

export interface Artifacts {
    readonly items: readonly ArtifactItem[];
    readonly filesystem?: Snapshot;
}

export interface Attempt {
    readonly id: Id;
}

export interface BoxContext {
    readonly task: Task;
    readonly attempt: Attempt;
    readonly trainingStep?: number | null;
    readonly box: Box;
    readonly signal: AbortSignal;
    readonly emit: (event: EventBody) => void;
}

export interface BoxNeeds {
    readonly image: ImageRecipe;
    readonly profile: BoxProfile;
    readonly workdir: string | null;
    readonly user: string | null;
    readonly heedsImage?: true;
    readonly env: Readonly<Record<string, string>>;
    readonly cpus?: number;
    readonly memoryMb?: number;
    readonly pids?: number;
    readonly fileMb?: number;
    readonly diskMb?: number;
    readonly network: EgressPolicy;
    readonly setupNetwork?: EgressPolicy;
    readonly agentTimeoutMs: number | null;
    readonly verifyTimeoutMs: number | null;
}

export interface BroughtWork {
    readonly items: readonly ArtifactItem[];
    readonly answer: string | null;
}

export interface Environment {
    readonly name: string;
    readonly apiVersion: 1;
    readonly verifierVersion: string;
    readonly task: z.ZodType;
    load(path: string, o?: LoadOptions): Promise<readonly Task[]>;
    box(task: Task): BoxNeeds;
    verifierBox(task: Task): BoxNeeds | null;
    setup(context: BoxContext): Promise<void>;
    readonly resumesFromFiles: boolean;
    tools(task: Task): readonly Tool[];
    systemPrompt(task: Task): string | null;
    userPrompt(task: Task): string;
    steps(task: Task): TaskSteps | null;
    collect(context: BoxContext): Promise<Artifacts>;
    verify(context: VerifyContext): Promise<VerdictDraft>;
    outside(task: Task): OutsideWork | null;
    isReadOnly(task: Task): boolean;
    readonly scoreGroup: ((context: GroupContext) => Promise<readonly VerdictDraft[]>) | null;
    readonly scripts: EnvironmentScripts;
}

export type EnvironmentKit = typeof environmentKit;

export interface EnvironmentScripts {
    oracle(task: Task): Promise<NamedScript>;
    solutions(task: Task): Promise<readonly NamedScript[]>;
    readonly nullAgent: NamedScript;
    cheats(task: Task): Promise<readonly NamedScript[]>;
    distractors(task: Task): Promise<readonly NamedScript[]>;
}

export interface EnvironmentSpec<Data> {
    readonly name: string;
    readonly apiVersion: 1;
    readonly verifierVersion: string;
    readonly task: z.ZodType<Data>;
    load(path: string, o: LoadOptions): Promise<readonly Task[]>;
    box(task: TaskOf<Data>): BoxNeeds;
    verifierBox?(task: TaskOf<Data>): BoxNeeds | null;
    setup?(context: With<BoxContext, Data>): Promise<void>;
    readonly resumesFromFiles?: boolean;
    tools(task: TaskOf<Data>): readonly Tool[];
    systemPrompt?(task: TaskOf<Data>): string | null;
    userPrompt?(task: TaskOf<Data>): string;
    steps?(task: TaskOf<Data>): TaskSteps | null;
    collect(context: With<BoxContext, Data>): Promise<Artifacts>;
    verify(context: With<VerifyContext, Data>): Promise<VerdictDraft>;
    outside?(task: TaskOf<Data>): OutsideWork | null;
    isReadOnly?(task: TaskOf<Data>): boolean;
    scoreGroup?(context: With<GroupContext, Data>): Promise<readonly VerdictDraft[]>;
    readonly scripts: {
        oracle(task: TaskOf<Data>): Promise<NamedScript>;
        solutions?(task: TaskOf<Data>): Promise<readonly NamedScript[]>;
        readonly nullAgent?: NamedScript;
        cheats(task: TaskOf<Data>): Promise<readonly NamedScript[]>;
        distractors?(task: TaskOf<Data>): Promise<readonly NamedScript[]>;
    };
}

export interface GroupContext {
    readonly task: Task;
    readonly members: readonly GroupMember[];
    readonly signal: AbortSignal;
}

export interface GroupMember {
    readonly rolloutId: Id;
    readonly verdict: Verdict & {
        readonly reward: number;
    };
    readonly artifacts: Artifacts;
}

export interface LoadOptions {
    readonly signal?: AbortSignal;
    readonly onRefused?: (name: string, error: unknown) => void;
}

export interface NamedScript {
    readonly name: string;
    readonly weight: number;
    readonly script: Script;
    readonly files?: readonly {
        readonly directory: string;
        readonly from: FileTree;
    }[];
    readonly later?: readonly NamedScript[];
}

export interface OpenEnvOptions {
    readonly name: string;
    readonly version: string;
    readonly server: OpenEnvServer;
    readonly reward?: 'sum' | 'last';
    readonly answerMs?: number;
    readonly box?: Partial<BoxNeeds>;
}

export type OpenEnvServer = ServerProgram | {
    readonly url: string;
};

export interface OutsideWork {
    readonly places: readonly string[];
    artifacts(brought: BroughtWork): Artifacts;
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

export interface Script {
    readonly steps: readonly ScriptStep[];
}

export type ScriptStep = 
{
    readonly shell: string;
} | {
    readonly tool: string;
    readonly args: Readonly<Record<string, unknown>>;
} | {
    readonly say: string;
} | {
    readonly think: string;
} | {
    readonly parallel: readonly ScriptStep[];
};

export interface ServerProgram {
    readonly command: readonly string[];
    readonly cwd?: string;
    readonly env?: Readonly<Record<string, string>>;
    readonly startMs?: number;
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

export type TaskOf<Data> = Omit<Task, 'data'> & {
    readonly data: Data;
};

export interface TaskSteps {
    readonly tasks: readonly Task[];
    goesOn(index: number, draft: VerdictDraft): boolean;
    rollUp(drafts: readonly VerdictDraft[]): VerdictDraft;
}

export interface Tool {
    readonly name: string;
    readonly description: string;
    readonly spoken?: string;
    readonly input: z.ZodType;
    readonly inputSchema: Readonly<Record<string, unknown>>;
    readonly nativeToHarness?: true;
    run(context: ToolContext, input: unknown): Promise<ToolOutcome>;
}

export interface ToolContext {
    readonly task: Task;
    readonly attempt: Attempt;
    readonly box: Box;
    readonly signal: AbortSignal;
}

export interface ToolOutcome {
    readonly status: 'ok' | 'error' | 'timeout' | 'infra';
    readonly text: string;
    readonly pictures?: readonly ToolPicture[];
    readonly fault?: PaddockError;
    readonly facts?: Readonly<Record<string, number | string>>;
}

export interface ToolSpec<Input> {
    readonly name: string;
    readonly description: string;
    readonly spoken?: string;
    readonly input: z.ZodType<Input>;
    readonly nativeToHarness?: true;
    run(context: ToolContext, input: Input): Promise<ToolOutcome>;
}

export type Verdict = VerdictFacts & ({
    readonly status: 'scored' | 'hacked';
    readonly reward: number;
} | {
    readonly status: Exclude<VerdictStatus, 'scored' | 'hacked'>;
    readonly reward: null;
    readonly reason: string;
});

export interface VerifyContext {
    readonly task: Task;
    readonly artifacts: Artifacts;
    readonly toolCalls?: readonly ToolCallFact[];
    readonly openBox: (needs: BoxNeeds) => Promise<Box>;
    readonly signal: AbortSignal;
    readonly emit: (event: EventBody) => void;
}

export declare function defineEnvironment<Data>(spec: EnvironmentSpec<Data>): Environment;

export declare function defineTool<Input>(spec: ToolSpec<Input>): Tool;

export declare const environmentKit: {
    readonly z: typeof z;
    readonly defineEnvironment: typeof defineEnvironment;
    readonly defineTool: typeof defineTool;
    readonly openEnvEnvironment: typeof openEnvEnvironment;
    readonly toolOutcome: typeof toolOutcome;
    readonly perAttempt: typeof perAttempt;
    readonly makeTask: typeof makeTask;
    readonly loadJsonTasks: typeof loadJsonTasks;
    readonly packArtifact: typeof packArtifact;
    readonly restoreArtifact: typeof restoreArtifact;
    readonly artifactText: typeof artifactText;
    readonly scored: typeof scored;
    readonly hacked: typeof hacked;
    readonly unscored: typeof unscored;
    readonly stepsByStatus: typeof stepsByStatus;
    readonly compose: typeof compose;
    readonly runCheck: typeof runCheck;
    readonly createJudge: typeof createJudge;
    readonly loadRubric: typeof loadRubric;
    readonly directoryCache: typeof directoryCache;
    readonly rules: {
        readonly exact: typeof exact;
        readonly numeric: typeof numeric;
        readonly regex: typeof regex;
        readonly set: typeof set;
        readonly jsonEqual: typeof jsonEqual;
        readonly jsonSchema: typeof jsonSchema;
        readonly math: typeof math;
        readonly answerMatch: typeof answerMatch;
        readonly answerF1: typeof answerF1;
        readonly answerContains: typeof answerContains;
        readonly evidenceRecall: typeof evidenceRecall;
        readonly citationsGrounded: typeof citationsGrounded;
        readonly duplicateQueries: typeof duplicateQueries;
        readonly overSearch: typeof overSearch;
        readonly compareTables: typeof compareTables;
        readonly sqlPresets: Readonly<Record<"bird-ex" | "spider-testsuite" | "spider2" | "strict", import("../reward/index.ts").SqlSemantics>>;
    };
    readonly sha256: typeof sha256;
    readonly PaddockError: typeof PaddockError;
};

export declare function loadJsonTasks(path: string, o: LoadOptions & {
    readonly environment: string;
    readonly data: z.ZodType;
}): Promise<readonly Task[]>;

export declare function makeTask(parts: Omit<Task, 'digest'>): Task;

export declare function openEnvEnvironment(options: OpenEnvOptions): Environment;

export declare function packArtifact(item: ArtifactItem): Promise<PackedArtifact>;

export declare function perAttempt<T>(make: () => T): (context: {
    readonly attempt: Attempt;
}) => T;

export declare function restoreArtifact(box: Box, item: ArtifactItem, o: {
    readonly owner: number;
    readonly signal: AbortSignal;
}): Promise<void>;

export declare function sha256(data: Uint8Array | string): Digest;

export declare function toolOutcome(result: ExecResult): ToolOutcome;

export { z } from 'zod'
