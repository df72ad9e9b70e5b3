export type CheckOutcome = {
    readonly kind: 'measured';
    readonly reward: number;
    readonly components: Readonly<Record<string, number>>;
    readonly output: string;
} | {
    readonly kind: 'broken';
    readonly reason: string;
    readonly output: string;
    readonly late?: boolean;
} | {
    readonly kind: 'fault';
    readonly reason: string;
    readonly output: string;
};

export interface CheckSpec {
    readonly command: readonly string[];
    readonly rewardDirectory: string;
    readonly timeoutMs: number;
    readonly cwd?: string;
    readonly env?: Readonly<Record<string, string>>;
    readonly user: string | null;
    readonly signal: AbortSignal;
}

export type Composed = {
    readonly ok: true;
    readonly reward: number;
} | {
    readonly ok: false;
    readonly reason: string;
};

export type Composition = {
    readonly kind: 'weighted';
    readonly weights: Readonly<Record<string, number>>;
} | {
    readonly kind: 'product';
    readonly of?: readonly string[];
} | {
    readonly kind: 'gate';
    readonly gates: Readonly<Record<string, number>>;
    readonly over: Composition;
} | {
    readonly kind: 'first_failing';
    readonly order: readonly string[];
    readonly threshold?: number;
};

export type DetectorName = keyof typeof detectors;

export type FindJudgeServer = () => Promise<JudgeServer>;

export interface Finding {
    readonly detector: DetectorName;
    readonly callId: string | null;
    readonly seen: string;
}

export interface Judge {
    score(cases: readonly JudgeCase[], o: ScoreOptions): Promise<readonly VerdictDraft[]>;
}

export interface JudgeCase {
    readonly question: string;
    readonly answer: string;
    readonly reference: string | null;
}

export interface JudgeOptions extends AskerOptions, Partial<JudgeServer> {
    readonly rubric: Rubric;
    readonly votes?: number;
    readonly swap?: boolean;
    readonly agreement?: number;
    readonly batch?: number;
    readonly watch?: number;
    readonly bribes?: number;
    readonly extraBribes?: readonly string[];
    readonly longCanaries?: boolean;
    readonly control?: boolean;
    readonly seed?: number;
    readonly cache?: JudgeCache;
}

export interface JudgeServer {
    readonly baseUrl: string;
    readonly apiKey: string;
    readonly model: string;
}

export interface Judged {
    readonly choice: string;
    readonly explanation: string;
}

export type Rubric = z.infer<typeof schema>;

export type Rule = (answer: string) => Promise<RuleResult>;

export interface RuleResult {
    readonly value: number;
    readonly why: string;
}

export type VerdictDraft = DistributiveOmit<Verdict, 'id' | 'rolloutId' | 'at' | 'by' | 'supersedes'>;

export declare function actionsOf(sessions: readonly SessionLog[]): {
    readonly actions: readonly Action[];
    readonly answers: readonly {
        readonly callId: Id;
        readonly text: string;
    }[];
};

export declare function answerContains(golds: readonly string[]): Rule;

export declare function answerF1(golds: readonly string[]): Rule;

export declare function answerInEvidence(answer: string, texts: readonly string[]): RuleResult;

export declare function answerMatch(golds: readonly string[]): Rule;

export declare function citationsGrounded(citations: readonly string[], shown: ReadonlySet<string>): RuleResult;

export declare function compareTables(gold: ResultTable, answer: ResultTable, o: CompareOptions): Promise<Comparison>;

export declare function compose(components: Readonly<Record<string, number>>, rule: Composition): Composed;

export declare function createJudge(options: JudgeOptions): Judge;

export declare function detect(seen: Seen): readonly Finding[];

export declare function directoryCache(directory: string): JudgeCache;

export declare function duplicateQueries(keys: readonly string[]): RuleResult;

export declare function evidenceRecall(gold: readonly string[], found: Iterable<string>): RuleResult;

export declare function exact(golds: string | readonly string[], steps?: Normalisation): Rule;

export declare function hacked(reward: number, facts: DraftFacts): VerdictDraft;

export declare function jsonEqual(gold: unknown, o?: JsonGoldOptions): Rule;

export declare function jsonSchema(schema: Readonly<Record<string, unknown>>): Rule;

export declare function loadRubric(path: string): Promise<Rubric>;

export declare function math(gold: string): Rule;

export declare function mathVerify(gold: string, o?: {
    readonly python?: string;
}): Rule;

export declare function memoryCache(): JudgeCache;

export declare function numeric(gold: number | string, tolerance?: Tolerance): Rule;

export declare function overSearch(count: number, allowed: number): RuleResult;

export declare function parseRubric(value: unknown, source: string): Rubric;

export declare function penalised(reward: number, penalties: Readonly<Record<string, number>>, weights: Readonly<Record<string, number>>): number;

export declare function regex(pattern: RegExp, o?: RegexOptions): Rule;

export declare function runCheck(box: Box, spec: CheckSpec): Promise<CheckOutcome>;

export declare function scored(reward: number, facts: DraftFacts): VerdictDraft;

export declare function set(golds: readonly string[], o: SetOptions): Rule;

export declare const sqlPresets: Readonly<Record<SqlPreset, SqlSemantics>>;

export declare function stepsByStatus(toolCalls: readonly ToolCallFact[]): Verdict['steps'];

export declare function unscored(status: Exclude<Verdict['status'], 'scored' | 'hacked'>, reason: string, facts: DraftFacts): VerdictDraft;
