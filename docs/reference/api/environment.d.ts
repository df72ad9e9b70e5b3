export interface AnsweringModel {
    readonly baseUrl: string;
    readonly apiKey: string;
    readonly model: string;
    readonly instructions?: string;
    readonly temperature?: number;
    readonly maxTokens?: number;
    readonly timeoutMs?: number;
    readonly tries?: number;
}

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

export interface CollectContext extends BoxContext {
    readonly lastSaid?: () => Promise<string | null>;
    readonly talk?: () => Promise<readonly Said[]>;
}

export interface Dice {
    readonly between: (low: number, high: number) => number;
    readonly pick: <T>(items: readonly T[]) => T;
    readonly shuffled: <T>(items: readonly T[]) => readonly T[];
}

export interface DraftFacts {
    readonly verifier: {
        readonly id: string;
        readonly version: string;
        readonly sha256: Digest;
    };
    readonly trust: Verdict['trust'];
    readonly components?: Readonly<Record<string, number>>;
    readonly steps?: Verdict['steps'];
    readonly evidence?: string;
    readonly artifacts?: Verdict['artifacts'];
    readonly costTokens?: number;
    readonly byPolicy?: Readonly<Record<string, number>>;
}

export interface Environment {
    readonly name: string;
    readonly apiVersion: 1;
    readonly verifierVersion: string;
    readonly task: z.ZodType;
    readonly generators: readonly TaskGenerator[];
    load(path: string, o?: LoadOptions): Promise<readonly Task[]>;
    box(task: Task): BoxNeeds;
    verifierBox(task: Task): BoxNeeds | null;
    setup(context: BoxContext): Promise<void>;
    readonly resumesFromFiles: boolean;
    tools(task: Task): readonly Tool[];
    systemPrompt(task: Task): string | null;
    userPrompt(task: Task): string;
    steps(task: Task): TaskSteps | null;
    user(task: Task): TaskUser | null;
    agents(task: Task): TaskAgents | null;
    collect(context: CollectContext): Promise<Artifacts>;
    verify(context: VerifyContext): Promise<VerdictDraft>;
    outside(task: Task): OutsideWork | null;
    readonly keepProof: ((task: Task, proofs: ReadonlyMap<Digest, TaskProof>) => Promise<void>) | null;
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
    readonly generators?: readonly GeneratorSpec<Data>[];
    box(task: TaskOf<Data>): BoxNeeds;
    verifierBox?(task: TaskOf<Data>): BoxNeeds | null;
    setup?(context: With<BoxContext, Data>): Promise<void>;
    readonly resumesFromFiles?: boolean;
    tools(task: TaskOf<Data>): readonly Tool[];
    systemPrompt?(task: TaskOf<Data>): string | null;
    userPrompt?(task: TaskOf<Data>): string;
    steps?(task: TaskOf<Data>): TaskSteps | null;
    user?(task: TaskOf<Data>): TaskUserSpec | null;
    agents?(task: TaskOf<Data>): TaskAgentsSpec | null;
    collect(context: With<CollectContext, Data>): Promise<Artifacts>;
    verify(context: With<VerifyContext, Data>): Promise<VerdictDraft>;
    outside?(task: TaskOf<Data>): OutsideWork | null;
    isReadOnly?(task: TaskOf<Data>): boolean;
    keepProof?(task: TaskOf<Data>, proofs: ReadonlyMap<Digest, TaskProof>): Promise<void>;
    scoreGroup?(context: With<GroupContext, Data>): Promise<readonly VerdictDraft[]>;
    readonly scripts: {
        oracle(task: TaskOf<Data>): Promise<NamedScript>;
        solutions?(task: TaskOf<Data>): Promise<readonly NamedScript[]>;
        readonly nullAgent?: NamedScript;
        cheats(task: TaskOf<Data>): Promise<readonly NamedScript[]>;
        distractors?(task: TaskOf<Data>): Promise<readonly NamedScript[]>;
    };
}

export interface GeneratedTask<Data> {
    readonly instruction: string;
    readonly data: Data;
}

export interface GeneratorSeed {
    readonly seed: number;
    readonly level: number;
    readonly signal?: AbortSignal;
}

export interface GeneratorSpec<Data> {
    readonly name: string;
    readonly levels: number;
    generate(at: GeneratorSeed): GeneratedTask<Data> | Promise<GeneratedTask<Data>>;
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
    readonly agents?: Readonly<Record<string, Script>>;
    readonly files?: readonly {
        readonly directory: string;
        readonly from: FileTree | readonly PutFile[];
    }[];
    readonly later?: readonly NamedScript[];
}

export interface NemoGymOptions {
    readonly name: string;
    readonly version: string;
    readonly app: string;
    readonly settings?: Readonly<Record<string, unknown>>;
    readonly others?: Readonly<Record<string, unknown>>;
    readonly python?: string;
    readonly env?: Readonly<Record<string, string>>;
    readonly startMs?: number;
    readonly answerMs?: number;
    readonly box?: Partial<BoxNeeds>;
}

export interface OpenEnvOptions {
    readonly name: string;
    readonly version: string;
    readonly server: OpenEnvServer;
    readonly reward?: RewardOf;
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

export interface RecordedResult {
    readonly args: unknown;
    readonly text: string;
    readonly status?: 'ok' | 'error' | 'timeout';
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

export interface TaskGenerator {
    readonly name: string;
    readonly levels: number;
    generate(at: GeneratorSeed): Promise<Task>;
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
    readonly deferred?: (context: ToolContext, input: unknown) => Deferral | null;
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
    readonly rewards?: Readonly<Record<string, number>>;
}

export interface ToolSpec<Input> {
    readonly name: string;
    readonly description: string;
    readonly spoken?: string;
    readonly input: z.ZodType<Input>;
    readonly nativeToHarness?: true;
    deferred?(context: ToolContext, input: Input): Deferral | null;
    run(context: ToolContext, input: Input): Promise<ToolOutcome>;
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

export type VerdictDraft = DistributiveOmit<Verdict, 'id' | 'rolloutId' | 'at' | 'by' | 'supersedes'>;

export interface VerifiersOptions {
    readonly name: string;
    readonly version: string;
    readonly load: string;
    readonly args?: Readonly<Record<string, unknown>>;
    readonly python?: string;
    readonly env?: Readonly<Record<string, string>>;
    readonly judge?: {
        readonly url: string;
        readonly model: string;
        readonly key?: string;
    };
    readonly startMs?: number;
    readonly answerMs?: number;
    readonly box?: Partial<BoxNeeds>;
}

export interface VerifyContext {
    readonly task: Task;
    readonly artifacts: Artifacts;
    readonly proof?: TaskProof | null;
    readonly onProof?: (digest: Digest, proof: TaskProof) => void;
    readonly toolCalls?: readonly ToolCallFact[];
    readonly openBox: (needs: BoxNeeds) => Promise<Box>;
    readonly judge?: FindJudgeServer;
    readonly signal: AbortSignal;
    readonly emit: (event: EventBody) => void;
}

export interface VirtualToolSpec<Input> extends Omit<ToolSpec<Input>, 'run'> {
    readonly record?: readonly RecordedResult[];
    readonly model?: AnsweringModel;
}

export declare function defineEnvironment<Data>(spec: EnvironmentSpec<Data>): Environment;

export declare function defineTool<Input>(spec: ToolSpec<Input>): Tool;

export declare const environmentKit: {
    readonly z: typeof z;
    readonly defineEnvironment: typeof defineEnvironment;
    readonly defineTool: typeof defineTool;
    readonly virtualTool: typeof virtualTool;
    readonly gui: typeof gui;
    readonly nemoGymEnvironment: typeof nemoGymEnvironment;
    readonly openEnvEnvironment: typeof openEnvEnvironment;
    readonly verifiersEnvironment: typeof verifiersEnvironment;
    readonly toolOutcome: typeof toolOutcome;
    readonly perAttempt: typeof perAttempt;
    readonly makeTask: typeof makeTask;
    readonly loadJsonTasks: typeof loadJsonTasks;
    readonly dice: typeof dice;
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
        readonly mathVerify: typeof mathVerify;
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

export namespace gui {
    export type Action = z.infer<typeof actionSchema>;

    export interface App {
        readonly name: string;
        readonly apiVersion: 1;
        readonly pointsAtPixels: boolean;
        readonly goals: readonly string[];
        readonly beside: Program | null;
        workspace(seed: number): Files | null;
        plan(goal: string, seed: number): Plan;
        open(seed: number): RunningApp;
    }

    export interface AppSpec<State extends object> {
        readonly name: string;
        readonly apiVersion: 1;
        readonly pointsAtPixels?: true;
        readonly start: (d: Dice) => State;
        readonly workspace?: (state: State) => Files;
        readonly beside?: Program;
        readonly page: (path: string, query: Fields, state: State) => Html | null;
        readonly act: (op: string, fields: Fields, state: State) => string;
        readonly tools?: (state: State) => readonly Tool[];
        readonly goals: Readonly<Record<string, (d: Dice, state: State) => GoalPlan<State>>>;
    }

    export declare class CdpRefusal extends Error {
        readonly method: string;
        constructor(method: string, message: string);
    }

    export type ComputerSession = Pick<GuiSession, 'screen' | 'pointer' | 'work' | 'act'>;

    export interface Dice {
        readonly between: (low: number, high: number) => number;
        readonly pick: <T>(items: readonly T[]) => T;
        readonly shuffled: <T>(items: readonly T[]) => readonly T[];
    }

    export interface Elsewhere {
        readonly id: string;
        readonly func: string;
        readonly options: Readonly<Record<string, unknown>>;
        readonly result: Found;
        readonly expected: Found;
    }

    export type Fields = Readonly<Record<string, string>>;

    export type Files = Readonly<Record<string, string>>;

    export type Found = {
        readonly kind: 'value';
        readonly value: unknown;
    } | {
        readonly kind: 'file';
        readonly name: string;
        readonly data: Buffer;
    } | {
        readonly kind: 'files';
        readonly files: readonly (Extract<Found, {
            kind: 'file';
        }> | null)[];
    } | null;

    export interface GoalPlan<State> {
        readonly instruction: string;
        readonly change?: (state: State) => void;
        readonly files?: (files: Files) => Files;
        readonly answer?: string;
        readonly oracle: readonly ScriptStep[];
        readonly near: readonly ScriptStep[];
    }

    export declare class GuiPage {
        #private;
        readonly targetId: string;
        url: string;
        dialog: Dialog | null;
        fault: PaddockError | null;
        dialogs: number;
        readonly ready: Promise<void>;
        constructor(parts: PageParts);
        get session(): string;
        get screen(): Screen;
        get busy(): boolean;
        send<T>(method: string, params: Readonly<Record<string, unknown>>, answer: z.ZodType<T>): Promise<T>;
        act(method: string, params: Readonly<Record<string, unknown>>): Promise<void>;
        hand(method: string, params: Readonly<Record<string, unknown>>): void;
        when(test: () => boolean, signal?: AbortSignal): Promise<void>;
        look(functionText: string, argument: unknown, awaited?: boolean, asUser?: boolean): Promise<unknown>;
        answerDialog(accept: boolean, text: string | null): Promise<void>;
        take({ method, params }: CdpEvent): void;
        wake(): void;
    }

    export type GuiRecord = z.infer<typeof recordSchema>;

    export declare class GuiSession {
        #private;
        constructor(parts: GuiSessionParts);
        get pointer(): {
            readonly x: number;
            readonly y: number;
        } | null;
        get surface(): Surface;
        get screen(): Screen;
        get browser(): GuiBrowser;
        get busy(): boolean;
        close(): Promise<void>;
        focus(backendNodeId: number, at: {
            readonly x: number;
            readonly y: number;
        }): Promise<void>;
        front(): Promise<void>;
        input(action: InputAction): Promise<void>;
        get clipboard(): Surface['clipboard'];
        get page(): GuiPage;
        record(): GuiRecord;
        work(shown: Shown, run: () => Promise<string | ToolOutcome>): Promise<ToolOutcome>;
        act(action: Action): Promise<ToolOutcome | string>;
        aim(target: string): Promise<{
            readonly ok: true;
            readonly node: ReferredNode;
            readonly x: number;
            readonly y: number;
        } | {
            readonly ok: false;
            readonly error: string;
        }>;
        nodes(): Promise<readonly ReferredNode[]>;
        snapshot(page: number): Promise<string>;
    }

    export declare class Html {
        readonly text: string;
        constructor(text: string);
    }

    export type HtmlPart = Html | string | number | false | null | readonly HtmlPart[];

    export interface ImportOptions extends Pick<LoadOptions, 'onRefused'> {
        readonly trustTasks: boolean;
    }

    export declare class Imported {
        #private;
        constructor({ onRefused }: Pick<ImportOptions, 'onRefused'>);
        take(name: string, read: () => Promise<Task | readonly Task[]>): Promise<void>;
        tasks(file: string, set: {
            readonly unsupported: 'refuse' | 'leave-out';
            readonly oracles: Readonly<Record<string, unknown>>;
        }): readonly Task[];
    }

    export interface Importer {
        readonly name: string;
        readonly apiVersion: 1;
        read(place: Place, o: ImportOptions): Promise<readonly Task[] | null>;
        hostProgram(task: Task): string | null;
        readonly environment: Environment;
    }

    export interface ImporterSpec<Data extends Shown> extends Omit<EnvironmentSpec<Data>, 'load' | 'resumesFromFiles' | 'scoreGroup' | 'scripts' | 'box' | 'tools' | 'collect'> {
        readonly name: string;
        read(place: Place, o: ImportOptions): Promise<readonly Task[] | null>;
        hostProgram?(task: TaskOf<Data>): string | null;
        attempt(task: TaskOf<Data>, box: Box): Promise<GuiSession>;
        box?(task: TaskOf<Data>): BoxNeeds;
        tools?(task: TaskOf<Data>): readonly Tool[];
        collect?(context: Omit<BoxContext, 'task'> & {
            readonly task: TaskOf<Data>;
        }): Promise<Artifacts>;
        readonly scripts: Omit<EnvironmentSpec<Data>['scripts'], 'nullAgent'>;
    }

    export interface Machine extends AsyncDisposable {
        readonly screen: Screen;
        readonly hasSudo: boolean;
        execute(command: MachineCommand, o?: {
            readonly shell?: boolean;
            readonly asRoot?: boolean;
        }): Promise<CommandResult>;
        launch(command: MachineCommand, shell: boolean): Promise<void>;
        upload(path: string, data: Uint8Array): Promise<void>;
        file(path: string): Promise<Buffer | null>;
        list(path: string): Promise<Listing | null>;
        activateWindow(window: WindowQuery): Promise<boolean>;
        closeWindow(window: WindowQuery): Promise<boolean>;
        windowSize(className: string): Promise<Screen | null>;
        pointer(): Promise<{
            readonly x: number;
            readonly y: number;
        }>;
        screenshot(): Promise<Uint8Array>;
        accessibility(): Promise<string>;
        terminal(): Promise<string | null>;
        input(action: SingleAction): Promise<void>;
        hold(what: {
            readonly key: string;
        } | {
            readonly button: 'left' | 'middle' | 'right';
        }, down: boolean): Promise<void>;
    }

    export interface MachineBrowser {
        tabs(): Promise<readonly Tab[]>;
        front(): Promise<Tab & {
            readonly content: string;
        }>;
        openTabs(urls: readonly string[]): Promise<void>;
        closeTabs(match: (url: string) => boolean): Promise<void>;
    }

    export declare class MachineSession implements ComputerSession {
        #private;
        constructor(machine: Machine, maxActions: number | null);
        get screen(): Screen;
        get pointer(): {
            readonly x: number;
            readonly y: number;
        } | null;
        record(): GuiRecord;
        work(shown: Shown, run: () => Promise<string | ToolOutcome>): Promise<ToolOutcome>;
        act(action: Action): Promise<string | ToolOutcome>;
    }

    export interface NamedRow {
        readonly name: string;
        readonly cells: readonly HtmlPart[];
    }

    export interface PageParts {
        readonly title: string;
        readonly body: HtmlPart;
        readonly bar?: readonly (readonly [text: string, path: string])[];
        readonly script?: string;
        readonly style?: string;
    }

    export interface Place {
        readonly path: string;
        readonly kind: 'file' | 'directory';
        readonly json: unknown;
    }

    export interface Plan {
        readonly instruction: string;
        readonly start: unknown;
        readonly expected: unknown;
        readonly answer: string | null;
        readonly files: Files | null;
        readonly oracle: readonly ScriptStep[];
        readonly near: readonly ScriptStep[];
    }

    export interface RunningApp {
        readonly tools: readonly Tool[];
        page(path: string, query: Fields): Html | null;
        act(op: string, fields: Fields): string;
        state(): unknown;
    }

    export interface Screen {
        readonly width: number;
        readonly height: number;
    }

    export type Shown = Pick<GuiData, 'tier' | 'screen' | 'image' | 'schema' | 'maxActions'>;

    export type Sidecar = z.infer<typeof sidecarSchema>;

    export type SingleAction = z.infer<typeof singleActionSchema>;

    export interface SiteRequest {
        readonly method: string;
        readonly url: URL;
        readonly headers: Readonly<Record<string, string>>;
        readonly body: Buffer;
    }

    export interface SiteResponse {
        readonly status: number;
        readonly headers?: Readonly<Record<string, string>>;
        readonly cookies?: readonly string[];
        readonly body?: string | Uint8Array;
    }

    export interface TaskSite extends Site {
        state(): unknown;
        readonly forged: number;
    }

    export declare function act(op: string, text: string, fields?: Readonly<Record<string, string | number>>, o?: {
        readonly label?: string;
        readonly plain?: boolean;
    }): Html;

    export declare function adaptedTool(adapter: ActionAdapter, screen: Screen, sessionOf: ComputerOf): Tool;

    export declare function adapterOf(schema: string | {
        readonly name: string;
        readonly coordinates: Coordinates;
    } | null): ActionAdapter | null;

    export declare function asset(...given: Parameters<typeof assetFile>): Promise<Buffer | null>;

    export declare function assetFile(assets: string, o: {
        readonly id: string;
        readonly url: string;
        readonly name: string;
    }): Promise<string | null>;

    export declare function box(tier: GuiData['tier']): BoxNeeds;

    export declare function boxMachine(box: Box, surface: Surface): Promise<Machine & MachineBrowser>;

    export declare function choice(label: string, name: string, options: readonly string[], chosen: string): Html;

    export declare const cities: readonly ['Aarhus', 'Bergen', 'Cork', 'Delft', 'Evora', 'Faro', 'Ghent', 'Haifa', 'Izmir', 'Jena', 'Krakow', 'Lyon'];

    export declare const colours: readonly ['red', 'blue', 'green', 'black', 'white', 'yellow'];

    export declare function computerTool(screen: Screen, sessionOf: ComputerOf): Tool;

    export declare function defineApp<State extends object>(spec: AppSpec<State>): App;

    export declare function defineImporter<Data extends Shown>(spec: ImporterSpec<Data>): Importer;

    export declare function field(label: string, name: string, o?: {
        readonly value?: string | number;
        readonly type?: string;
        readonly size?: number;
    }): Html;

    export declare const firstName: (person: string) => string;

    export declare function fitted<T>(schema: z.ZodType<T>, value: unknown, file: string, fix: string): T;

    export declare function form(op: string, body: HtmlPart, o?: {
        readonly inline?: boolean;
        readonly label?: string;
    }): Html;

    export declare function forwardSite(o: {
        readonly start: string;
        readonly origins: readonly string[];
    }): TaskSite;

    export declare function fromArtifacts(artifacts: Artifacts): GuiRecord;

    export declare function hidden(name: string, value: string | number): Html;

    export declare function html(strings: TemplateStringsArray, ...parts: readonly HtmlPart[]): Html;

    export declare function invalid(file: string, place: string, what: string, fix: string, cause?: unknown): PaddockError;

    export declare function measureElsewhere(sidecar: Sidecar, { id: task, func, options, result, expected }: Elsewhere, o: {
        readonly source: string;
        readonly signal: AbortSignal;
    }): Promise<number>;

    export declare const months: readonly ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December'];

    export declare function openAttempt(box: Box, shown: Shown & {
        readonly beside?: Program | null;
    }, site: () => TaskSite): Promise<GuiSession>;

    export declare function oracleScript(task: {
        readonly name: string;
        readonly data: {
            readonly oracle: readonly ScriptStep[] | null;
        };
    }): NamedScript;

    export declare function osworldMachine(url: string, o?: {
        readonly timeoutMs?: number;
    }): Promise<Machine>;

    export declare function page({ title, body, bar, script, style: own }: PageParts): Html;

    export declare function parseAction(input: unknown, screen: Screen): ParsedAction;

    export declare const people: readonly ['Ada Moran', 'Bo Lindqvist', 'Chidi Okafor', 'Dana Petrov', 'Elif Kaya', 'Farid Nasser', 'Greta Holm', 'Hugo Santos', 'Ines Duarte', 'Jun Takeda', 'Kira Novak', 'Liam Byrne'];

    export declare function programOf(sidecar: Sidecar | null): string | null;

    export declare const prompt: string;

    export declare function radios(name: string, options: readonly string[], chosen: string): readonly Html[];

    export declare function readJson(file: string): Promise<unknown>;

    export declare function requireKnown(file: string, oracles: Readonly<Record<string, unknown>>, names: readonly string[]): void;

    export declare function requireTrust(program: string | null, { trustTasks }: ImportOptions): void;

    export declare const screenShape: z.ZodOptional<z.ZodObject<{
        width: z.ZodDefault<z.ZodInt>;
        height: z.ZodDefault<z.ZodInt>;
    }, z.core.$strict>>;

    export declare const setShape: z.ZodObject<{
        image: z.ZodPrefault<z.ZodObject<{
            format: z.ZodDefault<z.ZodEnum<{
                jpeg: "jpeg";
                png: "png";
            }>>;
            scale: z.ZodDefault<z.ZodNumber>;
        }, z.core.$strict>>;
        schema: z.ZodDefault<z.ZodNullable<z.ZodUnion<readonly [z.ZodString, z.ZodObject<{
            name: z.ZodString;
            coordinates: z.ZodUnion<readonly [z.ZodEnum<{
                absolute: "absolute";
                fraction: "fraction";
                relative1000: "relative1000";
            }>, z.ZodObject<{
                resized: z.ZodInt;
                minPixels: z.ZodOptional<z.ZodInt>;
                maxPixels: z.ZodOptional<z.ZodInt>;
            }, z.core.$strict>]>;
        }, z.core.$strict>]>>>;
        maxActions: z.ZodDefault<z.ZodNullable<z.ZodInt>>;
        split: z.ZodDefault<z.ZodString>;
        oracles: z.ZodDefault<z.ZodRecord<z.ZodString, z.ZodArray<z.ZodType<ScriptStep, unknown, z.core.$ZodTypeInternals<ScriptStep, unknown>>>>>;
    }, z.core.$strict>;

    export declare const shownShape: z.ZodObject<{
        tier: z.ZodDefault<z.ZodEnum<{
            browser: "browser";
            desktop: "desktop";
        }>>;
        screen: z.ZodPrefault<z.ZodObject<{
            width: z.ZodDefault<z.ZodInt>;
            height: z.ZodDefault<z.ZodInt>;
        }, z.core.$strict>>;
        image: z.ZodPrefault<z.ZodObject<{
            format: z.ZodDefault<z.ZodEnum<{
                jpeg: "jpeg";
                png: "png";
            }>>;
            scale: z.ZodDefault<z.ZodNumber>;
        }, z.core.$strict>>;
        schema: z.ZodDefault<z.ZodNullable<z.ZodUnion<readonly [z.ZodString, z.ZodObject<{
            name: z.ZodString;
            coordinates: z.ZodUnion<readonly [z.ZodEnum<{
                absolute: "absolute";
                fraction: "fraction";
                relative1000: "relative1000";
            }>, z.ZodObject<{
                resized: z.ZodInt;
                minPixels: z.ZodOptional<z.ZodInt>;
                maxPixels: z.ZodOptional<z.ZodInt>;
            }, z.core.$strict>]>;
        }, z.core.$strict>]>>>;
        maxActions: z.ZodDefault<z.ZodNullable<z.ZodInt>>;
        oracle: z.ZodDefault<z.ZodNullable<z.ZodArray<z.ZodType<ScriptStep, unknown, z.core.$ZodTypeInternals<ScriptStep, unknown>>>>>;
    }, z.core.$strict>;

    export declare const sidecarSchema: z.ZodUnion<readonly [z.ZodObject<{
        command: z.ZodArray<z.ZodString>;
        seconds: z.ZodDefault<z.ZodNumber>;
    }, z.core.$strict>, z.ZodObject<{
        url: z.ZodURL;
        seconds: z.ZodDefault<z.ZodNumber>;
    }, z.core.$strict>]>;

    export namespace steps {
        export declare const answer: (text: string) => ScriptStep;

        export declare const click: (target: string) => ScriptStep;

        export declare const computer: (action: Readonly<Record<string, unknown>>) => ScriptStep;

        export declare const dialog: (accept: boolean, text?: string) => ScriptStep;

        export declare const done: () => ScriptStep;

        export declare const doubleClick: (target: string) => ScriptStep;

        export declare const drag: (from: string, to: string) => ScriptStep;

        export declare const enter: (target: string, text: string) => ScriptStep;

        export declare const go: (url: string) => ScriptStep;

        export declare const look: () => ScriptStep;

        export declare const press: (keys: string) => ScriptStep;

        export declare const q: (name: string) => string;

        export declare const saveDownload: (name: string) => ScriptStep;

        export declare const select: (target: string, option: string) => ScriptStep;

        export declare const terminal: (command: string) => ScriptStep;

        export declare const type: (target: string, text: string) => ScriptStep;

        export declare const upload: (target: string, files: readonly string[]) => ScriptStep;

        export declare const write: (text: string) => ScriptStep;
    }

    export declare function table(heads: readonly HtmlPart[], rows: readonly NamedRow[]): Html;

    export declare const things: readonly ['lamp', 'kettle', 'notebook', 'backpack', 'bicycle pump', 'desk fan', 'wall clock', 'umbrella', 'headset', 'water bottle', 'tripod', 'toolbox'];

    export declare function tick(label: string, name: string, checked: boolean, value?: string): Html;

    export declare function toArtifact(record: GuiRecord): ArtifactItem;

    export declare function tools({ screen, schema }: Shown, session: (box: Box) => Promise<GuiSession>): readonly Tool[];

    export declare const verifierVersion = "1";

    export declare function withoutSudo(command: string): string | null;
}

export declare function loadJsonTasks(path: string, o: LoadOptions & {
    readonly environment: string;
    readonly data: z.ZodType;
}): Promise<readonly Task[]>;

export declare function makeTask(parts: Omit<Task, 'digest'>): Task;

export declare function nemoGymEnvironment(options: NemoGymOptions): Environment;

export declare function openEnvEnvironment(options: OpenEnvOptions): Environment;

export declare function packArtifact(item: ArtifactItem): Promise<PackedArtifact>;

export declare function perAttempt<T>(make: () => T): (context: {
    readonly attempt: Attempt;
}) => T;

export declare function restoreArtifact(box: Box, item: ArtifactItem, o: {
    readonly owner: number;
    readonly signal: AbortSignal;
}): Promise<void>;

export declare function scored(reward: number, facts: DraftFacts): VerdictDraft;

export declare function sha256(data: Uint8Array | string): Digest;

export declare function toolOutcome(result: ExecResult): ToolOutcome;

export declare function unscored(status: Exclude<Verdict['status'], 'scored' | 'hacked'>, reason: string, facts: DraftFacts): VerdictDraft;

export declare function verifiersEnvironment(options: VerifiersOptions): Environment;

export declare function virtualTool<Input>(spec: VirtualToolSpec<Input>): Tool;

export { z } from 'zod'
