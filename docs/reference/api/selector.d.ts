export interface CandidateTask {
    readonly task: Task;
    readonly asked: number;
    readonly attempts: number;
    readonly numbers: number;
    readonly passed: number;
    readonly meanReward: number | null;
    readonly nulls: number;
    readonly infra: number;
    readonly used: number;
}

export interface GroupRecord {
    readonly id: Id;
    readonly runId: Id;
    readonly taskDigest: Digest;
    readonly promptVariant: string;
    readonly createdAt: number;
}

export type Id = string;

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

export interface RolloutView extends RolloutRecord {
    readonly taskDigest: Digest;
    readonly work: RolloutWork | null;
    readonly startedAt: number | null;
    readonly endedAt: number | null;
    readonly end: RolloutEnd | null;
    readonly endDetail: string;
    readonly taints: readonly string[];
    readonly verdicts: readonly Verdict[];
    readonly labels: Readonly<Record<string, string>>;
}

export interface Selector {
    readonly name: string;
    readonly apiVersion: 1;
    readonly version: string;
    select?(group: SelectorGroup): readonly Id[] | {
        readonly keep: readonly Id[];
        readonly reason: string;
    };
    choose?(choice: TaskChoice): readonly Digest[];
    readonly options?: Readonly<Record<string, SelectorOption>>;
}

export interface SelectorGroup {
    readonly group: GroupRecord;
    readonly task: Task;
    readonly rollouts: readonly {
        readonly rollout: RolloutView;
        readonly verdict: Verdict | null;
    }[];
}

export interface SelectorOption {
    readonly default: number;
    readonly min?: number;
    readonly max?: number;
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

export interface TaskChoice {
    readonly tasks: readonly CandidateTask[];
    readonly count: number;
    readonly options: Readonly<Record<string, number>>;
    readonly random: () => number;
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

export declare function defineSelector<const S extends Selector>(spec: S): S;
