export interface DecodedConversation {
    readonly messages: readonly unknown[];
}

export interface DecodedRow {
    readonly rowId: string;
    readonly rolloutId: string;
    readonly groupId: string;
    readonly reward: number | null;
    readonly advantage?: number | null;
    readonly tokens: readonly number[];
    readonly mask: readonly number[];
    readonly logprobs: readonly number[];
}

export interface EngineContractOptions {
    readonly start: () => Promise<EngineUnderTest>;
    readonly givesIds: boolean;
    readonly splices: boolean;
    readonly takesTools?: boolean;
    readonly severalChoices?: boolean;
    readonly cutsAtContext?: boolean;
    readonly missesLogprobs?: boolean;
    readonly alive: boolean;
    readonly expected?: {
        readonly promptIds: readonly number[];
        readonly text: readonly number[];
        readonly call: readonly number[];
    };
}

export interface EngineFixture {
    readonly engine: string;
    readonly version: string | null;
    readonly sources: readonly string[];
    readonly model: string;
    readonly promptIds: readonly number[];
    readonly sampled: {
        readonly text: readonly number[];
        readonly call: readonly number[];
    };
    readonly routes: Readonly<Record<string, (request: FixtureRequest) => string | object>>;
}

export interface EngineUnderTest extends AsyncDisposable {
    readonly adapter: EngineAdapter;
    readonly model: string;
}

export interface EnvironmentContractOptions {
    readonly environment: Environment;
    readonly tasks: string;
    readonly refused?: readonly {
        readonly path: string;
        readonly code: string;
        readonly names: RegExp;
    }[];
    make(): Promise<SandboxProvider>;
}

export interface ExporterContractOptions {
    readonly options?: unknown;
    readonly decodeRows?: (directory: string) => Promise<readonly DecodedRow[]>;
    readonly decodeConversations?: (directory: string) => Promise<readonly DecodedConversation[]>;
}

export interface HarnessContractOptions {
    readonly exits?: readonly (Partial<HarnessExit> & {
        readonly end: string;
    })[];
}

export interface RuleContractOptions {
    readonly right: readonly string[];
    readonly wrong: readonly string[];
}

export interface SandboxContractOptions {
    make(): Promise<SandboxProvider>;
    readonly nasty?: number;
}

export declare function engineContract(name: string, given: EngineContractOptions): void;

export declare function environmentContract(options: EnvironmentContractOptions): void;

export declare function exporterContract(exporter: Exporter, given: ExporterContractOptions): void;

export declare function harnessContract(harness: Harness, options?: HarnessContractOptions): void;

export declare const openaiPlain: EngineFixture;

export declare function requireDocker(): Promise<boolean>;

export declare function ruleContract(name: string, rule: (answer: string) => RuleResult | Promise<RuleResult>, { right, wrong }: RuleContractOptions): void;

export declare function sandboxContract(options: SandboxContractOptions): void;

export declare function serveFixture(fixture: EngineFixture): Promise<AsyncDisposable & {
    readonly url: string;
    readonly asked: readonly FixtureRequest[];
}>;

export declare const vllm032: EngineFixture;
