export interface EngineAdapter {
    readonly name: string;
    readonly url: string;
    readonly apiKey: string | null;
    readonly gives: {
        readonly tokenIds: boolean;
        readonly logprobs: boolean;
        readonly everyLogprob?: false;
    };
    readonly logprobKind: LogprobKind;
    planChat(facts: EngineRequestFacts): EngineRequestPlan;
    readonly readsChat?: (sink: UpstreamSink) => UpstreamSink;
    readonly promptIds?: (chat: Uint8Array) => Promise<readonly number[]>;
    readonly score?: (ids: PromptIds, adapter: string | null) => Promise<ScoredIds>;
    readonly continuations?: ContinuationRoute;
    readonly textIds?: (text: string) => Promise<readonly number[]>;
    readonly boundThinking?: (tokens: string) => Readonly<Record<string, string>>;
    fingerprint(): Promise<EngineFingerprint>;
    learn(how: Learning): Promise<EngineFacts>;
    readonly tokens?: TokenEngine;
    readonly recordsByTokens?: boolean;
    readonly control?: EngineControl;
    readonly dispatcher: Dispatcher | null;
}

export interface EngineFingerprint {
    readonly engine: string;
    readonly version: string | null;
    readonly model: string;
    readonly tokenizer: string | null;
    readonly chatTemplate: string | null;
    readonly parsers: string | null;
    readonly logprobKind: LogprobKind;
    readonly speculative: string | null;
    readonly quantisation: string | null;
}

export interface EngineProbe {
    readonly url: string;
    readonly kind: 'vllm' | 'sglang' | 'llamacpp' | 'openai';
    readonly models: readonly string[];
    readonly model: string;
    readonly version: string | null;
    readonly givesIds: boolean;
    readonly givesPromptIds: boolean;
    readonly givesLogprobs: boolean;
    readonly givesToolCalls: boolean;
    readonly streamsIds: boolean;
    readonly routedExperts: boolean;
    readonly strictThinking: boolean;
    readonly splice: TokenAbility['way'] | null;
    readonly spliceVoid: string | null;
    readonly logprobKind: LogprobKind;
    readonly maxModelLen: number | null;
    readonly missing: readonly {
        readonly what: string;
        readonly fix: string;
    }[];
}

export interface EngineRequestFacts {
    readonly streamed: boolean;
    readonly hasTools: boolean;
    readonly askedLogprobs: boolean;
    readonly topLogprobs: number | null;
    readonly wholeOnly: boolean;
}

export interface EngineRequestPlan {
    readonly path: string;
    readonly set: Readonly<Record<string, string>>;
    readonly remove: readonly string[];
    readonly transport: 'as_asked' | 'buffer';
}

export interface LlamacppOptions {
    readonly url: string;
    readonly apiKey?: string | null;
}

export type LogprobKind = 'raw' | 'temperature' | 'processed' | 'unknown';

export interface OpenaiOptions {
    readonly url: string;
    readonly apiKey?: string | null;
    readonly logprobs?: boolean;
}

export interface SamplingParams {
    readonly temperature: number | null;
    readonly topP: number | null;
    readonly topK: number | null;
    readonly minP: number | null;
    readonly presencePenalty: number | null;
    readonly frequencyPenalty: number | null;
    readonly repetitionPenalty: number | null;
    readonly maxTokens: number | null;
    readonly seed: number | null;
    readonly stop: readonly string[];
    readonly n: number;
    readonly other: readonly string[];
}

export interface SglangOptions {
    readonly url: string;
    readonly apiKey?: string | null;
    readonly version?: string | null;
    readonly streamsIds?: boolean;
    readonly routedExperts?: boolean;
    readonly strictThinking?: boolean;
    readonly logprobKind?: LogprobKind;
}

export interface VllmOptions {
    readonly url: string;
    readonly apiKey?: string | null;
    readonly version?: string | null;
    readonly logprobKind?: LogprobKind;
}

export declare function llamacppEngine(options: LlamacppOptions): EngineAdapter;

export declare function openaiEngine(options: OpenaiOptions): EngineAdapter;

export declare function probeEngine(url: string, options?: {
    readonly apiKey?: string | null;
    readonly model?: string | null;
}): Promise<EngineProbe>;

export declare function sglangEngine(options: SglangOptions): EngineAdapter;

export declare function vllmEngine(options: VllmOptions): EngineAdapter;
